// Starts the page: settings, keys, and the connections between its parts.

import { Addresses, HUMANS } from "./addresses.js";
import { get } from "./api.js";
import { $, onClick } from "./dom.js";
import { Files } from "./files.js";
import { Latest } from "./latest.js";
import { Learn } from "./learn.js";
import { NewGame } from "./new_game.js";
import { NARROW } from "./pits.js";
import { specWords } from "./players.js";
import { Preview } from "./preview.js";
import { Review } from "./review.js";
import { SetUp } from "./setup.js";
import { remember, remembered } from "./store.js";
import { Study } from "./study.js";
import { Table } from "./table.js";
import { rulesInWords, t, useLanguage, withTerms } from "./texts.js";

const SLOW_MS = 500; // a board that takes longer to appear is announced

// The keys of the page; the letters stand for English words.
function listenToKeys(table, study) {
  const keys = {
    ArrowLeft: () => table.look(table.state.ply - 1),
    ArrowRight: () => table.look(table.state.ply + 1),
    Home: () => table.look(0),
    End: () => table.look(table.state.length),
    f: () => table.turn(),
    h: () => study.hint(),
    u: () => table.undo(),
    m: () => {
      $("panel-moves").open = true;
      $("typed").focus();
    },
    Escape: () => table.takeBack(),
    " ": () => (table.pending.has("seeds") ? table.skip() : study.story && study.step(1)),
  };
  addEventListener("keydown", (event) => {
    const own = `input, select, textarea${event.key === " " ? ", button, summary" : ""}`;
    const work = keys[event.key];
    if (!work || !table.state || event.altKey || event.ctrlKey || event.metaKey || event.target.closest(own)) return;
    event.preventDefault();
    if (!table.pits.decide(event.key)) work();
  });
}

class Page {
  constructor(setup) {
    this.setup = setup;
    this.table = new Table({
      nameOf: (spec) => specWords(setup, spec, this.table.state.ruleset),
      edit: (hollow, right) => this.editor.click(hollow, right),
      changed: (part) => this.changed(part),
    });
    this.study = new Study(this.table);
    this.preview = new Preview(this.table);
    this.review = new Review(this.table, (...line) => this.study.lineButtons(...line), (mistakes) => this.learn.mistakes(mistakes));
    this.newGame = new NewGame(this.table, setup, (ruleset) => this.study.setup(setup, ruleset));
    this.editor = new SetUp(this.table, (position) => this.newGame.setUp(position));
    this.learn = new Learn(this.table, this.newGame, (game) => this.addresses.resume({}, game));
    this.addresses = new Addresses(this.table, this.newGame, this.learn);
    this.files = new Files(this.table, this.newGame);
    this.rules = new Latest();
    this.listen();
    this.translate();
    listenToKeys(this.table, this.study);
  }

  changed(part) {
    if (part === "position") {
      this.addresses.keep();
      this.study.forget();
      this.preview.forget();
      this.newGame.showLevels();
      this.showRules();
      this.review.show();
      this.learn.changed();
      return;
    }
    this.study.endStory();
    if (part !== "look") this.review.forget();
    if (part === "game") $("transcript").value = "";
  }

  listen() {
    onClick({
      "set-up": () => this.newGame.setUp($("position").value),
      example: () => this.example(),
      "to-board": () => this.table.pits.focus.button.focus(),
      "tab-play": () => this.learn.leave(),
      "tab-learn": () => this.learn.open(),
    });
    for (const [id, setting] of [["speed", "value"], ["spelling", "value"], ["counts", "checked"], ["sound", "checked"], ["language", "value"]]) {
      $(id).addEventListener("change", () => remember(id, String($(id)[setting])));
    }
    for (const id of ["language", "spelling"]) {
      $(id).addEventListener("change", async () => {
        await useLanguage($("language").value);
        this.translate();
      });
    }
    $("panel-help").addEventListener("toggle", () => this.showRules());
    NARROW.addEventListener("change", () => this.table.state && this.table.layOut());
  }

  // Shows everything in the language and the notation chosen.
  translate() {
    this.newGame.noteRules();
    this.study.setup(this.setup, this.table.game?.ruleset ?? this.newGame.ruleset().name);
    this.showRules();
    $("legend").replaceChildren(withTerms(t(`legend_${$("spelling").selectedIndex ? "kibao" : "donkers"}`)));
    if (this.table.state && !this.table.pending.has("seeds")) this.table.render(this.table.state);
    this.study.translate();
    this.learn.translate();
    if (this.review.analyses.length) this.review.show();
  }

  // Shows the rules of the game on the board in words, while "How to play" is open.
  async showRules() {
    if (!$("panel-help").open || !this.table.game) return;
    const { ruleset, rules } = this.table.game;
    const name = [document.documentElement.lang, ruleset, rules].join();
    if ($("help").dataset.rules === name) return;
    const fresh = this.rules.next();
    const answer = await this.table.ask("rules", {}).catch(() => null);
    if (!answer || !fresh()) return;
    $("help").dataset.rules = name;
    $("help").replaceChildren(...rulesInWords(answer.text));
  }

  async example() {
    const transcript = await (await fetch("static/donkers-example.txt")).text();
    if (await this.newGame.begin({ seats: HUMANS, transcript })) await this.study.tell(0);
  }
}

// Sets a list to the remembered value, or to a first choice if the list does not offer it.
function choose(id, first) {
  $(id).value = remembered(id) ?? first;
  if ($(id).selectedIndex < 0) $(id).value = first;
}

async function main() {
  choose("language", navigator.language.startsWith("sw") ? "sw" : "en");
  choose("spelling", "0");
  $("speed").value = remembered("speed") ?? 4;
  $("sound").checked = remembered("sound") === "true";
  $("counts").checked = remembered("counts") !== "false";
  await useLanguage($("language").value);
  const setup = await get("api/setup").catch((error) => { $("message").textContent = t(error.message); });
  if (!setup) return;
  const page = new Page(setup);
  const isLinked = location.hash !== "";
  const timer = setTimeout(() => { if (!page.table.state) $("status").textContent = t("starting"); }, SLOW_MS);
  await page.addresses.open();
  clearTimeout(timer);
  if (!isLinked) await page.learn.welcome();
  document.body.dataset.ready = "true";
}

main();
