// Brings the page to life: settings, forms, and which of its parts are shown.

import { get, post } from "./api.js";
import { PlayerInput } from "./players.js";
import { Study } from "./study.js";
import { Table } from "./table.js";
import { rulesetWords, t, useLanguage } from "./texts.js";
import { Watch } from "./watch.js";

const $ = (id) => document.getElementById(id);

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
    // storage is switched off: the setting lasts as long as the page
  }
}

function useTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function showTab(name) {
  for (const tab of ["play", "watch"]) {
    $(tab).hidden = tab !== name;
    $(`tab-${tab}`).setAttribute("aria-pressed", String(tab === name));
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
  const table = new Table();
  const study = new Study(table);
  study.setup(setup);
  table.changed = (what) => {
    if (what === "position") study.forget();
    else study.endStory();
    if (what === "game") $("transcript").value = "";
  };

  const players = [0, 1].map((i) => {
    const player = new PlayerInput($(`seat-${i}`), $(`budget-${i}`), setup.players, true);
    player.spec = setup.first_seats[i];
    return player;
  });
  for (const rules of setup.rulesets) $("ruleset").add(new Option(rules.name, rules.name));
  const ruleset = () => setup.rulesets.find((one) => one.name === $("ruleset").value);
  const noteRules = () => {
    $("ruleset-note").textContent = rulesetWords(ruleset());
  };
  $("ruleset").addEventListener("change", () => {
    noteRules();
    $("first-player").value = ruleset().first_player;
  });
  noteRules();
  const seats = () => players.map((player) => player.spec);
  const watch = new Watch(setup);

  function showHelp() {
    $("help").replaceChildren(...t("help_items").map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }));
  }
  showHelp();

  async function begin(path, data) {
    try {
      await table.begin(post(path, data));
      return true;
    } catch (error) {
      table.complain(error);
      return false;
    }
  }
  const newGame = () => begin("/api/games", {
    seats: seats(),
    ruleset: $("ruleset").value,
    first_player: $("first-player").value,
  });

  $("new-game").addEventListener("submit", (event) => {
    event.preventDefault();
    newGame();
  });
  $("change-seats").addEventListener("click", async () => {
    try {
      const { state } = await post(`/api/games/${table.id}/seats`, { seats: seats() });
      table.paused = false;
      $("message").textContent = "";
      await table.take(state);
    } catch (error) {
      table.complain(error);
    }
  });
  $("load").addEventListener("click", () => begin("/api/games", { seats: ["human", "human"], transcript: $("transcript").value }));
  $("save").addEventListener("click", async () => {
    try {
      const spelling = table.spelling() ? "kibao" : "donkers";
      const { transcript } = await post(`/api/games/${table.id}/transcript`, { spelling });
      $("transcript").value = transcript;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([transcript], { type: "text/plain" }));
      link.download = "bao.txt";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } catch (error) {
      table.complain(error);
    }
  });
  $("file").addEventListener("change", async () => {
    const [file] = $("file").files;
    if (!file) return;
    if (file.size > 60000) table.complain(new Error("file_too_long"));
    else {
      $("transcript").value = await file.text();
      $("load").click();
    }
    $("file").value = "";
  });
  $("set-up").addEventListener("click", () => begin("/api/games", {
    seats: seats(),
    ruleset: $("ruleset").value,
    position: $("position").value,
  }));
  $("example").addEventListener("click", async () => {
    if (await begin("/api/example")) await study.tell(0);
  });

  $("speed").addEventListener("change", () => remember("speed", $("speed").value));
  $("spelling").addEventListener("change", () => remember("spelling", $("spelling").value));
  $("counts").addEventListener("change", () => {
    remember("counts", String($("counts").checked));
    $("board").classList.toggle("counted", $("counts").checked);
  });
  $("theme").addEventListener("change", () => {
    remember("theme", $("theme").value);
    useTheme($("theme").value);
  });
  $("language").addEventListener("change", async () => {
    remember("language", $("language").value);
    await useLanguage($("language").value);
    for (const player of players) player.translate();
    study.setup(setup);
    noteRules();
    showHelp();
    watch.translate();
    if (table.state && !table.busy) table.show();
    study.translate();
  });
  $("tab-play").addEventListener("click", () => showTab("play"));
  $("tab-watch").addEventListener("click", () => {
    table.stop();
    showTab("watch");
  });
  let resizing = 0;
  addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      if (!table.busy && table.state) table.layOut();
    }, 150);
  });

  const known = location.hash.slice(1);
  if (known) {
    try {
      const { state } = await get(`/api/games/${encodeURIComponent(known)}`);
      await table.begin(Promise.resolve({ id: known, state }));
      for (const i of [0, 1]) players[i].spec = state.seats[i];
    } catch {
      await newGame(); // the server no longer has it
    }
  } else await newGame();
  document.body.dataset.ready = "true";
}

main();
