// Reviews a game: a graph of South's chance, and the mistakes with the better moves.

import { make } from "./board.js";
import { $, button, element, refill, scrollToBoard } from "./dom.js";
import { Latest } from "./latest.js";
import { numberOf, spelling } from "./moves.js";
import { announce, caption, say } from "./say.js";
import { percent, winWords } from "./study.js";
import { plies, seatName, t } from "./texts.js";

const [WIDTH, HEIGHT] = [600, 90]; // of the graph, in its own units
const LOST = 0.1; // a player whose chance stays below this is lost

export class Review {
  // `lineButtons(line, ply)` returns the moves of a line; `learn(mistakes)` asks for better moves.
  constructor(table, lineButtons, learn) {
    Object.assign(this, { table, lineButtons });
    this.analyses = [];
    this.requests = new Latest();
    for (const id of ["review", "review-game"]) $(id).addEventListener("click", () => this.run());
    $("learn-mistakes").addEventListener("click", () => learn(this.mistakes()));
    $("graph").addEventListener("click", (event) => {
      const { left, width } = $("graph").getBoundingClientRect();
      table.look(Math.round(((event.clientX - left) / width) * (table.game.length - 1)));
    });
  }

  // Returns the ply of the first move that a player chose.
  get first() {
    return Math.min(this.table.game.opening_plies, this.table.game.length);
  }

  // Drops the review when the game changes.
  forget() {
    this.requests.next();
    this.analyses = [];
    this.table.mark({});
    $("analysis").hidden = true;
  }

  // Analyses every move of the game, one after another, while the graph grows.
  async run() {
    const { table } = this;
    const fresh = this.requests.next();
    const { game } = table;
    if (!game.length) {
      say(t("no_moves"));
      return;
    }
    this.analyses = [];
    table.mark({});
    $("analysis").hidden = false;
    $("analysis").scrollIntoView({ block: "nearest" });
    this.show();
    for (let ply = this.first; ply < game.length; ply++) {
      const analysis = await table.ask("review", { ply }).catch((error) => fresh() && table.complain(error));
      if (!analysis || !fresh()) return;
      this.analyses.push(analysis);
      if (analysis.mark) table.mark({ ...table.marks, [ply]: analysis.mark });
      this.show();
    }
    announce($("review-text").textContent);
  }

  // Returns, in words, which player is lost and from which move on, if the review shows it.
  lostWords() {
    const { analyses, table } = this;
    if (!analyses.length || this.first + analyses.length < table.game.length) return "";
    const { seat: last, value } = analyses.at(-1).played;
    const south = [...analyses.map(({ south: share }) => share), last === 0 ? value : 1 - value]; // before each move, and at the end
    const seat = south.at(-1) < 0.5 ? 0 : 1;
    const from = 1 + south.findLastIndex((share) => (seat === 0 ? share : 1 - share) >= LOST);
    if (from >= analyses.length) return "";
    return t("lost_from", { who: seatName(seat), number: numberOf(table.game, this.first + from), share: percent(LOST) });
  }

  // Returns the mistakes of the person in a game against a bot, else of both players.
  mistakes() {
    const { seats } = this.table.game;
    const people = [0, 1].filter((seat) => seats[seat] === "human");
    const marked = this.analyses.filter(({ mark }) => mark);
    return people.length === 1 ? marked.filter(({ played }) => played.seat === people[0]) : marked;
  }

  show() {
    if ($("analysis").hidden) return;
    const { game } = this.table;
    const done = this.first + this.analyses.length;
    const mistakes = this.analyses.filter(({ mark }) => mark);
    const lost = (seat) => mistakes.filter(({ played, mark }) => played.seat === seat && mark !== "?!");
    const [south, north] = [0, 1].map((seat) => lost(seat).length);
    const summary = t(done < game.length ? "review_runs" : "review_done", { done, length: game.length, south, north });
    $("review-text").textContent = [summary, this.first && t("review_opening", { plies: plies(this.first) }), this.lostWords()].filter(Boolean).join(" ");
    $("graph-end").textContent = t("graph_move", { number: numberOf(game, game.length - 1) });
    $("learn-mistakes").hidden = done < game.length || !this.mistakes().length;
    this.showGraph(mistakes);
    refill($("mistakes"), ...mistakes.map((mistake) => this.mistake(mistake)));
  }

  // Draws the graph. The light part is South's chance. A stroke is a mistake, a thick stroke a
  // blunder, and a dotted stroke a proven win given away. The blue band is the ply on the board.
  showGraph(mistakes) {
    const graph = $("graph");
    const { game, state } = this.table;
    graph.replaceChildren();
    const x = (ply) => (WIDTH * ply) / Math.max(1, game.length - 1);
    const upright = (ply, kind) => make("line", { x1: x(ply), x2: x(ply), y1: 0, y2: HEIGHT, class: kind }, graph);
    const points = this.analyses.map((analysis) => `${x(analysis.ply).toFixed(1)},${(HEIGHT * (1 - analysis.south)).toFixed(1)}`);
    const [begin, end] = [this.analyses.at(0), this.analyses.at(-1)].map((analysis) => analysis && x(analysis.ply).toFixed(1));
    if (points.length) make("polygon", { points: `${begin},${HEIGHT} ${points.join(" ")} ${end},${HEIGHT}`, class: "south" }, graph);
    make("line", { x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2, class: "middle" }, graph);
    upright(Math.min(state.ply, game.length - 1), "shown"); // drawn first, or it would hide a mistake
    for (const { ply, mark } of mistakes) upright(ply, { "?": "mistake", "??": "blunder" }[mark] ?? "unproved");
  }

  // Returns a mistake in words: the move played and what it lost, a button that shows the move and
  // the better one, and the better line.
  mistake(analysis) {
    const sign = spelling();
    const { table } = this;
    const { played, best, mark, ply } = analysis;
    const item = element("li");
    const words = t("mistake", {
      number: numberOf(table.game, ply),
      who: seatName(played.seat),
      move: played.texts[sign] + mark,
      lost: percent(Math.max(0, best.value - played.value)),
    });
    const win = best.win && best.win.winner === played.seat ? winWords(best.win) : "";
    const lostWin = analysis.given_away ? t("given_away") : mark === "?!" ? t("proof_lost") : "";
    item.append(button([words, lostWin, win && `(${win})`].filter(Boolean).join(" "), async () => {
      await table.look(ply);
      table.board.markMove(played.seat, played, "last");
      table.board.markMove(best.seat, best, "hint");
      const share = percent(analysis.south); // the better move's chance, which is that of the position before it
      caption(t("better", { move: best.texts[sign], value: win || t("evaluation_text", { who: seatName(0), share }) }));
      scrollToBoard();
      $("row-look").scrollIntoView({ block: "nearest" });
    }, "move"), ` ${t("better_line")}: `, ...this.lineButtons(analysis.line, ply));
    return item;
  }
}
