// The game on the page: sends clicks to the server, shows its moves, and lets bots move.
//
// `game` is the game where it stands, `state` what the board shows: the same, or another ply while
// somebody looks back. Looking back changes nothing, except with `playFromHere`.

import { post } from "./api.js";
import { $ } from "./dom.js";
import { moveSummary, numberOf, showMoves } from "./moves.js";
import { Pits } from "./pits.js";
import { eventWords, reasonWords, ruleWords, seatName, t, withTerms } from "./texts.js";

const FOLLOW_MS = 2000; // milliseconds between two looks for moves that another page made
const COMPILE_MS = 6000; // longer than any bot thinks: it is being compiled
const READ_MS = 50; // milliseconds for each letter of a caption that a learner reads

export class Table {
  // `nameOf(spec)` is a player in words.
  constructor(nameOf) {
    this.nameOf = nameOf;
    this.id = null;
    this.game = null;
    this.state = null;
    this.editor = null; // takes the clicks in pits while a position is set up
    this.task = null; // the address of a lesson or puzzle, which is not the visitor's game
    this.frozen = false; // a lesson is done: no pit can be played
    this.offline = false; // the server has not answered
    this.reviving = null; // the game is being begun anew
    this.answerHouse = () => {}; // ends the question whether to play the house
    this.marks = {}; // what a review says of a move, by ply
    this.beginning = Promise.resolve(); // the last new game
    this.running = Promise.resolve(); // the last animation
    this.busy = false; // seeds are moving
    this.paused = false; // bots wait
    this.sending = false; // a person's move is on its way
    this.waiting = false; // a bot thinks
    this.round = 0; // increased when pending requests and animations of the game become outdated
    this.glance = 0; // increased when a request to look elsewhere becomes outdated
    this.changed = () => {};
    this.pits = new Pits({
      pit: (place, how) => this.onPit(place, how),
      sow: (place, side) => this.onArrow(place, side),
      ask: (words) => this.tell(words),
    });
    for (const id of ["undo", "redo", "skip", "pause", "turn", "replay", "back"]) $(id).addEventListener("click", () => this[id]());
    const clicks = {
      "go-on": () => this.goOn(),
      first: () => this.look(0),
      previous: () => this.look(this.state.ply - 1),
      next: () => this.look(this.state.ply + 1),
      last: () => this.look(this.state.length),
      "play-from-here": () => this.playFromHere(),
    };
    for (const [id, work] of Object.entries(clicks)) $(id).addEventListener("click", work);
    $("spelling").addEventListener("change", () => this.show());
    for (const input of $("house").querySelectorAll("button")) {
      input.addEventListener("click", () => this.answerHouse(input.value));
    }
    $("typing").addEventListener("submit", (event) => {
      event.preventDefault();
      this.playTyped();
    });
    setInterval(() => this.followOthers(), FOLLOW_MS);
  }

  get board() {
    return this.pits.board;
  }

  get lookingBack() {
    return this.state !== this.game;
  }

  stepTime() {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return 0;
    return 620 / Number($("speed").value) ** 1.25;
  }

  isHuman(seat) {
    return this.state.seats[seat] === "human";
  }

  // The seat of the only person, if there is one.
  person() {
    return this.isHuman(0) === this.isHuman(1) ? null : this.isHuman(0) ? 0 : 1;
  }

  // --- what the page says ---

  announce(words) {
    $("live").textContent = words;
  }

  // `more` are further terms, each with the text that a click on it shows.
  say(words, lang = "", more = {}) {
    const box = $("message");
    box.lang = lang || document.documentElement.lang;
    box.replaceChildren(withTerms(words, more));
    box.classList.remove("far");
    const { top, bottom } = box.getBoundingClientRect();
    box.classList.toggle("far", Boolean(words) && (top < 0 || bottom > innerHeight));
  }

  // Errors of the server are in English, unless the page has words for them.
  complain(error) {
    const words = t(error.message);
    this.say(words, words === error.message ? "en" : "");
    this.offline = error.message === "no_server";
    if (error.status === 409) this.refresh();
  }

  // Does some work, and says why if it fails.
  attempt(work) {
    return work().catch((error) => this.complain(error));
  }

  caption(words) {
    $("caption").replaceChildren(withTerms(words));
  }

  tell(words) {
    this.caption(words);
    this.announce(words);
  }

  statusWords() {
    const { state } = this;
    if (state.outcome) {
      const { winner, how } = state.outcome;
      const you = this.person();
      const end = `${t("wins", { who: seatName(winner) })}: ${t(`end ${how}`)}`;
      return you === null ? end : `${t(you === winner ? "you_won" : "you_lost")} ${end}`;
    }
    const who = seatName(state.mover);
    if (this.frozen) return t("lesson_over");
    if (state.told) return t("looking_ahead", { who });
    if (this.lookingBack) return t("looking", { who, number: numberOf(this.game, state.ply) });
    return t(this.waiting ? "thinks" : "to_move", { who });
  }

  // Why only these pits may be played.
  whyWords() {
    const { state } = this;
    if (state.outcome || this.frozen) return "";
    const hole = (pit) => this.board.place(state.mover, pit).name;
    const words = [t(`stage ${state.stage}`)];
    if (state.pending !== null) words.push(t("pending", { hole: hole(state.pending) }));
    else if (state.must) words.push(t(`must ${state.must}`));
    if (state.barred !== null) words.push(t("barred", { hole: hole(state.barred) }));
    return words.join(" ");
  }

  // --- showing ---

  async layOut() {
    if (await this.pits.layOut(() => this.stepTime()) && this.state) this.show();
  }

  show() {
    const { state } = this;
    if (!state) return;
    this.board.show(state);
    this.board.setNames([seatName(0), seatName(1)], state.outcome ? null : state.mover);
    this.pits.choose(null);
    this.keepFocus(() => {
      this.showStatus();
      this.showControls();
      this.showMoves();
    });
    const move = state.moves[state.ply - 1];
    this.caption(state.told ?? (move ? moveSummary(move) : ""));
    $("position").value = state.text;
  }

  // If some work takes the focus of the keyboard from a button, the board gets it, or the move in
  // the list. After a mouse click nothing gets it: keys are for the page then.
  keepFocus(work) {
    const had = document.activeElement;
    const keys = had.matches(":focus-visible");
    const listed = $("moves").contains(had);
    work();
    if (!keys || (had.isConnected && !had.disabled && had.checkVisibility())) return;
    const next = listed && $("moves").querySelector("[aria-current]");
    (next || this.pits.focus.button).focus({ preventScroll: true });
  }

  showStatus() {
    $("status").textContent = this.statusWords();
    $("why").replaceChildren(withTerms(this.whyWords()));
    $("players").textContent = [0, 1].map((seat) => `${seatName(seat)}: ${this.nameOf(this.state.seats[seat])}`).join(" · ")
      + ` · ${this.state.ruleset}`;
    this.pits.show(this.state, this.playable());
    const [option] = this.playable() ? this.state.legal : [];
    $("how").textContent = t(`how_${option?.choice ?? "way"}`);
  }

  playable() {
    return !this.state.outcome && this.isHuman(this.state.mover) && !this.busy && !this.lookingBack && !this.frozen && !this.editor;
  }

  showMoves() {
    showMoves(this.game, this.state.ply, this.marks, (ply) => this.look(ply));
  }

  showControls() {
    const { state, game, lookingBack } = this;
    const bots = !game.outcome && game.seats[game.mover] !== "human";
    const alone = game.seats.includes("human");
    $("row-game").hidden = lookingBack;
    $("row-look").hidden = !lookingBack;
    $("play-from-here").hidden = Boolean(state.told);
    $("row-end").hidden = !game.outcome || lookingBack;
    $("undo").disabled = game.at === 0;
    $("redo").disabled = game.at === game.length;
    $("replay").disabled = state.ply === 0 || this.busy;
    $("hint").disabled = Boolean(state.outcome);
    $("first").disabled = $("previous").disabled = state.ply === 0;
    $("last").disabled = $("next").disabled = state.ply === state.length;
    const shown = bots && this.paused && !this.busy ? "go-on" : bots && !this.paused && !alone ? "pause" : "skip";
    for (const id of ["skip", "go-on", "pause"]) $(id).hidden = id !== shown;
    $("skip").disabled = !this.busy;
  }

  // --- a game from the server ---

  begin(promise, how = {}) {
    const begun = this.start(promise, how);
    this.beginning = begun.catch(() => {}); // the caller who began the game handles a failure
    return begun;
  }

  // `replace` keeps the address out of the browser's history; `task` is that of a lesson or puzzle.
  async start(promise, { replace = false, task = null } = {}) {
    const round = ++this.round;
    this.answerHouse("");
    this.skip();
    const made = await promise;
    if (round !== this.round) return;
    this.round += 1; // requests for the old game no longer count
    this.id = made.id;
    this.task = task;
    const address = `#${task ?? `game=${made.id}`}`;
    if (location.hash !== address) history[replace ? "replaceState" : "pushState"](null, "", address);
    this.paused = made.state.at < made.state.length;
    this.pits.viewer = made.state.seats[0] !== "human" && made.state.seats[1] === "human" ? 1 : 0;
    this.say("");
    this.marks = {};
    this.changed("game");
    await this.take(made.state);
  }

  // Asks the server something about the game. If it has lost the game, begins it anew.
  async ask(request, data) {
    try {
      return await post(`/api/games/${this.id}/${request}`, data);
    } catch (error) {
      if (error.status !== 404) throw error;
      await (this.reviving ??= this.revive().finally(() => { this.reviving = null; }));
      return post(`/api/games/${this.id}/${request}`, data);
    }
  }

  async revive() {
    const { transcripts, seats } = this.game;
    const { id, state } = await post("/api/games", { transcript: transcripts[0], seats });
    if (!this.lookingBack) this.state = state;
    this.id = id;
    this.game = state;
    this.changed("kept");
  }

  refresh() {
    return this.ask("look").then(({ state }) => this.take(state), () => {}); // the message that led here stays
  }

  // Shows the game as it stands, and lets bots answer.
  async take(game) {
    const round = this.round;
    this.skip();
    await this.running; // or it would continue over the new position
    if (round !== this.round) return;
    this.state = this.game = game;
    await this.layOut();
    this.show();
    this.changed("position");
    this.letBotMove();
  }

  // Shows what another page of the same game has done in the meantime.
  async followOthers() {
    const free = () => this.id && !document.hidden && !this.busy && !this.sending && !this.waiting;
    if (!free()) return;
    const round = this.round;
    let game;
    try {
      game = (await this.ask("look")).state;
    } catch {
      return;
    }
    if (this.offline) this.say("");
    this.offline = false;
    if (round !== this.round || !free()) return;
    if (game.version <= this.game.version) {
      this.letBotMove();
      return;
    }
    this.paused = game.at < game.length;
    if (this.lookingBack) this.keep(game);
    else if (game.at === this.game.at + 1 && game.length === game.at) {
      await this.follow(this.ask("events", { ply: this.game.at }).then(({ events }) => ({ events, state: game })));
    } else await this.take(game);
  }

  // --- moving ---

  // Runs an animation alone; false if it no longer counts.
  async alone(work) {
    const round = this.round;
    this.skip();
    await this.running; // of a replay
    this.busy = true;
    this.board.skipping = false;
    this.showStatus();
    this.showControls();
    try {
      this.running = work();
      await this.running;
    } finally {
      this.busy = false;
      this.board.skipping = false;
      this.showControls();
    }
    return round === this.round;
  }

  // In a lesson each event lasts as long as it takes to read.
  animate(events) {
    return this.alone(() => this.board.animate(events, (event) => {
      const words = eventWords(event);
      this.caption(words);
      return this.task?.startsWith("lesson") ? READ_MS * words.length : 0;
    }));
  }

  skip() {
    if (this.board) this.board.skipping = true;
  }

  // Returns whether a click in a pit may sow; if not, says why.
  async mayPlay(place) {
    await this.beginning; // a click is meant for the new game, not the one it replaces
    this.pits.focus = place;
    this.say("");
    if (this.busy) this.skip();
    else if (!this.state) return false;
    else if (this.frozen) this.say(t("lesson_over"));
    else if (this.lookingBack) this.say(t("only_looking"));
    else if (this.state.outcome) this.say(t("is_over"));
    else if (!this.isHuman(this.state.mover)) this.say(t(this.paused ? "bot_paused" : "bot_moves"));
    else if (place.seat !== this.state.mover) this.say(t("not_yours", { who: seatName(this.state.mover) }));
    else return true;
    return false;
  }

  // A click in a pit, outside its arrows: `how` is a side, or "choose" by touch and keyboard.
  async onPit(place, how) {
    if (this.editor) {
      this.editor(place, how);
      return;
    }
    if (!(await this.mayPlay(place))) return;
    const ways = this.pits.ways(place);
    if (ways.length === 1) await this.sow(place, ways[0]);
    else if (ways.length && (how === "choose" || this.pits.choice(place) === "end")) this.pits.choose(place);
    else await this.sow(place, how === "choose" ? "left" : how);
  }

  async onArrow(place, side) {
    if (place && (await this.mayPlay(place))) await this.sow(place, side);
  }

  async sow(place, side) {
    if (!place || this.busy || this.sending) return; // a double click is one click
    const direction = [0, 1].find((way) => this.board.side(place.seat, way) === side);
    const options = this.pits.options(place, side);
    await this.send(() => {
      if (options.length === 0) return this.explainRefusal(place, direction);
      if (options.length === 1) return this.play(options[0].action, 0);
      return this.askHouse(place, direction, options);
    });
  }

  async send(work) {
    this.sending = true;
    await this.attempt(work);
    this.sending = false;
  }

  async explainRefusal(place, direction) {
    const why = await this.ask("why", { pit: place.pit, direction });
    const rule = why.rule && `(${why.rule})`;
    const words = reasonWords(why).replaceAll("{hole}", place.name);
    const { text } = ruleWords(why.rule, why.rule_text);
    const said = [`${t("illegal", { hole: place.name })}: ${words}`, rule].filter(Boolean).join(" ");
    this.say(said, "", rule && text ? { [rule]: text } : {});
    place.button.classList.remove("refused");
    requestAnimationFrame(() => place.button.classList.add("refused"));
  }

  async askHouse(place, direction, options) {
    this.pits.choose(null);
    const { events } = await this.ask("choice", { pit: place.pit, direction });
    if (!(await this.animate(events))) return;
    const answer = await this.askBelow();
    const option = options.find((o) => o.house === (answer === "play" ? 1 : 0));
    if (answer) await this.play(option.action, events.length);
    else this.show();
  }

  // Asks below the board; whatever else people do takes the move back.
  askBelow() {
    const strip = $("house");
    const keys = $("board").contains(document.activeElement);
    strip.hidden = false;
    strip.scrollIntoView({ block: "nearest" });
    this.announce(strip.innerText);
    if (keys) strip.querySelector("button").focus({ preventScroll: true });
    return new Promise((done) => {
      this.answerHouse = (answer) => {
        this.answerHouse = () => {};
        if (strip.contains(document.activeElement)) this.pits.focus.button.focus({ preventScroll: true });
        strip.hidden = true;
        done(answer);
      };
    });
  }

  async play(action, shown) {
    const hadFocus = $("board").contains(document.activeElement);
    this.paused = false;
    this.pits.choose(null);
    await this.follow(this.ask("play", { action, ply: this.state.ply }), shown);
    if (hadFocus) this.pits.focus?.button.focus({ preventScroll: true });
  }

  // Plays a move that was typed, in any notation.
  async playTyped() {
    if (this.sending || !(await this.mayPlay(this.board.place(this.state.mover, 4)))) return;
    await this.send(async () => {
      await this.follow(this.ask("move", { text: $("typed").value, ply: this.state.ply }));
      $("typed").value = "";
    });
  }

  // Shows the events of a move that the server has made, all but the first `shown`.
  async follow(promise, shown = 0) {
    const round = this.round;
    const { events, state } = await promise;
    if (round !== this.round) return;
    if (this.lookingBack) {
      this.keep(state);
      return;
    }
    const summary = moveSummary(state.moves[state.at - 1]);
    this.say("");
    this.changed("move");
    this.announce(summary);
    if (!(await this.animate(events.slice(shown)))) return;
    await this.take(state);
    if (state.outcome || this.playable()) this.announce(`${summary}. ${this.statusWords()}. ${this.whyWords()}`);
  }

  // Takes the game, but goes on showing what people look back at.
  keep(game) {
    this.game = game;
    this.showControls();
    this.showMoves();
  }

  async letBotMove() {
    const { game } = this;
    if (game.outcome) return;
    if (game.seats[game.mover] === "human" || this.paused || this.busy || this.waiting) return;
    const round = this.round;
    this.waiting = true;
    this.showStatus();
    $("board").classList.add("thinking");
    const slow = setTimeout(() => this.announce(this.statusWords()), 1000);
    const compiles = setTimeout(() => this.caption(t("compiles")), COMPILE_MS);
    const answer = this.ask("bot", { ply: game.at });
    const failure = await answer.then(() => null, (error) => error);
    for (const timer of [slow, compiles]) clearTimeout(timer);
    this.waiting = false;
    $("board").classList.remove("thinking");
    if (round !== this.round) {
      this.letBotMove();
      return;
    }
    if (failure?.status === 409) { // another page was faster
      await this.refresh();
      return;
    }
    if (failure) {
      this.paused = Boolean(failure.status); // if the server is away, ask again when it is back
      this.show();
      this.complain(failure);
      return;
    }
    await this.follow(answer);
  }

  pause() {
    this.paused = true;
    this.showControls();
  }

  goOn() {
    this.paused = false;
    this.say("");
    this.showControls();
    this.letBotMove();
  }

  // --- back and forth ---

  async turn() {
    this.pits.viewer = 1 - this.pits.viewer;
    this.skip();
    await this.running;
    await this.layOut();
  }

  // Shows another state of the game, and changes nothing.
  async showState(state) {
    const glance = ++this.glance;
    this.answerHouse("");
    this.skip();
    await this.running;
    if (glance !== this.glance) return;
    if (!this.game.seats.includes("human")) this.paused = true;
    this.state = state.ply === this.game.at && !state.inside ? this.game : state;
    this.say("");
    this.show();
    this.changed("position");
  }

  // Shows a position that is not of the game, with some words below.
  peek(position, told) {
    this.state = { ...this.state, ...position, legal: [], must: null, outcome: null, told, inside: true };
    this.show();
  }

  // Shows the game at a ply.
  async look(ply) {
    if (ply < 0 || ply > this.game.length) return;
    const glance = ++this.glance;
    this.changed("look");
    await this.attempt(async () => {
      const { state } = await this.ask("look", { ply });
      if (glance !== this.glance) return;
      await this.showState(state);
      this.announce(this.statusWords());
    });
  }

  async back() {
    this.changed("look");
    await this.showState(this.game);
    this.letBotMove();
  }

  // Moves the game itself to a ply.
  async goTo(ply, paused) {
    this.round += 1;
    this.answerHouse("");
    this.skip();
    const round = this.round;
    this.changed("look");
    await this.attempt(async () => {
      const { state } = await this.ask("goto", { ply });
      if (round !== this.round) return;
      this.paused = paused;
      this.say("");
      await this.take(state);
      this.announce(this.statusWords());
    });
  }

  // Positions of the best line are not in the game; then it continues from the ply that was shown.
  playFromHere() {
    return this.goTo(Math.min(this.state.ply, this.state.length), false);
  }

  // On a small screen the board may be out of sight.
  scrollToBoard() {
    const { top, bottom } = $("board").getBoundingClientRect();
    if (top < 0 || bottom > innerHeight) document.querySelector(".stage").scrollIntoView();
  }

  // Shows the last move once more.
  async replay() {
    const { ply } = this.state;
    if (!ply || this.busy) return;
    const glance = ++this.glance;
    await this.attempt(async () => {
      const { events, state } = await this.ask("events", { ply: ply - 1 });
      if (glance !== this.glance) return;
      this.board.show(state);
      if (await this.animate(events)) this.show();
    });
  }

  undo() {
    if (this.game.at > 0) this.goTo(this.personsTurn(-1), true);
  }

  redo() {
    if (this.game.at < this.game.length) this.goTo(this.personsTurn(1), true);
  }

  // The ply of the next turn back or forward; if a person plays a bot, of the person's turn.
  personsTurn(by) {
    const { moves, at, length, seats } = this.game;
    const bot = (seat) => seats[seat] !== "human" && seats[1 - seat] === "human";
    let ply = at + by;
    while (ply > 0 && ply < length && bot(moves[ply].seat)) ply += by;
    return ply;
  }
}
