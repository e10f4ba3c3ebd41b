// Stops of cividis, which is perceptually uniform: it reads the same in grey and with any colour vision.
const HEAT = [[0, 32, 77], [53, 69, 108], [102, 105, 112], [148, 142, 119], [203, 186, 105], [255, 234, 70]];
function heatColour(share) {
  const at = Math.min(0.9999, Math.max(0, share)) * (HEAT.length - 1);
  const [from, to] = [HEAT[Math.floor(at)], HEAT[Math.floor(at) + 1]];
  return `rgb(${from.map((channel, i) => Math.round(channel + (to[i] - channel) * (at % 1))).join(",")})`;
}

// notes: a text for the tooltip of each field; defaults, bests: [row, column] of the fields to mark
function heatMap(width, { rows, columns, values, notes = [], defaults = [], bests = [], rowLabel, columnLabel, digits = 1 }) {
  const left = Math.min(width * 0.35, 14 + 7.2 * Math.max(...rows.map((row) => row.length)) + (rowLabel ? 16 : 0));
  const cell = { width: (width - left - 4) / columns.length, height: Math.max(18, Math.min(44, 260 / rows.length)) };
  const height = rows.length * cell.height + 44;
  const known = values.flat().filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${rowLabel || "rows"} by ${columnLabel}, from ${fixed(low, digits)} to ${fixed(high, digits)}` });
  const written = cell.width > 34 && cell.height > 16;
  values.forEach((row, y) => row.forEach((value, x) => {
    if (value === null) return;
    const share = high > low ? (value - low) / (high - low) : 0.5;
    const at = { x: left + x * cell.width, y: y * cell.height };
    const show = (event) => showTooltip([tipTitle(`${rowLabel ? `${rowLabel} = ` : ""}${rows[y]}, ${columnLabel.toLowerCase()} ${columns[x]}`), tipPair("value", `${fixed(value, digits + 1)}${notes[y]?.[x] || ""}`)], event.clientX, event.clientY);
    root.append(svg("rect", { ...at, width: cell.width, height: cell.height, "shape-rendering": "crispEdges", fill: heatColour(share), pointermove: show, pointerleave: hideTooltip }));
    if (written) root.append(svg("text", { x: at.x + cell.width / 2, y: at.y + cell.height / 2 + 4, "text-anchor": "middle", "pointer-events": "none", style: `fill:${share < 0.5 ? "#fff" : "#000"}` }, fixed(value, digits)));
  }));
  const inside = Math.min(4, cell.width / 8);
  for (const [y, x] of defaults) root.append(svg("rect", { class: "default-mark", x: left + x * cell.width + 1.5, y: y * cell.height + 1.5, width: cell.width - 3, height: cell.height - 3 }));
  for (const [y, x] of bests) root.append(bestMark(left + (x + 1) * cell.width - 9 - inside, y * cell.height + 9 + inside / 2, 7));
  rows.forEach((row, y) => root.append(svg("text", { class: "name", x: left - 8, y: (y + 0.5) * cell.height + 4, "text-anchor": "end" }, row)));
  const step = Math.ceil(columns.length / Math.max(1, (width - left) / 44));
  columns.forEach((column, x) => {
    if (x % step === 0) root.append(svg("text", { x: left + (x + 0.5) * cell.width, y: rows.length * cell.height + 16, "text-anchor": "middle" }, column));
  });
  root.append(svg("text", { class: "name", x: left + (width - left) / 2, y: height - 6, "text-anchor": "middle" }, columnLabel));
  if (rowLabel) root.append(svg("text", { class: "name", transform: `translate(11,${(rows.length * cell.height) / 2}) rotate(-90)`, "text-anchor": "middle" }, rowLabel));
  return root;
}
function heatScale(low, high, digits = 1) {
  const gradient = HEAT.map((_, i) => heatColour(i / (HEAT.length - 1))).join(",");
  return element("div", { class: "scale" }, fixed(low, digits), element("i", { style: `background:linear-gradient(90deg,${gradient})` }), fixed(high, digits));
}
