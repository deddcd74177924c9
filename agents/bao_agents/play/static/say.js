// What the page says: a red message or a caption below the board, and words for screen readers.

import { $ } from "./dom.js";
import { t, withTerms } from "./texts.js";

const COMPILE_MS = 6000; // longer than any bot thinks: it is being compiled

export function announce(words) {
  $("live").textContent = words;
}

export function caption(words) {
  $("caption").replaceChildren(withTerms(words));
}

export function tell(words) {
  caption(words);
  announce(words);
}

// Shows a red message; `more` are further terms, each with the text that a click on it shows.
export function say(words, lang = "", more = {}) {
  const box = $("message");
  box.lang = lang || document.documentElement.lang;
  box.dataset.error = "";
  box.replaceChildren(withTerms(words, more));
  box.classList.remove("far");
  const { top, bottom } = box.getBoundingClientRect();
  box.classList.toggle("far", Boolean(words) && (top < 0 || bottom > innerHeight));
}

// Errors of the server are in English, unless the page has words for them.
export function complain(error) {
  const words = t(error.status === 409 ? "went_on" : error.message);
  say(words, words === error.message ? "en" : "");
  $("message").dataset.error = error.message;
}

// Takes back that the server does not answer.
export function serverAnswers() {
  if ($("message").dataset.error === "no_server") say("");
}

// Waits for an answer, and calls `compiles()` if that takes as long as compiling.
export async function slowly(answer, compiles) {
  const timer = setTimeout(compiles, COMPILE_MS);
  return answer.finally(() => clearTimeout(timer));
}
