// Draws a board from the parts that the server sends, and moves its seeds event by event.
// It knows where things are, not what the rules are: counts and events come from the server.

import { get } from "./api.js";
import { $ } from "./dom.js";
import { seedSound } from "./sound.js";

const SVG = "http://www.w3.org/2000/svg";
const fetched = new Map();

export function boardParts(layout, viewer, pits) {
  const path = `api/board/${layout}/${viewer === 0 ? "south" : "north"}/${pits}`;
  if (!fetched.has(path)) fetched.set(path, get(path));
  return fetched.get(path);
}

// Returns a new SVG element.
export function make(name, attributes = {}, parent = null, markup = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (markup) element.innerHTML = markup; // drawn by our own server
  if (parent) parent.append(element);
  return element;
}

const PATH_MS = 2500; // the longest time that the path of a move takes

const key = (seat, pit) => `${seat}:${pit ?? "store"}`;

export class Board {
  // Draws inside `container`. `onPit(hollow, right)` is called for a click, a tap or a key on a
  // pit; `right` is true for the right mouse button.
  constructor(container, parts, onPit) {
    this.parts = parts;
    this.container = container;
    this.onPit = onPit;
    this.hollows = new Map();
    this.skipping = false;
    container.replaceChildren();
    const svg = make("svg", { viewBox: `0 0 ${parts.width} ${parts.height}`, "aria-hidden": "true" });
    container.append(svg);
    make("g", {}, svg, parts.ground);
    this.frames = make("g", {}, svg);
    this.seedLayer = make("g", {}, svg);
    this.legal = make("g", { class: "glows" }, svg);
    this.marks = make("g", { class: "marks" }, svg);
    this.paths = make("g", { class: "paths" }, svg);
    this.labelLayer = make("g", { class: "labels" }, svg);
    this.handLayer = make("g", { class: "hand" }, svg);
    this.handCount = make("text", { class: "hand-count" }, svg);
    this.hand = [];
    this.handAt = { x: parts.width / 2, y: parts.height / 2 };
    for (const part of parts.hollows) {
      const hollow = { ...part, heap: [] };
      const [x, y] = part.label;
      if (part.owned) hollow.frame = make("g", { visibility: "hidden" }, this.frames, part.owned);
      hollow.label = make("g", { class: "count" }, this.labelLayer);
      make("circle", { cx: x, cy: y, r: part.pit === null ? 12 : 9.5 }, hollow.label);
      hollow.number = make("text", { x, y: y + 4.3 }, hollow.label);
      this.hollows.set(key(part.seat, part.pit), hollow);
      if (part.pit === null) this.addName(hollow);
      else this.addButton(hollow);
    }
  }

  addName(hollow) {
    const [x, y, w, h] = hollow.box;
    hollow.region = this.overlay("div", "store", x + w / 2, y + h / 2, w, h);
    hollow.region.setAttribute("role", "img");
    const [nameX, nameY] = h > w ? [x + w / 2, y - 12] : [x + 34, y + 20];
    hollow.name = make("text", { x: nameX, y: nameY, class: "seat-name" }, this.labelLayer);
  }

  addButton(hollow) {
    const { pit } = this.parts;
    const button = this.overlay("button", hollow.owned ? "pit house" : "pit", hollow.x, hollow.y, pit, pit);
    button.type = "button";
    button.tabIndex = -1;
    button.dataset.pit = hollow.name;
    for (const kind of ["click", "contextmenu"]) {
      button.addEventListener(kind, (event) => {
        event.preventDefault();
        this.onPit(hollow, kind === "contextmenu" && event.pointerType === "mouse");
      });
    }
    hollow.button = button;
  }

  // Adds an element over the drawing, centred at x and y.
  overlay(tag, className, x, y, width, height) {
    const { parts } = this;
    const element = document.createElement(tag);
    element.className = className;
    const across = (length) => `${(100 * length) / parts.width}%`;
    const down = (length) => `${(100 * length) / parts.height}%`;
    Object.assign(element.style, { left: across(x - width / 2), top: down(y - height / 2), width: across(width), height: down(height) });
    this.container.append(element);
    return element;
  }

  // Returns the side of the screen to which a seat's hand first moves; 0 is the seat's left.
  side(seat, direction) {
    return (direction === 0) === (seat === this.parts.viewer) ? "left" : "right";
  }

  // Returns a pit of a seat, or its store if `pit` is null.
  hollow(seat, pit) {
    return this.hollows.get(key(seat, pit));
  }

  // Shows a position at once.
  show(state) {
    this.clearHand();
    this.clearPaths();
    this.hasStore = state.has_store;
    this.reconcile(state.counts, state.store);
    for (const seat of [0, 1]) {
      this.hollow(seat, 4).frame?.setAttribute("visibility", state.owns_house[seat] ? "visible" : "hidden");
    }
    const { mover, last, barred, pending } = state;
    this.mark([]);
    if (last) this.markMove(last.seat, last, "last");
    if (barred !== null) this.mark([[mover, barred, "barred"]], true);
    if (pending !== null) this.mark([[mover, pending, "now"]], true);
  }

  reconcile(counts, store) {
    for (const hollow of this.hollows.values()) {
      const count = hollow.pit === null ? store[hollow.seat] : counts[hollow.seat][hollow.pit];
      while (hollow.heap.length > count) hollow.heap.pop().remove();
      while (hollow.heap.length < count) this.lay(hollow, this.newSeed(hollow.spots[hollow.heap.length][2]));
      this.count(hollow);
    }
  }

  newSeed(colour) {
    return make("g", { class: "seed" }, null, this.parts.seeds[colour]);
  }

  // Puts a seed on top of those in a hollow.
  lay(hollow, seed) {
    const [x, y] = hollow.spots[hollow.heap.length];
    this.put(seed, x, y);
    this.seedLayer.append(seed);
    hollow.heap.push(seed);
  }

  hold(seed) {
    this.handLayer.append(seed);
    this.hand.push(seed);
  }

  put(seed, x, y, scale = 1) {
    seed.at = { x, y };
    const grown = scale === 1 ? "" : ` scale(${scale})`;
    seed.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})${grown}`);
  }

  count(hollow) {
    hollow.number.textContent = hollow.heap.length;
    hollow.label.classList.toggle("none", (hollow.pit !== null || !this.hasStore) && hollow.heap.length === 0);
  }

  // Adds a mark to a pit, or only its arrows; the drawing comes from the server.
  addMark(layer, hollow, kind, sides = [], ring = true) {
    const { marks } = this.parts;
    const owned = kind === "legal" && hollow.frame?.getAttribute("visibility") === "visible";
    const scale = owned ? " scale(1.14)" : ""; // outside the frame that says who owns the house
    const group = make("g", { class: kind, transform: `translate(${hollow.x} ${hollow.y})${scale}` }, layer);
    if (ring) make("g", {}, group, marks[kind][hollow.owned ? "square" : "round"]);
    for (const side of sides) make("g", {}, group, marks[kind][side]);
  }

  // Marks the pit of a move, and where and in which direction its hand starts to sow.
  markMove(seat, { pit, start, way }, kind) {
    for (const old of this.marks.querySelectorAll(`.${kind}`)) old.remove();
    this.mark([[seat, pit, kind]], true);
    this.addMark(this.marks, this.hollow(seat, start), kind, [this.side(seat, way)], false);
  }

  // Marks [seat, pit, kind]; the kinds are those of bao_env.render.marks.
  mark(marks, keep = false) {
    if (!keep) this.marks.replaceChildren();
    for (const [seat, pit, kind] of marks) this.addMark(this.marks, this.hollow(seat, pit), kind);
  }

  // Draws lines from a pit to the pits where its hand may start.
  curves(from, hollows) {
    for (const old of this.legal.querySelectorAll("path")) old.remove();
    for (const { x, y } of hollows) {
      const bend = from.y + (from.y < this.parts.height / 2 ? 1 : -1) * this.parts.pit;
      make("path", { d: `M${from.x} ${from.y} Q${(from.x + x) / 2} ${bend} ${x} ${y}` }, this.legal);
    }
  }

  // Shows the pits that may be played, [hollow, sides].
  showLegal(legal) {
    this.legal.replaceChildren();
    for (const [hollow, sides] of legal) this.addMark(this.legal, hollow, "legal", sides);
  }

  // Removes the paths of moves; returns whether there were any.
  clearPaths() {
    const had = this.paths.childElementCount > 0;
    this.paths.replaceChildren();
    return had;
  }

  // Draws the path of a move's hand from pit to pit, with rings on captures and on the last pit.
  // No seed moves. The drawing stops when `fresh()` becomes false.
  async showPath(start, events, side, fresh) {
    const group = make("g", { class: side }, this.paths);
    const line = make("polyline", {}, group);
    const shift = side === "left" ? -5 : 5; // so that two paths do not hide each other
    const points = [];
    const steps = events.flatMap(({ kind, seat, pits, at }) => (
      kind === "capture" ? [[1 - seat, at, "now"], [seat, pits[0], "prey"]]
        : kind === "side" || kind === "sow" ? pits.map((pit) => [seat, pit]) : []));
    const time = Math.min(this.stepTime() / 2, PATH_MS / steps.length);
    for (const [seat, pit, kind] of [[start.seat, start.pit], ...steps]) {
      const hollow = this.hollow(seat, pit);
      points.push(`${hollow.x + shift},${hollow.y + shift}`);
      line.setAttribute("points", points.join(" "));
      if (kind === "prey") this.addMark(group, hollow, kind);
      if (time) await this.tween(time);
      if (!fresh()) return;
    }
    const [seat, pit] = steps.at(-1) ?? [start.seat, start.pit];
    const end = this.hollow(seat, pit);
    this.addMark(group, end, "now");
    const captured = events.reduce((sum, { kind, seeds }) => sum + (kind === "capture" ? seeds : 0), 0);
    if (captured) make("text", { x: end.x + shift, y: end.y + 5 }, group).textContent = `+${captured}`;
  }

  clearHand() {
    for (const seed of this.hand) seed.remove();
    this.hand = [];
    this.handCount.textContent = "";
  }

  // --- moving seeds ---

  // Returns the milliseconds that a hand takes from pit to pit.
  stepTime() {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return 0;
    return 620 / Number($("speed").value) ** 1.25;
  }

  // Calls `paint` with the share of the time that has passed, from 0 to 1.
  async tween(time, paint = () => {}) {
    const start = performance.now();
    for (let share = 0; share < 1;) {
      const passed = performance.now() - start;
      share = this.skipping || passed >= time ? 1 : passed / time;
      paint(share);
      if (share < 1) await new Promise(requestAnimationFrame);
    }
  }

  moveHand(x, y) {
    this.handAt = { x, y };
    this.handCount.textContent = this.hand.length > 1 ? this.hand.length : "";
    this.handCount.setAttribute("x", x + 14);
    this.handCount.setAttribute("y", y - 16);
    this.hand.forEach((seed, i) => {
      const distance = 3.4 * Math.sqrt(i);
      this.put(seed, x + distance * Math.cos(2.4 * i), y - 10 + distance * Math.sin(2.4 * i), 1.15);
    });
  }

  async handTo(hollow, time) {
    const { x, y } = this.handAt;
    await this.tween(time, (share) => {
      const eased = share * share * (3 - 2 * share);
      this.moveHand(x + (hollow.x - x) * eased, y + (hollow.y - y) * eased);
    });
  }

  take(hollow, count) {
    for (let i = 0; i < count && hollow.heap.length; i++) this.hold(hollow.heap.pop());
    this.count(hollow);
  }

  drop(hollow) {
    const seed = this.hand.pop();
    if (!seed) return;
    this.lay(hollow, seed);
    this.count(hollow);
    if (!this.skipping) seedSound(hollow.heap.length);
  }

  // Plays the events of a move. `onEvent(event)` is called when an event starts, and returns the
  // shortest time that the event lasts.
  async animate(events, onEvent = () => 0) {
    this.mark([]);
    for (const event of events) {
      const readable = this.tween(onEvent(event));
      await this.animateEvent(event);
      await readable;
      this.settle(event);
    }
  }

  async animateEvent(event) {
    const step = this.stepTime();
    const pits = event.pits.map((pit) => this.hollow(event.seat, pit));
    if (event.kind === "store seed") {
      this.take(this.hollow(event.seat, null), 1);
      this.moveHand(this.hollow(event.seat, null).x, this.hollow(event.seat, null).y);
      await this.handTo(pits[0], 2 * step);
      this.drop(pits[0]);
    } else if (event.kind === "sow") {
      for (const pit of pits) {
        await this.handTo(pit, step);
        this.drop(pit);
        this.mark([[pit.seat, pit.pit, "now"]]);
      }
    } else if (["lift", "endelea", "house played", "capture"].includes(event.kind)) {
      this.mark([[event.seat, event.pits[0], event.kind === "capture" ? "prey" : "now"]]);
      if (event.kind === "capture") this.mark([[1 - event.seat, event.at, "now"]], true);
      await this.tween(step);
      this.take(pits[0], event.seeds);
      this.moveHand(pits[0].x, pits[0].y);
      await this.tween(1.5 * step);
    } else if (event.kind === "side") {
      await this.handTo(pits[0], 2 * step);
    } else {
      this.mark(event.pits.map((pit) => [event.seat, pit, "now"]));
      if (event.kind === "house lost") pits[0].frame?.setAttribute("visibility", "hidden");
      await this.tween(2 * step);
    }
  }

  // After an event the board shows what the server says, whatever the animation did.
  settle(event) {
    this.reconcile(event.counts, event.store);
    while (this.hand.length > event.hand) this.hand.pop().remove();
    while (this.hand.length < event.hand) this.hold(this.newSeed(this.hand.length % this.parts.seeds.length));
    this.moveHand(this.handAt.x, this.handAt.y);
  }
}
