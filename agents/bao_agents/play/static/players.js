// The choice of a player and of how much it may think. The server lists the kinds.

import { playerWords, t } from "./texts.js";

// A list and the number beside it, from and to the name of a player.
export class PlayerInput {
  constructor(select, input, choices, people) {
    this.select = select;
    this.input = input;
    this.choices = choices;
    this.people = people;
    select.addEventListener("change", () => this.showBudget(false));
    this.translate();
  }

  translate() {
    const chosen = this.select.value;
    const options = this.choices.map((choice) => new Option(playerWords(choice), choice.value));
    if (this.people) options.unshift(new Option(t("person"), "human"));
    this.select.replaceChildren(...options);
    if (chosen) this.select.value = chosen;
    this.showBudget(true);
  }

  choice() {
    return this.choices.find((choice) => choice.value === this.select.value);
  }

  // The number is there only for players that need one.
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
    return choice ? choice.spec.join(choice.budget ? this.input.value : "") : this.select.value;
  }

  set spec(spec) {
    for (const choice of this.choices) {
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
    if (spec === "human") this.select.value = spec; // else a player that is not in the list
    this.showBudget(true);
  }
}
