function sensitivitySection(content) {
  if (!content.sweeps.length && !content.grids.length) return null;
  const lines = [...new Set(content.sweeps.map((sweep) => sweep.line))];
  const looks = new Map(lines.map((line, place) => [line, lookAt(place)]));
  const key = element("div", { class: "key" }, ...lines.map((line) => element("span", {}, swatch(looks.get(line)), line)));
  const reach = content.sweeps.flatMap((sweep) => sweep.points.flatMap(([, y, std]) => [y - (std || 0), y + (std || 0)]));
  const range = [Math.min(...reach), Math.max(...reach)];
  const panels = [...new Set(content.sweeps.map((sweep) => sweep.name))].map((name) => {
    const own = content.sweeps.filter((sweep) => sweep.name === name);
    const values = [...new Set(own.flatMap((sweep) => sweep.points.map(([value]) => value)))].sort((a, b) => a - b);
    const series = own.map((sweep) => ({
      name: sweep.line, look: looks.get(sweep.line),
      points: sweep.points.map(([value, y, std, n]) => ({ x: values.indexOf(value), y, low: std === null ? null : y - std, high: std === null ? null : y + std, note: `${std === null ? "" : ` ± ${fixed(std)}`}, n = ${n}` })),
    }));
    const box = element("div", { class: "chart" });
    drawn(box, (width) => lineChart(width, { series, x: { label: name, names: values.map(significant) }, y: { label: "Final test accuracy, AVG (%)", digits: 2, range }, height: 290 }));
    return element("figure", {}, box);
  });
  const maps = content.grids.map((grid) => {
    const [rows, columns] = [0, 1].map((place) => [...new Set(grid.points.map((point) => point[place]))].sort((a, b) => a - b));
    const at = new Map(grid.points.map(([row, column, value]) => [`${row} ${column}`, value]));
    const values = rows.map((row) => columns.map((column) => at.get(`${row} ${column}`) ?? null));
    const box = element("div", { class: "chart" });
    drawn(box, (width) => heatMap(width, { rows: rows.map(significant), columns: columns.map(significant), values, rowLabel: grid.names[0], columnLabel: grid.names[1] }));
    const known = values.flat().filter((value) => value !== null);
    return element("figure", {}, element("h3", {}, `${grid.line}: ${grid.names.join(" × ")}`), box, heatScale(Math.min(...known), Math.max(...known)));
  });
  return section("sensitivity", "Sensitivity", `${panels.length ? "One setting varies while all others are fixed; bars: ± sample standard deviation over seeds. " : ""}${maps.length ? "Maps: two settings vary; final test accuracy, mean over seeds." : ""}`,
    lines.length > 1 ? key : null, element("div", { class: "multiples" }, ...panels, ...maps));
}
