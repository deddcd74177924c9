// Lessons and puzzles: a card above the board says what to do; the server's engine judges the
// moves.

import { get } from "./api.js";
import { $, button, element } from "./dom.js";
import { numberOf, spelling } from "./moves.js";
import { rulesOf } from "./new_game.js";
import { announce, sentences, tell } from "./say.js";
import { recall, remember, remembered } from "./store.js";
import { percent } from "./study.js";
import { fill, plies, seatName, t, withTerms } from "./texts.js";

const HUMANS = ["human", "human"];

export class Learn {
  // `newGame` starts games on the table. `resume(game)` returns to a game, by default the
  // visitor's.
  constructor(table, newGame, resume) {
    Object.assign(this, { table, newGame, resume });
    this.lessons = [];
    this.task = null; // the current task: { kind, ... }
  }

  // --- the card ---

  // Shows a card: its title, its text, and buttons [words, work, main].
  card(title, text, buttons, kind = "") {
    const card = $("lesson");
    const had = card.contains(document.activeElement);
    const head = element("h2", title);
    head.tabIndex = -1;
    const body = element("p");
    body.append(withTerms(text));
    const row = element("div", "", "buttons");
    row.append(...buttons.map(([words, work, main]) => button(words, work, main ? "main" : "")));
    card.className = kind;
    card.dataset.task = this.task.kind;
    this.press(this.task.kind !== "welcome");
    card.hidden = false;
    card.replaceChildren(head, body, row);
    if (this.task.kind !== "welcome") card.append(this.list());
    if (had) head.focus({ preventScroll: true });
    announce(sentences(title, text));
  }

  // Returns the list of all lessons, with a tick on each finished one, and of the puzzles.
  list() {
    const row = element("div", t("lessons"), "buttons list");
    this.lessons.forEach((lesson, index) => {
      const ticked = this.done().has(index);
      const item = button(`${index + 1}${ticked ? " ✓" : ""}`, () => this.lesson(index));
      item.title = `${index + 1}. ${(lesson[document.documentElement.lang] ?? lesson.en).title}`;
      item.setAttribute("aria-label", ticked ? `${item.title}, ${t("lesson_ticked")}` : item.title);
      if (this.task.kind === "lesson" && this.task.index === index) item.setAttribute("aria-current", "step");
      row.append(item);
    });
    const puzzles = element("span", t("puzzles"), "buttons");
    for (const ruleset of this.newGame.setup.puzzles) {
      const item = button(ruleset, () => this.puzzle(ruleset));
      item.setAttribute("aria-label", `${t("puzzles")}: ${ruleset}`);
      if (this.task?.ruleset === ruleset) item.setAttribute("aria-current", "step");
      puzzles.append(item);
    }
    row.append(puzzles);
    return row;
  }

  done() {
    const done = recall("done");
    return new Set(Array.isArray(done) ? done : []);
  }

  // Ends the lesson or puzzle, because another game has started or is about to.
  end() {
    this.task = null;
    this.table.pits.keepFocus(() => { $("lesson").hidden = true; });
    this.press(false);
  }

  // Goes back to the visitor's own game.
  async leave() {
    const { game = null } = this.task ?? {};
    this.end();
    if (this.table.task) await this.resume(game);
  }

  // Offers help to new visitors.
  async welcome() {
    if (remembered("met") || this.table.task || this.table.game.length) return;
    await this.load();
    const met = (work) => () => {
      remember("met", "true");
      this.end();
      work();
    };
    this.task = { kind: "welcome" };
    const count = this.lessons.length;
    const enough = 1 + this.lessons.findIndex(({ opens }) => opens === "kujifunza");
    this.card(t("welcome_title"), t("welcome", { count, enough }), [
      [t("welcome_learn", { count }), met(() => this.lesson(0)), true],
      [t("play_kujifunza"), met(() => this.newGame.playLevel("kujifunza")), false],
      [t("welcome_no"), met(() => {}), false],
    ]);
  }

  // Shows the first lesson that isn't done.
  async open() {
    await this.load();
    const done = this.done();
    await this.lesson(this.lessons.findIndex((_, index) => !done.has(index)));
  }

  translate() {
    const { task } = this;
    if (task?.kind === "welcome") this.welcome();
    if (task?.kind === "lesson") this.showLesson();
    if (task?.kind === "puzzle") this.showPuzzle("puzzle_text");
    if (task?.kind === "mistake") this.showMistake(task.result, task.values);
  }

  async load() {
    if (!this.lessons.length) this.lessons = await get("static/lessons.json");
  }

  // --- lessons ---

  async lesson(number) {
    await this.load();
    const index = Math.min(Math.max(Math.trunc(number) || 0, 0), this.lessons.length - 1);
    const { position } = this.lessons[index];
    this.end();
    const game = { seats: HUMANS, ruleset: "zanzibar", position };
    if (!(await this.newGame.begin(game, { task: `lesson=${index + 1}` }))) return;
    remember("met", "true");
    this.task = { kind: "lesson", index, result: "text" };
    $("lesson").style.minHeight = "";
    this.showLesson();
    $("lesson").style.minHeight = `${$("lesson").offsetHeight}px`; // the board stays where it is
    scrollTo(0, 0);
  }

  press(learning) {
    $("tab-learn").setAttribute("aria-pressed", String(learning));
    $("tab-play").setAttribute("aria-pressed", String(!learning));
  }

  showLesson() {
    const { index, result } = this.task;
    const lesson = this.lessons[index];
    const words = lesson[document.documentElement.lang] ?? lesson.en;
    const done = result === "done";
    const title = t("lesson_title", { number: index + 1, count: this.lessons.length, title: words.title });
    const last = index === this.lessons.length - 1;
    const { opens } = lesson; // the game that the visitor can play after this lesson
    this.card(title, fill(words[result] ?? words.text, this.table.game.rule_numbers), [
      ...(index ? [[t("lesson_back"), () => this.lesson(index - 1), false]] : []),
      ...(result === "wrong" ? [[t("lesson_again"), () => this.lesson(index), true]] : []),
      ...(last ? [] : [[t("lesson_next"), () => this.lesson(index + 1), done]]),
      ...(opens && (done || last) ? [[t(`play_${opens}`), () => this.newGame.playLevel(opens), done && last]] : []),
      [t("lesson_end"), () => this.leave(), false],
    ], result);
  }

  // --- puzzles: positions that are proven wins ---

  // Shows the puzzle of an address, for example "zanzibar/3"; without a number, the next one to
  // solve.
  // Returns whether the server has the puzzle.
  async puzzle(address) {
    const [ruleset, chosen] = address.split("/");
    const number = Math.trunc(chosen ?? remembered(`puzzle ${ruleset}`)) || 1;
    await this.load();
    this.end();
    const answer = await this.newGame.begin({ ruleset, number }, { path: "api/puzzles", task: `puzzle=${ruleset}/${number}` });
    if (!answer) return false;
    const next = (number % answer.count) + 1;
    const { plies: length, count, rating } = answer;
    this.task = { kind: "puzzle", plies: length, who: answer.state.mover, ruleset, number, count, next, rating };
    $("lesson").style.minHeight = "";
    this.showPuzzle("puzzle_text");
    return true;
  }

  showPuzzle(result) {
    const { plies: length, who, ruleset, number, count, next, rating } = this.task;
    const title = t("puzzle_title", { number, count, who: seatName(who), plies: plies(length) });
    if (result === "puzzle_done") remember(`puzzle ${ruleset}`, next);
    const retry = [t("lesson_again"), () => {
      this.showPuzzle("puzzle_text");
      this.table.goTo(this.task.good ?? 0, true);
    }, true];
    const difficulty = result === "puzzle_text" && rating && t("puzzle_rating", { ...rating, master: t("level master") });
    this.card(title, sentences(t(result), difficulty), [
      ...(result === "puzzle_wrong" ? [retry] : []),
      [t("puzzle_next"), () => this.puzzle(`${ruleset}/${next}`), result === "puzzle_done"],
      [t("lesson_end"), () => this.leave(), false],
    ], result.replace("puzzle_", ""));
  }

  // --- mistakes: positions of a game where the visitor looks for a better move ---

  // Asks for a better move in place of each of these mistakes in the game on the board.
  async mistakes(mistakes) {
    const { id, game } = this.table;
    const reviewed = { game: id, transcript: game.transcripts[0], seats: game.seats };
    const positions = await Promise.all(mistakes.map(({ ply }) => this.table.ask("look", { ply })));
    const tasks = mistakes.map((mistake, i) => (
      { ...mistake, position: positions[i].state.text, move: numberOf(game, mistake.ply) }));
    await this.load();
    await this.mistake(tasks, 0, { game: reviewed, ...rulesOf(game) });
  }

  async mistake(tasks, index, { game, ...rules }) {
    this.end();
    const { position } = tasks[index];
    if (!(await this.newGame.begin({ seats: HUMANS, position, ...rules }, { task: `mistake=${index + 1}` }))) return;
    this.task = { kind: "mistake", tasks, index, game, rules };
    $("lesson").style.minHeight = "";
    this.showMistake("mistake_text");
  }

  showMistake(result, values = {}) {
    const { tasks, index, game, rules } = this.task;
    Object.assign(this.task, { result, values });
    const { move: number, played, best } = tasks[index];
    const lost = percent(Math.max(0, best.value - played.value));
    const title = t("mistake_title", { number: index + 1, count: tasks.length, move: number, who: seatName(played.seat) });
    const isDone = result === "mistake_done";
    const showBest = () => {
      this.table.board.markMove(best.seat, best, "hint");
      tell(`${t("better_line")}: ${best.texts[spelling()]}`);
    };
    this.card(title, t(result, { move: played.texts[spelling()], lost, ...values }), [
      ...(result === "mistake_wrong" ? [[t("lesson_again"), () => this.mistake(tasks, index, { game, ...rules }), true]] : []),
      ...(isDone ? [] : [[t("mistake_show"), showBest, false]]),
      ...(index + 1 < tasks.length ? [[t("mistake_next"), () => this.mistake(tasks, index + 1, { game, ...rules }), isDone]] : []),
      [t("back_to_game"), () => this.leave(), isDone && index + 1 === tasks.length],
    ], result.replace("mistake_", ""));
  }

  async judgeMistake(task, game) {
    if (!game.current_ply) {
      this.showMistake("mistake_text");
      return;
    }
    const { mark, played, best } = await this.table.ask("review", { ply: 0 });
    if (this.task !== task) return;
    this.table.endTask(mark ? "lesson_wrong" : "lesson_over");
    this.showMistake(mark ? "mistake_wrong" : "mistake_done", { lost: percent(Math.max(0, best.value - played.value)) });
  }

  // --- judging ---

  // Judges the task after the game has changed.
  async changed() {
    const { task, table } = this;
    if (!task || table.away || (task.kind === "welcome" && !table.game.length)) return;
    if (!table.task) {
      this.end();
      return;
    }
    const { game } = table;
    if (task.kind === "lesson") {
      const move = game.moves[0];
      const result = !game.current_ply ? "text" : this.lessons[task.index].goal.includes(move.texts[0]) ? "done" : "wrong";
      if (result === task.result) return;
      task.result = result;
      if (result === "done") remember("done", JSON.stringify([...this.done().add(task.index)]));
      table.endTask({ text: "", done: "lesson_over", wrong: "lesson_wrong" }[result]);
      this.showLesson();
    } else if (task.kind === "mistake") await this.judgeMistake(task, game);
    else await this.judgePuzzle(task, game);
  }

  async judgePuzzle(task, game) {
    if (game.outcome) {
      this.showPuzzle(game.outcome.winner === task.who ? "puzzle_done" : "puzzle_wrong");
      return;
    }
    if (game.mover === task.who) return;
    const { win } = await this.table.ask("evaluation", { ply: game.current_ply });
    if (this.task !== task || this.table.game.current_ply < game.current_ply) return;
    const wrong = win?.winner === 1 - task.who;
    if (!wrong) task.good = game.current_ply + 1; // the next turn; a wrong move is taken back to it
    this.showPuzzle(wrong ? "puzzle_wrong" : "puzzle_right");
  }
}
