function cellsSection(content) {
  const several = content.variants.length > 1;
  const filter = { text: "", state: "", line: "" };
  const headings = [{ text: "Method", words: true }, ...(several ? [{ text: "Setting", words: true }] : []), { text: "Seed", lowerIsBetter: true }, { text: "State", words: true },
    { text: "AVG" }, { text: "Rounds" }, { text: "Sent" }, { text: "Time" }, { text: "Cell", words: true }];
  const rows = content.cells.map((cell) => {
    const line = content.lines[cell.line];
    const setting = content.variants[cell.variant].name;
    const score = cell.result ? average(cell.result.test) : null;
    const rounds = cell.history ? cell.history.round.at(-1) : null;
    const bytes = cell.result && cell.result.bytes.every((value) => value !== null) ? cell.result.bytes[0] + cell.result.bytes[1] : null;
    const seconds = cell.result ? cell.result.timing.wall_seconds ?? null : null;
    const node = element("tr", { click: () => openCell(content, cell) },
      element("th", { scope: "row", class: line.bound ? "bound" : null }, line.label), several ? element("td", { class: "text" }, setting) : null,
      element("td", {}, String(cell.seed)), element("td", { class: "text" }, element("span", { class: `state ${cell.state}` }, cell.state)),
      element("td", {}, fixed(score)), element("td", {}, rounds === null ? "–" : String(rounds)), element("td", {}, withUnit("bytes", bytes)), element("td", {}, withUnit("time", seconds)),
      element("td", { class: "text" }, element("button", { type: "button", class: "linkish", "aria-label": `Open ${line.label} ${setting} seed ${cell.seed}` }, element("code", {}, cell.id.slice(0, 8)))));
    const words = `${line.label} ${line.method} ${setting} seed ${cell.seed} ${cell.state} ${cell.id}`.toLowerCase();
    const values = [line.label, ...(several ? [setting] : []), cell.seed, cell.state, score, rounds, bytes, seconds, cell.id];
    return { node, values, words, cell };
  });
  const count = element("span", { class: "count", role: "status" });
  const apply = () => {
    let shown = 0;
    for (const { node, words, cell } of rows) {
      const fits = filter.text.split(/\s+/).every((word) => words.includes(word)) && (!filter.state || cell.state === filter.state) && (filter.line === "" || cell.line === Number(filter.line));
      node.hidden = !fits;
      shown += fits;
    }
    count.textContent = shown === rows.length ? `${rows.length} cells` : `${shown} of ${rows.length} cells`;
  };
  const search = element("input", { type: "search", placeholder: "method, setting, seed, hash", input: (event) => { filter.text = event.target.value.trim().toLowerCase(); apply(); } });
  const methods = choice("Method", [["", "all"], ...content.lines.map(({ label }, place) => [place, label])], "", (line) => { filter.line = line; apply(); });
  const states = [...new Set(content.cells.map((cell) => cell.state))];
  const body = element("tbody", {}, ...rows.map((row) => row.node));
  const table = element("table", { class: "cells" }, body);
  sortable(table, headings, rows);
  apply();
  const node = section("cells", "Cells", "One run of one method at one seed. Each opens its command, history, configuration and environment.",
    element("div", { class: "tools" }, element("label", { class: "field" }, "Search", search), methods,
      states.length > 1 ? choice("State", [["", "all"], ...states.map((state) => [state, state])], "", (state) => { filter.state = state; apply(); }) : null, count),
    element("div", { class: "scroll" }, table));
  const show = (line) => {
    methods.querySelector("select").value = String(line);
    filter.line = String(line);
    apply();
    node.scrollIntoView();
  };
  return { node, show };
}
