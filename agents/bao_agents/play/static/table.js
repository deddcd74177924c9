// Handles the game on the page: sends moves to the server, shows its moves, and lets bots move.
//
// `game` is the current state of the game, and `state` what the board shows. `mode` says how:
//   play    the game, in which people move
//   lesson  the game of a lesson or puzzle that is already answered: nobody moves
//   look    the game at another ply
//   story   a move event by event, or a move of the best line
//   edit    a position that is being set up
// Only the first two show the game itself. The others do not change it, except by `playFromHere`.
// `pending` has what is under way: a "move" of a person, a "bot" that thinks, "seeds" that move.
// A bot may think while seeds move, because people may look back in the meantime.

import { post } from "./api.js";
import { $, onClick } from "./dom.js";
import { Latest } from "./latest.js";
import { moveSummary, showLines, showMoves, spelling } from "./moves.js";
import { Pits } from "./pits.js";
import { announce, caption, complain, refuse, say, sentences, serverAnswers, slowly, tell } from "./say.js";
import { captionWords, showControls, showStatus, statusWords, whyWords } from "./status.js";
import { eventWords, seatName, t } from "./texts.js";

const FOLLOW_MS = 2000; // milliseconds between two checks for moves of another page
const ANNOUNCE_MS = 1000; // a bot that thinks longer is announced
const SLOW_MS = 500; // an answer that takes longer is announced as on its way
const READ_MS = 50; // milliseconds for each letter of a caption that a learner reads

export class Table {
  // `nameOf(spec)` returns a player in words. `edit(hollow, right)` is called for clicks in pits
  // while a position is being set up. `changed(what)` is called for a new "game", a "move" and a
  // "look" elsewhere, and then for the "position" shown.
  constructor({ nameOf, edit, changed }) {
    Object.assign(this, { nameOf, edit, changed });
    this.id = null;
    this.task = null; // a lesson or puzzle, which is not the visitor's game: its address, and the words that end it
    this.game = null;
    this.state = null;
    this.mode = "play";
    this.pending = new Set();
    this.paused = false; // whether bots wait
    this.slow = false; // whether the server takes long to answer a move
    this.marks = {}; // the review's marks of moves, by ply
    this.beginning = Promise.resolve(); // the last new game, or change of the game
    this.running = Promise.resolve(); // the last animation
    this.changes = new Latest(); // requests and animations of the game
    this.answered = () => {}; // called when the server has answered a move
    this.looks = new Latest(); // requests to look elsewhere
    this.pits = new Pits({
      pit: (hollow, right) => this.onPit(hollow, right),
      sow: (hollow, side) => this.onArrow(hollow, side),
      ask: (words) => (words ? tell(words) : caption(captionWords(this))),
    });
    onClick({
      undo: () => this.undo(),
      redo: () => this.redo(),
      skip: () => this.skip(),
      pause: () => this.pause(true),
      "go-on": () => this.pause(false),
      turn: () => this.turn(),
      resign: () => this.resign(),
      replay: () => this.replay(),
      back: () => this.look(this.game.current_ply),
      first: () => this.look(0),
      previous: () => this.look(this.state.ply - 1),
      next: () => this.look(this.state.ply + 1),
      last: () => this.look(this.state.length),
      "play-from-here": () => this.playFromHere(),
    });
    $("typing").addEventListener("submit", (event) => {
      event.preventDefault();
      this.playTyped();
    });
    setInterval(() => this.followOthers(), FOLLOW_MS);
  }

  get board() {
    return this.pits.board;
  }

  // Returns whether the board shows something other than the current state of the game.
  get away() {
    return this.mode !== "play" && this.mode !== "lesson";
  }

  // Returns the mode in which the game itself is shown.
  get home() {
    return this.task?.over ? "lesson" : "play";
  }

  get playable() {
    const moving = this.pending.has("seeds") || this.pending.has("move");
    return this.mode === "play" && !moving && !this.state.outcome && this.isHuman(this.state.mover);
  }

  isHuman(seat) {
    return this.state.seats[seat] === "human";
  }

  // Does some work, and says why if it fails.
  attempt(work) {
    return work().catch((error) => this.complain(error));
  }

  complain(error) {
    complain(error);
    if (error.status === 409) this.refresh();
  }

  // --- showing ---

  // Shows a state in a mode. Without a state the seeds stay where they are: they may be moving.
  render(state = null, mode = this.mode) {
    this.mode = mode;
    $("play").dataset.mode = mode;
    $("board").classList.toggle("thinking", this.pending.has("bot"));
    this.pits.keepFocus(() => {
      if (state) {
        this.state = state;
        this.board.show(state);
        this.pits.choose(null);
        this.showMoves();
        caption(captionWords(this));
        $("position").value = state.text;
      }
      this.pits.show(this.state, this.playable);
      showStatus(this);
      showControls(this);
    });
  }

  // Draws the board again if the window needs it; waits until no seeds move.
  async layOut() {
    this.skip();
    await this.running;
    if (await this.pits.layOut(this.game)) this.render(this.state);
  }

  showMoves() {
    showMoves(this.game, this.state.ply, this.marks, (ply) => this.look(ply));
    showLines(this.game, (index) => this.change("line", { index }, true));
  }

  // Marks moves in the list, by ply.
  mark(marks) {
    this.marks = marks;
    if (this.state) this.pits.keepFocus(() => this.showMoves());
  }

  // Does some work, and keeps its kind in `pending` until it ends.
  async during(activity, work) {
    this.pending.add(activity);
    this.render();
    try {
      return await work();
    } finally {
      this.pending.delete(activity);
      this.render();
    }
  }

  // --- a game from the server ---

  begin(promise, how = {}) {
    const game = this.start(promise, how);
    this.beginning = game.catch(() => {}); // the caller who began the game handles a failure
    return game;
  }

  // `replace` keeps the address out of the browser's history; `task` is the address of a lesson or
  // puzzle.
  async start(promise, { replace = false, task = null } = {}) {
    const fresh = this.changes.next();
    this.takeBack();
    this.skip();
    const { id, dropped, state } = await promise;
    if (!fresh()) return;
    this.changes.next(); // requests for the old game no longer count
    this.id = id;
    this.task = task && { address: task, over: "" };
    const address = `#${task ?? `game=${id}`}`;
    if (location.hash !== address) history[replace ? "replaceState" : "pushState"](null, "", address);
    this.paused = state.current_ply < state.length;
    this.pits.viewer = state.seats[0] !== "human" && state.seats[1] === "human" ? 1 : 0;
    say("");
    this.changed("game");
    await this.take(state);
    if (task) return;
    const note = dropped ? t("dropped") : "";
    if (note) caption(note);
    announce(sentences(t("new_game"), statusWords(this), whyWords(this), note));
  }

  // Ends the task of the game with some words; then nobody moves. Without words, the task
  // continues.
  endTask(over) {
    this.task.over = over;
    if (!this.away) this.render(null, this.home);
  }

  // Sends a request about the game. If the server has lost the game, restarts it under its name.
  async ask(request, data) {
    const send = () => post(`api/games/${this.id}/${request}`, data);
    const answer = await send().catch(async (error) => {
      if (error.status !== 404) throw error;
      const { transcripts, seats } = this.game;
      const { state } = await post("api/games", { transcript: transcripts[0], seats, name: this.id });
      if (!this.away) this.state = state;
      this.game = state;
      return send();
    });
    serverAnswers();
    return answer;
  }

  refresh() {
    return this.ask("look").then(({ state }) => this.take(state), () => {}); // if it fails, the earlier message stays
  }

  // Shows the game as it stands, and lets bots answer.
  async take(game) {
    const fresh = this.changes.current();
    this.skip();
    await this.running; // or the animation would continue over the new position
    if (!fresh()) return;
    this.state = this.game = game;
    this.mode = this.home;
    await this.layOut();
    this.render(game);
    this.changed("position");
    this.letBotMove();
  }

  // Takes over the new state of the game, but keeps showing what people look at.
  keep(game) {
    this.game = game;
    this.showMoves();
    this.render();
  }

  // Shows what another page of the same game has done in the meantime.
  async followOthers() {
    const free = () => this.id && !document.hidden && !this.pending.size;
    if (!free()) return;
    const fresh = this.changes.current();
    const answer = await this.ask("look").catch(() => null);
    if (!answer || !fresh() || !free()) return;
    const game = answer.state;
    if (game.version <= this.game.version) {
      this.letBotMove();
      return;
    }
    this.paused = game.current_ply < game.length;
    if (this.away) this.keep(game);
    else if (game.current_ply === this.game.current_ply + 1 && game.length === game.current_ply) {
      await this.follow(this.ask("events", { ply: this.game.current_ply }).then(({ events }) => ({ events, state: game })));
    } else await this.take(game);
  }

  // --- moving ---

  // Moves seeds when the running animation has stopped; false if the game has changed meanwhile.
  async alone(work) {
    const fresh = this.changes.current();
    this.skip();
    await this.running; // of a replay
    this.board.skipping = false;
    this.running = this.during("seeds", work);
    await this.running;
    this.board.skipping = false;
    return fresh();
  }

  // In a lesson each event lasts as long as it takes to read.
  animate(events) {
    return this.alone(() => this.board.animate(events, (event) => {
      const words = eventWords(event);
      caption(words);
      return this.task?.address.startsWith("lesson") ? READ_MS * words.length : 0;
    }));
  }

  skip() {
    if (this.board) this.board.skipping = true;
  }

  // Returns whether people may play one of a seat's pits now; if not, says why.
  async mayPlay(seat) {
    await this.beginning; // a click is meant for the new game, not the one it replaces
    say("");
    if (this.pending.has("seeds")) this.skip();
    else if (!this.state) return false;
    else if (this.mode === "lesson") say(t(this.task.over));
    else if (this.away) say(t("only_looking"));
    else if (this.state.outcome) say(t("is_over"));
    else if (!this.isHuman(this.state.mover)) say(t(this.paused ? "bot_paused" : "bot_moves"));
    else if (seat !== this.state.mover) say(t("not_yours", { who: seatName(this.state.mover) }));
    else return true;
    return false;
  }

  // Handles a click, a tap or Enter on a pit. If the pit has two directions, this only chooses the
  // pit, or takes the choice back; but the `right` mouse button sows right.
  async onPit(hollow, right) {
    if (this.mode === "edit") {
      this.edit(hollow, right);
      return;
    }
    const { chosen } = this.pits;
    this.pits.choose(null);
    this.pits.focus = hollow;
    if (chosen === hollow || !(await this.mayPlay(hollow.seat))) return;
    const sides = this.pits.sides(hollow);
    if (sides.length === 2 && (!right || this.pits.choice(hollow) === "end")) this.pits.choose(hollow);
    else await this.sow(hollow, sides.length === 1 ? sides[0] : right ? "right" : "left");
  }

  async onArrow(hollow, side) {
    if (await this.mayPlay(hollow.seat)) await this.sow(hollow, side);
  }

  async sow(hollow, side) {
    if (this.pending.has("seeds") || this.pending.has("move")) return; // a double click is one click
    this.pits.choose(null);
    const direction = [0, 1].find((number) => this.board.side(hollow.seat, number) === side);
    const options = this.pits.options(hollow, side);
    const move = { pit: hollow.pit, direction, ply: this.state.ply };
    if (options.length === 0) await this.attempt(async () => refuse(hollow, await this.ask("why", move), this.game.rule_numbers));
    else if (options.length === 1) await this.send(() => this.play("play", { action: options[0].action }));
    else await this.send(() => this.askHouse(move, options));
  }

  async send(work) {
    const say = (slow) => {
      this.slow = slow;
      this.render();
    };
    const timer = setTimeout(() => say(true), SLOW_MS);
    this.answered = () => {
      clearTimeout(timer);
      if (this.slow) say(false);
    };
    await this.during("move", () => this.attempt(work));
    this.answered();
  }

  // Gives the game up for the person to move, or for the only person.
  resign() {
    const { current_ply: ply, mover, seats } = this.game;
    const seat = seats[mover] === "human" ? mover : 1 - mover;
    return this.change("resign", { seat, ply }, true);
  }

  // Asks below the board whether to stop in the house or to play it.
  async askHouse(move, options) {
    const { events } = await this.ask("choice", move);
    if (!(await this.animate(events))) return;
    const strip = $("house");
    strip.returnValue = "";
    strip.show();
    strip.scrollIntoView({ block: "nearest" });
    await new Promise((done) => { strip.addEventListener("close", done, { once: true }); });
    const option = options.find(({ house }) => ["stop", "play"][house] === strip.returnValue);
    if (option) await this.play("play", { action: option.action }, events.length);
    else this.render(this.state);
  }

  // Ends the question about the house; anything else that people do takes the move back.
  takeBack() {
    $("house").close("");
  }

  // Plays a person's move, however it was entered, and ends a pause. `shown` is the number of
  // events that were already shown.
  async play(request, move, shown = 0) {
    const hadFocus = $("board").contains(document.activeElement);
    this.paused = false;
    await this.follow(this.ask(request, { ...move, ply: this.state.ply }), shown);
    if (hadFocus) this.pits.focus?.button.focus({ preventScroll: true });
  }

  // Plays a move that was typed, in any notation.
  async playTyped() {
    if (this.pending.has("move") || !(await this.mayPlay(this.state.mover))) return;
    if (!$("typed").value.trim()) {
      say(t("typed_nothing"));
      return;
    }
    await this.send(async () => {
      await this.play("move", { text: $("typed").value, spelling: spelling() });
      $("typed").value = "";
    });
  }

  // Shows the events of a move that the server has made, all but the first `shown`.
  async follow(promise, shown = 0) {
    const fresh = this.changes.current();
    const { events, state } = await promise;
    this.answered();
    if (!fresh()) return;
    if (this.away) {
      this.keep(state);
      return;
    }
    const summary = moveSummary(state.moves[state.current_ply - 1]);
    say("");
    this.changed("move");
    announce(summary);
    if (!(await this.animate(events.slice(shown)))) return;
    await this.take(state);
    if (state.outcome || this.isHuman(state.mover)) announce(sentences(summary, statusWords(this), whyWords(this)));
  }

  async letBotMove() {
    const { game, pending } = this;
    const fresh = this.changes.current();
    if (game.outcome || game.seats[game.mover] === "human" || this.paused) return;
    if (pending.has("seeds") || pending.has("bot")) return;
    const slow = setTimeout(() => announce(statusWords(this)), ANNOUNCE_MS);
    const answer = slowly(this.ask("bot", { ply: game.current_ply }), () => caption(t("compiles")));
    const failure = await this.during("bot", () => answer).then(() => null, (error) => error);
    clearTimeout(slow);
    if (!fresh()) {
      await this.beginning; // or this would ask about the old game again
      await this.letBotMove();
    } else if (failure?.status === 409) await this.refresh(); // another page has already moved
    else if (failure) {
      this.paused = Boolean(failure.status); // if the server is away, ask again when it is back
      this.render();
      this.complain(failure);
    } else await this.follow(answer);
  }

  // Makes bots wait, or lets them continue.
  pause(paused) {
    this.paused = paused;
    say("");
    this.render();
    this.letBotMove();
  }

  // --- back and forth ---

  async turn() {
    this.pits.viewer = 1 - this.pits.viewer;
    await this.layOut();
  }

  // Shows another state when it has arrived, unless people look elsewhere by then. The game does
  // not change.
  async showState(promise, mode = "look") {
    const fresh = this.looks.next();
    this.takeBack();
    this.skip();
    const state = await promise;
    await this.running;
    if (!fresh()) return;
    if (!this.game.seats.includes("human")) this.paused = true;
    const isGame = mode === "look" && state.ply === this.game.current_ply;
    say("");
    this.render(isGame ? this.game : state, isGame ? this.home : mode);
    this.changed("position");
    announce(statusWords(this));
    if (isGame) this.letBotMove();
  }

  // Shows a position outside the game, with some words below.
  peek(position, note, mode = "story") {
    const none = { legal: [], must: null, outcome: null };
    this.render({ ...this.state, ...none, ...position, note }, mode);
    announce(sentences(statusWords(this), note));
  }

  // Shows the game at a ply.
  async look(ply) {
    const to = Math.min(Math.max(ply, 0), this.game.length);
    this.changed("look");
    const request = async () => (to === this.game.current_ply ? this.game : (await this.ask("look", { ply: to })).state);
    await this.attempt(() => this.showState(request()));
  }

  // Changes the game itself: its ply, or its players.
  async change(request, data, paused) {
    const fresh = this.changes.next();
    this.takeBack();
    this.skip();
    this.changed("look");
    this.beginning = this.attempt(async () => {
      const { state } = await this.ask(request, data);
      if (!fresh()) return;
      this.paused = paused;
      say("");
      await this.take(state);
      announce(statusWords(this));
    });
    await this.beginning;
  }

  goTo(ply, paused) {
    return this.change("goto", { ply }, paused);
  }

  // Plays on from the ply shown, but at most from the end of the game: positions of a best line can
  // be beyond it.
  playFromHere() {
    return this.goTo(Math.min(this.state.ply, this.state.length), false);
  }

  // Shows the last move again.
  async replay() {
    const { ply } = this.state;
    if (!ply || this.pending.has("seeds")) return;
    const fresh = this.looks.next();
    await this.attempt(async () => {
      const { events, state } = await this.ask("events", { ply: ply - 1 });
      if (!fresh()) return;
      this.board.show(state);
      if (await this.animate(events)) this.render(this.state);
    });
  }

  undo() {
    if (this.game.current_ply > 0) this.goTo(this.personsTurn(-1), true);
  }

  redo() {
    if (this.game.current_ply < this.game.length) this.goTo(this.personsTurn(1), true);
  }

  // Returns the ply of the next turn back or forward; in a game against a bot, of the person's
  // turn.
  personsTurn(by) {
    const { moves, current_ply: current, length, seats } = this.game;
    const bot = (seat) => seats[seat] !== "human" && seats[1 - seat] === "human";
    let ply = current + by;
    while (ply > 0 && ply < length && bot(moves[ply].seat)) ply += by;
    return ply;
  }
}
