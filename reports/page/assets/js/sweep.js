// A design is a row in one place: its swept keys and a point for every combination, [values, mean, std, n].
const NO_RULE = "★ is the best on the test sets. That is not a rule to select by: it shows how much the choice matters, and hyperparameters should be chosen by bench tune.";
const inWords = (value) => (typeof value === "number" ? significant(value) : value);

function sweepSection(content, showCells) {
  const tables = content.tables.filter((table) => ["sweep", "importance"].includes(table.name));
  if (!tables.length) return null;
  const shown = tables.map((table) => element("div", { "data-table": table.name }, resultTable(table, showCells)));
  return section("sweep", "Sweep", null, content.designs.length ? sweepPicker(content.designs) : null, ...shown);
}

function sweepPicker(designs) {
  const first = designs.reduce((most, design) => (design.keys.length > most.keys.length ? design : most));
  const state = { place: first.place, row: first.row, across: first.keys[0].key, down: "", fixed: {} };
  const tools = element("div", { class: "tools" });
  const box = element("div", { class: "chart", id: "sweep-chart" });
  const note = element("figcaption");
  const scale = element("div");
  const again = drawn(box, (width) => {
    const part = partOf(designOf(designs, state), state);
    note.textContent = `${part.fixed.length ? `${part.fixed.join(", ")}. ` : ""}Final test accuracy, AVG, mean over seeds${state.down ? "" : "; bars: ± sample standard deviation"}. ${part.points.some((point) => point.isDefault) ? `${state.down ? "Frame" : "◇"}: the default. ` : ""}${part.points.some((point) => point.isBest) ? NO_RULE : ""}`;
    const known = part.points.map((point) => point.mean);
    scale.replaceChildren(...(state.down && known.length ? [heatScale(Math.min(...known), Math.max(...known))] : []));
    return state.down ? sweepMap(width, part) : sweepLine(width, part, state.row);
  });
  const change = (key, value) => {
    state[key] = value;
    choose();
    again();
  };
  // The menus follow from what was chosen: a row has its keys, and keys that are not on an axis have a value.
  const choose = () => {
    const rows = [...new Set(designs.filter((design) => design.place === state.place).map((design) => design.row))];
    if (!rows.includes(state.row)) state.row = rows[0];
    const { keys } = designOf(designs, state);
    if (!keys.some(({ key }) => key === state.across)) state.across = keys[0].key;
    if (state.down === state.across || !keys.some(({ key }) => key === state.down)) state.down = "";
    const places = [...new Set(designs.map((design) => design.place))];
    const others = keys.filter(({ key }) => key !== state.across && key !== state.down);
    tools.replaceChildren(...[
      places.length > 1 ? choice("Dataset", places.map((place) => [place, place]), state.place, (place) => change("place", place)) : null,
      rows.length > 1 ? choice("Row", rows.map((row) => [row, row]), state.row, (row) => change("row", row)) : null,
      choice("Key", keys.map(({ key, name }) => [key, titleOf(key, name)]), state.across, (key) => change("across", key)),
      keys.length > 1 ? choice("Second key", [["", "none: a line"], ...keys.filter(({ key }) => key !== state.across).map(({ key, name }) => [key, titleOf(key, name)])], state.down, (key) => change("down", key)) : null,
      ...others.map((each) => choice(titleOf(each.key, each.name), each.values.map((value, place) => [place, `${inWords(value)}${value === each.default ? " (default)" : ""}`]), placeOf(designOf(designs, state), each, state), (place) => { state.fixed[each.key] = each.values[place]; again(); })),
    ].filter(Boolean));
  };
  choose();
  return element("div", { id: "sweep-picker" }, tools, element("figure", {}, box, scale, note));
}

const titleOf = (key, name) => (name === key ? key : `${name} (${key})`);
const designOf = (designs, { place, row }) => designs.find((design) => design.place === place && design.row === row);

// Where a key is that is not on an axis: as chosen, or its default, or its value in the best combination.
function placeOf(design, { key, values, default: own }, state) {
  const chosen = values.indexOf(state.fixed[key]);
  if (chosen >= 0) return chosen;
  if (values.includes(own)) return values.indexOf(own);
  const best = design.points.reduce((first, second) => (second[1] > first[1] ? second : first));
  return values.indexOf(best[0][design.keys.findIndex((each) => each.key === key)]);
}

// The points in which only the keys on the axes vary.
function partOf(design, state) {
  const place = (key) => design.keys.findIndex((each) => each.key === key);
  const axes = [place(state.across), ...(state.down ? [place(state.down)] : [])];
  const others = design.keys.map((each, at) => [each, at]).filter(([, at]) => !axes.includes(at)).map(([each, at]) => [each, at, each.values[placeOf(design, each, state)]]);
  const points = design.points.filter(([values]) => others.every(([, at, value]) => values[at] === value))
    .map(([values, mean, std, n]) => ({ at: axes.map((axis) => design.keys[axis].values.indexOf(values[axis])), mean, std, n,
      isDefault: axes.every((axis) => values[axis] === design.keys[axis].default) }));
  const problem = axes.map((axis, order) => [axis, order]).filter(([axis]) => design.keys[axis].ofTheProblem).map(([, order]) => order);
  for (const point of points) {
    const rivals = points.filter((other) => problem.every((order) => other.at[order] === point.at[order]));
    point.isBest = rivals.length > 1 && rivals.find((other) => other.mean === Math.max(...rivals.map(({ mean }) => mean))) === point;
  }
  return { points, axes: axes.map((axis) => design.keys[axis]), fixed: others.map(([{ name, default: own }, , value]) => `${name} = ${inWords(value)}${value === own ? " (default)" : ""}`) };
}

const spreadNote = ({ std, n, isDefault, isBest }) => `${std === null ? "" : ` ± ${fixed(std)}`}, n = ${n}${isDefault ? ", default" : ""}${isBest ? ", best on test" : ""}`;

function sweepLine(width, { points, axes: [axis] }, row) {
  const line = points.map((point) => ({ ...point, x: point.at[0], y: point.mean, low: point.std === null ? null : point.mean - point.std, high: point.std === null ? null : point.mean + point.std, note: spreadNote(point) })).sort((a, b) => a.x - b.x);
  return lineChart(width, { series: [{ name: row, look: lookAt(0), points: line }], x: { label: axis.name, names: axis.values.map(inWords) }, y: { label: "Final test accuracy, AVG (%)", digits: 2 }, height: 320 });
}

function sweepMap(width, { points, axes: [across, down] }) {
  const [values, notes] = [() => null, () => ""].map((empty) => down.values.map(() => across.values.map(empty)));
  for (const point of points) {
    values[point.at[1]][point.at[0]] = point.mean;
    notes[point.at[1]][point.at[0]] = spreadNote(point);
  }
  const marked = (name) => points.filter((point) => point[name]).map((point) => [point.at[1], point.at[0]]);
  return heatMap(width, { rows: down.values.map(inWords), columns: across.values.map(inWords), values, notes, defaults: marked("isDefault"), bests: marked("isBest"), rowLabel: down.name, columnLabel: across.name });
}
