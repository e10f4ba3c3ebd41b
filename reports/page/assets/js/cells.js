const ROWS_AT_FIRST = 200; // a browser lays out more of them only with a delay that can be felt

function cellsSection(content) {
  const several = content.variants.length > 1;
  const filter = { text: "", state: "", line: "" };
  const headings = [{ text: "Method", words: true }, ...(several ? [{ text: "Setting", words: true }] : []), { text: "Seed", lowerIsBetter: true }, { text: "State", words: true },
    { text: "AVG" }, { text: "Rounds" }, { text: "Sent" }, { text: "Time" }, { text: "Cell", words: true }];
  const rows = content.cells.map((cell) => cellRow(content, cell, several));
  const count = element("span", { class: "count", role: "status" });
  const body = element("tbody");
  const more = element("button", { type: "button", class: "quiet", click: () => { limit = Infinity; apply(); } });
  let [ordered, limit] = [rows, ROWS_AT_FIRST];
  const apply = () => {
    const words = filter.text.split(/\s+/);
    const fitting = ordered.filter((row) => words.every((word) => row.words.includes(word))
      && (!filter.state || row.cell.state === filter.state) && (filter.line === "" || row.cell.line === Number(filter.line)));
    body.replaceChildren(...fitting.slice(0, limit).map((row) => row.node));
    count.textContent = fitting.length === rows.length ? `${rows.length} cells` : `${fitting.length} of ${rows.length} cells`;
    more.hidden = fitting.length <= limit;
    more.textContent = `Show the other ${fitting.length - limit}`;
  };
  const search = element("input", { type: "search", placeholder: "method, setting, seed, hash", input: (event) => { filter.text = event.target.value.trim().toLowerCase(); apply(); } });
  const methods = choice("Method", [["", "all"], ...content.lines.map(({ label }, place) => [place, label])], "", (line) => { filter.line = line; apply(); });
  const states = [...new Set(content.cells.map((cell) => cell.state))];
  const table = element("table", { class: "cells" }, body);
  sortable(table, headings, rows, (sorted) => { ordered = sorted; apply(); });
  const node = section("cells", "Cells", "One run of one method at one seed. Each opens its command, history, configuration and environment.",
    element("div", { class: "tools" }, element("label", { class: "field" }, "Search", search), methods,
      states.length > 1 ? choice("State", [["", "all"], ...states.map((state) => [state, state])], "", (state) => { filter.state = state; apply(); }) : null, count),
    element("div", { class: "scroll tall" }, table), more);
  const show = (line) => {
    methods.querySelector("select").value = String(line);
    filter.line = String(line);
    apply();
    node.scrollIntoView();
  };
  return { node, show };
}

function cellRow(content, cell, several) {
  const line = content.lines[cell.line];
  const setting = content.variants[cell.variant].name;
  const score = cell.result ? average(cell.result.test) : null;
  const rounds = cell.history ? cell.history.round.at(-1) : null;
  const bytes = cell.result && cell.result.bytes.every((value) => value !== null) ? cell.result.bytes[0] + cell.result.bytes[1] : null;
  const seconds = cell.result ? cell.result.timing.wall_seconds ?? null : null;
  let node = null;
  return {
    cell,
    words: `${line.label} ${line.method} ${setting} seed ${cell.seed} ${cell.state} ${cell.id}`.toLowerCase(),
    values: [line.label, ...(several ? [setting] : []), cell.seed, cell.state, score, rounds, bytes, seconds, cell.id],
    get node() {
      node ??= element("tr", { click: () => openCell(content, cell) },
        element("th", { scope: "row", class: line.bound ? "bound" : null }, line.label), several ? element("td", { class: "text" }, setting) : null,
        element("td", {}, String(cell.seed)), element("td", { class: "text" }, element("span", { class: `state ${cell.state}` }, cell.state)),
        element("td", {}, fixed(score)), element("td", {}, rounds === null ? "–" : String(rounds)), element("td", {}, withUnit("bytes", bytes)), element("td", {}, withUnit("time", seconds)),
        element("td", { class: "text" }, element("button", { type: "button", class: "linkish", "aria-label": `Open ${[line.label, setting].filter(Boolean).join(" ")} seed ${cell.seed}` }, element("code", {}, cell.id.slice(0, 8)))));
      return node;
    },
  };
}
