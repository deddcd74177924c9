// Reads and writes the page's address. It names a lesson, a puzzle or a game on the server, or it
// contains a whole game or position.

import { get } from "./api.js";
import { $, onClick } from "./dom.js";
import { rulesOf } from "./new_game.js";
import { caption, say, tell } from "./say.js";
import { recall, remember } from "./store.js";
import { t } from "./texts.js";

export const HUMANS = ["human", "human"];

export class Addresses {
  constructor(table, newGame, learn) {
    Object.assign(this, { table, newGame, learn });
    onClick({
      "link-game": () => this.showLink({ transcript: table.game.transcripts[0] }),
      "link-position": () => this.showLink({ ...rulesOf(table.state), position: table.state.text }),
    });
    // By then a move's answer may have put its game into the address.
    addEventListener("hashchange", (event) => this.open(new URL(event.newURL).hash));
  }

  // Returns a link that contains the game or the position, so that it works on any server.
  async showLink(content) {
    const link = `${location.origin}${location.pathname}#${new URLSearchParams(content)}`;
    $("link").value = link;
    $("link").select();
    // If the page may not use the clipboard, the link stays selected in its box.
    const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
    const words = t(isLocal ? "copied_local" : "copied", { host: location.host });
    await navigator.clipboard?.writeText(link).then(() => tell(words), () => caption(words));
  }

  // Saves the game in the address and in the browser, so that it survives the server and the tab.
  keep() {
    const { task, id, game } = this.table;
    if (task) return;
    const content = { game: id, transcript: game.transcripts[0] };
    const address = `#${new URLSearchParams(content)}`;
    if (location.hash !== address) history.replaceState({ seats: game.seats }, "", address);
    remember("game", JSON.stringify({ ...content, seats: game.seats, over: Boolean(game.outcome) }));
  }

  // Shows a game again: the given one, else the visitor's last one; else starts a new game.
  async resume(options, game = null) {
    const last = game ?? recall("game");
    return (last && !last.over && await this.openGame(last, options)) || this.newGame.start(options);
  }

  // Shows a game of this server; if the server has lost it, restarts it from the transcript.
  async openGame({ game, transcript, seats }, options) {
    try {
      const { state } = await get(`api/games/${encodeURIComponent(game)}`);
      await this.table.begin(Promise.resolve({ id: game, state }), options);
      this.newGame.showGame();
      return true;
    } catch {
      return transcript && this.newGame.begin({ transcript, seats, name: game }, options);
    }
  }

  // Shows what an address names, given by the part behind its "#" and the sign itself.
  async open(hash = location.hash) {
    const { table, learn, newGame } = this;
    const options = { replace: true };
    const { lesson, puzzle, game, ...content } = Object.fromEntries(new URLSearchParams(hash.slice(1)));
    if (lesson) await learn.lesson(lesson - 1);
    else if (puzzle) {
      if (!(await learn.puzzle(puzzle)) && !table.id) await this.startInstead($("message").textContent);
    }
    else if (game) {
      if (game === table.id) return;
      const seats = history.state?.seats ?? HUMANS; // a link from elsewhere does not start a bot
      if (!(await this.openGame({ ...content, game, seats }, options))) await this.startInstead(t("unknown_game"));
    } else if (content.position || content.transcript) {
      if (await newGame.begin({ ...content, seats: HUMANS }, options)) return;
      if (!table.id) await this.startInstead($("message").textContent);
    } else if (!table.id || table.task) await this.resume(options);
  }

  // Starts a new game instead of what the address names, and says why.
  async startInstead(why) {
    await this.newGame.start({ replace: true });
    say(why);
  }
}
