// rows: [{ values }], which `show` puts into the table in the order it is given. A click sorts, the next one turns it round, the third restores the plan's order.
// Rows without a value stay at the end whichever way.
const collator = new Intl.Collator("en");
function sortable(table, headings, rows, show) {
  const buttons = headings.map(({ text, label, words }, column) => {
    const button = element("button", { type: "button", title: label, click: () => turn(column) }, text);
    return element("th", { scope: "col", class: words ? "text" : null, "aria-sort": "none" }, button);
  });
  table.createTHead().append(element("tr", {}, ...buttons));
  show(rows);
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
      return direction * (typeof a === "string" ? collator.compare(a, b) : a - b);
    });
    show(ordered);
  }
}
