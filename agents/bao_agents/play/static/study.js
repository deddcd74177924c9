// Shows hints, the evaluation bar, and the story of a move, event by event.

import { $, button, element, offer, onClick, scrollToBoard } from "./dom.js";
import { Latest } from "./latest.js";
import { numberOf, spelling } from "./moves.js";
import { plays, specWords } from "./players.js";
import { announce, caption, say, slowly } from "./say.js";
import { eventWords, playerWords, plies, ruleWords, seatName, t, withTerms } from "./texts.js";

export const percent = (share) => `${Math.round(100 * share)}%`;

// Returns a proven win in words, for example "South wins in 13 plies".
export function winWords(win) {
  return t(win.exact ? "wins_in" : "wins_within", { who: seatName(win.winner), plies: plies(win.plies) });
}

// Returns what a move leads to, in words: a proven win or loss of its player, else a chance.
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
    this.hints = new Latest();
    this.evaluations = new Latest();
    onClick({
      hint: () => this.hint(),
      explain: () => this.tell(Math.max(0, table.state.ply - 1)),
      "step-on": () => this.step(1),
      "step-back": () => this.step(-1),
    });
    for (const id of ["bar", "evaluator"]) $(id).addEventListener("change", () => this.evaluate());
  }

  // Offers the evaluators that can judge some rules.
  setup(setup, ruleset) {
    const able = setup.evaluators.filter((evaluator) => plays(setup, evaluator, ruleset));
    const words = (evaluator) => (evaluator.kind === "hints" ? playerWords(evaluator) : specWords(setup, evaluator.value));
    offer($("evaluator"), able.map((evaluator) => new Option(words(evaluator), evaluator.value)), 0);
  }

  // Drops what was said about the old position, because a new one is shown.
  forget() {
    this.hints.next();
    $("hints").replaceChildren();
    this.evaluate();
  }

  // The bar is faded until the answer comes.
  async evaluate() {
    const on = $("bar").checked;
    $("evaluation").hidden = !on;
    if (!on || ["story", "edit"].includes(this.table.mode) || !this.table.state) return;
    const fresh = this.evaluations.next();
    $("evaluation").classList.add("old");
    $("evaluation-text").textContent = "…";
    await this.table.attempt(async () => {
      const analysis = await this.table.ask("evaluation", { ply: this.table.state.ply, evaluator: $("evaluator").value });
      if (!fresh()) return;
      $("evaluation").classList.remove("old");
      $("evaluation-south").style.width = `${100 * analysis.south}%`;
      $("evaluation-text").textContent = analysis.win ? winWords(analysis.win)
        : t(analysis.proven ? "evaluation_proven" : "evaluation_text", { who: seatName(0), share: percent(analysis.south) });
    });
  }

  async hint() {
    const { table } = this;
    if ($("hint").disabled) return;
    table.takeBack();
    const fresh = this.hints.next();
    const box = $("hints");
    box.textContent = t("thinking");
    try {
      const answer = table.ask("hints", { evaluator: $("evaluator").value, ply: table.state.ply });
      const analysis = await slowly(answer, () => {
        if (fresh()) box.textContent = `${t("thinking")} ${t("compiles")}`;
      });
      if (!fresh()) return;
      this.showHints(box, analysis);
    } catch (error) {
      if (!fresh()) return;
      box.replaceChildren();
      table.complain(error);
    }
  }

  showHints(box, analysis) {
    const sign = spelling();
    const table = element("table");
    const policy = analysis.moves[0].probability !== null;
    const head = table.createTHead().insertRow();
    for (const name of ["hint_move", ...(policy ? ["hint_policy"] : []), "hint_value"]) {
      const cell = element("th", t(name));
      cell.scope = "col";
      head.append(cell);
    }
    const body = table.createTBody();
    for (const move of analysis.moves) {
      const row = body.insertRow();
      const point = () => this.table.board.markMove(analysis.mover, move, "hint");
      row.insertCell().append(button(move.texts[sign], point, "move"));
      if (policy) this.showShare(row.insertCell(), move.probability);
      const won = move.win?.winner === analysis.mover ? "won" : "lost";
      if (move.win) row.append(element("td", moveWords(move, analysis.mover), won));
      else this.showShare(row.insertCell(), move.value);
    }
    const line = element("p", `${t("best_line")}: `);
    line.append(...this.lineButtons(analysis.line, this.table.state.ply));
    const win = element("p", analysis.win ? winWords(analysis.win) : "", "win");
    win.hidden = !analysis.win;
    box.replaceChildren(win, line, table, element("p", t(policy ? "hint_note_policy" : "hint_note"), "note"));
    const best = analysis.moves[0];
    this.table.board.markMove(analysis.mover, best, "hint");
    const summary = `${t("best_line")}: ${best.texts[sign]}, ${moveWords(best, analysis.mover)}`;
    box.scrollIntoView({ block: "nearest" });
    announce(analysis.win ? `${winWords(analysis.win)}. ${summary}` : summary);
  }

  // Returns the moves of a best line from a ply, as numbered buttons. Each shows the position after
  // its move, without changing the game.
  lineButtons(line, ply) {
    const texts = line.map((move) => move.texts[spelling()]);
    let number = numberOf(this.table.game, ply);
    return line.flatMap(({ after, seat }, i) => {
      if (i && seat === 0 && line[i - 1].seat === 1) number += 1;
      const counted = i === 0 || (seat === 0 && line[i - 1].seat === 1) ? `${number}. ${seat === 1 ? "… " : ""}` : "";
      const note = `${t("best_line")}: ${texts.slice(0, i + 1).join(" ")}`;
      const show = () => {
        this.endStory();
        this.table.peek(after, note);
        scrollToBoard();
      };
      return [counted, button(texts[i], show, "move"), " "];
    });
  }

  showShare(cell, share) {
    const meter = element("meter");
    meter.max = 1;
    meter.value = share;
    meter.setAttribute("aria-hidden", "true");
    cell.append(meter, ` ${percent(share)}`);
  }

  // --- the story of a move: a view that does not change the game ---

  async tell(ply) {
    const { table } = this;
    if (!table.state.length) {
      say(t("no_moves"));
      return;
    }
    ply = Math.min(ply, table.state.length - 1);
    announce("");
    const move = await table.attempt(() => table.ask("events", { ply }));
    if (!move) return;
    await table.showState(move.state, "story");
    this.story = { ply, events: move.events, index: -1 };
    $("story").hidden = false;
    scrollToBoard();
    $("step-on").focus({ preventScroll: true }); // so that Space goes on
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
    const { ply, events, index } = this.story;
    const move = this.table.game.moves[ply];
    $("story-title").textContent = t("story_title", {
      number: numberOf(this.table.game, ply),
      who: seatName(move.seat),
      move: move.texts[spelling()],
    });
    $("events").replaceChildren(...events.map((event, i) => {
      const item = element("li", "", i === index ? "now" : i < index ? "past" : "");
      item.append(i === index ? withTerms(eventWords(event)) : eventWords(event), ` (${event.rule})`);
      if (i === index) item.setAttribute("aria-current", "step");
      return item;
    }));
    $("events").scrollTop = $("events").children[index].offsetTop - $("events").offsetTop - 40;
    const { text, lang } = ruleWords(events[index].rule, events[index].rule_text, this.table.game.rule_numbers);
    $("rule").textContent = text;
    $("rule").lang = lang;
  }

  // Goes one event forward or back; after the last, to the next move.
  async step(by) {
    if (!this.story || this.table.pending.has("seeds")) return;
    const { story, table } = this;
    const index = story.index + by;
    if (index < 0 || index >= story.events.length) {
      const ply = story.ply + by;
      if (ply === table.game.length) await table.look(table.game.current_ply);
      else if (ply >= 0) await this.tell(ply);
      return;
    }
    const { board } = table;
    story.index = index;
    this.showStory();
    const event = story.events[index];
    caption(eventWords(event));
    if (by < 0) {
      board.clearHand();
      board.settle(event);
      board.mark(event.pits.map((pit) => [event.seat, pit, "now"]));
      return;
    }
    await table.alone(() => board.animate([event]));
    announce(eventWords(event));
  }
}
