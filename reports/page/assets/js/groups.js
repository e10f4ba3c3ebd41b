// Metrics named GROUP/MEMBER, such as gate/block_0: a heat map over rounds for each method that records them.
function groupsSection(content) {
  const figures = [];
  content.variants.forEach(({ name: setting }, variant) => content.lines.forEach(({ label }, line) => {
    const cells = content.cells.filter((cell) => cell.line === line && cell.variant === variant && cell.result && cell.history);
    const names = [...new Set(cells.flatMap((cell) => Object.keys(cell.history.metrics || {})))].filter((name) => /^[^/]+\/./.test(name));
    for (const group of new Set(names.map((name) => name.split("/")[0]))) {
      const members = names.filter((name) => name.startsWith(`${group}/`));
      if (members.length < 2) continue;
      const series = members.map((name) => new Map(seriesOf(content, line, { variant, metric: `metric ${name}`, axis: "round" }).points.map((point) => [point.x, point.y])));
      const rounds = [...new Set(series.flatMap((points) => [...points.keys()]))].sort((a, b) => a - b);
      const values = series.map((points) => rounds.map((round) => points.get(round) ?? null));
      const known = values.flat().filter((value) => value !== null);
      if (!known.length) continue;
      const box = element("div", { class: "chart" });
      drawn(box, (width) => heatMap(width, { rows: members.map((name) => name.slice(group.length + 1).replaceAll("_", " ")), columns: rounds.map(String), values, columnLabel: "Round", digits: 2 }));
      figures.push(element("figure", {}, element("h3", {}, [capital(group.replaceAll("_", " ")), label, setting].filter(Boolean).join(", ")), box, heatScale(Math.min(...known), Math.max(...known), 2)));
    }
  }));
  return figures.length ? section("inside", "Method metrics", "Metrics that the methods record, mean over the finished seeds.", element("div", { class: "multiples" }, ...figures)) : null;
}
