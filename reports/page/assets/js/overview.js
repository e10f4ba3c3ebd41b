function overviewSection(content, showCells) {
  const results = content.tables.filter((table) => !["statistics", "selection", "sweep", "importance"].includes(table.name));
  const missing = content.problems.length
    ? element("div", { class: "notice", role: "status" }, element("strong", {}, "Some results are missing."), element("ul", {}, ...content.problems.map((text) => element("li", {}, text)))) : null;
  return section("overview", "Results", null, missing, oneOf(results, showCells));
}

function statisticsSection(content, showCells) {
  const tables = content.tables.filter((table) => table.name === "statistics");
  return tables.length ? section("statistics", "Statistics", null, oneOf(tables, showCells)) : null;
}

function selectionSection(content, showCells) {
  const tables = content.tables.filter((table) => table.name === "selection");
  return tables.length ? section("selection", "Selection rules", null, oneOf(tables, showCells)) : null;
}

// A table, or several with a menu to choose from.
function oneOf(tables, showCells) {
  const holder = element("div");
  const show = (place) => holder.replaceChildren(resultTable(tables[place], showCells));
  show(0);
  if (tables.length === 1) return holder;
  const options = tables.map((table, place) => [place, table.variant || `Table ${place + 1}`]);
  return element("div", {}, element("div", { class: "tools" }, choice("Setting", options, 0, (place) => show(Number(place)))), holder);
}

const LOWER_IS_BETTER = /^(STD|p vs|Detectable|Rounds|MB|Time)/;

function resultTable(table, showCells) {
  const body = element("tbody");
  const caption = `caption-${table.name}`;
  const grid = element("table", { class: "results", "aria-describedby": caption }, body);
  const rows = table.sections.flatMap((rows, group) => rows.map((row, place) => {
    const name = row.line === null ? row.label : element("button", { type: "button", class: "linkish", title: "Show its cells", click: () => showCells(row.line) }, row.label);
    const node = element("tr", { class: group > 0 && place === 0 ? "rule" : null },
      element("th", { scope: "row", class: row.bound ? "bound" : null }, name, ...row.signs.map((sign) => element("sup", {}, sign))),
      ...row.entries.map((entry, column) => resultEntry(entry, row.label, table, column)));
    return { node, values: [row.label, ...row.entries.map((entry) => entry.mean ?? entry.interval?.[0] ?? null)] };
  }));
  sortable(grid, [{ text: "Method", words: true }, ...table.columns.map((text) => ({ text, lowerIsBetter: LOWER_IS_BETTER.test(text) }))], rows,
    (ordered) => body.append(...ordered.map((row) => row.node)));
  moveWithArrows(grid);
  const notes = table.footnotes.map(([sign, text]) => element("li", {}, sign ? element("sup", {}, sign) : null, sign ? " " : "", text));
  return element("div", { class: "result" }, element("p", { class: "caption", id: caption }, table.caption), element("div", { class: "scroll" }, grid), element("ul", { class: "footnotes" }, ...notes));
}

function resultEntry(entry, label, table, column) {
  const [value, spread] = entry.text === undefined ? ["", undefined] : entry.text.split(" ± ");
  const details = [
    ["seeds", entry.n], ["mean", entry.n && entry.mean !== undefined ? fixed(entry.mean, 3) : undefined],
    ["std over seeds", entry.std === undefined ? undefined : fixed(entry.std, 3)],
    ["95 % interval", entry.interval && `${fixed(entry.interval[0])} to ${fixed(entry.interval[1])}`],
    [`p against ${table.reference || "the reference"}`, entry.p === undefined ? undefined : pValue(entry.p)],
    ["p against the best", entry.p_best === undefined ? undefined : pValue(entry.p_best)],
  ].filter(([, text]) => text !== undefined);
  const show = (x, y) => showTooltip([tipTitle(`${label}, ${table.columns[column]}`), ...details.map(([name, text]) => tipPair(name, String(text)))], x, y);
  const events = details.length ? {
    tabindex: -1,
    pointermove: (event) => show(event.clientX, event.clientY), pointerleave: hideTooltip, blur: hideTooltip,
    focus: (event) => { const frame = event.target.getBoundingClientRect(); show(frame.left, frame.top); },
  } : {};
  return element("td", { class: entry.mark || null, ...events }, element("span", {}, value),
    spread === undefined ? null : element("span", { class: "spread" }, ` ± ${spread}`), ...(entry.signs || []).map((sign) => element("sup", {}, sign)));
}

// One tab stop for all values; the arrow keys move between them.
function moveWithArrows(table) {
  const first = table.querySelector("td[tabindex]");
  if (first) first.tabIndex = 0;
  table.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td[tabindex]");
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
    if (!cell || down === undefined) return;
    event.preventDefault();
    const row = table.tBodies[0].rows[cell.parentNode.sectionRowIndex + down];
    const next = row && row.cells[cell.cellIndex + right];
    if (next && next.hasAttribute("tabindex")) { cell.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  });
}
