// Print the pages that the site's search finds first: node .ci/search.js SITE WORD=PAGE ...
// Exit with 1 if a WORD finds another page first than its PAGE.
const fs = require("fs");
const vm = require("vm");

const [site, ...wanted] = process.argv.slice(2);
const page = { readyState: "loading", addEventListener() {}, currentScript: null, querySelectorAll: () => [], getElementById: () => null, documentElement: { dataset: {} } };
const context = vm.createContext({ document: page, console, URLSearchParams, localStorage: { setItem() {} } });
context.window = context;
const scripts = ["language_data", "doctools", "sphinx_highlight", "searchtools"];
for (const file of [...scripts.map((name) => `_static/${name}.js`), "searchindex.js"]) {
  vm.runInContext(fs.readFileSync(`${site}/${file}`, "utf8"), context);
}
let failed = false;
for (const pair of wanted) {
  const [word, right] = pair.split("=");
  const found = vm.runInContext(`Search._performSearch(...Search._parseQuery(${JSON.stringify(word)}))`, context);
  const pages = [...found].reverse().slice(0, 4).map((result) => result[0]);
  console.log(`${word}: ${pages.join(", ")}`);
  if (pages[0] !== right) {
    console.log(`  expected ${right} first`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
