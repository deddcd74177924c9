// Draws a board from the parts that the server sends, and moves its seeds event by event.
// It knows where things lie, not what the rules are: counts and events come from the server.

import { get } from "./api.js";

const SVG = "http://www.w3.org/2000/svg";
const fetched = new Map();

export function boardParts(layout, viewer) {
  const path = `/api/board/${layout}/${viewer === 0 ? "south" : "north"}`;
  if (!fetched.has(path)) fetched.set(path, get(path));
  return fetched.get(path);
}

function make(name, attributes = {}, parent = null, markup = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (markup) element.innerHTML = markup; // drawn by our own server
  if (parent) parent.append(element);
  return element;
}

const key = (seat, pit) => `${seat}:${pit ?? "store"}`;

export class Board {
  // One board inside `container`. With `onPit(place, event)` each pit gets a button.
  constructor(container, parts, onPit = null) {
    this.parts = parts;
    this.container = container;
    this.places = new Map();
    this.skipping = false;
    this.stepTime = () => 0;
    container.replaceChildren();
    const svg = make("svg", { viewBox: `0 0 ${parts.width} ${parts.height}`, "aria-hidden": "true" });
    container.append(svg);
    make("g", {}, svg, parts.ground);
    this.frames = make("g", {}, svg);
    this.glows = make("g", { class: "glows" }, svg);
    this.marks = make("g", { class: "marks" }, svg);
    this.seedLayer = make("g", {}, svg);
    this.labelLayer = make("g", { class: "labels" }, svg);
    this.handLayer = make("g", { class: "hand" }, svg);
    this.handCount = make("text", { class: "hand-count" }, svg);
    this.hand = [];
    this.handAt = { x: parts.width / 2, y: parts.height / 2 };
    for (const place of parts.places) {
      const entry = { ...place, heap: [] };
      if (place.owned) entry.frame = make("g", { visibility: "hidden" }, this.frames, place.owned);
      entry.label = make("g", { class: "count" }, this.labelLayer);
      make("circle", { cx: place.label[0], cy: place.label[1], r: place.pit === null ? 12 : 9.5 }, entry.label);
      entry.number = make("text", { x: place.label[0], y: place.label[1] + 4.3 }, entry.label);
      this.places.set(key(place.seat, place.pit), entry);
      if (place.pit === null) this.addName(entry);
      else if (onPit) this.addButton(entry, onPit);
    }
  }

  addName(entry) {
    const [x, y, w, h] = entry.box;
    const at = h > w ? [x + w / 2, y - 12] : [x + 34, y + 20];
    entry.name = make("text", { x: at[0], y: at[1], class: "seat-name" }, this.labelLayer);
  }

  addButton(entry, onPit) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = entry.owned ? "pit house" : "pit";
    button.dataset.pit = entry.name;
    button.tabIndex = -1;
    const size = this.parts.pit;
    button.style.left = `${(100 * (entry.x - size / 2)) / this.parts.width}%`;
    button.style.top = `${(100 * (entry.y - size / 2)) / this.parts.height}%`;
    button.style.width = `${(100 * size) / this.parts.width}%`;
    button.style.height = `${(100 * size) / this.parts.height}%`;
    let pointer = "";
    button.addEventListener("pointerdown", (event) => { pointer = event.pointerType; });
    button.addEventListener("keydown", () => { pointer = ""; });
    button.addEventListener("click", () => onPit(entry, pointer === "mouse" ? "left" : "choose"));
    button.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      onPit(entry, pointer === "mouse" ? "right" : "choose");
    });
    entry.button = button;
    this.container.append(button);
  }

  place(seat, pit) {
    return this.places.get(key(seat, pit));
  }

  setNames(names, mover) {
    for (const seat of [0, 1]) {
      const store = this.place(seat, null);
      store.name.textContent = names[seat];
      store.name.classList.toggle("turn", seat === mover);
    }
  }

  // Shows a position at once.
  show(state) {
    this.clearHand();
    this.reconcile(state.counts, state.store);
    for (const seat of [0, 1]) {
      this.place(seat, 4).frame.setAttribute("visibility", state.owns_house[seat] ? "visible" : "hidden");
    }
    this.mark([]);
    if (state.last) this.mark([[state.last.seat, state.last.pit, "last"]]);
    if (state.barred !== null && state.barred !== undefined) {
      this.mark([[state.mover, state.barred, "barred"]], true);
    }
    if (state.pending !== null && state.pending !== undefined) {
      this.mark([[state.mover, state.pending, "source"]], true);
    }
  }

  reconcile(counts, store) {
    for (const entry of this.places.values()) {
      const wanted = entry.pit === null ? store[entry.seat] : counts[entry.seat][entry.pit];
      while (entry.heap.length > wanted) entry.heap.pop().remove();
      while (entry.heap.length < wanted) {
        const spot = entry.spots[entry.heap.length];
        const seed = this.newSeed(spot[2]);
        this.put(seed, spot[0], spot[1]);
        this.seedLayer.append(seed);
        entry.heap.push(seed);
      }
      this.count(entry);
    }
  }

  newSeed(colour) {
    const seed = make("g", { class: "seed" }, null, this.parts.seeds[colour]);
    seed.colour = colour;
    return seed;
  }

  put(seed, x, y, scale = 1) {
    seed.at = { x, y };
    const grown = scale === 1 ? "" : ` scale(${scale})`;
    seed.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})${grown}`);
  }

  count(entry) {
    entry.number.textContent = entry.heap.length;
    entry.label.classList.toggle("none", entry.pit !== null && entry.heap.length === 0);
  }

  // A ring around a pit, square for a house.
  ring(place, size, kind, layer) {
    const { x, y } = place;
    if (place.owned) {
      const box = { x: x - size, y: y - size, width: 2 * size, height: 2 * size, rx: size / 3 };
      make("rect", { ...box, class: kind }, layer);
    } else make("circle", { cx: x, cy: y, r: size, class: kind }, layer);
  }

  mark(marks, keep = false) {
    if (!keep) this.marks.replaceChildren();
    for (const [seat, pit, kind] of marks) {
      this.ring(this.place(seat, pit), this.parts.radius + 3, kind, this.marks);
    }
  }

  glow(places) {
    this.glows.replaceChildren();
    for (const place of places) this.ring(place, this.parts.radius + 2.5, "legal", this.glows);
  }

  clearHand() {
    for (const seed of this.hand) seed.remove();
    this.hand = [];
    this.handCount.textContent = "";
  }

  // --- moving seeds ---

  async tween(time, paint) {
    if (this.skipping || time <= 0) {
      paint(1);
      return;
    }
    const begun = performance.now();
    await new Promise((done) => {
      const frame = (now) => {
        const share = this.skipping ? 1 : Math.min(1, Math.max(0, (now - begun) / time));
        paint(share);
        if (share < 1) requestAnimationFrame(frame);
        else done();
      };
      requestAnimationFrame(frame);
    });
  }

  async wait(time) {
    await this.tween(time, () => {});
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

  async handTo(entry, time) {
    const from = { ...this.handAt };
    await this.tween(time, (share) => {
      const eased = share * share * (3 - 2 * share);
      this.moveHand(from.x + (entry.x - from.x) * eased, from.y + (entry.y - from.y) * eased);
    });
  }

  take(entry, count) {
    for (let i = 0; i < count && entry.heap.length; i++) {
      const seed = entry.heap.pop();
      this.handLayer.append(seed);
      this.hand.push(seed);
    }
    this.count(entry);
  }

  drop(entry) {
    const seed = this.hand.pop();
    if (!seed) return;
    const spot = entry.spots[entry.heap.length];
    this.put(seed, spot[0], spot[1]);
    this.seedLayer.append(seed);
    entry.heap.push(seed);
    this.count(entry);
  }

  // Plays the events of a move. `told(event)` is called as each begins.
  async animate(events, told = () => {}) {
    this.mark([]);
    for (const event of events) {
      told(event);
      await this.animateEvent(event);
      this.settle(event);
    }
  }

  async animateEvent(event) {
    const step = this.stepTime();
    const pits = event.pits.map((pit) => this.place(event.seat, pit));
    if (event.kind === "store seed") {
      this.take(this.place(event.seat, null), 1);
      this.moveHand(this.place(event.seat, null).x, this.place(event.seat, null).y);
      await this.handTo(pits[0], 2 * step);
      this.drop(pits[0]);
    } else if (event.kind === "sow") {
      for (const pit of pits) {
        await this.handTo(pit, step);
        this.drop(pit);
        this.mark([[pit.seat, pit.pit, "now"]]);
      }
    } else if (["lift", "endelea", "house played", "capture"].includes(event.kind)) {
      this.mark([[event.seat, event.pits[0], event.kind === "capture" ? "prey" : "source"]]);
      if (event.kind === "capture") this.mark([[1 - event.seat, event.at, "now"]], true);
      await this.wait(step);
      this.take(pits[0], event.seeds);
      this.moveHand(pits[0].x, pits[0].y);
      await this.wait(1.5 * step);
    } else if (event.kind === "side") {
      await this.handTo(pits[0], 2 * step);
    } else {
      this.mark(event.pits.map((pit) => [event.seat, pit, "stop"]));
      if (event.kind === "house lost") pits[0].frame?.setAttribute("visibility", "hidden");
      await this.wait(2 * step);
    }
  }

  // After an event the board shows what the server says, whatever the animation did.
  settle(event) {
    this.reconcile(event.counts, event.store);
    while (this.hand.length > event.hand) this.hand.pop().remove();
    while (this.hand.length < event.hand) {
      const seed = this.newSeed(this.hand.length % this.parts.seeds.length);
      this.handLayer.append(seed);
      this.hand.push(seed);
    }
    this.moveHand(this.handAt.x, this.handAt.y);
  }
}
