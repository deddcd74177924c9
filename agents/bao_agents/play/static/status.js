// Shows the state of the game on the table, and enables the buttons that apply.

import { $ } from "./dom.js";
import { moveSummary, numberOf } from "./moves.js";
import { seatName, t, withTerms } from "./texts.js";

export function statusWords({ game, state, mode, pending, slow, task }) {
  if (mode === "edit") return t("edit_title");
  if (state.outcome) return outcomeWords(state);
  const mover = seatName(state.mover);
  if (mode === "lesson") return t(task.over);
  if (state.note) return t("looking_ahead", { who: mover });
  if (mode !== "play") return t("looking", { who: mover, number: numberOf(game, state.ply) });
  if (slow) return t("sending");
  return t(pending.has("bot") ? "thinks" : "to_move", { who: mover });
}

function outcomeWords({ outcome: { winner, how }, seats }) {
  if (winner === null) return t(`end ${how}`);
  const end = `${t("wins", { who: seatName(winner) })}: ${t(`end ${how}`, { loser: seatName(1 - winner) })}`;
  const people = [0, 1].filter((seat) => seats[seat] === "human");
  return people.length === 1 ? `${t(people[0] === winner ? "you_won" : "you_lost")} ${end}` : end;
}

// Returns why only these pits may be played, in words.
export function whyWords({ state, mode, pits }) {
  if (state.outcome || mode === "lesson") return "";
  const hole = (pit) => pits.board.hollow(state.mover, pit).name;
  const words = [t(`stage ${state.stage}`)];
  if (state.pending !== null) words.push(t("pending", { hole: hole(state.pending) }));
  else if (state.must) words.push(t(`must ${state.must}`));
  if (state.barred !== null) words.push(t("barred", { hole: hole(state.barred) }));
  return words.join(" ");
}

// Returns the move that led to the position on the board, in words.
export function captionWords({ state }) {
  const move = state.moves[state.ply - 1];
  return state.note ?? (move ? moveSummary(move) : "");
}

export function showStatus(table) {
  const { state, nameOf } = table;
  $("status").textContent = statusWords(table);
  $("why").replaceChildren(withTerms(whyWords(table)));
  const name = (seat) => (state.names[seat] === "human" ? nameOf(state.seats[seat]) : state.names[seat]);
  const players = [0, 1].map((seat) => `${seatName(seat)}: ${state.seats[seat] === "human" ? name(seat) : nameOf(state.seats[seat])}`);
  $("players").textContent = [...players, state.ruleset].join(" · ");
  const people = state.seats.includes("human");
  document.title = `${people && table.playable && state.seats[1 - state.mover] !== "human" ? t("your_turn") : statusWords(table)} · Bao`;
  $("how").hidden = !people;
  $("how").textContent = t(`how_${state.legal[0]?.choice ?? "way"}`);
}

export function showControls({ game, state, pending, paused, away, task }) {
  const bots = !game.outcome && game.seats[game.mover] !== "human";
  const alone = game.seats.includes("human");
  $("row-game").hidden = away;
  $("row-look").hidden = !away;
  $("play-from-here").hidden = Boolean(state.note);
  $("row-end").hidden = !game.outcome || away;
  $("rematch").hidden = Boolean(task); // a puzzle has its own buttons for what comes next
  $("undo").disabled = game.current_ply === 0;
  $("redo").disabled = game.current_ply === game.length;
  $("resign").disabled = Boolean(game.outcome) || !alone || !game.current_ply;
  $("replay").disabled = state.ply === 0 || Boolean(state.note) || pending.has("seeds");
  $("hint").disabled = Boolean(state.outcome || state.note);
  $("first").disabled = $("previous").disabled = state.ply === 0;
  $("last").disabled = $("next").disabled = state.ply === state.length;
  const button = bots && paused && !pending.has("seeds") ? "go-on" : bots && !paused && !alone ? "pause" : "skip";
  for (const id of ["skip", "go-on", "pause"]) $(id).hidden = id !== button;
  $("skip").disabled = !pending.has("seeds");
}
