// One row per method: our mean with its spread, and the published number.
function pairChart(width, { rows, looks }) {
  const left = Math.min(width * 0.34, 20 + 7.4 * Math.max(...rows.map((row) => row.name.length)));
  const right = 64;
  const step = 34;
  const height = rows.length * step + 50;
  const reach = rows.flatMap((row) => [row.printed, row.ours - (row.std || 0), row.ours + (row.std || 0)]);
  const { ticks, digits } = niceTicks(Math.min(...reach), Math.max(...reach), Math.max(2, (width - left - right) / 80));
  const pad = (Math.max(...reach) - Math.min(...reach)) * 0.04 || 1;
  const [low, high] = [Math.min(...reach) - pad, Math.max(...reach) + pad];
  const atX = (value) => left + ((value - low) / (high - low || 1)) * (width - left - right);
  const bottom = rows.length * step + 6;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Our accuracies and the published ones" });
  for (const tick of ticks) {
    root.append(svg("line", { class: "gridline", x1: atX(tick), x2: atX(tick), y1: 0, y2: bottom }),
      svg("text", { x: atX(tick), y: bottom + 16, "text-anchor": "middle" }, fixed(tick, digits)));
  }
  root.append(svg("text", { class: "name", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "Test accuracy (%)"));
  rows.forEach((row, place) => {
    const y = place * step + step / 2;
    const colour = looks[row.line].colour;
    const difference = row.ours - row.printed;
    const show = (event) => showTooltip([tipTitle(row.name), tipPair("ours", `${fixed(row.ours)}${row.std === null ? "" : ` ± ${fixed(row.std)}`}`), tipPair("seeds", String(row.n)), tipPair("printed", fixed(row.printed)), tipPair("difference", `${difference > 0 ? "+" : ""}${fixed(difference)}`)], event.clientX, event.clientY);
    root.append(svg("g", { pointermove: show, pointerleave: hideTooltip },
      svg("rect", { x: 0, y: y - step / 2, width, height: step, fill: "transparent" }),
      svg("text", { class: "name", x: left - 12, y: y + 4, "text-anchor": "end" }, row.name),
      svg("line", { x1: atX(row.ours), x2: atX(row.printed), y1: y, y2: y, stroke: "var(--strong-rule)", "stroke-width": 2 }),
      row.std === null ? null : svg("line", { x1: atX(row.ours - row.std), x2: atX(row.ours + row.std), y1: y, y2: y, stroke: colour, "stroke-width": 6, opacity: 0.3 }),
      svg("path", { d: MARKERS[3](5), transform: `translate(${atX(row.printed)},${y})`, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 1.5 }),
      svg("circle", { cx: atX(row.ours), cy: y, r: 5.5, fill: colour }),
      svg("text", { x: width - 4, y: y + 4, "text-anchor": "end" }, `${difference > 0 ? "+" : ""}${fixed(difference)}`)));
  });
  return root;
}

// One bubble per client and class; its area is the number of samples.
function bubbleChart(width, { classes, clients }) {
  const domains = [...new Set(clients.map(([, domain]) => domain))];
  const names = clients.map(([name, domain]) => (domain ? `${domain} · ${name}` : name));
  const left = Math.min(width * 0.35, 16 + 7.2 * Math.max(...names.map((name) => name.length)));
  const step = { x: (width - left - 10) / classes.length, y: clients.length > 40 ? 16 : 26 };
  const turned = Math.max(...classes.map((name) => name.length)) * 7.5 > step.x;
  const below = turned ? 16 + 6.5 * Math.max(...classes.map((name) => name.length)) : 24;
  const bottom = clients.length * step.y;
  const height = bottom + below + 20;
  const most = Math.max(1, ...clients.flatMap(([, , counts]) => counts));
  const radius = Math.min(step.x, step.y) * 0.45;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `Samples of ${clients.length} clients in ${classes.length} classes, at most ${most}` });
  const every = Math.ceil(14 / step.x);
  clients.forEach(([name, domain, counts], row) => {
    const y = (row + 0.5) * step.y;
    const colour = `var(--c${domains.indexOf(domain) % 7})`;
    root.append(svg("line", { class: "gridline", x1: left, x2: width - 4, y1: y, y2: y }), svg("text", { class: "name", x: left - 8, y: y + 4, "text-anchor": "end" }, names[row]));
    counts.forEach((count, column) => {
      if (!count) return;
      const show = (event) => showTooltip([tipTitle(names[row]), tipPair(`class ${classes[column]}`, `${count} samples`), tipPair("all classes", `${counts.reduce((a, b) => a + b, 0)} samples`)], event.clientX, event.clientY);
      root.append(svg("circle", { cx: left + (column + 0.5) * step.x, cy: y, r: Math.max(0.8, radius * Math.sqrt(count / most)), fill: colour, "fill-opacity": 0.85, pointermove: show, pointerleave: hideTooltip }));
    });
  });
  classes.forEach((name, column) => {
    if (column % every) return;
    const x = left + (column + 0.5) * step.x;
    root.append(svg("text", turned ? { transform: `translate(${x + 4},${bottom + 12}) rotate(-90)`, "text-anchor": "end" } : { x, y: bottom + 18, "text-anchor": "middle" }, name));
  });
  root.append(svg("text", { class: "name", x: left + (width - left) / 2, y: height - 2, "text-anchor": "middle" }, "Class"));
  return root;
}
