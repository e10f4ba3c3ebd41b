const AXES = [["round", "Rounds"], ["bytes", "Bytes sent"], ["time", "Time"]];
const AXIS_LABELS = { round: "Round", bytes: "Sent up and down", time: "Computing time" };
const MOST_AT_FIRST = 10;

function curvesSection(content, looks) {
  const state = { variant: 0, metric: "avg", axis: "round", lines: firstLines(content) };
  const box = element("div", { class: "chart", id: "curves-chart" });
  const note = element("figcaption");
  const metric = element("select", { id: "metric", change: (event) => { state.metric = event.target.value; again(); } });
  const fillMetrics = () => {
    const options = metricsOf(content, state.variant);
    if (!options.some(([key]) => key === state.metric)) state.metric = "avg";
    metric.replaceChildren(...options.map(([key, text]) => element("option", { value: key, selected: key === state.metric }, text)));
  };
  const again = drawn(box, (width) => {
    const series = [...state.lines].sort((a, b) => a - b).map((line) => ({ name: content.lines[line].label, look: looks[line], ...seriesOf(content, line, state) }));
    const open = series.filter((one) => one.unfinished && one.points.length).map((one) => one.name);
    const silent = state.axis === "bytes" ? series.filter((one) => one.sendsNothing).map((one) => one.name) : [];
    const text = metric.selectedOptions[0].textContent;
    note.textContent = `${text}. Mean over the finished seeds at the rounds that all of them have; band: ± sample standard deviation.`
      + (open.length ? ` No seed has finished yet, so the curves show the rounds so far: ${open.join(", ")}.` : "")
      + (silent.length ? ` Nothing is sent by ${silent.join(", ")}.` : "");
    return lineChart(width, { series, x: { label: AXIS_LABELS[state.axis], kind: state.axis, log: state.axis === "bytes" && isWide(series) }, y: { label: text, digits: isAccuracy(state.metric) ? 2 : undefined } });
  });
  const chips = chipsFor(content.lines, looks, state.lines, again);
  const variants = content.variants.length > 1
    ? choice("Setting", content.variants.map(({ name }, place) => [place, name || "default"]), 0, (place) => { state.variant = Number(place); fillMetrics(); again(); }) : null;
  fillMetrics();
  return section("curves", "Curves", null,
    element("div", { class: "tools" }, variants, element("label", { class: "field" }, "Metric", metric), segments("Horizontal axis", AXES, "round", (axis) => { state.axis = axis; again(); })),
    chips, element("figure", {}, box, note));
}

function firstLines(content) {
  const all = content.lines.map((_, line) => line);
  if (all.length <= MOST_AT_FIRST) return new Set(all);
  const score = (line) => Math.max(-1, ...content.cells.filter((cell) => cell.line === line && cell.result).map((cell) => average(cell.result.test) ?? -1));
  return new Set(all.map((line) => [score(line), line]).sort((a, b) => b[0] - a[0]).slice(0, MOST_AT_FIRST - 2).map(([, line]) => line));
}

function chipsFor(lines, looks, chosen, change) {
  const buttons = lines.map((line, place) => element("button", {
    type: "button", "aria-pressed": String(chosen.has(place)),
    click: () => { if (!chosen.delete(place)) chosen.add(place); refresh(); },
  }, swatch(looks[place]), line.label));
  const refresh = () => { buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(chosen.has(place)))); change(); };
  const all = element("button", { type: "button", class: "all", click: () => { lines.forEach((_, place) => chosen.add(place)); refresh(); } }, "All");
  const none = element("button", { type: "button", class: "all", click: () => { chosen.clear(); refresh(); } }, "None");
  return element("div", { class: "chips", role: "group", "aria-label": "Methods" }, ...buttons, lines.length > 2 ? [all, none] : []);
}

const isAccuracy = (metric) => !metric.startsWith("metric ");
function metricsOf(content, variant) {
  const histories = content.cells.filter((cell) => cell.variant === variant && cell.history).map((cell) => cell.history);
  const domains = content.variants[variant].domains;
  const names = new Set(histories.flatMap((history) => Object.keys(history.metrics || {})));
  return [
    ["avg", "Test accuracy, AVG (%)"], ...domains.map((domain, place) => [`test ${place}`, `Test accuracy, ${domain} (%)`]),
    ...(histories.some((history) => history.own) ? [["own", "Accuracy on clients' own test data (%)"]] : []),
    ...(histories.some((history) => history.validation) ? [["validation", "Validation accuracy (%)"]] : []),
    ...[...names].map((name) => [`metric ${name}`, capital(name.replaceAll("_", " "))]),
  ];
}

function valuesOf(history, metric) {
  const rounds = history.round.map(() => null);
  const test = history.test || [];
  if (metric === "avg") return rounds.map((_, place) => (test.every((column) => column.length) ? average(test.map((column) => column[place])) : null));
  if (metric.startsWith("test ")) return (test[Number(metric.slice(5))] || rounds).map(percent);
  if (isAccuracy(metric)) return (history[metric] || rounds).map(percent);
  return (history.metrics || {})[metric.slice(7)] || rounds;
}

function placesOf(history, axis) {
  if (axis === "round") return history.round;
  if (axis === "time") return history.seconds ? cumulative(history.seconds) : null;
  return history.up && history.down ? cumulative(history.up.map((up, place) => up + history.down[place])) : null;
}

function seriesOf(content, line, { variant, metric, axis }) {
  const all = content.cells.filter((cell) => cell.line === line && cell.variant === variant && cell.history);
  const finished = all.filter((cell) => cell.result);
  const seeds = (finished.length ? finished : all).map(({ history }) => {
    const [places, values] = [placesOf(history, axis), valuesOf(history, metric)];
    const known = new Map();
    if (places) history.round.forEach((round, i) => { if (values[i] !== null && values[i] !== undefined) known.set(round, { x: places[i], y: values[i] }); });
    return known;
  }).filter((known) => known.size);
  if (!seeds.length) return { points: [], unfinished: !finished.length };
  const shared = [...seeds[0].keys()].filter((round) => seeds.every((known) => known.has(round)));
  const points = shared.map((round) => {
    const ys = seeds.map((known) => known.get(round).y);
    const [y, std] = [mean(ys), sampleStd(ys)];
    return { x: mean(seeds.map((known) => known.get(round).x)), y, low: std === null ? null : y - std, high: std === null ? null : y + std, note: std === null ? "" : ` ± ${isAccuracy(metric) ? fixed(std) : significant(std)}` };
  });
  const sendsNothing = axis === "bytes" && points.length && points.at(-1).x === 0;
  return { points: sendsNothing ? [] : points, sendsNothing, unfinished: !finished.length };
}

// Methods whose traffic differs twentyfold share an axis only on a log scale.
function isWide(series) {
  const first = series.filter((line) => line.points.length).map((line) => line.points[0].x);
  return first.length > 0 && Math.max(...first) > 20 * Math.min(...first);
}
