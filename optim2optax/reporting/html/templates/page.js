"use strict";

const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const search = document.getElementById("search");
const filters = ["code", "status", "evidence", "optimizer"].map((name) => ({
  name,
  choice: document.getElementById(`by-${name}`),
}));
const shown = document.getElementById("shown");
const files = all(".file").map((element) => ({
  element,
  path: element.querySelector("h3").textContent.toLowerCase(),
  hunks: all(".hunk", element).map((hunk) => ({ element: hunk, sites: all("li", hunk), text: "" })),
}));
const FEW = 20; // the number of files that are opened by themselves

// The text of a hunk is asked for once, when something is searched for.
function has(hunk, words) {
  hunk.text ||= hunk.element.textContent.toLowerCase();
  return hunk.text.includes(words);
}

function filter() {
  const words = search.value.trim().toLowerCase();
  const chosen = filters.filter(({ choice }) => choice.value);
  const matches = (site) => chosen.every(({ name, choice }) => site.dataset[name] === choice.value);
  const all = !words && !chosen.length;
  let sites = 0;
  const found = [];
  for (const file of files) {
    const named = words && file.path.includes(words);
    let any = all;
    for (const hunk of file.hunks) {
      const fitting = hunk.sites.filter(matches);
      const fits = (!chosen.length || fitting.length > 0) && (!words || named || has(hunk, words));
      hunk.element.hidden = !fits;
      any ||= fits;
      sites += fits ? fitting.length : 0;
      for (const site of hunk.sites) site.classList.toggle("other", chosen.length > 0 && !fitting.includes(site));
    }
    file.element.hidden = !any && !(named && !chosen.length);
    if (!file.element.hidden) found.push(file.element);
  }
  if (!all && found.length <= FEW) for (const file of found) file.open = true;
  const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  shown.textContent = `${count(sites, "site")} in ${count(found.length, "file")}`;
  document.getElementById("nothing").hidden = found.length > 0;
}

// Opens all that a link leads into.
function reveal(target) {
  for (let around = target; around; around = around.parentElement) {
    if (around.tagName === "DETAILS") around.open = true;
    if (around.hidden) clear();
  }
}

function follow() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (const before of all(".target")) before.classList.remove("target");
  if (!target) return;
  reveal(target);
  target.classList.add("target");
  target.scrollIntoView({ block: target.matches(".diff > *") ? "center" : "start" });
}

function clear() {
  search.value = "";
  for (const { choice } of filters) choice.value = "";
  filter();
}

let current = null;
function move(by) {
  const stops = all("[data-stop]").filter((stop) => !stop.hidden && !stop.closest("[hidden]"));
  if (!stops.length) return;
  const at = stops.indexOf(current);
  const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), stops.length - 1);
  current = stops[next];
  reveal(current);
  (current.tagName === "DETAILS" ? current.querySelector("summary") : current).focus({ preventScroll: true });
  current.scrollIntoView({ block: "start" });
}

if (search) {
  search.form.addEventListener("submit", (event) => event.preventDefault());
  let waiting;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  for (const { choice } of filters) choice.addEventListener("change", filter);
  const button = document.getElementById("open-all");
  button.addEventListener("click", () => {
    const open = button.textContent === "Open all";
    for (const { element } of files) if (!element.hidden) element.open = open;
    button.textContent = open ? "Close all" : "Open all";
  });
  filter();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && search) {
    clear();
    search.blur();
  }
  if (event.target.matches("input, select, textarea")) return;
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
});
addEventListener("hashchange", follow);
// A link that is followed again leads there again.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (link && link.getAttribute("href") === location.hash) follow();
});

// Paper has nothing to open.
let closed = [];
addEventListener("beforeprint", () => {
  closed = all("details:not([open])");
  for (const one of closed) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of closed) one.open = false;
});
follow();
