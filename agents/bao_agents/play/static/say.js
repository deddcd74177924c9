// What the page says: a red message or a caption below the board, and words for screen readers.

import { $ } from "./dom.js";
import { reasonWords, ruleWords, t, withTerms } from "./texts.js";

const COMPILE_MS = 6000; // longer than any bot thinks, so the server must be compiling

export function announce(words) {
  $("live").textContent = words;
}

// Joins sentences; some of them already end with a full stop.
export function sentences(...parts) {
  return parts.filter(Boolean).map((part) => (/[.?!…]$/.test(part) ? part : `${part}.`)).join(" ");
}

export function caption(words) {
  $("caption").replaceChildren(withTerms(words));
}

export function tell(words) {
  caption(words);
  announce(words);
}

// Shows a red message; `more` has further terms, each with the text that a click on it shows.
export function say(words, lang = "", more = {}) {
  const box = $("message");
  box.lang = lang || document.documentElement.lang;
  box.dataset.error = "";
  box.replaceChildren(withTerms(words, more));
  box.classList.remove("far");
  const { top, bottom } = box.getBoundingClientRect();
  box.classList.toggle("far", Boolean(words) && (top < 0 || bottom > innerHeight));
}

// Says why a pit cannot be played, with the rule as a term, and shakes the pit.
export function refuse(hollow, why, numbers) {
  const rule = why.rule && `(${why.rule})`;
  const words = reasonWords(why).replaceAll("{hole}", hollow.name);
  const { text } = ruleWords(why.rule, why.rule_text, numbers);
  const reason = [`${t("illegal", { hole: hollow.name })}: ${words}`, rule].filter(Boolean).join(" ");
  say(reason, "", rule && text ? { [rule]: text } : {});
  hollow.button.classList.remove("refused");
  requestAnimationFrame(() => hollow.button.classList.add("refused"));
}

// Errors of the server are in English, unless the page has words for them.
export function complain(error) {
  const words = t(error.status === 409 ? "went_on" : error.message);
  say(words, words === error.message ? "en" : "");
  $("message").dataset.error = error.message;
}

// Removes the message that the server does not answer.
export function serverAnswers() {
  if ($("message").dataset.error === "no_server") say("");
}

// Waits for an answer; calls `compiles()` if it takes so long that the server must be compiling.
export async function slowly(answer, compiles) {
  const timer = setTimeout(compiles, COMPILE_MS);
  return answer.finally(() => clearTimeout(timer));
}
