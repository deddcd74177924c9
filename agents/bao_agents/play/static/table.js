// The game on the page: sends clicks to the server, shows its moves, and lets bots move.

import { get, post } from "./api.js";
import { eventWords, reasonWords, seatName, t } from "./texts.js";
import { View } from "./view.js";

const $ = (id) => document.getElementById(id);
const TOLD = new Set([
  "capture", "house played", "house stop", "takasia", "takasia stop", "house lost", "pause",
  "front row empty", "no legal move",
]);

export class Table extends View {
  constructor() {
    super();
    this.id = null;
    this.beginning = Promise.resolve(); // the last new game
    this.running = Promise.resolve(); // the last animation
    this.sending = false; // a person's move is on its way
    this.waiting = false; // a bot thinks
    this.round = 0; // raised when pending requests and animations no longer count
    this.changed = () => {};
    $("undo").addEventListener("click", () => this.undo());
    $("redo").addEventListener("click", () => this.redo());
    $("skip").addEventListener("click", () => this.skip());
    $("go-on").addEventListener("click", () => this.goOn());
    $("pause").addEventListener("click", () => this.stop());
    $("turn").addEventListener("click", () => this.turn());
    $("spelling").addEventListener("change", () => this.showMoves());
    $("board").addEventListener("keydown", (event) => this.onKey(event));
    for (const input of $("house").querySelectorAll("button")) {
      input.addEventListener("click", () => $("house").close(input.value));
    }
  }

  // --- a game from the server ---

  complain(error) {
    $("message").textContent = t(error.message);
    if (error.status === 404 || error.status === 409) this.refresh();
  }

  begin(promise) {
    const begun = this.start(promise);
    this.beginning = begun.catch(() => {}); // the caller who began the game handles a failure
    return begun;
  }

  async start(promise) {
    const round = ++this.round;
    this.skip();
    const made = await promise;
    if (round !== this.round) return;
    this.round += 1; // requests for the old game no longer count
    this.id = made.id;
    location.hash = made.id;
    this.paused = made.state.ply < made.state.length;
    this.viewer = made.state.seats[0] !== "human" && made.state.seats[1] === "human" ? 1 : 0;
    $("message").textContent = "";
    this.caption(null);
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

  async take(state) {
    const round = this.round;
    this.skip();
    await this.running; // or it would continue over the new position
    if (round !== this.round) return;
    this.state = state;
    await this.layOut();
    this.show();
    this.changed("position");
    this.letBotMove();
  }

  // --- moving ---

  // Runs an animation alone; false if it no longer counts.
  async alone(work) {
    const round = this.round;
    this.busy = true;
    this.board.skipping = false;
    this.showPits();
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

  skip() {
    if (this.board) this.board.skipping = true;
  }

  async onPit(place, how) {
    await this.beginning; // a click is meant for the new game, not the one it replaces
    this.focus = place;
    $("message").textContent = "";
    if (this.busy) {
      this.skip();
      return;
    }
    if (!this.state || this.state.outcome) return;
    if (!this.isHuman(this.state.mover)) {
      $("message").textContent = t(this.paused ? "bot_paused" : "bot_moves");
      return;
    }
    if (place.seat !== this.state.mover) {
      $("message").textContent = t("not_yours", { who: seatName(this.state.mover) });
      return;
    }
    const any = ["left", "right"].some((side) => this.options(place, side).length);
    if (how === "choose" && any) this.choose(place);
    else await this.sow(place, how === "choose" ? "left" : how);
  }

  async sow(place, side) {
    if (!place || this.busy || this.sending) return; // a double click is one click
    const direction = this.direction(place.seat, side);
    const options = this.options(place, side);
    $("message").textContent = "";
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
    const rule = why.rule ? ` (${why.rule})` : "";
    const words = reasonWords(why).replaceAll("{hole}", place.name);
    $("message").textContent = `${t("illegal", { hole: place.name })}: ${words}${rule}`;
    $("message").title = why.rule_text;
    place.button.classList.remove("refused");
    requestAnimationFrame(() => place.button.classList.add("refused"));
  }

  async askHouse(place, direction, options) {
    this.choose(null);
    const { events } = await post(`/api/games/${this.id}/choice`, { pit: place.pit, direction });
    if (!(await this.alone(() => this.board.animate(events, (event) => this.caption(event))))) return;
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
    this.choose(null);
    await this.follow(post(`/api/games/${this.id}/play`, { action, ply: this.state.ply }), shown);
    if (hadFocus) this.focus?.button.focus({ preventScroll: true });
  }

  // Shows the events of a move that the server has made, all but the first `shown`.
  async follow(promise, shown = 0) {
    const round = this.round;
    const { events, state } = await promise;
    if (round !== this.round) return;
    const move = state.moves[state.ply - 1];
    if (!shown) this.board.show(this.state); // a story may have left it inside a move
    this.changed("move");
    this.announce(this.moveWords(move, events));
    const still = await this.alone(() =>
      this.board.animate(events.slice(shown), (event) => this.caption(event)));
    if (still) await this.take(state);
  }

  moveWords(move, events) {
    const told = events.filter((event) => TOLD.has(event.kind)).map(eventWords);
    return `${seatName(move.seat)}: ${[move.texts[this.spelling()], ...told].join(". ")}`;
  }

  async letBotMove() {
    const { state } = this;
    if (state.outcome) {
      this.announce(this.statusWords());
      return;
    }
    if (this.isHuman(state.mover) || this.paused || this.busy || this.waiting) return;
    const round = this.round;
    this.waiting = true;
    $("board").classList.add("thinking");
    let failure = null;
    const answer = post(`/api/games/${this.id}/bot`, { ply: state.ply });
    try {
      await answer;
    } catch (error) {
      failure = error;
    }
    this.waiting = false;
    $("board").classList.remove("thinking");
    if (round !== this.round) {
      this.letBotMove();
      return;
    }
    if (failure) {
      this.paused = true;
      this.showControls();
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
    $("message").textContent = "";
    this.changed("go on");
    this.showControls();
    this.letBotMove();
  }

  // --- back and forth ---

  async turn() {
    this.viewer = 1 - this.viewer;
    this.skip();
    await this.running;
    await this.layOut();
  }

  async goTo(ply) {
    this.round += 1;
    this.skip();
    const round = this.round;
    const { state } = await post(`/api/games/${this.id}/goto`, { ply });
    if (round !== this.round) return;
    this.paused = true;
    this.caption(null);
    $("message").textContent = "";
    await this.take(state);
  }

  async jump(ply) {
    this.changed("jump");
    try {
      await this.goTo(ply);
      this.announce(this.statusWords());
    } catch (error) {
      this.complain(error);
    }
  }

  // If a person plays, undo goes back to that person's last turn.
  undo() {
    const { moves, ply } = this.state;
    let target = ply - 1;
    while (target > 0 && !this.isHuman(moves[target].seat) && this.isHuman(1 - moves[target].seat)) target -= 1;
    this.jump(Math.max(0, target));
  }

  redo() {
    const { moves, ply, length } = this.state;
    let target = ply + 1;
    while (target < length && !this.isHuman(moves[target].seat) && this.isHuman(1 - moves[target].seat)) target += 1;
    this.jump(target);
  }
}
