// rows: [{ node, values }]. A click sorts, the next one turns it round, the third restores the plan's order.
// Rows without a value stay at the end whichever way.
function sortable(table, headings, rows) {
  const body = table.tBodies[0];
  const buttons = headings.map(({ text, label, words }, column) => {
    const button = element("button", { type: "button", title: label, click: () => turn(column) }, text);
    return element("th", { scope: "col", class: words ? "text" : null, "aria-sort": "none" }, button);
  });
  table.createTHead().append(element("tr", {}, ...buttons));
  let state = { column: -1, direction: 0 };
  function turn(column) {
    const first = headings[column].words || headings[column].lowerIsBetter ? 1 : -1;
    const direction = state.column !== column ? first : state.direction === first ? -first : 0;
    state = { column, direction };
    buttons.forEach((heading, place) => heading.setAttribute("aria-sort",
      place !== column || !direction ? "none" : direction > 0 ? "ascending" : "descending"));
    table.toggleAttribute("data-sorted", direction !== 0);
    const empty = (value) => value === null || value === undefined;
    const ordered = !direction ? rows : [...rows].sort((one, other) => {
      const [a, b] = [one.values[column], other.values[column]];
      if (empty(a) || empty(b)) return empty(a) - empty(b);
      return direction * (typeof a === "string" ? a.localeCompare(b) : a - b);
    });
    body.append(...ordered.map((row) => row.node));
    for (const row of rows) {
      [...row.node.cells].forEach((cell, place) => { if (cell.tagName === "TD") cell.toggleAttribute("data-sorted-by", direction !== 0 && place === column); });
    }
  }
}
