// The moves of a game: the list beside the board, and a move in words.

import { eventWords, seatName, seeds, t } from "./texts.js";

const $ = (id) => document.getElementById(id);

export function spelling() {
  return Number($("spelling").value);
}

// What a move did, for example "North: 7R*, no capture".
export function moveSummary(move) {
  const did = move.seeds
    ? t("took", { seeds: seeds(move.seeds), laps: t(move.laps === 1 ? "one_lap" : "laps", { count: move.laps }) })
    : t("took_none");
  const told = move.told.map(eventWords);
  return `${seatName(move.seat)}: ${[`${move.texts[spelling()]}, ${did}`, ...told].join(" · ")}`;
}

// Rows of South and North; a row begins with the first of the two that moves in it.
function rowsOf(moves) {
  const rows = [];
  moves.forEach((move, ply) => {
    let row = rows.at(-1);
    if (!row || (!move.joined && (row[move.seat].length || move.seat === 0))) {
      row = [[], []];
      rows.push(row);
    }
    row[move.seat].push(ply);
  });
  return rows;
}

// Shows the moves of a game; `shown` is the ply on the board, `marks` the mark of each move, if any.
export function showMoves(game, shown, marks, onMove) {
  const body = $("moves");
  body.replaceChildren();
  rowsOf(game.moves).forEach((row, i) => {
    const line = body.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = i + 1;
    line.append(head);
    for (const plies of row) {
      const cell = line.insertCell();
      for (const ply of plies) cell.append(moveButton(game, ply, shown, marks[ply], onMove));
    }
  });
  const current = body.querySelector("[aria-current]");
  const box = $("moves-box");
  if (!current) return;
  const middle = current.getBoundingClientRect().top - box.getBoundingClientRect().top;
  box.scrollTop += middle - box.clientHeight / 2;
}

function moveButton(game, ply, shown, mark, onMove) {
  const move = game.moves[ply];
  const text = move.texts[spelling()];
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.move = (move.joined ? "/" : "") + text;
  button.append(button.dataset.move);
  button.setAttribute("aria-label", [moveSummary(move), mark && t(`mark ${mark}`)].filter(Boolean).join(". "));
  button.className = ply >= game.at ? "undone" : "";
  if (ply === shown - 1) button.setAttribute("aria-current", "true");
  for (const [name, words] of [["gain", move.seeds ? `+${move.seeds}` : ""], ["mark", mark ?? ""]]) {
    if (!words) continue;
    const span = document.createElement("span");
    span.className = name;
    span.textContent = words;
    button.append(span);
  }
  button.addEventListener("click", () => onMove(ply + 1));
  return button;
}
