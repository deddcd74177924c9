// Lets people play the pits, each in its legal directions, by mouse, touch and keyboard.

import { Board, boardParts } from "./board.js";
import { seeds, t } from "./texts.js";

const $ = (id) => document.getElementById(id);
const SIDES = ["left", "right"];

export class Pits {
  // `actions.pit(place, how)` is called for a pit, `actions.sow(place, side)` for an arrow, and
  // `actions.announce(words)` for what a screen reader should say.
  constructor(actions) {
    this.actions = actions;
    this.board = null;
    this.state = null;
    this.viewer = 0; // the seat at the bottom
    this.chosen = null; // a pit that waits for its direction
    this.focus = null; // the pit that the keyboard is at
    this.active = false; // whether pits can be played
    $("board").addEventListener("keydown", (event) => this.onKey(event));
  }

  // Draws the board for the current size of the window; false if it is already drawn.
  async layOut(stepTime) {
    const narrow = matchMedia("(max-width: 640px) and (orientation: portrait)").matches;
    const parts = await boardParts(narrow ? "tall" : "wide", this.viewer);
    if (this.board?.parts === parts) return false;
    this.board = new Board($("board"), parts, this.actions);
    this.board.stepTime = stepTime;
    this.arrows = document.createElement("div");
    this.arrows.className = "arrows";
    this.arrows.hidden = true;
    for (const side of SIDES) {
      const arrow = document.createElement("button");
      arrow.type = "button";
      arrow.className = side;
      arrow.textContent = side === "left" ? "◀" : "▶";
      arrow.addEventListener("click", () => this.actions.sow(this.chosen, side));
      this.arrows.append(arrow);
    }
    $("board").append(this.arrows);
    return true;
  }

  options(place, side) {
    if (place.seat !== this.state.mover) return [];
    return this.state.legal.filter((o) => o.pit === place.pit && this.board.side(place.seat, o.direction) === side);
  }

  ways(place) {
    return SIDES.filter((side) => this.options(place, side).length);
  }

  show(state, active) {
    this.state = state;
    this.active = active;
    const legal = [];
    for (const place of this.board.places.values()) {
      if (!place.button) continue;
      const ways = active ? this.ways(place) : [];
      if (ways.length) legal.push([place, ways]);
      place.button.classList.toggle("legal", ways.length > 0);
      for (const side of SIDES) place.button.classList.toggle(`to-${side}`, ways.includes(side));
      place.button.setAttribute("aria-label", this.label(place, ways));
      place.button.tabIndex = -1;
    }
    this.board.showLegal(legal);
    this.focus = this.focus && this.board.place(this.focus.seat, this.focus.pit);
    if (!this.focus) {
      const own = state.legal[0] ?? { pit: 4 };
      this.focus = this.board.place(state.mover, own.pit);
    }
    this.focus.button.tabIndex = 0;
  }

  label(place, ways) {
    const { state } = this;
    const parts = [place.name];
    if (place.owned && state.owns_house[place.seat]) parts.push(t("house"));
    parts.push(seeds(state.counts[place.seat][place.pit]));
    if (place.seat === state.mover && place.pit === state.barred) parts.push(t("is_barred"));
    if (ways.length === 2) parts.push(t("both_ways"));
    else if (ways.length) parts.push(t(`way_${ways[0]}`));
    return parts.join(", ");
  }

  // Asks for the direction of a pit: arrows beside it, or the arrow keys. Null cancels it.
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
    this.actions.announce(t("choose_way", { hole: place.name }));
  }

  onKey(event) {
    if (!this.state || event.altKey || event.ctrlKey || event.metaKey) return;
    const sides = { ArrowLeft: "left", ArrowRight: "right" };
    if (event.key === "Escape" && this.chosen) {
      this.chosen.button.focus();
      this.choose(null);
    } else if (this.chosen && sides[event.key]) {
      const place = this.chosen;
      place.button.focus();
      this.actions.sow(place, sides[event.key]);
    } else if (sides[event.key] || event.key === "ArrowUp" || event.key === "ArrowDown") {
      this.choose(null);
      this.moveFocus(event.key);
    } else return;
    event.preventDefault();
    event.stopPropagation();
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
