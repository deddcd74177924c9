// Sets up a position by clicks: each adds or removes a seed. The server checks the result.

import { $, onClick, scrollToBoard } from "./dom.js";
import { sentences } from "./say.js";
import { seatName, seeds, t } from "./texts.js";

const SEEDS = 64;
const NOTHING = "-"; // the last move left nothing

// Returns the fields of a position text (bao_env/RULES.md): four rows, stores, houses, who moves, a
// pit that takasia bars, and a capture that waits for its side. The last two come from the last
// move. Returns null if the text has another form; the number of seeds is not checked.
function parse(text) {
  const [pits = "", store = "", houses = "", mover = "", ...moved] = text.trim().split(/\s+/);
  const rows = pits.split("/").map((row) => row.split(",").map(Number));
  const stores = store.split(",").map(Number);
  const isCount = (number) => Number.isInteger(number) && number >= 0 && number <= SEEDS;
  if (rows.length !== 4 || stores.length !== 2 || rows.some((row) => row.length !== 8)) return null;
  if (![...rows.flat(), ...stores].every(isCount)) return null;
  return {
    counts: [[...rows[0], ...rows[1]], [...rows[2], ...rows[3]]],
    store: stores,
    owns_house: ["S", "N"].map((seat) => houses.includes(seat)),
    mover: mover === "N" ? 1 : 0,
    moved: moved.join(" ") || NOTHING,
  };
}

// Returns the pit that a field names, such as "A3" or "B1:17"; null for none.
function pitOf(field = NOTHING) {
  const [, row, hole] = field.match(/^([AB])([1-8])/) ?? [];
  return row ? (row === "A" ? 0 : 8) + Number(hole) - 1 : null;
}

function format({ counts, store, owns_house: owned, mover, moved }) {
  const rows = counts.flatMap((pits) => [pits.slice(0, 8), pits.slice(8)]).map((row) => row.join(","));
  const houses = ["S", "N"].filter((_, seat) => owned[seat]).join("") || "-";
  return `${rows.join("/")} ${store.join(",")} ${houses} ${mover ? "N" : "S"} ${moved}`;
}

export class SetUp {
  // `play(position)` starts a game from the position.
  constructor(table, play) {
    this.table = table;
    this.state = null; // the position that is being set up
    onClick({
      edit: () => this.start(),
      clear: () => this.clear(),
      "edit-play": () => play($("position").value),
      "edit-end": () => table.look(table.game.current_ply),
    });
    for (const field of $("edit-tools").querySelectorAll("select, input:not(#edit-less)")) {
      field.addEventListener("change", () => this.read());
    }
  }

  // Changes the position; drops what the last move left in it, and says so.
  change(fields) {
    const { moved } = this.state;
    Object.assign(this.state, fields, { moved: NOTHING });
    this.show(moved === NOTHING ? "" : t("edit_moved"));
  }

  // Starts with the position in the box, even if it is illegal; without one, with the board's.
  async start() {
    const { table } = this;
    this.state = parse($("position").value) ?? parse(table.state.text);
    await table.showState(table.state, "edit");
    this.show();
    scrollToBoard();
  }

  // Reads the fields of the form.
  read() {
    const stored = (seat) => Math.min(SEEDS, Math.max(0, Number($(`edit-store-${seat}`).value) || 0));
    this.change({
      store: [0, 1].map(stored),
      owns_house: [0, 1].map((seat) => $(`edit-house-${seat}`).checked),
      mover: Number($("edit-mover").value),
    });
  }

  clear() {
    const counts = [0, 1].map(() => Array(16).fill(0));
    this.change({ counts, store: [0, 0], owns_house: [false, false] });
  }

  click(hollow, right) {
    const counts = this.state.counts.map((pits) => [...pits]);
    const less = right || $("edit-less").checked;
    counts[hollow.seat][hollow.pit] = Math.max(0, counts[hollow.seat][hollow.pit] + (less ? -1 : 1));
    this.change({ counts });
  }

  show(note = "") {
    const { state, table } = this;
    $("edit-mover").value = state.mover;
    for (const seat of [0, 1]) {
      $(`edit-store-${seat}`).value = state.store[seat];
      $(`edit-house-${seat}`).checked = state.owns_house[seat];
    }
    const left = SEEDS - [...state.counts.flat(), ...state.store].reduce((sum, count) => sum + count, 0);
    $("edit-play").disabled = left !== 0;
    const words = left ? t(left > 0 ? "edit_left" : "edit_over", { seeds: seeds(Math.abs(left)) }) : t("edit_ready", { who: seatName(state.mover) });
    const [barred, pending] = state.moved.split(" ").map(pitOf);
    const position = { ...state, text: format(state), last: null, barred, pending: pending ?? null };
    table.peek(position, note ? sentences(note, words) : words, "edit");
  }
}
