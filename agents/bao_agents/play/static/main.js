// Brings the page to life: settings, forms, keys, addresses, and which of its parts are shown.

import { get, post } from "./api.js";
import { Learn } from "./learn.js";
import { PlayerInput, specWords } from "./players.js";
import { Review } from "./review.js";
import { SetUp } from "./setup.js";
import { Study } from "./study.js";
import { Table } from "./table.js";
import { rulesetWords, t, useLanguage, withTerms } from "./texts.js";

const $ = (id) => document.getElementById(id);
const MAX_ADDRESS = 60000; // the server takes 64 KiB

function remembered(name, fallback) {
  try {
    return localStorage.getItem(`bao ${name}`) ?? fallback;
  } catch {
    return fallback; // storage is switched off
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`bao ${name}`, value);
  } catch {
    // storage is switched off: the setting lasts until the page is closed
  }
}

function useTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The keys of the page; letters are those of the English words.
function listenToKeys(table, study) {
  const keys = {
    ArrowLeft: () => table.look(table.state.ply - 1),
    ArrowRight: () => table.look(table.state.ply + 1),
    Home: () => table.look(0),
    End: () => table.look(table.state.length),
    f: () => table.turn(),
    h: () => study.hint(),
    u: () => table.undo(),
    " ": () => (table.busy ? table.skip() : study.story && study.step(1)),
  };
  addEventListener("keydown", (event) => {
    const busy = event.altKey || event.ctrlKey || event.metaKey || !table.state;
    if (busy || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, select, textarea")) return;
    if (event.key === " " && event.target.closest("button, summary")) return;
    const work = keys[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  });
}

class Page {
  constructor(setup) {
    this.setup = setup;
    this.table = new Table((spec) => specWords(setup, spec, this.table.state.ruleset));
    this.study = new Study(this.table);
    this.review = new Review(this.table, this.study);
    this.editor = new SetUp(this.table);
    this.learn = new Learn(this.table, (data, how) => this.begin(data, how), () => this.playKujifunza(), {
      get: (name) => remembered(name, null),
      set: remember,
    });
    this.table.changed = (what) => {
      if (what === "position") this.study.forget();
      else this.study.endStory();
      if (what === "game" || what === "move") this.review.forget();
      if (what === "game") {
        $("transcript").value = "";
        this.editor.end();
      }
      if (what === "position") this.learn.changed();
    };
    this.players = [0, 1].map((i) => {
      const player = new PlayerInput($(`seat-${i}`), $(`budget-${i}`), setup);
      player.spec = setup.first_seats[i];
      return player;
    });
    for (const rules of setup.rulesets) $("ruleset").add(new Option(rules.name, rules.name));
    this.listen();
    this.translate();
    listenToKeys(this.table, this.study);
  }

  listen() {
    const clicks = {
      "change-seats": () => this.changeSeats(),
      load: () => this.begin({ seats: ["human", "human"], transcript: $("transcript").value }),
      save: () => this.save(),
      "set-up": () => this.begin({ seats: this.seats(), ruleset: $("ruleset").value, position: $("position").value }),
      example: () => this.example(),
      rematch: () => this.rematch(),
      "link-game": () => this.linkGame(),
      "link-position": () => this.showLink({ ruleset: this.table.state.ruleset, position: this.table.state.text }),
    };
    for (const [id, work] of Object.entries(clicks)) $(id).addEventListener("click", work);
    $("new-game").addEventListener("submit", (event) => {
      event.preventDefault();
      this.newGame();
    });
    $("ruleset").addEventListener("change", () => {
      this.noteRules();
      $("first-player").value = this.ruleset().first_player;
    });
    $("file").addEventListener("change", () => this.openFile());
    addEventListener("hashchange", () => this.openAddress());
    for (const [id, setting] of [["speed", "value"], ["spelling", "value"], ["counts", "checked"]]) {
      $(id).addEventListener("change", () => remember(id, String($(id)[setting])));
    }
    $("counts").addEventListener("change", () => $("board").classList.toggle("counted", $("counts").checked));
    $("theme").addEventListener("change", () => {
      remember("theme", $("theme").value);
      useTheme($("theme").value);
    });
    $("language").addEventListener("change", async () => {
      remember("language", $("language").value);
      await useLanguage($("language").value);
      this.translate();
    });
    $("spelling").addEventListener("change", () => this.showLegend());
    $("tab-play").addEventListener("click", () => this.learn.close());
    $("tab-learn").addEventListener("click", () => this.learn.open());
    let resizing = 0;
    addEventListener("resize", () => {
      clearTimeout(resizing);
      resizing = setTimeout(() => {
        if (!this.table.busy && this.table.state) this.table.layOut();
      }, 150);
    });
  }

  // Shows everything in the language chosen.
  translate() {
    for (const player of this.players) player.translate();
    this.noteRules();
    this.study.setup(this.setup, this.table.game?.ruleset ?? this.ruleset().name);
    $("help").replaceChildren(...t("help_items").map((text) => {
      const item = document.createElement("li");
      item.append(withTerms(text));
      return item;
    }));
    this.showLegend();
    if (this.table.state && !this.table.busy) this.table.show();
    this.study.translate();
    this.learn.translate();
    if (this.review.found.length) this.review.show();
  }

  showLegend() {
    $("legend").replaceChildren(withTerms(t(`legend_${$("spelling").selectedIndex ? "kibao" : "donkers"}`)));
  }

  // --- games ---

  ruleset() {
    return this.setup.rulesets.find((one) => one.name === $("ruleset").value);
  }

  noteRules() {
    $("ruleset-note").textContent = rulesetWords(this.ruleset());
    for (const player of this.players) player.play(this.ruleset().name);
  }

  seats() {
    return this.players.map((player) => player.spec);
  }

  // Begins a game; false if the server refuses it.
  async begin(data, { path = "/api/games", told = () => {}, ...how } = {}) {
    try {
      const made = post(path, data);
      await this.table.begin(made, how);
      told(await made);
      this.showSeats();
      this.table.scrollToBoard();
      return true;
    } catch (error) {
      this.table.complain(error);
      return false;
    }
  }

  // The form shows who plays the game on the board.
  showSeats() {
    const { seats, ruleset } = this.table.game;
    if (this.setup.rulesets.some((one) => one.name === ruleset)) {
      $("ruleset").value = ruleset;
      this.noteRules();
    }
    this.study.setup(this.setup, ruleset);
    seats.forEach((spec, i) => { this.players[i].spec = spec; });
  }

  newGame(how) {
    return this.begin({
      seats: this.seats(),
      ruleset: $("ruleset").value,
      first_player: $("first-player").value,
    }, how);
  }

  // Begins the learners' game against the weakest player.
  playKujifunza() {
    const seats = ["human", this.setup.levels[0].spec];
    return this.begin({ seats, ruleset: "kujifunza" });
  }

  // The same players with the seats exchanged.
  rematch() {
    const { seats, ruleset } = this.table.game;
    return this.begin({ seats: [seats[1], seats[0]], ruleset, first_player: this.ruleset().first_player });
  }

  async changeSeats() {
    const { table } = this;
    try {
      const { state } = await post(`/api/games/${table.id}/seats`, { seats: this.seats() });
      table.paused = false;
      table.say("");
      await table.take(state);
    } catch (error) {
      table.complain(error);
    }
  }

  async example() {
    if (await this.begin({}, { path: "/api/example" })) await this.study.tell(0);
  }

  // --- transcripts and links ---

  async transcript() {
    const spelling = $("spelling").selectedIndex ? "kibao" : "donkers";
    return (await post(`/api/games/${this.table.id}/transcript`, { spelling })).transcript;
  }

  async save() {
    try {
      $("transcript").value = await this.transcript();
      download("bao.txt", $("transcript").value);
    } catch (error) {
      this.table.complain(error);
    }
  }

  async openFile() {
    const [file] = $("file").files;
    if (!file) return;
    if (file.size > MAX_ADDRESS) this.table.complain(new Error("file_too_long"));
    else {
      $("transcript").value = await file.text();
      $("load").click();
    }
    $("file").value = "";
  }

  async linkGame() {
    try {
      this.showLink({ transcript: await this.transcript() });
    } catch (error) {
      this.table.complain(error);
    }
  }

  // A link that holds the game or the position itself, so it works on any server.
  async showLink(content) {
    const link = `${location.origin}${location.pathname}#${new URLSearchParams(content)}`;
    $("link").value = link;
    $("link").select();
    try {
      await navigator.clipboard.writeText(link);
      this.table.announce(t("copied"));
    } catch {
      // This page may not use the clipboard: select the link in its box instead.
    }
  }

  // Shows what the address names: a game of this server, or a game or position in the address.
  async openAddress() {
    const { table } = this;
    const address = location.hash.slice(1);
    if (!address) return table.id || this.newGame({ replace: true });
    if (address === table.id) return true;
    if (address.includes("=")) {
      const { ruleset, position, transcript } = Object.fromEntries(new URLSearchParams(address));
      const content = { ruleset, position, transcript, seats: ["human", "human"] };
      if (address.length > MAX_ADDRESS) table.say(t("link_too_long"));
      else if (await this.begin(content, { replace: true })) return true;
      return table.id || this.startInstead($("message").textContent);
    }
    try {
      const { state } = await get(`/api/games/${encodeURIComponent(address)}`);
      await table.begin(Promise.resolve({ id: address, state }), { replace: true });
      this.showSeats();
    } catch {
      await this.startInstead(t("unknown_game"));
    }
    return true;
  }

  // Begins a new game instead of what the address names, and says why.
  async startInstead(why) {
    await this.newGame({ replace: true });
    this.table.say(why);
  }
}

async function main() {
  $("language").value = remembered("language", navigator.language.startsWith("sw") ? "sw" : "en");
  await useLanguage($("language").value);
  $("theme").value = remembered("theme", "");
  useTheme($("theme").value);
  $("speed").value = remembered("speed", "4");
  $("counts").checked = remembered("counts", "true") === "true";
  $("board").classList.toggle("counted", $("counts").checked);
  $("spelling").value = remembered("spelling", "0");
  let setup;
  try {
    setup = await get("/api/setup");
  } catch (error) {
    $("message").textContent = t(error.message);
    return;
  }
  const page = new Page(setup);
  await page.openAddress();
  page.learn.welcome();
  document.body.dataset.ready = "true";
}

main();
