// Handles the choice of a player: a level, or another kind with a limit. The server lists both.

import { element, offer } from "./dom.js";
import { playerWords, t } from "./texts.js";

const LEVEL = "level "; // before the name of its player: the value of a level in the list
const RATED = "zanzibar"; // the rules under which the levels were rated

function levelWords({ name, elo }, ruleset) {
  const words = t(`level ${name}`);
  return ruleset === RATED && elo !== null ? t("level_elo", { name: words, elo }) : words;
}

// Returns the server's choice that a player's name belongs to, and the number in the name.
function choiceOf(setup, spec) {
  for (const choice of setup.players) {
    const [before, after] = choice.spec;
    const number = spec.slice(before.length, spec.length - after.length);
    const fits = (choice.budget ? /^\d+$/ : /^$/).test(number) && choice.spec.join(number) === spec;
    if (fits) return { choice, number };
  }
  return {};
}

// Returns whether a player or an evaluator can play some rules. If it plays all rules of the
// server, it also plays the rules of links and files.
export function plays(setup, { rulesets }, ruleset) {
  const offered = setup.rulesets.some(({ name }) => name === ruleset);
  return rulesets.includes(ruleset) || (!offered && rulesets.length === setup.rulesets.length);
}

// Returns the name of a player in words, with its limit.
export function specWords(setup, spec, ruleset = "") {
  const level = setup.levels.find((offered) => offered.spec === spec);
  if (spec === "human") return t("person");
  if (level) return levelWords(level, ruleset);
  const { choice, number } = choiceOf(setup, spec);
  if (!choice) return spec;
  const name = playerWords(choice);
  return choice.budget ? t("player_limit", { name, number, unit: t(`unit ${choice.budget.unit}`).toLowerCase() }) : name;
}

// Connects a list and the number beside it with the name of a player.
export class PlayerInput {
  constructor(select, input, setup) {
    this.select = select;
    this.input = input;
    this.setup = setup;
    select.addEventListener("change", () => this.showBudget(false));
    this.play(setup.rulesets[0].name);
  }

  // Offers only players that can play these rules.
  play(ruleset) {
    const levels = element("optgroup");
    levels.label = t("levels");
    levels.append(...this.setup.levels.flatMap((level) => (plays(this.setup, level, ruleset)
      ? new Option(levelWords(level, ruleset), LEVEL + level.spec) : [])));
    const kinds = element("optgroup");
    kinds.label = t("more_players");
    const able = this.setup.players.filter((choice) => plays(this.setup, choice, ruleset));
    kinds.append(...able.map((choice) => new Option(playerWords(choice), choice.value)));
    offer(this.select, [new Option(t("person"), "human"), levels, kinds], 1);
    this.showBudget(true);
  }

  choice() {
    return this.setup.players.find((choice) => choice.value === this.select.value);
  }

  // Shows the number only for players that need one.
  showBudget(keep) {
    const budget = this.choice()?.budget;
    this.input.parentElement.hidden = !budget;
    if (!budget) return;
    [this.input.min, this.input.max] = [budget.low, budget.high];
    if (!keep || !this.input.value) this.input.value = budget.default;
    this.input.previousElementSibling.textContent = t(`unit ${budget.unit}`);
  }

  get spec() {
    const choice = this.choice();
    if (choice) return choice.spec.join(choice.budget ? this.input.value : "");
    return this.select.value.replace(LEVEL, "");
  }

  set spec(spec) {
    const { choice, number } = choiceOf(this.setup, spec);
    if (spec === "human") this.select.value = spec;
    else if (this.setup.levels.some((level) => level.spec === spec)) this.select.value = LEVEL + spec;
    else if (choice) [this.select.value, this.input.value] = [choice.value, number];
    this.showBudget(true);
  }
}
