// Lets people play the pits, each in its legal directions, by mouse, touch and keyboard.

import { Board, boardParts } from "./board.js";
import { $, button, element } from "./dom.js";
import { seatName, seeds, t } from "./texts.js";

const SIDES = ["left", "right"];

export class Pits {
  // `actions.pit(place, how)` is called for a pit, `actions.sow(place, side)` for an arrow, and
  // `actions.ask(words)` for what people are to choose.
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
    this.arrows = element("div", "", "arrows");
    this.arrows.hidden = true;
    this.arrows.append(...SIDES.map((side) => button(side === "left" ? "◀" : "▶", () => this.actions.sow(this.chosen, side), side)));
    $("board").append(this.arrows);
    return true;
  }

  options(place, side) {
    if (place.seat !== this.state.mover) return [];
    return this.state.legal.filter((o) => o.pit === place.pit && this.board.side(place.seat, o.direction) === side);
  }

  // What the direction of a pit means: the "way" of the hand, or the "end" from which it sows.
  choice(place) {
    return SIDES.flatMap((side) => this.options(place, side))[0]?.choice;
  }

  ways(place) {
    return SIDES.filter((side) => this.options(place, side).length);
  }

  show(state, active) {
    this.state = state;
    this.active = active;
    const legal = [];
    for (const place of this.board.places.values()) {
      if (place.region) {
        place.region.setAttribute("aria-label", t("store", { who: seatName(place.seat), seeds: seeds(state.store[place.seat]) }));
        continue;
      }
      const ways = active ? this.ways(place) : [];
      if (ways.length) legal.push([place, this.choice(place) === "way" ? ways : []]);
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
    if (ways.length) parts.push(t(`${ways.length === 2 ? "both" : ways[0]}_${this.choice(place)}`));
    return parts.join(", ");
  }

  // Asks for the direction of a pit: arrows beside it or at the ends of the row, as its hand will
  // go, or the arrow keys. Null cancels it.
  choose(place) {
    this.chosen = place;
    if (!this.arrows) return;
    const { board, arrows } = this;
    arrows.hidden = !place;
    for (const entry of board.places.values()) entry.button?.classList.toggle("chosen", entry === place);
    const choice = place && this.choice(place);
    const { width, height, pit } = board.parts;
    const starts = [];
    for (const arrow of place ? arrows.children : []) {
      const side = arrow.className;
      const [option] = this.options(place, side);
      arrow.hidden = !option;
      if (!option) continue;
      let { x, y } = board.place(place.seat, option.start);
      if (choice === "end") starts.push({ x, y });
      else [x, y] = [Math.min(Math.max(x, pit), width - pit) + (side === "left" ? -0.6 : 0.6) * pit, y + 0.75 * pit];
      arrow.style.left = `${(100 * x) / width}%`;
      arrow.style.top = `${(100 * y) / height}%`;
      arrow.textContent = board.side(place.seat, option.way) === "left" ? "◀" : "▶";
      arrow.setAttribute("aria-label", t(`sow_${side}_${choice}`, { hole: place.name }));
    }
    board.curves(place, starts);
    if (place) this.actions.ask(t(`choose_${choice}`, { hole: place.name }));
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
