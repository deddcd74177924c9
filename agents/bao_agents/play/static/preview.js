// Previews moves: when a pit is pointed at, focused or touched for long, the board shows where each
// of its moves goes, what it captures and where it ends. The page also says so. Nothing is played.

import { $ } from "./dom.js";
import { Latest } from "./latest.js";
import { announce, caption } from "./say.js";
import { remember, remembered } from "./store.js";
import { seatName, seeds, t } from "./texts.js";

const POINTED_MS = 250; // how long a mouse rests on a pit before its preview
const TOUCHED_MS = 500; // a longer touch shows the preview and does not play
const CAPTURES = 3; // the most captures that are named; further ones are counted

// Returns what a move does, for example "captures 3 seeds at a3, ends at B5, takes 3 seeds".
function pathWords({ events }, nameOf) {
  const captures = events.filter(({ kind }) => kind === "capture");
  const words = captures.slice(0, CAPTURES).map(({ seeds: count, seat, pits }) => (
    t("preview_capture", { seeds: seeds(count), hole: nameOf(seat, pits[0]) })));
  if (captures.length > CAPTURES) words.push(t("preview_more", { count: captures.length - CAPTURES }));
  const end = events.findLast(({ kind }) => !["takasia", "house lost"].includes(kind));
  const { seat, pits } = events.findLast(({ kind }) => ["sow", "store seed"].includes(kind));
  const win = ["front row empty", "no legal move"].includes(end.kind) ? t("wins", { who: seatName(1 - end.seat) }) : "";
  const stop = end.kind === "house stop" ? "preview_house_stop" : "preview_stop";
  words.push(win || t(stop, { hole: nameOf(seat, pits.at(-1)) }));
  const captured = captures.reduce((sum, { seeds: count }) => sum + count, 0);
  if (captures.length > 1) words.push(t("preview_takes", { seeds: seeds(captured) }));
  return words.join(", ");
}

export class Preview {
  constructor(table) {
    this.table = table;
    this.requests = new Latest();
    this.answers = new Map(); // the moves of one position, by pit
    this.timer = null;
    this.touched = false; // whether a long touch shows a path; its end then plays nothing
    this.target = null; // the pit or arrow whose paths are shown
    const board = $("board");
    $("preview").checked = remembered("preview") !== "false";
    $("preview").addEventListener("change", () => {
      remember("preview", String($("preview").checked));
      this.clear();
    });
    board.addEventListener("pointermove", (event) => {
      const moved = event.movementX || event.movementY; // a pit may also move under a resting mouse
      if (event.pointerType === "mouse" && moved) this.point(event.target, POINTED_MS);
    });
    board.addEventListener("pointerleave", () => this.clear());
    board.addEventListener("pointerdown", (event) => {
      this.touched = false;
      if (event.pointerType !== "mouse") this.point(event.target, TOUCHED_MS, true);
    });
    for (const kind of ["pointerup", "pointercancel"]) {
      board.addEventListener(kind, () => !this.touched && clearTimeout(this.timer));
    }
    for (const kind of ["click", "contextmenu"]) {
      board.addEventListener(kind, (event) => {
        const isTouch = kind === "contextmenu" && event.pointerType !== "mouse" && event.pointerType;
        if (this.touched || isTouch) {
          event.preventDefault();
          event.stopPropagation();
        } else this.clear();
        this.touched = false;
      }, true);
    }
    board.addEventListener("focusin", ({ target }) => target.matches(":focus-visible") && this.point(target, 0));
    board.addEventListener("focusout", () => this.clear());
  }

  get active() {
    const { table } = this;
    return $("preview").checked && table.playable && !table.task?.address.startsWith("puzzle");
  }

  // Shows the preview of the pit or arrow under a pointer or the focus after some time, if it
  // stays.
  point(target, time, touch = false) {
    const choice = target.closest(".pit, .arrows button");
    if (choice === this.target) return;
    this.clear();
    if (!choice || !this.active) return;
    this.target = choice;
    this.timer = setTimeout(() => {
      this.touched = touch;
      this.show(choice);
    }, time);
  }

  // Forgets the moves of a position that has changed.
  forget() {
    this.answers.clear();
    this.clear();
  }

  clear() {
    const { board, pits, state } = this.table;
    clearTimeout(this.timer);
    this.requests.next();
    const { target } = this;
    this.target = null;
    if (!target || !board?.clearPaths()) return;
    if (state) pits.ask();
  }

  async show(target) {
    const { table } = this;
    const { board, pits } = table;
    const hollow = target.dataset.pit ? [...board.hollows.values()].find(({ button }) => button === target) : pits.chosen;
    const sides = target.dataset.pit ? pits.sides(hollow) : [target.className];
    if (!sides.length || !this.active) return;
    const fresh = this.requests.next();
    const moves = await this.movesOf(hollow.pit).catch(() => []); // playing the move will say what is wrong
    if (!fresh() || !moves.length) return;
    const words = sides.map((side) => {
      const options = moves.filter(({ direction }) => board.side(hollow.seat, direction) === side);
      const paths = options.map((move) => pathWords(move, (seat, pit) => board.hollow(seat, pit).name));
      const to = pits.goalOf(hollow, side);
      return t(`preview_${options[0].choice}`, { hole: hollow.name, to, path: paths.join(`; ${t("or")} `) });
    });
    const text = `${words.join(". ")}.`;
    if (target.dataset.pit && pits.chosen) return;
    caption(text);
    announce(text);
    for (const side of sides) {
      const move = moves.findLast(({ direction }) => board.side(hollow.seat, direction) === side);
      await board.showPath(hollow, move.events, side, fresh);
    }
  }

  // Returns the moves of a pit; the server is asked once for each position.
  movesOf(pit) {
    const { answers, table } = this;
    if (!answers.has(pit)) answers.set(pit, table.ask("preview", { pit, ply: table.state.ply }).then(({ moves }) => moves));
    return answers.get(pit);
  }
}
