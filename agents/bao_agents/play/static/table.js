// The game on the page: sends clicks to the server, shows its moves, and lets bots move.
//
// `game` is the game where it stands, `state` what the board shows: the same, or another ply while
// somebody looks back. Looking back changes nothing, except with `playFromHere`.

import { get, post } from "./api.js";
import { moveSummary, showMoves, spelling } from "./moves.js";
import { Pits } from "./pits.js";
import { eventWords, reasonWords, ruleWords, seatName, t, withTerms } from "./texts.js";

const $ = (id) => document.getElementById(id);
const TOLD = new Set([
  "capture", "house played", "house stop", "takasia", "takasia stop", "house lost", "pause",
  "front row empty", "no legal move",
]);
const FOLLOW_MS = 2000; // milliseconds between two looks for moves that another page made

export class Table {
  // `nameOf(spec)` is a player in words.
  constructor(nameOf) {
    this.nameOf = nameOf;
    this.id = null;
    this.game = null;
    this.state = null;
    this.editor = null; // takes the clicks in pits while a position is set up
    this.frozen = false; // a lesson is done: no pit can be played
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
      announce: (words) => this.announce(words),
    });
    const clicks = {
      undo: () => this.undo(),
      redo: () => this.redo(),
      skip: () => this.skip(),
      "go-on": () => this.goOn(),
      pause: () => this.stop(),
      turn: () => this.turn(),
      replay: () => this.replay(),
      first: () => this.look(0),
      previous: () => this.look(this.state.ply - 1),
      next: () => this.look(this.state.ply + 1),
      last: () => this.look(this.state.length),
      back: () => this.back(),
      "play-from-here": () => this.playFromHere(),
    };
    for (const [id, work] of Object.entries(clicks)) $(id).addEventListener("click", work);
    $("spelling").addEventListener("change", () => this.show());
    for (const input of $("house").querySelectorAll("button")) {
      input.addEventListener("click", () => $("house").close(input.value));
    }
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
    $("message").lang = lang || document.documentElement.lang;
    $("message").replaceChildren(withTerms(words, more));
  }

  // Errors of the server are in English, unless the page has words for them.
  complain(error) {
    const words = t(error.message);
    this.say(words, words === error.message ? "en" : "");
    if (error.status === 404 || error.status === 409) this.refresh();
  }

  caption(words) {
    $("caption").replaceChildren(withTerms(words));
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
    if (this.lookingBack) return t("looking", { who, ply: state.ply });
    return t(this.waiting ? "thinks" : "to_move", { who });
  }

  // Why only these pits may be played.
  whyWords() {
    const { state } = this;
    if (state.outcome) return "";
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
    this.showStatus();
    this.showControls();
    this.showMoves();
    const move = state.moves[state.ply - 1];
    this.caption(state.told ?? (move ? moveSummary(move) : ""));
    $("position").value = state.text;
  }

  showStatus() {
    $("status").textContent = this.statusWords();
    $("why").replaceChildren(withTerms(this.whyWords()));
    $("players").textContent = [0, 1].map((seat) => `${seatName(seat)}: ${this.nameOf(this.state.seats[seat])}`).join(" · ")
      + ` · ${this.state.ruleset}`;
    this.pits.show(this.state, this.playable());
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

  // `replace` keeps the address out of the browser's history.
  async start(promise, { replace = false } = {}) {
    const round = ++this.round;
    this.skip();
    const made = await promise;
    if (round !== this.round) return;
    this.round += 1; // requests for the old game no longer count
    this.id = made.id;
    const address = `#${made.id}`;
    if (location.hash !== address) history[replace ? "replaceState" : "pushState"](null, "", address);
    this.paused = made.state.at < made.state.length;
    this.pits.viewer = made.state.seats[0] !== "human" && made.state.seats[1] === "human" ? 1 : 0;
    this.say("");
    this.marks = {};
    this.changed("game");
    await this.take(made.state);
  }

  async refresh() {
    if (!this.id) return;
    try {
      const { state } = await get(`/api/games/${this.id}`);
      await this.take(state);
    } catch {
      // The message that led here stays.
    }
  }

  // Shows the game as it stands; bots answer unless another page asks them.
  async take(game, { ask = true } = {}) {
    const round = this.round;
    this.skip();
    await this.running; // or it would continue over the new position
    if (round !== this.round) return;
    this.state = this.game = game;
    await this.layOut();
    this.show();
    this.changed("position");
    if (ask) this.letBotMove();
  }

  // Shows what another page of the same game has done in the meantime.
  async followOthers() {
    const free = () => this.id && !document.hidden && !this.busy && !this.sending && !this.waiting;
    if (!free()) return;
    const round = this.round;
    let game;
    try {
      game = (await get(`/api/games/${this.id}`)).state;
    } catch (error) {
      if (error.status === 404 && round === this.round) {
        this.say(t("game_gone"));
        this.id = null;
      }
      return;
    }
    if (round !== this.round || !free() || game.version <= this.game.version) return;
    if (this.lookingBack) {
      this.game = game;
      this.showControls();
      this.showMoves();
    } else if (game.at === this.game.at + 1 && game.length === game.at) {
      await this.follow(post(`/api/games/${this.id}/events`, { ply: this.game.at }).then(({ events }) => ({ events, state: game })), 0, { ask: false });
    } else await this.take(game, { ask: false });
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

  animate(events) {
    return this.alone(() => this.board.animate(events, (event) => this.caption(eventWords(event))));
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
    else if (!this.state || this.frozen) return false;
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
    else if (how === "choose" && ways.length) this.pits.choose(place);
    else await this.sow(place, how === "choose" ? "left" : how);
  }

  async onArrow(place, side) {
    if (place && (await this.mayPlay(place))) await this.sow(place, side);
  }

  async sow(place, side) {
    if (!place || this.busy || this.sending) return; // a double click is one click
    const direction = [0, 1].find((way) => this.board.side(place.seat, way) === side);
    const options = this.pits.options(place, side);
    this.sending = true;
    try {
      if (options.length === 0) await this.explainRefusal(place, direction);
      else if (options.length === 1) await this.play(options[0].action, 0);
      else await this.askHouse(place, direction, options);
    } catch (error) {
      this.complain(error);
    } finally {
      this.sending = false;
    }
  }

  async explainRefusal(place, direction) {
    const why = await post(`/api/games/${this.id}/why`, { pit: place.pit, direction });
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
    const { events } = await post(`/api/games/${this.id}/choice`, { pit: place.pit, direction });
    if (!(await this.animate(events))) return;
    const answer = await this.askInDialog();
    const option = options.find((o) => o.house === (answer === "play" ? 1 : 0));
    if (answer === "play" || answer === "stop") await this.play(option.action, events.length);
    else this.show();
  }

  askInDialog() {
    const dialog = $("house");
    dialog.returnValue = "";
    dialog.showModal();
    return new Promise((done) => {
      dialog.addEventListener("close", () => done(dialog.returnValue), { once: true });
    });
  }

  async play(action, shown) {
    const hadFocus = $("board").contains(document.activeElement);
    this.paused = false;
    this.pits.choose(null);
    await this.follow(post(`/api/games/${this.id}/play`, { action, ply: this.state.ply }), shown);
    if (hadFocus) this.pits.focus?.button.focus({ preventScroll: true });
  }

  // Shows the events of a move that the server has made, all but the first `shown`.
  async follow(promise, shown = 0, how = {}) {
    const round = this.round;
    const { events, state } = await promise;
    if (round !== this.round) return;
    if (this.lookingBack) { // people who look back stay there
      this.game = state;
      this.showControls();
      this.showMoves();
      return;
    }
    const move = state.moves[state.at - 1];
    this.changed("move");
    this.announce(this.moveWords(move, events));
    if (await this.animate(events.slice(shown))) await this.take(state, how);
  }

  moveWords(move, events) {
    const told = events.filter((event) => TOLD.has(event.kind)).map(eventWords);
    return `${seatName(move.seat)}: ${[move.texts[spelling()], ...told].join(". ")}`;
  }

  async letBotMove() {
    const { game } = this;
    if (game.outcome) {
      this.announce(this.statusWords());
      return;
    }
    if (game.seats[game.mover] === "human" || this.paused || this.busy || this.waiting) return;
    const round = this.round;
    this.waiting = true;
    this.showStatus();
    $("board").classList.add("thinking");
    const slow = setTimeout(() => this.announce(this.statusWords()), 1000);
    let failure = null;
    const answer = post(`/api/games/${this.id}/bot`, { ply: game.at });
    try {
      await answer;
    } catch (error) {
      failure = error;
    }
    clearTimeout(slow);
    this.waiting = false;
    $("board").classList.remove("thinking");
    if (round !== this.round) {
      this.letBotMove();
      return;
    }
    if (failure) {
      this.paused = true;
      this.show();
      this.complain(failure);
      return;
    }
    await this.follow(answer);
  }

  stop() {
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
    try {
      const { state } = await post(`/api/games/${this.id}/look`, { ply });
      if (glance !== this.glance) return;
      await this.showState(state);
      this.announce(this.statusWords());
    } catch (error) {
      this.complain(error);
    }
  }

  async back() {
    this.changed("look");
    await this.showState(this.game);
    this.letBotMove();
  }

  // Moves the game itself to a ply.
  async goTo(ply, paused) {
    this.round += 1;
    this.skip();
    const round = this.round;
    this.changed("look");
    try {
      const { state } = await post(`/api/games/${this.id}/goto`, { ply });
      if (round !== this.round) return;
      this.paused = paused;
      this.say("");
      await this.take(state);
      this.announce(this.statusWords());
    } catch (error) {
      this.complain(error);
    }
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
    try {
      const { events, state } = await post(`/api/games/${this.id}/events`, { ply: ply - 1 });
      if (glance !== this.glance) return;
      this.board.show(state);
      if (await this.animate(events)) this.show();
    } catch (error) {
      this.complain(error);
    }
  }

  // If a person plays, undo goes back to that person's last turn.
  undo() {
    const { moves, at, seats } = this.game;
    const bot = (seat) => seats[seat] !== "human" && seats[1 - seat] === "human";
    let target = at - 1;
    while (target > 0 && bot(moves[target].seat)) target -= 1;
    if (at > 0) this.goTo(Math.max(0, target), true);
  }

  redo() {
    const { moves, at, length, seats } = this.game;
    const bot = (seat) => seats[seat] !== "human" && seats[1 - seat] === "human";
    let target = at + 1;
    while (target < length && bot(moves[target].seat)) target += 1;
    if (at < length) this.goTo(target, true);
  }
}
