// Provides the texts of the page in the chosen language.

import { $, button, element } from "./dom.js";

let words = {};
let fallback = {};

async function load(language) {
  return (await fetch(`static/${language}.json`)).json();
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
  return typeof text === "string" ? fill(text, values) : text;
}

// Returns a text with values in place of their names in braces.
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

// Returns the label of an offered player or evaluator; its name if the command line added it.
export function playerWords(choice) {
  const key = `player ${choice.kind}`;
  return key in fallback ? t(key, choice) : choice.value;
}

// Returns the description of a rule set; nothing if the command line added it.
export function rulesetWords(ruleset) {
  const key = `ruleset ${ruleset.name}`;
  return key in fallback ? t(key) : "";
}

export function seatName(seat) {
  return t(seat === 0 ? "south" : "north");
}

const counted = (singular, plural) => (count) => t(count === 1 ? singular : plural, { count });
export const seeds = counted("one_seed", "seeds");
export const plies = counted("one_ply", "plies");

// Returns an event of a move in words: the server's own in English, else made from a pattern.
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

// Returns why a move is illegal: the server's words in English, else the text for the rule.
export function reasonWords(why) {
  const key = why.words.endsWith(" is empty") ? "reason " : `reason ${why.rule}`;
  return has(key) ? t(key) : why.words;
}

// Returns a sentence of the rules in the page's language, by matching the English one with
// patterns; without a match, returns the English one.
function ruleSentence(sentence) {
  for (const [pattern, translation] of Object.entries(words.rules ?? {})) {
    const escaped = pattern.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{(\w+)\}/g, "(?<$1>.+)");
    const match = sentence.match(new RegExp(`^${escaped}$`));
    if (match) {
      return translation.replace(/\{(\w+)\}/g, (_, name) => match.groups[name].split(", ").map(ruleSentence).join(", "));
    }
  }
  return sentence;
}

// Returns the rules in words, as paragraphs and lists.
export function rulesInWords(text) {
  return text.split("\n\n").flatMap((block) => {
    const lines = block.split("\n").map((line) => line.split(/(?<=\.) /).map(ruleSentence).join(" "));
    let list = null;
    return lines.flatMap((line) => {
      const [, dash, head = "", rest] = line.match(/^(- )?([\p{Lu} ]+\. ?|\p{Lu}{3,}(?= ))?(.*)$/u);
      const node = element(dash ? "li" : "p");
      node.append(element("b", head), withTerms(rest));
      if (!dash || !list) list = dash ? element("ul") : null;
      list?.append(node);
      return !list ? node : list.children.length === 1 ? list : [];
    });
  });
}

// Returns the text of a rule that an event or a refusal names: the page's, else the server's
// English. `numbers` are those that the texts leave to the rule set.
export function ruleWords(rule, english, numbers) {
  const [number] = rule.split(",");
  const key = [`rule ${number}`, `rule ${number.replace(/[a-c]$/, "")}`].find(has);
  return key ? { text: t(key, numbers), lang: document.documentElement.lang } : { text: english, lang: "en" };
}

// Returns words in which each term of Bao, and each key of `more`, is a button that explains it.
export function withTerms(text, more = {}) {
  const meanings = { ...t("terms"), ...more };
  const names = Object.keys(meanings).sort((a, b) => b.length - a.length);
  const escaped = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = text.split(new RegExp(`(?<![\\p{L}])(${escaped.join("|")})(?![\\p{L}])`, "giu"));
  const fragment = document.createDocumentFragment();
  parts.forEach((part, i) => {
    if (i % 2) {
      const unit = element("span", "", "unit"); // keeps punctuation from starting a line
      const [sign] = parts[i + 1].match(/^[^\s\p{L}\d(]+/u) ?? [""];
      parts[i + 1] = parts[i + 1].slice(sign.length);
      unit.append(termButton(part, meanings[part] ?? meanings[part.toLowerCase()]), sign);
      fragment.append(unit);
    } else fragment.append(part);
  });
  return fragment;
}

function termButton(name, meaning) {
  const term = button(name, () => {
    const box = $("explanation");
    box.textContent = meaning;
    box.showPopover();
    const { left, bottom } = term.getBoundingClientRect();
    box.style.left = `${Math.max(8, Math.min(left, innerWidth - box.offsetWidth - 8))}px`;
    box.style.top = `${Math.min(bottom + 6, innerHeight - box.offsetHeight - 8)}px`;
    $("live").textContent = meaning;
  }, "term");
  return term;
}
