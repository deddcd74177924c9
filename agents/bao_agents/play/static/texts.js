// The words of the page, in the language chosen.

let words = {};
let fallback = {};

async function load(language) {
  return (await fetch(`/static/${language}.json`)).json();
}

export async function useLanguage(language) {
  fallback = Object.keys(fallback).length ? fallback : await load("en");
  words = language === "en" ? fallback : await load(language);
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]")) {
    element.textContent = t(element.dataset.text);
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", t(element.dataset.label));
  }
}

export function has(key) {
  return key in words;
}

export function t(key, values = {}) {
  const text = words[key] ?? fallback[key] ?? key;
  if (typeof text !== "string") return text;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

// The words for a player or an evaluator that the server offers; for one of the command line its name.
export function playerWords(choice) {
  const key = `player ${choice.kind}`;
  return key in fallback ? t(key, choice) : choice.value;
}

// The description of a rule set: the page's, else the server's, which may have none.
export function rulesetWords(ruleset) {
  const key = `ruleset ${ruleset.name}`;
  return key in fallback ? t(key) : ruleset.words;
}

export function seatName(seat) {
  return t(seat === 0 ? "south" : "north");
}

export function seeds(count) {
  return t(count === 1 ? "one_seed" : "seeds", { count });
}

export function plies(count) {
  return t(count === 1 ? "one_ply" : "plies", { count });
}

// An event of a move in words: the server's own in English, else by a pattern.
export function eventWords(event) {
  const pattern = `event ${event.kind}`;
  if (!has(pattern)) return event.words.replace(/ \([^()]*\)$/, "");
  return t(pattern, {
    ...event.names,
    who: seatName(event.seat),
    other: seatName(1 - event.seat),
    seeds: seeds(event.seeds),
  });
}

// Why a move is illegal: the server's words in English, else those for the rule.
export function reasonWords(why) {
  const key = `reason ${why.rule}`;
  return has(key) ? t(key) : why.words;
}
