// Two players on many boards: asks for one ply at a time and shows all boards.

import { post } from "./api.js";
import { Board, boardParts } from "./board.js";
import { PlayerInput } from "./players.js";
import { seatName, t } from "./texts.js";

const $ = (id) => document.getElementById(id);

export class Watch {
  constructor(setup) {
    this.round = 0;
    this.paused = true;
    this.boards = [];
    this.state = null;
    for (const rules of setup.rulesets) $("watch-ruleset").add(new Option(rules.name, rules.name));
    $("watch-boards").max = setup.max_boards;
    this.players = [0, 1].map((i) => {
      const player = new PlayerInput($(`watch-${i}`), $(`watch-budget-${i}`), setup, false);
      player.spec = setup.first_bots[i];
      return player;
    });
    this.setup = setup;
    $("watch-ruleset").addEventListener("change", () => {
      for (const player of this.players) player.play($("watch-ruleset").value);
    });
    this.translate();
    $("watch-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
    $("watch-pause").addEventListener("click", () => this.setPaused(!this.paused));
  }

  translate() {
    for (const player of this.players) player.translate();
    this.show();
  }

  setPaused(paused) {
    this.paused = paused;
    $("watch-pause").textContent = t(paused ? "go_on" : "pause");
    if (!paused && this.state?.running) this.run(this.round);
  }

  async start() {
    const round = ++this.round;
    $("watch-message").textContent = "";
    try {
      const made = await post("/api/watches", {
        players: this.players.map((player) => player.spec),
        ruleset: $("watch-ruleset").value,
        boards: Number($("watch-boards").value),
      });
      const parts = await boardParts("wide", 0);
      if (round !== this.round) return;
      this.id = made.id;
      this.state = made.state;
      $("watch-boards-area").replaceChildren();
      this.boards = made.state.boards.map((_, i) => {
        const figure = document.createElement("figure");
        const board = document.createElement("div");
        board.className = "board";
        const caption = document.createElement("figcaption");
        figure.append(board, caption);
        $("watch-boards-area").append(figure);
        return { board: new Board(board, parts), caption, figure, number: i };
      });
      this.show();
      $("watch-pause").disabled = false;
      this.setPaused(false);
    } catch (error) {
      $("watch-message").textContent = t(error.message);
    }
  }

  async run(round) {
    while (round === this.round && !this.paused && this.state.running) {
      const begun = performance.now();
      try {
        const { state } = await post(`/api/watches/${this.id}/step`);
        if (round !== this.round) return;
        this.state = state;
      } catch (error) {
        $("watch-message").textContent = t(error.message);
        this.setPaused(true);
        return;
      }
      this.show();
      const pace = 1600 / $("watch-speed").value ** 1.3;
      await new Promise((done) => setTimeout(done, Math.max(10, pace - performance.now() + begun)));
    }
    if (round === this.round && !this.state.running) $("watch-pause").disabled = true;
  }

  show() {
    if (!this.state) return;
    const { players, score, boards, running } = this.state;
    $("watch-score").textContent = `${players[0]} ${score[0]} : ${score[1]} ${players[1]}`
      + (running ? "" : `. ${t("watch_over")}`);
    for (const { board, caption, figure, number } of this.boards) {
      const shown = boards[number];
      board.show(shown);
      board.setNames([seatName(0), seatName(1)], shown.over ? null : shown.mover);
      figure.classList.toggle("over", shown.over);
      const end = shown.winner === null
        ? t("watch_ply", { ply: shown.ply })
        : t("watch_won", { who: seatName(shown.winner), player: shown.seats[shown.winner], ply: shown.ply });
      caption.textContent = `${seatName(0)}: ${shown.seats[0]} · ${seatName(1)}: ${shown.seats[1]} · ${end}`;
    }
  }
}
