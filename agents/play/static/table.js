// The game on the page: shows what the server says, sends clicks, and lets bots move.

import { get, post } from "./api.js";
import { Board, boardParts } from "./board.js";
import { eventWords, reasonWords, seatName, seeds, t } from "./texts.js";

const $ = (id) => document.getElementById(id);
const TOLD = new Set([
  "capture", "house played", "house stop", "takasia", "takasia stop", "house lost", "pause",
  "front row empty", "no legal move",
]);

export class Table {
  constructor() {
    this.id = null;
    this.state = null;
    this.board = null;
    this.viewer = 0;
    this.busy = false;
    this.paused = false;
    this.chosen = null; // a pit that waits for its direction
    this.running = Promise.resolve(); // the last animation
    this.round = 0; // raised whenever what was under way no longer counts
    this.focus = null;
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

  spelling() {
    return Number($("spelling").value);
  }

  stepTime() {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return 0;
    return 620 / Number($("speed").value) ** 1.25;
  }

  isHuman(seat) {
    return this.state.seats[seat] === "human";
  }

  humansTurn() {
    return !this.state.outcome && this.isHuman(this.state.mover);
  }

  // --- what the page says ---

  complain(error) {
    $("message").textContent = t(error.message);
    if (error.status === 404 || error.status === 409) this.refresh();
  }

  announce(words) {
    $("live").textContent = words;
  }

  caption(event) {
    $("caption").textContent = event ? `${eventWords(event)} (${event.rule})` : "";
  }

  // --- the board ---

  async layOut() {
    const narrow = matchMedia("(max-width: 640px)").matches;
    const parts = await boardParts(narrow ? "tall" : "wide", this.viewer);
    if (this.board?.parts === parts) return;
    this.board = new Board($("board"), parts, (place, how) => this.onPit(place, how));
    this.board.stepTime = () => this.stepTime();
    this.arrows = document.createElement("div");
    this.arrows.className = "arrows";
    this.arrows.hidden = true;
    for (const side of ["left", "right"]) {
      const arrow = document.createElement("button");
      arrow.type = "button";
      arrow.className = side;
      arrow.textContent = side === "left" ? "◀" : "▶";
      arrow.addEventListener("click", () => this.sow(this.chosen, side));
      this.arrows.append(arrow);
    }
    $("board").append(this.arrows);
    if (this.state) this.show();
  }

  async turn() {
    this.viewer = 1 - this.viewer;
    this.skip();
    await this.layOut();
  }

  // The direction, as the pit's owner sees it, of a hand that goes to one side of the screen.
  direction(seat, side) {
    return (side === "left") === (seat === this.viewer) ? 0 : 1;
  }

  options(place, side) {
    if (place.seat !== this.state.mover) return [];
    const direction = this.direction(place.seat, side);
    return this.state.legal.filter((o) => o.pit === place.pit && o.direction === direction);
  }

  // --- a game from the server ---

  async begin(promise) {
    const round = ++this.round;
    this.skip();
    const made = await promise;
    if (round !== this.round) return;
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
    await this.running; // or it would go on over the new position
    if (round !== this.round) return;
    this.state = state;
    await this.layOut();
    this.show();
    this.changed("position");
    this.letBotMove();
  }

  show() {
    const { state } = this;
    this.board.show(state);
    this.board.setNames([seatName(0), seatName(1)], state.outcome ? null : state.mover);
    this.choose(null);
    $("status").textContent = this.statusWords();
    $("players").textContent = [0, 1].map((seat) => `${seatName(seat)}: ${this.playerName(seat)}`).join(" · ")
      + ` · ${state.ruleset}`;
    this.showPits();
    this.showControls();
    this.showMoves();
    $("position").value = state.text;
  }

  playerName(seat) {
    const name = this.state.seats[seat];
    return name === "human" ? t("player human") : name;
  }

  statusWords() {
    const { state } = this;
    if (state.outcome) {
      return `${t("wins", { who: seatName(state.outcome.winner) })}: ${t(`end ${state.outcome.how}`)}`;
    }
    const words = [t("to_move", { who: seatName(state.mover) }), t(`stage ${state.stage}`)];
    if (state.barred !== null) words.push(t("barred", { hole: this.board.place(state.mover, state.barred).name }));
    if (state.pending !== null) words.push(t("pending", { hole: this.board.place(state.mover, state.pending).name }));
    return words.join(" · ");
  }

  showControls() {
    const { state } = this;
    const bots = !state.outcome && !this.isHuman(state.mover);
    $("undo").disabled = state.ply === 0;
    $("redo").disabled = state.ply === state.length;
    $("hint").disabled = Boolean(state.outcome);
    $("go-on").hidden = !(bots && this.paused);
    $("pause").hidden = !(bots && !this.paused && !this.isHuman(1 - state.mover));
    $("skip").hidden = !this.busy;
  }

  showPits() {
    const { state } = this;
    const yours = this.humansTurn() && !this.busy;
    for (const place of this.board.places.values()) {
      if (!place.button) continue;
      const ways = yours ? ["left", "right"].filter((side) => this.options(place, side).length) : [];
      place.button.classList.toggle("legal", ways.length > 0);
      place.button.classList.toggle("to-left", ways.includes("left"));
      place.button.classList.toggle("to-right", ways.includes("right"));
      place.button.setAttribute("aria-label", this.pitLabel(place, ways));
      place.button.tabIndex = -1;
    }
    this.focus = this.focus && this.board.place(this.focus.seat, this.focus.pit);
    if (!this.focus) {
      const own = state.legal[0] ?? { pit: 4 };
      this.focus = this.board.place(state.mover, own.pit);
    }
    this.focus.button.tabIndex = 0;
  }

  pitLabel(place, ways) {
    const parts = [place.name];
    if (place.owned && this.state.owns_house[place.seat]) parts.push(t("house"));
    parts.push(seeds(this.state.counts[place.seat][place.pit]));
    if (ways.length === 2) parts.push(t("both_ways"));
    else if (ways.length) parts.push(t(`way_${ways[0]}`));
    return parts.join(", ");
  }

  showMoves() {
    if (!this.state) return;
    const spelling = this.spelling();
    const list = $("moves");
    list.replaceChildren();
    let item = null;
    this.state.moves.forEach((move, ply) => {
      if (!item || (move.seat === 0 && !move.joined)) {
        item = document.createElement("li");
        list.append(item);
        if (move.seat === 1) item.append("– ");
      }
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = (move.joined ? "/" : "") + move.texts[spelling];
      button.setAttribute("aria-label", `${seatName(move.seat)}: ${move.texts[spelling]}`);
      button.className = ply >= this.state.ply ? "undone" : "";
      if (ply === this.state.ply - 1) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => this.jump(ply + 1));
      item.append(button, " ");
    });
    const current = list.querySelector("[aria-current]");
    if (current) list.scrollTop = current.offsetTop - list.offsetTop - list.clientHeight / 2;
  }

  // --- moving ---

  // Runs an animation that nothing else may join; false if it no longer counts.
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

  // Asks for the direction of a pit: arrows beside it, or the arrow keys.
  choose(place) {
    this.chosen = place;
    if (!this.arrows) return;
    this.arrows.hidden = !place;
    for (const entry of this.board.places.values()) entry.button?.classList.toggle("chosen", entry === place);
    if (!place) return;
    const { width, height, pit } = this.board.parts;
    const x = Math.min(Math.max(place.x, pit), width - pit);
    this.arrows.style.left = `${(100 * x) / width}%`;
    this.arrows.style.top = `${(100 * (place.y + pit / 2)) / height}%`;
    for (const arrow of this.arrows.children) {
      const side = arrow.className;
      arrow.disabled = !this.options(place, side).length;
      arrow.setAttribute("aria-label", t(`sow_${side}`, { hole: place.name }));
    }
    this.announce(t("choose_way", { hole: place.name }));
  }

  async sow(place, side) {
    if (!place || this.busy) return;
    const direction = this.direction(place.seat, side);
    const options = this.options(place, side);
    $("message").textContent = "";
    try {
      if (options.length === 0) await this.explainRefusal(place, direction);
      else if (options.length === 1) await this.play(options[0].action, 0);
      else await this.askHouse(place, direction, options);
    } catch (error) {
      this.complain(error);
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
    this.paused = false;
    this.choose(null);
    const hadFocus = document.activeElement?.classList.contains("pit") || this.arrows.contains(document.activeElement);
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

  // Undo goes back to where a person was to move, if a person plays.
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

  // --- keys ---

  onKey(event) {
    if (!this.state || event.altKey || event.ctrlKey || event.metaKey) return;
    const sides = { ArrowLeft: "left", ArrowRight: "right" };
    if (event.key === "Escape" && this.chosen) {
      this.chosen.button.focus();
      this.choose(null);
    } else if (this.chosen && sides[event.key]) {
      const place = this.chosen;
      place.button.focus();
      this.sow(place, sides[event.key]);
    } else if (sides[event.key] || event.key === "ArrowUp" || event.key === "ArrowDown") {
      this.choose(null);
      this.moveFocus(event.key);
    } else return;
    event.preventDefault();
  }

  moveFocus(key) {
    const pits = this.board.parts.places.filter((place) => place.pit !== null);
    const at = pits.findIndex((p) => p.seat === this.focus.seat && p.pit === this.focus.pit);
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -8, ArrowDown: 8 }[key];
    const to = at + by;
    if (to < 0 || to >= pits.length || (Math.abs(by) === 1 && Math.floor(to / 8) !== Math.floor(at / 8))) return;
    this.focus.button.tabIndex = -1;
    this.focus = this.board.place(pits[to].seat, pits[to].pit);
    this.focus.button.tabIndex = 0;
    this.focus.button.focus();
  }
}
