// The review of a game: a graph of South's chance, and its mistakes with the better moves.

import { post } from "./api.js";
import { spelling } from "./moves.js";
import { percent, winWords } from "./study.js";
import { seatName, t } from "./texts.js";

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [600, 90]; // of the graph, in its own units

function shape(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

export class Review {
  constructor(table, study) {
    this.table = table;
    this.study = study;
    this.found = [];
    this.asked = 0;
    for (const id of ["review", "review-game"]) $(id).addEventListener("click", () => this.run());
  }

  // Drops the review when the game changes.
  forget() {
    this.asked += 1;
    this.found = [];
    $("analysis").hidden = true;
  }

  // Analyses every move of the game, one after another, while the graph grows.
  async run() {
    const { table } = this;
    const asked = ++this.asked;
    const { id, game } = table;
    if (!game.length) {
      table.say(t("no_moves"));
      return;
    }
    this.found = [];
    table.marks = {};
    $("analysis").hidden = false;
    this.show();
    $("analysis").scrollIntoView({ block: "nearest" });
    for (let ply = 0; ply < game.length; ply++) {
      try {
        const one = await post(`/api/games/${id}/review`, { ply });
        if (asked !== this.asked) return;
        this.found.push(one);
        if (one.mark) table.marks[ply] = one.mark;
      } catch (error) {
        if (asked === this.asked) table.complain(error);
        return;
      }
      this.show();
      table.showMoves();
    }
    table.announce($("review-text").textContent);
  }

  show() {
    const { length } = this.table.game;
    const done = this.found.length;
    const marks = [0, 1].map((seat) => this.mistakes().filter((one) => one.played.seat === seat).length);
    $("review-text").textContent = done < length ? t("review_runs", { done, length })
      : t("review_done", { south: marks[0], north: marks[1] });
    this.showGraph(length);
    $("mistakes").replaceChildren(...this.mistakes().map((one) => this.mistake(one)));
  }

  mistakes() {
    return this.found.filter((one) => one.mark);
  }

  // South's chance is the light part; a mistake is a stroke, a blunder a thick one.
  showGraph(length) {
    const graph = $("graph");
    graph.replaceChildren();
    const x = (ply) => (WIDTH * ply) / Math.max(1, length - 1);
    const points = this.found.map((one) => `${x(one.ply).toFixed(1)},${(HEIGHT * (1 - one.south)).toFixed(1)}`);
    if (!points.length) return;
    const last = x(this.found.length - 1).toFixed(1);
    shape("polygon", { points: `0,${HEIGHT} ${points.join(" ")} ${last},${HEIGHT}`, class: "south" }, graph);
    shape("line", { x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2, class: "middle" }, graph);
    for (const one of this.mistakes()) {
      shape("line", { x1: x(one.ply), x2: x(one.ply), y1: 0, y2: HEIGHT, class: one.mark === "?" ? "mistake" : "blunder" }, graph);
    }
    graph.onclick = (event) => {
      const { left, width } = graph.getBoundingClientRect();
      const ply = Math.round(((event.clientX - left) / width) * (length - 1));
      this.table.look(Math.min(ply, length));
    };
  }

  // A mistake in words; a click shows the better move on the board.
  mistake(one) {
    const sign = spelling();
    const item = document.createElement("li");
    const words = t("mistake", {
      number: one.ply + 1,
      who: seatName(one.played.seat),
      move: one.played.texts[sign] + one.mark,
      better: one.best.texts[sign],
    });
    const win = one.best.win && one.best.win.winner === one.played.seat ? winWords(one.best.win) : "";
    const given = one.given_away ? t("given_away") : "";
    const button = this.study.button([words, given, win && `(${win})`].filter(Boolean).join(" "), async () => {
      await this.table.look(one.ply);
      this.study.point(one.best.seat, one.best.action);
      this.table.caption(`${t("better", { move: one.best.texts[sign] })} ${win || t("evaluation_text", {
        who: seatName(0), share: percent(one.south),
      })}`);
      this.table.scrollToBoard();
    });
    item.append(button);
    return item;
  }
}
