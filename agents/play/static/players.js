// The choice of a player: its kind, and how much it may think.

import { t } from "./texts.js";

const BUDGETS = { "alphabeta": 4, "alphabeta-ms": 500, "mcts": 1000, "search": 64, "guided": 500 };

export function fillPlayers(select, setup, people) {
  const chosen = select.value;
  const kinds = [...(people ? ["human"] : []), "random", "greedy", "alphabeta", "alphabeta-ms", "mcts"];
  select.replaceChildren();
  for (const kind of kinds) select.add(new Option(t(`player ${kind}`), kind));
  for (const name of setup.checkpoints) {
    select.add(new Option(t("player network", { name }), `net:${name}`));
    select.add(new Option(t("player search", { name }), `search:${name}`));
    select.add(new Option(t("player guided", { name }), `guided:${name}`));
  }
  if (chosen) select.value = chosen;
}

const kindOf = (value) => value.match(/^(search|guided):/)?.[1] ?? value;

// Shows the budget of a player only where it has one.
export function tendBudget(select, input, setup) {
  const tend = (keep) => {
    const kind = kindOf(select.value);
    const limits = setup.limits[kind];
    input.parentElement.hidden = !limits;
    if (!limits) return;
    [input.min, input.max] = limits;
    if (!keep || !input.value) input.value = BUDGETS[kind];
    input.previousElementSibling.textContent = t(`budget ${kind}`);
  };
  select.addEventListener("change", () => tend(false));
  tend(true);
  return tend;
}

export function playerSpec(select, input) {
  const value = select.value;
  if (value.startsWith("net:")) return value.slice(4);
  if (value.startsWith("search:")) return `${value}:${input.value}`;
  if (value.startsWith("guided:")) return `${value}:${input.value}ms`;
  if (value === "alphabeta-ms") return `alphabeta:${input.value}ms`;
  if (value === "alphabeta" || value === "mcts") return `${value}:${input.value}`;
  return value;
}

// The same backwards, for a game that is already there.
export function setPlayer(select, input, spec) {
  const budget = spec.match(/:(\d+)(ms)?$/);
  let value = spec;
  if (/^alphabeta:\d+ms$/.test(spec)) value = "alphabeta-ms";
  else if (budget) value = spec.slice(0, budget.index);
  const options = [...select.options].map((option) => option.value);
  select.value = options.includes(value) ? value : `net:${value}`;
  select.dispatchEvent(new Event("change"));
  if (budget) input.value = budget[1];
}
