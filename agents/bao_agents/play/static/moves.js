// The moves of a game: the list beside the board, and a move in words.

import { $, button, element } from "./dom.js";
import { eventWords, seatName, seeds, t } from "./texts.js";

export function spelling() {
  return Number($("spelling").value);
}

// Returns what a move did in words, for example "North: 7R*, no capture".
export function moveSummary(move) {
  const did = move.seeds
    ? t("took", { seeds: seeds(move.seeds), laps: t(move.laps === 1 ? "one_lap" : "laps", { count: move.laps }) })
    : t("took_none");
  const events = move.mentioned.map(eventWords);
  return `${seatName(move.seat)}: ${[`${move.texts[spelling()]}, ${did}`, ...events].join(" · ")}`;
}

// Returns the number in the list of the move at a ply, which may be the next ply.
export function numberOf({ moves, mover }, ply) {
  return rowsOf([...moves.slice(0, ply), moves[ply] ?? { seat: mover }]).length;
}

// Returns rows of South's and North's moves; the player who moves first in a row starts it.
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

// Shows the moves of a game. `boardPly` is the ply on the board; `marks` has the marks of moves.
export function showMoves(game, boardPly, marks, onMove) {
  const body = $("moves");
  body.replaceChildren();
  rowsOf(game.moves).forEach((row, i) => {
    const line = body.insertRow();
    const head = element("th", i + 1);
    head.scope = "row";
    line.append(head);
    for (const plies of row) {
      const cell = line.insertCell();
      for (const ply of plies) cell.append(moveButton(game, ply, boardPly, marks[ply], onMove));
    }
  });
  const current = body.querySelector("[aria-current]");
  const box = $("moves-box");
  if (!current) return;
  const middle = current.getBoundingClientRect().top - box.getBoundingClientRect().top;
  box.scrollTop += middle - box.clientHeight / 2;
}

// Shows the lines that were left for another move, as buttons that go back to them.
export function showLines(game, onLine) {
  const buttons = game.lines.map(({ ply, moves }, index) => {
    const texts = moves.map(({ texts: spellings }) => spellings[spelling()]).join(" ");
    const gap = moves[0].seat === 1 ? "… " : "";
    return button(`${numberOf(game, ply)}. ${gap}${texts}`, () => onLine(index), "move");
  });
  $("lines").replaceChildren(...(buttons.length ? [`${t("lines")}: `] : []), ...buttons);
}

function moveButton(game, ply, boardPly, mark, onMove) {
  const move = game.moves[ply];
  const text = move.texts[spelling()];
  const words = (move.joined ? "/" : "") + text;
  const choice = button(words, () => onMove(ply + 1), ply >= game.current_ply ? "undone" : "");
  choice.dataset.move = words;
  choice.setAttribute("aria-label", [moveSummary(move), mark && t(`mark ${mark}`)].filter(Boolean).join(". "));
  if (ply === boardPly - 1) choice.setAttribute("aria-current", "true");
  if (move.seeds) choice.append(element("span", `+${move.seeds}`, "gain"));
  if (mark) choice.append(element("span", mark, "mark"));
  return choice;
}
