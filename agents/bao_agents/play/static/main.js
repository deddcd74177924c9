// Brings the page to life: settings, forms, keys, addresses, and which of its parts are shown.

import { get, post } from "./api.js";
import { $, element, onClick, scrollToBoard } from "./dom.js";
import { Learn } from "./learn.js";
import { NARROW } from "./pits.js";
import { PlayerInput, plays, specWords } from "./players.js";
import { Review } from "./review.js";
import { say, tell } from "./say.js";
import { SetUp } from "./setup.js";
import { Study } from "./study.js";
import { Table } from "./table.js";
import { rulesetWords, t, useLanguage, withTerms } from "./texts.js";

const MAX_FILE = 60000; // the server takes 64 KiB
const HUMANS = ["human", "human"];

// What some work returns; null if the storage is switched off, or what it holds is damaged.
function quietly(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

// The rules of a game as a request or a link names them.
const rulesOf = ({ ruleset, rules }) => (rules === null ? { ruleset } : { ruleset, rules });

const remembered = (name) => quietly(() => localStorage.getItem(`bao ${name}`));
const recall = (name) => quietly(() => JSON.parse(remembered(name)));
const remember = (name, value) => quietly(() => localStorage.setItem(`bao ${name}`, value));

function download(name, content, type = "text/plain") {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
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
      edit: (place, right) => this.editor.click(place, right),
      changed: (what) => this.changed(what),
    });
    this.study = new Study(this.table);
    this.review = new Review(this.table, (...line) => this.study.lineButtons(...line));
    this.editor = new SetUp(this.table, (position) => this.setUp(position));
    this.learn = new Learn(this.table, this, { remembered, recall, remember });
    this.players = [0, 1].map((i) => {
      const player = new PlayerInput($(`seat-${i}`), $(`budget-${i}`), setup);
      const [first] = setup.players; // one of the command line has no kind
      player.spec = i === 0 ? "human" : first.kind ? setup.levels[1].spec : first.value;
      return player;
    });
    this.rulesets = [...setup.rulesets]; // and those of links and files
    for (const { name } of setup.rulesets) $("ruleset").add(new Option(name));
    this.listen();
    this.translate();
    listenToKeys(this.table, this.study);
  }

  changed(what) {
    if (what === "position") {
      this.keep();
      this.study.forget();
      this.showLevels();
      this.review.show();
      this.learn.changed();
      return;
    }
    this.study.endStory();
    if (what !== "look") this.review.forget();
    if (what === "game") $("transcript").value = "";
  }

  listen() {
    onClick({
      "change-seats": () => this.table.change("seats", { seats: this.seats() }, false),
      load: () => this.load(),
      save: () => this.save(),
      "save-svg": () => this.table.attempt(async () => download("bao.svg", await this.picture(), "image/svg+xml")),
      "save-png": () => this.table.attempt(() => this.savePixels()),
      "set-up": () => this.setUp($("position").value),
      example: () => this.example(),
      rematch: () => this.again(this.table.game.seats.toReversed()),
      easier: () => this.changeLevel(-1),
      harder: () => this.changeLevel(1),
      "to-board": () => this.table.pits.focus.button.focus(),
      "to-new": () => {
        $("panel-new").open = true;
        $("panel-new").scrollIntoView();
        $("seat-1").focus({ preventScroll: true });
      },
      "link-game": () => this.showLink({ transcript: this.table.game.transcripts[0] }),
      "link-position": () => this.showLink({ ...rulesOf(this.table.state), position: this.table.state.text }),
      "tab-play": () => this.learn.leave(),
      "tab-learn": () => this.learn.open(),
    });
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
    for (const [id, setting] of [["speed", "value"], ["spelling", "value"], ["counts", "checked"], ["language", "value"]]) {
      $(id).addEventListener("change", () => remember(id, String($(id)[setting])));
    }
    for (const id of ["language", "spelling"]) {
      $(id).addEventListener("change", async () => {
        await useLanguage($("language").value);
        this.translate();
      });
    }
    NARROW.addEventListener("change", () => this.table.state && this.table.layOut());
  }

  // Shows everything in the language and the notation chosen.
  translate() {
    this.noteRules();
    this.study.setup(this.setup, this.table.game?.ruleset ?? this.ruleset().name);
    $("help").replaceChildren(...t("help_items").map((text) => {
      const item = element("li");
      item.append(withTerms(text));
      return item;
    }));
    $("legend").replaceChildren(withTerms(t(`legend_${$("spelling").selectedIndex ? "kibao" : "donkers"}`)));
    if (this.table.state && !this.table.pending.has("seeds")) this.table.render(this.table.state);
    this.study.translate();
    this.learn.translate();
    if (this.review.found.length) this.review.show();
  }

  // --- games ---

  // The rules that the form shows.
  ruleset() {
    return this.rulesets[$("ruleset").selectedIndex];
  }

  // Shows the rules of a game in the form, which offers them from then on.
  showRules({ ruleset, rules }) {
    let at = this.rulesets.findIndex((offered) => offered.name === ruleset && offered.rules === rules);
    if (at < 0) {
      at = this.rulesets.push({ name: ruleset, rules, first_player: "south" }) - 1;
      $("ruleset").add(new Option(ruleset));
    }
    $("ruleset").selectedIndex = at;
    this.noteRules();
  }

  noteRules() {
    $("ruleset-note").textContent = rulesetWords(this.ruleset());
    for (const player of this.players) player.play(this.ruleset().name);
  }

  seats() {
    return this.players.map((player) => player.spec);
  }

  // Begins a game, and returns the server's answer; null if it refuses.
  async begin(data, { path = "api/games", ...how } = {}) {
    try {
      const made = post(path, data);
      await this.table.begin(made, how);
      if (!how.task) this.showSeats();
      scrollToBoard();
      return await made;
    } catch (error) {
      this.table.complain(error);
      return null;
    }
  }

  // The form shows who plays the game on the board.
  showSeats() {
    const { seats, ruleset } = this.table.game;
    this.showRules(this.table.game);
    this.study.setup(this.setup, ruleset);
    seats.forEach((spec, i) => { this.players[i].spec = spec; });
  }

  // What the form says of a game.
  chosen() {
    const { name: ruleset, rules } = this.ruleset();
    return { seats: this.seats(), ...rulesOf({ ruleset, rules }) };
  }

  newGame(how) {
    return this.begin({ ...this.chosen(), first_player: $("first-player").value }, how);
  }

  setUp(position) {
    return this.begin({ ...this.chosen(), position });
  }

  // Begins a learner's game against the weakest player.
  playLevel(ruleset) {
    return this.begin({ seats: ["human", this.setup.levels[0].spec], ruleset });
  }

  // Begins another game by the same rules, which say who begins.
  again(seats) {
    return this.begin({ seats, ...rulesOf(this.table.game) });
  }

  // The level next to that of a person's opponent, if there is one.
  nextLevel(by) {
    const { seats, ruleset } = this.table.game;
    const levels = this.setup.levels.filter((level) => plays(this.setup, level, ruleset));
    const at = levels.findIndex((one) => seats.includes(one.spec));
    return at < 0 || !seats.includes("human") ? undefined : levels[at + by]?.spec;
  }

  showLevels() {
    $("easier").hidden = !this.nextLevel(-1);
    $("harder").hidden = !this.nextLevel(1);
  }

  // Plays again, against a weaker or stronger opponent.
  changeLevel(by) {
    return this.again(this.table.game.seats.map((spec) => (spec === "human" ? spec : this.nextLevel(by))));
  }

  async example() {
    const transcript = await (await fetch("static/donkers-example.txt")).text();
    if (await this.begin({ seats: HUMANS, transcript })) await this.study.tell(0);
  }

  // --- transcripts and links ---

  // The transcript is the page's own: it can be saved although the server is gone.
  save() {
    const { seats, transcripts } = this.table.game;
    $("transcript").value = `south: ${seats[0]}\nnorth: ${seats[1]}\n${transcripts[$("spelling").selectedIndex]}`;
    download("bao.txt", $("transcript").value);
  }

  // Begins the game of the box, with the players that it names and the server has.
  load() {
    const transcript = $("transcript").value;
    const seats = ["south", "north"].map((seat) => {
      const [, name] = transcript.match(new RegExp(`^${seat}: (\\S+)$`, "m")) ?? [];
      return name && specWords(this.setup, name) !== name ? name : "human";
    });
    return this.begin({ seats, transcript });
  }

  // The board on the page as SVG, from the server's drawing.
  async picture() {
    const { state, board } = this.table;
    return (await this.table.ask("picture", { ply: state.ply, viewer: board.parts.viewer })).svg;
  }

  async savePixels() {
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(await this.picture())}`;
    await image.decode();
    const canvas = element("canvas");
    [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download("bao.png", blob, "image/png"));
  }

  async openFile() {
    const [file] = $("file").files;
    if (!file) return;
    if (file.size > MAX_FILE) this.table.complain(new Error("file_too_long"));
    else {
      $("transcript").value = await file.text();
      $("load").click();
    }
    $("file").value = "";
  }

  // A link that holds the game or the position itself, so it works on any server.
  async showLink(content) {
    const link = `${location.origin}${location.pathname}#${new URLSearchParams(content)}`;
    $("link").value = link;
    $("link").select();
    // A page that may not use the clipboard leaves the link selected in its box.
    await navigator.clipboard?.writeText(link).then(() => tell(t("copied")), () => {});
  }

  // Keeps the game in the address and in the browser, so that it outlives the server and the tab.
  keep() {
    const { task, id, game } = this.table;
    if (task) return;
    const content = { game: id, transcript: game.transcripts[0] };
    const address = `#${new URLSearchParams(content)}`;
    if (location.hash !== address) history.replaceState({ seats: game.seats }, "", address);
    remember("game", JSON.stringify({ ...content, seats: game.seats, over: Boolean(game.outcome) }));
  }

  // Goes on with the visitor's last game, or begins one.
  async resume(how) {
    const last = recall("game");
    return (last && !last.over && await this.openGame(last, how)) || this.newGame(how);
  }

  // Shows a game of this server; if it has lost the game, begins it anew from the transcript.
  async openGame({ game, transcript, seats }, how) {
    try {
      const { state } = await get(`api/games/${encodeURIComponent(game)}`);
      await this.table.begin(Promise.resolve({ id: game, state }), how);
      this.showSeats();
      return true;
    } catch {
      return transcript && this.begin({ transcript, seats, name: game }, how);
    }
  }

  // Shows what the address names: a lesson, a game, or the game or position in the address.
  async openAddress() {
    const { table } = this;
    const how = { replace: true };
    const { lesson, puzzle, game, ...content } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    if (lesson) await this.learn.lesson(lesson - 1);
    else if (puzzle) await this.learn.puzzle(puzzle);
    else if (game) {
      if (game === table.id) return;
      const seats = history.state?.seats ?? HUMANS; // a link from elsewhere starts no bot
      if (!(await this.openGame({ ...content, game, seats }, how))) await this.startInstead(t("unknown_game"));
    } else if (content.position || content.transcript) {
      if (await this.begin({ ...content, seats: HUMANS }, how)) return;
      if (!table.id) await this.startInstead($("message").textContent);
    } else if (!table.id || table.task) await this.resume(how);
  }

  // Begins a new game instead of what the address names, and says why.
  async startInstead(why) {
    await this.newGame({ replace: true });
    say(why);
  }
}

// Sets a list to what was remembered, or if it doesn't offer that, to a first choice.
function choose(id, first) {
  $(id).value = remembered(id) ?? first;
  if ($(id).selectedIndex < 0) $(id).value = first;
}

async function main() {
  choose("language", navigator.language.startsWith("sw") ? "sw" : "en");
  choose("spelling", "0");
  $("speed").value = remembered("speed") ?? 4;
  $("counts").checked = remembered("counts") !== "false";
  await useLanguage($("language").value);
  const setup = await get("api/setup").catch((error) => { $("message").textContent = t(error.message); });
  if (!setup) return;
  const page = new Page(setup);
  await page.openAddress();
  page.learn.welcome();
  document.body.dataset.ready = "true";
}

main();
