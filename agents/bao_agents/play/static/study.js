// Hints, the evaluation bar, and the story of a move, event by event.

import { post } from "./api.js";
import { eventWords, playerWords, plies, seatName, t } from "./texts.js";

const $ = (id) => document.getElementById(id);
const percent = (share) => `${Math.round(100 * share)} %`;

// A proven win, for example "South wins in 13 plies".
function winWords(win) {
  return t(win.exact ? "wins_in" : "wins_within", { who: seatName(win.winner), plies: plies(win.plies) });
}

// What a move leads to: a proven win or loss of its player, else a chance.
function moveWords(move, mover) {
  if (!move.win) return percent(move.value);
  const kind = `move_${move.win.winner === mover ? "wins" : "loses"}_${move.win.exact ? "in" : "within"}`;
  return t(kind, { plies: move.win.plies });
}

export class Study {
  // `table` is the page's Table: the game, its board and its state.
  constructor(table) {
    this.table = table;
    this.story = null;
    this.asked = 0;
    $("hint").addEventListener("click", () => this.hint());
    $("bar").addEventListener("change", () => this.evaluate());
    $("explain").addEventListener("click", () => this.tell(Math.max(0, table.state.ply - 1)));
    $("step-on").addEventListener("click", () => this.step(1));
    $("step-back").addEventListener("click", () => this.step(-1));
  }

  setup(setup) {
    const select = $("evaluator");
    const chosen = select.value;
    select.replaceChildren(...setup.evaluators.map((one) => {
      const budget = one.budget && `, ${one.budget}`;
      return new Option(playerWords(one) + budget, one.value);
    }));
    if (chosen) select.value = chosen;
  }

  // A new position is shown: drop what was said about the old one.
  forget() {
    this.asked += 1;
    $("hints").replaceChildren();
    this.evaluate();
  }

  async evaluate() {
    const on = $("bar").checked;
    $("evaluation").hidden = !on;
    if (!on || !this.table.id) return;
    const asked = this.asked;
    try {
      const found = await post(`/api/games/${this.table.id}/evaluation`);
      if (asked !== this.asked || found.ply !== this.table.state.ply) return;
      $("evaluation-south").style.width = `${100 * found.south}%`;
      $("evaluation-text").textContent = found.win ? winWords(found.win)
        : t(found.proven ? "evaluation_proven" : "evaluation_text", {
          who: seatName(0),
          share: percent(found.south),
        });
    } catch (error) {
      this.table.complain(error);
    }
  }

  async hint() {
    $("panel-study").open = true;
    const asked = ++this.asked;
    const box = $("hints");
    box.textContent = t("thinking");
    try {
      const found = await post(`/api/games/${this.table.id}/hints`, { evaluator: $("evaluator").value });
      if (asked !== this.asked) return;
      this.showHints(box, found);
    } catch (error) {
      if (asked !== this.asked) return;
      box.replaceChildren();
      this.table.complain(error);
    }
  }

  showHints(box, found) {
    const spelling = this.table.spelling();
    const table = document.createElement("table");
    const policy = found.moves[0].probability !== null;
    const head = table.createTHead().insertRow();
    for (const name of ["hint_move", ...(policy ? ["hint_policy"] : []), "hint_value"]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = t(name);
      head.append(cell);
    }
    const body = table.createTBody();
    for (const move of found.moves) {
      const row = body.insertRow();
      row.insertCell().textContent = move.texts[spelling];
      if (policy) this.showShare(row.insertCell(), move.probability);
      const cell = row.insertCell();
      if (move.win) {
        cell.textContent = moveWords(move, found.mover);
        cell.className = move.win.winner === found.mover ? "won" : "lost";
      } else this.showShare(cell, move.value);
    }
    const line = document.createElement("p");
    line.textContent = `${t("best_line")}: ${found.line.map((move) => move.texts[spelling]).join(" ")}`;
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = t(policy ? "hint_note_policy" : "hint_note");
    const win = document.createElement("p");
    win.className = "win";
    win.hidden = !found.win;
    win.textContent = found.win ? winWords(found.win) : "";
    box.replaceChildren(win, table, line, note);
    const best = found.moves[0];
    this.table.board.mark([[found.mover, best.action >> 2, "hinted"]]);
    const said = `${t("best_line")}: ${best.texts[spelling]}, ${moveWords(best, found.mover)}`;
    this.table.announce(found.win ? `${winWords(found.win)}. ${said}` : said);
  }

  showShare(cell, share) {
    const meter = document.createElement("meter");
    meter.max = 1;
    meter.value = share;
    meter.setAttribute("aria-hidden", "true");
    cell.append(meter, ` ${percent(share)}`);
  }

  // --- the story of a move ---

  async tell(ply) {
    const { id, state } = this.table;
    if (!state.length) {
      this.table.complain(new Error("no_moves"));
      return;
    }
    ply = Math.min(ply, state.length - 1);
    this.table.stop();
    try {
      await this.table.goTo(ply);
      const { events } = await post(`/api/games/${id}/events`, { ply });
      this.story = { ply, events, at: -1 };
    } catch (error) {
      this.table.complain(error);
      return;
    }
    $("panel-study").open = true;
    $("story").hidden = false;
    this.showStory();
    await this.step(1);
  }

  endStory() {
    this.story = null;
    $("story").hidden = true;
  }

  translate() {
    this.forget();
    if (this.story) this.showStory();
  }

  showStory() {
    const { ply, events, at } = this.story;
    const move = this.table.state.moves[ply];
    $("story-title").textContent = t("story_title", {
      number: ply + 1,
      who: seatName(move.seat),
      move: move.texts[this.table.spelling()],
    });
    $("events").replaceChildren(...events.map((event, i) => {
      const item = document.createElement("li");
      item.textContent = `${eventWords(event)} (${event.rule})`;
      item.className = i === at ? "now" : i < at ? "past" : "";
      if (i === at) item.setAttribute("aria-current", "step");
      return item;
    }));
    $("events").children[at]?.scrollIntoView({ block: "nearest" });
    const event = events[at];
    $("rule").textContent = event?.rule_text ?? "";
    $("rule").lang = "en";
  }

  // One event forward or back; past the last, to the next move.
  async step(by) {
    if (!this.story || this.table.busy) return;
    const story = this.story;
    const at = story.at + by;
    if (at >= story.events.length) {
      if (story.ply + 1 < this.table.state.length) await this.tell(story.ply + 1);
      else await this.table.goTo(story.ply + 1);
      return;
    }
    if (at < 0) {
      if (story.ply > 0) await this.tell(story.ply - 1);
      return;
    }
    const board = this.table.board;
    story.at = at;
    this.showStory();
    const event = story.events[at];
    this.table.caption(event);
    if (by < 0) {
      board.clearHand();
      board.settle(event);
      board.mark(event.pits.map((pit) => [event.seat, pit, "now"]));
      return;
    }
    await this.table.alone(() => board.animate([event]));
    this.table.announce(eventWords(event));
  }
}
