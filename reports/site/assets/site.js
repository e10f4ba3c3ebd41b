"use strict";
// The reader's choice on the page of a run, or else the system's.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const kept = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
    document.documentElement.dataset.theme = kept || (system.matches ? "dark" : "light");
  };
  system.addEventListener("change", apply);
  apply();
})();

document.addEventListener("DOMContentLoaded", () => {
  const root = document.documentElement.dataset.root;
  const query = document.getElementById("query");
  const found = document.getElementById("found");
  const cards = [...document.querySelectorAll("[data-search]")];
  const words = () => query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (text) => words().every((word) => text.includes(word));

  function entry([kind, title, page]) {
    const link = document.createElement("a");
    link.href = root + page;
    const small = document.createElement("small");
    small.textContent = kind;
    link.append(title, small);
    const item = document.createElement("li");
    item.append(link);
    return item;
  }

  function search() {
    const hits = words().length ? ENTRIES.filter(([, title, , more]) => matches(`${title} ${more}`.toLowerCase())) : [];
    const nothing = document.createElement("li");
    nothing.className = "nothing";
    nothing.textContent = "Nothing of that name.";
    found.replaceChildren(...(hits.length ? hits.slice(0, 12).map(entry) : [nothing]));
    found.hidden = !words().length || cards.length > 0;
    for (const card of cards) card.hidden = !matches(card.dataset.search);
    for (const list of document.querySelectorAll(".cards")) {
      const empty = list.nextElementSibling;
      empty.hidden = [...list.children].some((card) => !card.hidden);
    }
  }

  query.addEventListener("input", search);
  query.addEventListener("keydown", (event) => { if (event.key === "Escape") { query.value = ""; search(); } });
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const first = found.querySelector("a");
    if (first) location.href = first.href;
  });
  document.documentElement.dataset.ready = "true";
});
