const dialog = document.getElementById("cell");

function openCell(content, cell) {
  const line = content.lines[cell.line];
  const setting = content.variants[cell.variant];
  const title = [line.label, setting.name, `seed ${cell.seed}`].filter(Boolean).join(", ");
  const head = element("div", { class: "head" }, element("h2", { id: "cell-title" }, title), element("button", { type: "button", class: "quiet", click: () => dialog.close() }, "Close"));
  const parts = [
    element("p", { class: `state ${cell.state}`, style: "margin-top:.75rem" }, cell.error ? `failed: ${cell.error}` : cell.state),
    element("h3", {}, "Run it again"), commandOf(cell, line.label, content.variants.length),
    ...finalOf(cell, setting), ...historyOf(cell, setting),
    element("h3", {}, "Configuration"), cell.config ? definitions(cell.config) : element("p", { class: "lead" }, "Not recorded yet."),
    ...(cell.result ? [element("h3", {}, "Environment"), definitions({ ...cell.result.provenance, ...cell.result.timing })] : []),
  ];
  dialog.replaceChildren(head, element("div", { class: "body" }, ...parts));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  history.replaceState(null, "", `#cell=${cell.id}`);
}

function commandOf(cell, label, settings) {
  const button = element("button", { type: "button", class: "quiet", click: async () => {
    await copyText(cell.command);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } }, "Copy");
  const scope = [settings > 1 ? "in every setting" : "", cell.seed ? `with seeds 0 to ${cell.seed}` : ""].filter(Boolean).join(" ");
  const note = `${scope ? `Runs ${label} ${scope}. ` : ""}The folder of the cell ends with the same hash, ${cell.id}.`;
  return element("div", {}, element("div", { class: "command" }, element("code", {}, cell.command), button), element("figcaption", {}, note));
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // pages opened from a file may not have the clipboard
    const field = element("textarea", { style: "position:fixed;opacity:0" });
    field.value = text;
    dialog.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

function finalOf(cell, setting) {
  if (!cell.result) return [];
  const { test, own, bytes, rounds, dropped } = cell.result;
  const facts = [
    ["AVG (%)", fixed(average(test))], ...setting.domains.map((domain, place) => [`${domain} (%)`, fixed(percent(test[place]))]),
    ...(own === null || own === undefined ? [] : [["own test data (%)", fixed(percent(own))]]),
    ["rounds", rounds], ["sent up", withUnit("bytes", bytes[0])], ["sent down", withUnit("bytes", bytes[1])], ["replies left out", dropped],
  ];
  return [element("h3", {}, "Result of the final round"), element("dl", { class: "facts" }, ...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value ?? "–")))))];
}

function historyOf(cell, setting) {
  const history = cell.history;
  if (!history) return [element("h3", {}, "History"), element("p", { class: "lead" }, "No rounds recorded yet.")];
  const box = element("div", { class: "chart" });
  const names = ["AVG", ...setting.domains];
  const series = names.map((name, place) => {
    const values = valuesOf(history, place ? `test ${place - 1}` : "avg");
    const points = history.round.map((x, i) => ({ x, y: values[i] })).filter((point) => point.y !== null && point.y !== undefined);
    return { name, look: place ? lookAt(place - 1) : { colour: "var(--ink)", dash: "", marker: null }, points };
  });
  drawn(box, (width) => lineChart(width, { series, x: { label: "Round", kind: "round" }, y: { label: "Test accuracy (%)", digits: 2 }, height: 260 }));
  const key = element("div", { class: "key" }, ...series.map((line) => element("span", {}, swatch(line.look), line.name)));
  const metrics = Object.entries(history.metrics || {});
  const columns = [
    ["Round", history.round.map(String)], ...names.map((name, place) => [name, valuesOf(history, place ? `test ${place - 1}` : "avg").map((value) => (value === null ? "" : fixed(value)))]),
    ...(history.own ? [["own", history.own.map((value) => (value === null ? "" : fixed(percent(value))))]] : []),
    ...(history.validation ? [["validation", history.validation.map((value) => (value === null ? "" : fixed(percent(value))))]] : []),
    ...(history.up ? [["up", history.up.map((value) => withUnit("bytes", value))]] : []), ...(history.down ? [["down", history.down.map((value) => withUnit("bytes", value))]] : []),
    ...(history.seconds ? [["seconds", history.seconds.map((value) => fixed(value))]] : []), ...metrics.map(([name, values]) => [name, values.map(significant)]),
  ].filter(([, values]) => values.some((value) => value !== ""));
  const table = element("table", {}, element("thead", {}, element("tr", {}, ...columns.map(([name]) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...history.round.map((_, row) => element("tr", {}, ...columns.map(([, values]) => element("td", {}, values[row]))))));
  const drawable = series.some((line) => line.points.length > 1);
  return [element("h3", {}, "History"), ...(drawable ? [key, box] : []), element("div", { class: "history", tabindex: 0, role: "region", "aria-label": "Every round" }, table)];
}

function definitions(tree) {
  const pairs = [];
  const walk = (node, path) => {
    for (const [key, value] of Object.entries(node)) {
      if (value !== null && typeof value === "object" && !Array.isArray(value)) walk(value, [...path, key]);
      else pairs.push([[...path, key].join("."), Array.isArray(value) ? JSON.stringify(value) : value === null || value === undefined ? "none" : String(value)]);
    }
  };
  walk(tree, []);
  return element("dl", {}, ...pairs.flatMap(([key, value]) => [element("dt", {}, key), element("dd", {}, value)]));
}
