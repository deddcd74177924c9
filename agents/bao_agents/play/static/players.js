// The choice of a player: a level, or another kind with how much it may think. The server lists both.

import { playerWords, t } from "./texts.js";

const LEVEL = "level "; // and the name of its player: the value of a level in the list
const RATED = "zanzibar"; // the rules under which the levels were rated

function levelWords(levels, i, ruleset) {
  return t(ruleset === RATED ? "level_elo" : "level", { number: i + 1, elo: levels[i].elo });
}

// The name of a player in words.
export function specWords(setup, spec, ruleset) {
  const level = setup.levels.findIndex((one) => one.spec === spec);
  if (spec === "human") return t("person");
  return level < 0 ? spec : levelWords(setup.levels, level, ruleset);
}

// A list and the number beside it, from and to the name of a player.
export class PlayerInput {
  constructor(select, input, setup) {
    this.select = select;
    this.input = input;
    this.setup = setup;
    this.ruleset = setup.rulesets[0].name;
    select.addEventListener("change", () => this.showBudget(false));
    this.translate();
  }

  // Offers only players that can play these rules.
  play(ruleset) {
    this.ruleset = ruleset;
    this.translate();
  }

  translate() {
    const chosen = this.select.value;
    const levels = document.createElement("optgroup");
    levels.label = t("levels");
    levels.append(...this.setup.levels.map(({ spec }, i) =>
      new Option(levelWords(this.setup.levels, i, this.ruleset), LEVEL + spec)));
    const more = document.createElement("optgroup");
    more.label = t("more_players");
    const able = this.setup.players.filter((choice) => choice.rulesets.includes(this.ruleset));
    more.append(...able.map((choice) => new Option(playerWords(choice), choice.value)));
    this.select.replaceChildren(new Option(t("person"), "human"), levels, more);
    if (chosen) this.select.value = chosen;
    if (this.select.selectedIndex < 0) this.select.selectedIndex = 1;
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
    if (spec === "human" || this.setup.levels.some((level) => level.spec === spec)) {
      this.select.value = spec === "human" ? spec : LEVEL + spec;
      this.showBudget(true);
      return;
    }
    for (const choice of this.setup.players) {
      const [before, after] = choice.spec;
      const budget = spec.slice(before.length, spec.length - after.length);
      const fits = before + budget + after === spec && (choice.budget ? /^\d+$/ : /^$/).test(budget);
      if (fits) {
        this.select.value = choice.value;
        this.input.value = budget;
        this.showBudget(true);
        return;
      }
    }
    this.showBudget(true); // a player that is not in the list
  }
}
