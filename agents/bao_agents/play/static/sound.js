// Plays the sound of seeds that fall into a pit, if it is switched on.

import { $ } from "./dom.js";

const SECONDS = 0.06;
let audio = null; // created when needed, because browsers want a click first

// Plays a short knock; it is lower if more seeds lie in the pit.
export function seedSound(count) {
  if (!$("sound").checked) return;
  audio ??= new AudioContext();
  const { currentTime: now } = audio;
  const [knock, volume] = [audio.createOscillator(), audio.createGain()];
  knock.type = "triangle";
  knock.frequency.setValueAtTime(900 / (1 + 0.15 * Math.min(count, 12)), now);
  volume.gain.setValueAtTime(0.15, now);
  volume.gain.exponentialRampToValueAtTime(0.001, now + SECONDS);
  knock.connect(volume).connect(audio.destination);
  knock.start(now);
  knock.stop(now + SECONDS);
}
