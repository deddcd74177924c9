// Handles the form of a new game, and starts games: the players, the rules, and who begins.

import { post } from "./api.js";
import { $, onClick, scrollToBoard } from "./dom.js";
import { PlayerInput, plays } from "./players.js";
import { rulesetWords } from "./texts.js";

// Returns the rules of a game as requests and links give them: a shipped name, or switches.
export const rulesOf = ({ ruleset, rules }) => (rules === null ? { ruleset } : { ruleset, rules });

export class NewGame {
  // `shown(ruleset)` is called with the rules of the game on the board.
  constructor(table, setup, shown) {
    Object.assign(this, { table, setup, shown });
    this.rulesets = [...setup.rulesets]; // and the rules of links and files
    this.players = [0, 1].map((seat) => {
      const player = new PlayerInput($(`seat-${seat}`), $(`budget-${seat}`), setup);
      const [first] = setup.players; // a player of the command line has no kind
      player.spec = seat === 0 ? "human" : first.kind ? setup.levels[1].spec : first.value;
      return player;
    });
    for (const { name } of setup.rulesets) $("ruleset").add(new Option(name));
    this.noteFirstPlayer();
    onClick({
      "change-seats": () => table.change("seats", { seats: this.seats() }, false),
      rematch: () => this.again(table.game.seats.toReversed()),
      easier: () => this.changeLevel(-1),
      harder: () => this.changeLevel(1),
      "to-new": () => {
        $("panel-new").open = true;
        $("panel-new").scrollIntoView();
        $("seat-1").focus({ preventScroll: true });
      },
    });
    $("new-game").addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
    $("ruleset").addEventListener("change", () => {
      this.noteRules();
      this.noteFirstPlayer();
    });
  }

  // Returns the rules that the form shows.
  ruleset() {
    return this.rulesets[$("ruleset").selectedIndex];
  }

  noteRules() {
    $("ruleset-note").textContent = rulesetWords(this.ruleset());
    for (const player of this.players) player.play(this.ruleset().name);
  }

  noteFirstPlayer() {
    $("first-player").value = this.ruleset().first_player;
  }

  seats() {
    return this.players.map((player) => player.spec);
  }

  // Returns the game that the form describes.
  chosen() {
    const { name: ruleset, rules } = this.ruleset();
    return { seats: this.seats(), ...rulesOf({ ruleset, rules }) };
  }

  // Sets the form to the players and the rules of the game on the board; adds the rules if new.
  showGame() {
    const { seats, ruleset, rules } = this.table.game;
    let index = this.rulesets.findIndex((offered) => offered.name === ruleset && offered.rules === rules);
    if (index < 0) {
      const firstPlayer = JSON.parse(rules)?.first_player ?? "south";
      index = this.rulesets.push({ name: ruleset, rules, first_player: firstPlayer }) - 1;
      $("ruleset").add(new Option(ruleset));
    }
    const hasOtherRules = $("ruleset").selectedIndex !== index;
    $("ruleset").selectedIndex = index;
    this.noteRules();
    if (hasOtherRules) this.noteFirstPlayer();
    this.shown(ruleset);
    seats.forEach((spec, seat) => { this.players[seat].spec = spec; });
  }

  // Starts a game, and returns the server's answer; null if the server refuses. Without a first
  // player, the rules say who begins.
  async begin(data, { path = "api/games", ...how } = {}) {
    try {
      const answer = post(path, data);
      await this.table.begin(answer, how);
      if (!how.task) this.showGame();
      scrollToBoard();
      return await answer;
    } catch (error) {
      this.table.complain(error);
      return null;
    }
  }

  // Starts the game of the form.
  start(how) {
    return this.begin({ ...this.chosen(), first_player: $("first-player").value }, how);
  }

  // Starts a game from a position, under the rules of the form.
  setUp(position) {
    return this.begin({ ...this.chosen(), position });
  }

  // Starts a learner's game against the weakest player.
  playLevel(ruleset) {
    return this.begin({ seats: ["human", this.setup.levels[0].spec], ruleset });
  }

  // Starts another game under the same rules.
  again(seats) {
    return this.begin({ seats, ...rulesOf(this.table.game) });
  }

  // Returns the level next to that of a person's opponent, if there is one.
  nextLevel(by) {
    const { seats, ruleset } = this.table.game;
    const levels = this.setup.levels.filter((level) => plays(this.setup, level, ruleset));
    const index = levels.findIndex(({ spec }) => seats.includes(spec));
    return index < 0 || !seats.includes("human") ? undefined : levels[index + by]?.spec;
  }

  showLevels() {
    $("easier").hidden = !this.nextLevel(-1);
    $("harder").hidden = !this.nextLevel(1);
  }

  // Plays again, against a weaker or stronger opponent.
  changeLevel(by) {
    return this.again(this.table.game.seats.map((spec) => (spec === "human" ? spec : this.nextLevel(by))));
  }
}
