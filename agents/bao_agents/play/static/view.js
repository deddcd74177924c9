// What the page shows of a game: the board with its buttons, whose turn it is, and the moves.

import { Board, boardParts } from "./board.js";
import { eventWords, seatName, seeds, t } from "./texts.js";

const $ = (id) => document.getElementById(id);

export class View {
  constructor() {
    this.state = null; // as the server sent it
    this.board = null;
    this.viewer = 0; // the seat at the bottom
    this.busy = false; // seeds are moving
    this.paused = false; // bots wait
    this.chosen = null; // a pit that waits for its direction
    this.focus = null; // the pit that the keyboard is at
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

  // The direction, as the pit's owner sees it, of a hand that moves to one side of the screen.
  direction(seat, side) {
    return (side === "left") === (seat === this.viewer) ? 0 : 1;
  }

  options(place, side) {
    if (place.seat !== this.state.mover) return [];
    const direction = this.direction(place.seat, side);
    return this.state.legal.filter((o) => o.pit === place.pit && o.direction === direction);
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
    return name === "human" ? t("person") : name;
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
    const legal = [];
    for (const place of this.board.places.values()) {
      if (!place.button) continue;
      const ways = yours ? ["left", "right"].filter((side) => this.options(place, side).length) : [];
      if (ways.length) legal.push(place);
      place.button.classList.toggle("legal", ways.length > 0);
      place.button.classList.toggle("to-left", ways.includes("left"));
      place.button.classList.toggle("to-right", ways.includes("right"));
      place.button.setAttribute("aria-label", this.pitLabel(place, ways));
      place.button.tabIndex = -1;
    }
    this.board.glow(legal);
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
