const TITLES = { overview: "Results", statistics: "Statistics", selection: "Selection", curves: "Curves", sweep: "Sweep", sensitivity: "Sensitivity", inside: "Metrics", partition: "Partition", papers: "Papers", cells: "Cells" };

function describe(content) {
  document.getElementById("suite").textContent = `${content.suite.name}, version ${content.suite.version}`;
  const done = content.cells.filter((cell) => cell.state === "done");
  const seeds = new Set(content.cells.map((cell) => cell.seed)).size;
  const rounds = [...new Set(done.map((cell) => cell.result.rounds))];
  const commits = [...new Set(done.map((cell) => shortCommit(String(cell.result.provenance.commit || "unknown"))))];
  const facts = [[`${done.length} of ${content.cells.length}`, "cells done"], [content.lines.length, content.lines.length === 1 ? "method" : "methods"], [seeds, seeds === 1 ? "seed" : "seeds"],
    ...(rounds.length === 1 ? [[rounds[0], "rounds"]] : []), ...(commits.length === 1 ? [["commit", commits[0]]] : [])];
  document.getElementById("meta").append(...facts.map(([value, name]) => element("span", {}, element("b", {}, String(value)), ` ${name}`)));
}

// A + at the end says that files were changed since.
const shortCommit = (commit) => commit.slice(0, 12) + (commit.length > 12 && commit.endsWith("+") ? "+" : "");

function markCurrent(links) {
  const seen = new Map();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) seen.set(entry.target.id, entry.isIntersecting);
    const current = links.find((link) => seen.get(link.hash.slice(1)));
    for (const link of links) link.toggleAttribute("aria-current", link === current);
  }, { rootMargin: "-80px 0px -55% 0px" });
  document.querySelectorAll("main > section").forEach((node) => watcher.observe(node));
}

async function start() {
  startTheme();
  const main = document.getElementById("main");
  if (typeof DecompressionStream === "undefined") {
    main.append(element("p", { class: "notice" }, "This browser is too old for this page; use one from 2023 or later. The numbers are also in the folder tables next to this file."));
    return;
  }
  const content = await readContent();
  const looks = looksOf(content.lines);
  describe(content);
  const cells = cellsSection(content);
  const sections = [overviewSection(content, cells.show), sweepSection(content, cells.show), curvesSection(content, looks), statisticsSection(content, cells.show), selectionSection(content, cells.show), sensitivitySection(content), groupsSection(content), partitionSection(content), papersSection(content, looks), cells.node].filter(Boolean);
  main.append(...sections);
  const links = sections.map(({ id }) => element("a", { href: `#${id}` }, TITLES[id]));
  document.getElementById("sections").append(...links);
  markCurrent(links);
  dialog.addEventListener("close", () => { hideTooltip(); document.body.append(tooltip); history.replaceState(null, "", location.pathname + location.search); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  const asked = /^#cell=(.+)$/.exec(location.hash);
  const found = asked && content.cells.find((cell) => cell.id === asked[1]);
  if (found) openCell(content, found);
  // the frame that lays the charts out is followed by the one that draws them
  requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = "true"; }));
}
start();
