// Finds and makes elements of the page.

export const $ = (id) => document.getElementById(id);

// An element with some text and a class.
export function element(name, words = "", className = "") {
  const made = document.createElement(name);
  made.textContent = words;
  made.className = className;
  return made;
}

// A button that does some work.
export function button(words, work, className = "") {
  const made = element("button", words, className);
  made.type = "button";
  made.addEventListener("click", work);
  return made;
}
