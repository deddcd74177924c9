// Finds and makes elements of the page.

export const $ = (id) => document.getElementById(id);

// Returns a new element with some text and a class.
export function element(name, words = "", className = "") {
  const node = document.createElement(name);
  node.textContent = words;
  node.className = className;
  return node;
}

// Returns a new button that does some work.
export function button(words, work, className = "") {
  const node = element("button", words, className);
  node.type = "button";
  node.addEventListener("click", work);
  return node;
}

// Fills a list with options; the chosen one stays chosen if it is still offered.
export function offer(select, options, otherwise) {
  const choice = select.value;
  select.replaceChildren(...options);
  select.value = choice;
  if (select.selectedIndex < 0) select.selectedIndex = otherwise;
}

// Fills a box anew. A button that the keyboard has reached keeps the focus, by its place in the box.
export function refill(box, ...children) {
  const had = document.activeElement;
  const place = had.matches(":focus-visible") ? [...box.querySelectorAll("button")].indexOf(had) : -1;
  box.replaceChildren(...children);
  box.querySelectorAll("button")[place]?.focus({ preventScroll: true });
}

// Sets what each button does when it is pressed; `works` has the functions by button id.
export function onClick(works) {
  for (const [id, work] of Object.entries(works)) $(id).addEventListener("click", work);
}

// On a small screen the board may be out of sight.
export function scrollToBoard() {
  const { top, bottom } = $("board").getBoundingClientRect();
  if (top < 0 || bottom > innerHeight) document.querySelector(".stage").scrollIntoView();
}
