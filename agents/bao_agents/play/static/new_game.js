// The form of a new game, and how games begin: the players, the rules, and who begins.

import { post } from "./api.js";
import { $, onClick, scrollToBoard } from "./dom.js";
import { PlayerInput, plays } from "./players.js";
import { rulesetWords } from "./texts.js";

// The rules of a game as requests and links name them: by a shipped name, or by their switches.
export const rulesOf = ({ ruleset, rules }) => (rules === null ? { ruleset } : { ruleset, rules });

export class NewGame {
  // `shown(ruleset)` hears which rules the game on the board has.
  constructor(table, setup, shown) {
    Object.assign(this, { table, setup, shown });
    this.rulesets = [...setup.rulesets]; // and those of links and files
    this.players = [0, 1].map((seat) => {
      const player = new PlayerInput($(`seat-${seat}`), $(`budget-${seat}`), setup);
      const [first] = setup.players; // one of the command line has no kind
      player.spec = seat === 0 ? "human" : first.kind ? setup.levels[1].spec : first.value;
      return player;
    });
    for (const { name } of setup.rulesets) $("ruleset").add(new Option(name));
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
      $("first-player").value = this.ruleset().first_player;
    });
  }

  // The rules that the form shows.
  ruleset() {
    return this.rulesets[$("ruleset").selectedIndex];
  }

  noteRules() {
    $("ruleset-note").textContent = rulesetWords(this.ruleset());
    for (const player of this.players) player.play(this.ruleset().name);
  }

  seats() {
    return this.players.map((player) => player.spec);
  }

  // What the form says of a game.
  chosen() {
    const { name: ruleset, rules } = this.ruleset();
    return { seats: this.seats(), ...rulesOf({ ruleset, rules }) };
  }

  // Shows in the form who plays the game on the board, and by which rules, which it then offers.
  showGame() {
    const { seats, ruleset, rules } = this.table.game;
    let index = this.rulesets.findIndex((offered) => offered.name === ruleset && offered.rules === rules);
    if (index < 0) {
      index = this.rulesets.push({ name: ruleset, rules, first_player: "south" }) - 1;
      $("ruleset").add(new Option(ruleset));
    }
    $("ruleset").selectedIndex = index;
    this.noteRules();
    this.shown(ruleset);
    seats.forEach((spec, seat) => { this.players[seat].spec = spec; });
  }

  // Begins a game, and returns the server's answer; null if it refuses. Without a first player the
  // rules say who begins.
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

  // Begins the game of the form.
  start(how) {
    return this.begin({ ...this.chosen(), first_player: $("first-player").value }, how);
  }

  // Begins a game from a position, by the rules of the form.
  setUp(position) {
    return this.begin({ ...this.chosen(), position });
  }

  // Begins a learner's game against the weakest player.
  playLevel(ruleset) {
    return this.begin({ seats: ["human", this.setup.levels[0].spec], ruleset });
  }

  // Begins another game by the same rules.
  again(seats) {
    return this.begin({ seats, ...rulesOf(this.table.game) });
  }

  // The level next to that of a person's opponent, if there is one.
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
