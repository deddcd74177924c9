// Lessons and puzzles: a card above the board says what to do; the server's engine judges the moves.

import { get, post } from "./api.js";
import { plies, seatName, t, withTerms } from "./texts.js";

const $ = (id) => document.getElementById(id);
const HUMANS = ["human", "human"];

export class Learn {
  // `begin(data, how)` begins a game on the table; `play()` begins a game of kujifunza.
  constructor(table, begin, play, store) {
    this.table = table;
    this.begin = begin;
    this.play = play;
    this.store = store; // gets and sets what is remembered
    this.lessons = null;
    this.task = null; // what is asked for now: { kind, id, ... }
  }

  // --- the card ---

  // Shows a card: its title, its text, and buttons [text, work, main].
  card(title, text, buttons, kind = "") {
    const card = $("lesson");
    const head = document.createElement("h2");
    head.textContent = title;
    const body = document.createElement("p");
    body.append(withTerms(text));
    const row = document.createElement("div");
    row.className = "buttons";
    for (const [words, work, main] of buttons) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = t(words);
      button.className = main ? "main" : "";
      button.addEventListener("click", work);
      row.append(button);
    }
    card.className = kind;
    card.hidden = false;
    card.replaceChildren(head, body, row);
    this.table.announce(`${title}. ${text}`);
  }

  close() {
    this.task = null;
    this.freeze(false);
    $("lesson").hidden = true;
    $("tab-learn").setAttribute("aria-pressed", "false");
    $("tab-play").setAttribute("aria-pressed", "true");
  }

  // Offers help to new visitors.
  welcome() {
    if (this.store.get("met")) return;
    const met = (work) => () => {
      this.store.set("met", "true");
      this.close();
      work();
    };
    this.task = { kind: "welcome" };
    this.card(t("welcome_title"), t("welcome"), [
      ["welcome_learn", met(() => this.lesson(0)), true],
      ["welcome_play", met(() => this.play()), false],
      ["welcome_no", met(() => {}), false],
    ]);
  }

  async open() {
    await this.lesson(Number(this.store.get("lesson") ?? 0));
  }

  translate() {
    const { task } = this;
    if (task?.kind === "welcome") this.welcome();
    if (task?.kind === "lesson") this.showLesson();
    if (task?.kind === "puzzle") this.showPuzzle("puzzle_text");
  }

  // --- lessons ---

  async lesson(number) {
    this.lessons ??= await get("/static/lessons.json");
    const at = Math.min(Math.max(number, 0), this.lessons.length - 1);
    const { position } = this.lessons[at];
    this.close();
    if (!(await this.begin({ seats: HUMANS, ruleset: "zanzibar", position }))) return;
    this.store.set("met", "true");
    this.store.set("lesson", at);
    this.task = { kind: "lesson", at, result: "text", id: this.table.id };
    this.press();
    this.showLesson();
  }

  freeze(frozen) {
    this.table.frozen = frozen;
    if (this.table.state && !this.table.busy) this.table.showStatus();
  }

  press() {
    $("tab-learn").setAttribute("aria-pressed", "true");
    $("tab-play").setAttribute("aria-pressed", "false");
  }

  showLesson() {
    const { at, result } = this.task;
    const lesson = this.lessons[at];
    const words = lesson[document.documentElement.lang] ?? lesson.en;
    const last = at === this.lessons.length - 1;
    const title = t("lesson_title", { number: at + 1, count: this.lessons.length, title: words.title });
    const on = last
      ? [["welcome_play", () => this.play(), result === "done"], ["puzzles", () => this.puzzle(), false]]
      : [["lesson_next", () => this.lesson(at + 1), result === "done"]];
    const again = ["lesson_again", () => this.lesson(at), true];
    const back = ["lesson_back", () => this.lesson(at - 1), false];
    this.card(title, words[result] ?? words.text, [
      ...(at ? [back] : []),
      ...(result === "wrong" ? [again] : []),
      ...on,
      ["lesson_end", () => this.close(), false],
    ], result);
  }

  // --- puzzles: positions that the solver has proved won ---

  async puzzle() {
    const rules = this.table.game.ruleset === "kujifunza" ? "kujifunza" : "zanzibar";
    this.close();
    let made = null;
    const begun = await this.begin({ ruleset: rules }, {
      path: "/api/puzzles",
      told: (answer) => { made = answer; },
    });
    if (!begun) return;
    this.task = { kind: "puzzle", id: made.id, plies: made.plies, who: made.state.mover };
    this.press();
    this.showPuzzle("puzzle_text");
  }

  showPuzzle(result) {
    const { plies: count, who } = this.task;
    const title = t("puzzle_title", { who: seatName(who), plies: plies(count) });
    const again = ["lesson_again", () => this.table.goTo(this.task.good ?? 0, true), true];
    this.card(title, t(result), [
      ...(result === "puzzle_wrong" ? [again] : []),
      ["puzzle_other", () => this.puzzle(), result === "puzzle_done"],
      ["lessons", () => this.open(), false],
      ["lesson_end", () => this.close(), false],
    ], result.replace("puzzle_", ""));
  }

  // --- judging ---

  // Judges the task after the game has changed.
  async changed() {
    const { task, table } = this;
    if (!task || task.kind === "welcome" || table.lookingBack) return;
    if (task.id !== table.id) {
      this.close();
      return;
    }
    const { game } = table;
    if (task.kind === "lesson") {
      const move = game.moves[0];
      const result = !game.at ? "text" : this.lessons[task.at].goal.includes(move.texts[0]) ? "done" : "wrong";
      if (result === task.result) return;
      task.result = result;
      this.freeze(result !== "text");
      if (result === "done") this.store.set("lesson", task.at + 1);
      this.showLesson();
    } else await this.judgePuzzle(task, game);
  }

  async judgePuzzle(task, game) {
    if (game.outcome) {
      this.showPuzzle(game.outcome.winner === task.who ? "puzzle_done" : "puzzle_wrong");
      return;
    }
    if (game.mover === task.who) return;
    const { win } = await post(`/api/games/${task.id}/evaluation`, { ply: game.at });
    if (this.task !== task || this.table.game.at < game.at) return;
    const wrong = win?.winner === 1 - task.who;
    if (!wrong) task.good = game.at + 1; // the next turn, to which a wrong move is taken back
    this.showPuzzle(wrong ? "puzzle_wrong" : "puzzle_right");
  }
}
