// Lets people play the pits, each in its legal directions, by mouse, touch and keyboard.

import { Board, boardParts } from "./board.js";
import { $, button, element } from "./dom.js";
import { seatName, seeds, t } from "./texts.js";

export const NARROW = matchMedia("(max-width: 640px) and (orientation: portrait)"); // as in style.css
const SIDES = ["left", "right"];

export class Pits {
  // `actions.pit(hollow, right)` is called for a pit, and `actions.sow(hollow, side)` for an arrow.
  // `actions.ask(words)` asks people to choose; without words, there is nothing to choose.
  constructor(actions) {
    this.actions = actions;
    this.board = null;
    this.state = null;
    this.viewer = 0; // the seat at the bottom
    this.chosen = null; // a pit that waits for its direction
    this.focus = null; // the pit that the keyboard is at
    this.active = false; // whether pits can be played
    $("board").addEventListener("keydown", (event) => this.onKey(event));
    for (const kind of ["click", "contextmenu"]) {
      $("board").addEventListener(kind, (event) => {
        if (event.pointerType) document.activeElement.blur(); // or Space and the arrow keys would go to the pit
      }, true);
    }
    // A click outside the pits takes a choice back; pits handle their own clicks.
    addEventListener("click", (event) => {
      if (!event.target.closest(".pit, .arrows button")) this.choose(null);
    });
  }

  // Draws the board of a game for the current size of the window; false if it is already drawn.
  async layOut({ house }) {
    const parts = await boardParts(NARROW.matches ? "tall" : "wide", this.viewer, house ? "house" : "round");
    if (this.board?.parts === parts) return false;
    this.board = new Board($("board"), parts, this.actions.pit);
    this.chosen = null;
    this.arrows = element("div", "", "arrows");
    this.arrows.hidden = true;
    this.arrows.append(...SIDES.map((side) => button(side === "left" ? "◀" : "▶", () => this.actions.sow(this.chosen, side), side)));
    $("board").append(this.arrows);
    document.documentElement.style.setProperty("--board-height", `${$("board").offsetHeight}px`);
    return true;
  }

  options(hollow, side) {
    if (hollow.seat !== this.state.mover) return [];
    return this.state.legal.filter((o) => o.pit === hollow.pit && this.board.side(hollow.seat, o.direction) === side);
  }

  // Returns what a pit's direction means: the "way" of the hand, or the "end" from which it sows.
  choice(hollow) {
    return SIDES.flatMap((side) => this.options(hollow, side))[0]?.choice;
  }

  // Returns the sides to which a pit may be played.
  sides(hollow) {
    return SIDES.filter((side) => this.options(hollow, side).length);
  }

  show(state, active) {
    this.state = state;
    this.active = active;
    const legal = [];
    for (const hollow of this.board.hollows.values()) {
      if (hollow.region) {
        const name = seatName(hollow.seat);
        hollow.region.setAttribute("aria-label", t("store", { who: name, seeds: seeds(state.store[hollow.seat]) }));
        hollow.name.textContent = name;
        hollow.name.classList.toggle("turn", hollow.seat === state.mover && !state.outcome);
        continue;
      }
      const sides = active ? this.sides(hollow) : [];
      if (sides.length) legal.push([hollow, this.choice(hollow) === "way" ? sides : []]);
      hollow.button.classList.toggle("legal", sides.length > 0);
      for (const side of SIDES) hollow.button.classList.toggle(`to-${side}`, sides.includes(side));
      hollow.button.setAttribute("aria-label", this.label(hollow, sides));
      hollow.button.tabIndex = -1;
    }
    this.board.showLegal(legal);
    if (active) for (const mark of this.board.marks.querySelectorAll(".now")) mark.remove(); // it would hide the gold
    this.focus = this.focus && this.board.hollow(this.focus.seat, this.focus.pit);
    if (!this.focus) {
      const own = state.legal[0] ?? { pit: 4 };
      this.focus = this.board.hollow(state.mover, own.pit);
    }
    this.focus.button.tabIndex = 0;
  }

  label(hollow, sides) {
    const { state } = this;
    const parts = [hollow.name];
    if (hollow.owned && state.owns_house[hollow.seat]) parts.push(t("house"));
    parts.push(seeds(state.counts[hollow.seat][hollow.pit]));
    if (hollow.seat === state.mover && hollow.pit === state.barred) parts.push(t("is_barred"));
    if (sides.length) parts.push(t(`${sides.length === 2 ? "both" : "one"}_${this.choice(hollow)}`, this.goals(hollow)));
    return parts.join(", ");
  }

  // Returns the pit that names a direction of a pit: the first pit sown, or the end of the row from
  // which captured seeds are sown.
  goalOf(hollow, side) {
    const [{ choice, start, way }] = this.options(hollow, side);
    const turns = start % 8 === (way ? 7 : 0); // from the front row to the back row, or back
    const next = turns ? (start + 8) % 16 : start + (way ? 1 : -1);
    return this.board.hollow(hollow.seat, choice === "end" ? start : next).name;
  }

  // Returns the pits that name a pit's directions, from the left of the screen.
  goals(hollow) {
    const [first, second] = this.sides(hollow).map((side) => this.goalOf(hollow, side));
    return { first, second };
  }

  // Asks for the direction of a pit, by arrows or the arrow keys. Null takes the question back.
  choose(hollow) {
    if (hollow === this.chosen) return;
    if (!hollow) this.keepFocus(() => { this.arrows.hidden = true; });
    this.chosen = hollow;
    const { board, arrows } = this;
    for (const pit of $("board").querySelectorAll(".chosen")) pit.classList.remove("chosen");
    hollow?.button.classList.add("chosen");
    const choice = hollow && this.choice(hollow);
    const arms = hollow ? this.showArrows(hollow, choice) : [];
    arrows.hidden = !hollow;
    board.curves(hollow, choice === "end" ? arms : []);
    this.ask();
  }

  // Asks for the direction of the chosen pit; without one, there is nothing to choose.
  ask() {
    const { chosen } = this;
    this.actions.ask(chosen && t(`choose_${this.choice(chosen)}`, { hole: chosen.name, ...this.goals(chosen) }));
  }

  // Shows the arrows of a pit, and returns where they stand, which is never on a pit: arrows for an
  // end stand beside the row, arrows for a way beyond the owner's edge of the board.
  showArrows(hollow, choice) {
    const { board, arrows } = this;
    const { width, height, pit } = board.parts;
    arrows.hidden = false;
    arrows.classList.toggle("end", choice === "end");
    const radius = (arrows.firstChild.offsetWidth / 2) * (width / $("board").offsetWidth);
    const gap = pit / 2 + radius;
    const [front, back] = [0, 8].map((row) => board.hollow(hollow.seat, row).y);
    const goals = Object.values(this.goals(hollow));
    return [...arrows.children].map((arrow, index) => {
      const side = arrow.className;
      const sign = side === "left" ? -1 : 1;
      const [option] = this.options(hollow, side);
      let { x, y } = board.hollow(hollow.seat, option.start);
      if (choice === "end") x += sign * gap;
      else {
        x = Math.min(Math.max(x, 2 * radius), width - 2 * radius) + sign * Math.max(0.6 * pit, radius);
        y = back + Math.sign(back - front) * gap;
      }
      arrow.style.left = `${(100 * x) / width}%`;
      arrow.style.top = `${(100 * y) / height}%`;
      arrow.textContent = board.side(hollow.seat, option.way) === "left" ? "◀" : "▶";
      arrow.setAttribute("aria-label", t(`sow_${choice}`, { hole: hollow.name, to: goals[index] }));
      return { x, y };
    });
  }

  // Answers the question for a direction by a key; false if nothing was asked or the key is
  // another.
  decide(key) {
    const { chosen } = this;
    const side = { ArrowLeft: "left", ArrowRight: "right" }[key];
    if (!chosen || (!side && key !== "Escape")) return false;
    this.choose(null);
    if (side) this.actions.sow(chosen, side);
    return true;
  }

  onKey(event) {
    if (!this.state || !event.key.startsWith("Arrow") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (!this.decide(event.key)) {
      this.choose(null);
      this.moveFocus(event.key);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  // Does some work. If it takes the keyboard focus from a button, the board gets the focus, or the
  // current move of the list. After a mouse click nothing gets it: keys then go to the page.
  keepFocus(work) {
    const had = document.activeElement;
    const keys = had.matches(":focus-visible");
    const listed = $("moves").contains(had);
    work();
    if (!keys || (had.isConnected && !had.disabled && had.checkVisibility())) return;
    const next = listed && $("moves").querySelector("[aria-current]");
    (next || this.focus.button).focus({ preventScroll: true });
  }

  moveFocus(key) {
    const pits = this.board.parts.hollows.filter(({ pit }) => pit !== null);
    const index = pits.findIndex((p) => p.seat === this.focus.seat && p.pit === this.focus.pit);
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -8, ArrowDown: 8 }[key];
    const to = index + by;
    if (to < 0 || to >= pits.length || (Math.abs(by) === 1 && Math.floor(to / 8) !== Math.floor(index / 8))) return;
    this.focus.button.tabIndex = -1;
    this.focus = this.board.hollow(pits[to].seat, pits[to].pit);
    this.focus.button.tabIndex = 0;
    this.focus.button.focus();
  }
}
