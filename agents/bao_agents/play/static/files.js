// Opens games from files, and saves games and pictures to files.

import { $, element, onClick } from "./dom.js";
import { specWords } from "./players.js";
import { say } from "./say.js";
import { t } from "./texts.js";

const MAX_FILE = 60000; // the server accepts 64 KiB

function download(name, content, type = "text/plain") {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export class Files {
  constructor(table, newGame) {
    Object.assign(this, { table, newGame });
    onClick({
      load: () => this.load(),
      save: () => this.save(),
      "save-svg": () => table.attempt(async () => download("bao.svg", await this.picture(), "image/svg+xml")),
      "save-png": () => table.attempt(() => this.savePixels()),
      print: () => print(), // the browser's dialog also writes PDF
    });
    $("file").addEventListener("change", () => this.openFile());
  }

  // The page keeps the transcript, so it can be saved even if the server is gone.
  save() {
    $("transcript").value = this.table.game.transcripts[$("spelling").selectedIndex];
    download("bao.txt", $("transcript").value);
  }

  // Starts the game in the box, with those of its players that the server has.
  load() {
    const transcript = $("transcript").value;
    if (!transcript.trim()) {
      say(t("no_transcript"));
      return null;
    }
    const seats = ["south", "north"].map((seat) => {
      const [, name] = transcript.match(new RegExp(`^${seat}: *(\\S+)$`, "im")) ?? [];
      return name && specWords(this.newGame.setup, name) !== name ? name : "human";
    });
    return this.newGame.begin({ seats, transcript });
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

  // Returns the board on the page as SVG, drawn by the server.
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
}
