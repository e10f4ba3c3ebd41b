// series: [{ name, look, points: [{ x, y, low, high, note, isDefault, isBest }] }]; x: { label, kind, log, names }; y: { label, digits }
function lineChart(width, { series, x, y, height = 380 }) {
  const shown = series.filter((line) => line.points.length);
  const box = { left: 44, right: 14, top: 30, bottom: 46 };
  if (width < 480) height = Math.min(height, 300);
  const inner = { width: width - box.left - box.right, height: height - box.top - box.bottom };
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: 0, "aria-label": `${y.label} over ${x.label}: ${shown.map((line) => line.name).join(", ")}` });
  if (!shown.length) {
    root.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "Nothing to draw: choose a method or another metric."));
    return root;
  }
  const xs = shown.flatMap((line) => line.points.map((point) => point.x));
  const ys = shown.flatMap((line) => line.points.flatMap((point) => [point.low ?? point.y, point.high ?? point.y]));
  const highX = Math.max(...xs);
  const log = Boolean(x.log) && Math.min(...xs) > 0 && highX > Math.min(...xs);
  const lowX = log || x.names ? Math.min(...xs) : Math.min(0, ...xs);
  const [least, most] = y.range || [Math.min(...ys), Math.max(...ys)];
  const yTicks = niceTicks(least, most, height / 60);
  const pad = (most - least) * 0.04 || 0.5;
  const [lowY, highY] = [least - pad, most + pad];
  const along = log ? (value) => Math.log(value / lowX) / Math.log(highX / lowX) : (value) => (highX > lowX ? (value - lowX) / (highX - lowX) : 0.5);
  const inset = x.names ? 18 : 0;
  const atX = (value) => box.left + inset + along(value) * (inner.width - 2 * inset);
  const atY = (value) => box.top + inner.height * (1 - (value - lowY) / (highY - lowY));

  root.append(svg("text", { class: "name", x: 0, y: 14 }, y.label));
  for (const tick of yTicks.ticks) {
    root.append(svg("line", { class: "gridline", x1: box.left, x2: width - box.right, y1: atY(tick), y2: atY(tick) }),
      svg("text", { x: box.left - 8, y: atY(tick) + 4, "text-anchor": "end" }, fixed(tick, yTicks.digits)));
  }
  const unit = unitFor(x.kind || "round", highX);
  const nice = niceTicks(lowX / unit.size, highX / unit.size, Math.max(2, inner.width / 90));
  const ticks = x.names ? x.names.map((name, place) => [place, name])
    : log ? logTicks(lowX / unit.size, highX / unit.size).map((tick) => [tick * unit.size, String(Number(tick.toPrecision(3)))])
      : nice.ticks.filter((tick) => x.kind !== "round" || Number.isInteger(tick)).map((tick) => [tick * unit.size, tick.toFixed(x.kind === "round" ? 0 : nice.digits)]);
  const bottom = height - box.bottom;
  root.append(svg("line", { class: "axis", x1: box.left, x2: width - box.right, y1: bottom, y2: bottom }));
  for (const [value, text] of ticks) {
    root.append(svg("line", { class: "axis", x1: atX(value), x2: atX(value), y1: bottom, y2: bottom + 4 }),
      svg("text", { x: atX(value), y: bottom + 18, "text-anchor": "middle" }, text));
  }
  root.append(svg("text", { class: "name", x: box.left + inner.width / 2, y: height - 6, "text-anchor": "middle" }, unit.name ? `${x.label} (${unit.name}${log ? ", log scale" : ""})` : x.label));

  for (const line of shown) {
    const banded = line.points.filter((point) => point.low !== undefined && point.low !== null);
    if (banded.length > 1 && !x.names) {
      const up = banded.map((point) => `${atX(point.x).toFixed(1)},${atY(point.high).toFixed(1)}`);
      const down = banded.map((point) => `${atX(point.x).toFixed(1)},${atY(point.low).toFixed(1)}`).reverse();
      root.append(svg("path", { class: "band", fill: line.look.colour, "fill-opacity": shown.length > 6 ? 0.08 : 0.15, d: `M${up.join("L")}L${down.join("L")}z` }));
    }
  }
  for (const line of shown) {
    const path = line.points.map((point) => `${atX(point.x).toFixed(1)},${atY(point.y).toFixed(1)}`).join("L");
    root.append(svg("path", { class: "line", stroke: line.look.colour, "stroke-dasharray": line.look.dash, d: `M${path}`, "data-name": line.name }));
    const every = Math.max(1, Math.floor(line.points.length / 10));
    line.points.forEach((point, place) => {
      if (x.names && point.low !== null && point.low !== undefined) {
        root.append(svg("line", { x1: atX(point.x), x2: atX(point.x), y1: atY(point.low), y2: atY(point.high), stroke: line.look.colour, "stroke-width": 1.2 }));
      }
      const sign = place % every === 0 && marker(line.look, atX(point.x), atY(point.y));
      if (sign) root.append(sign);
      if (point.isDefault) root.append(defaultMark(atX(point.x), atY(point.y)));
      if (point.isBest) root.append(bestMark(atX(point.x), atY(point.y)));
    });
  }
  addCrosshair(root, shown, { atX, atY, x, y, width, top: box.top, bottom });
  return root;
}

// Shows every line's value nearest to the pointer, or to where the arrow keys have moved.
function addCrosshair(root, series, { atX, atY, x, y, width, top, bottom }) {
  const cross = svg("line", { class: "cross", y1: top, y2: bottom, visibility: "hidden" });
  const dots = svg("g");
  root.append(cross, dots);
  const stops = [...new Set(series.flatMap((line) => line.points.map((point) => point.x)))].sort((a, b) => a - b);
  const nearest = (points, value) => points.reduce((best, point) => (Math.abs(atX(point.x) - atX(value)) < Math.abs(atX(best.x) - atX(value)) ? point : best));
  let place = -1;
  const show = (value, clientX, clientY) => {
    const tolerance = Math.max(12, width / 40);
    const hits = series.map((line) => ({ line, point: nearest(line.points, value) }))
      .filter(({ point }) => Math.abs(atX(point.x) - atX(value)) <= tolerance).sort((a, b) => b.point.y - a.point.y);
    cross.setAttribute("x1", atX(value));
    cross.setAttribute("x2", atX(value));
    cross.setAttribute("visibility", "visible");
    dots.replaceChildren(...hits.map(({ line, point }) => svg("circle", { cx: atX(point.x), cy: atY(point.y), r: 5, fill: "none", stroke: line.look.colour, "stroke-width": 2 })));
    const title = x.names ? `${x.label} = ${x.names[value]}` : x.kind === "round" ? `Round ${value}` : `${x.label}: ${withUnit(x.kind, value)}`;
    const pairs = hits.slice(0, 14).map(({ line, point }) => tipPair(line.name, `${y.digits === undefined ? significant(point.y) : fixed(point.y, y.digits)}${point.note || ""}`, swatch(line.look)));
    showTooltip([tipTitle(title), ...pairs], clientX, clientY);
  };
  const hide = () => { cross.setAttribute("visibility", "hidden"); dots.replaceChildren(); hideTooltip(); };
  root.addEventListener("pointermove", (event) => {
    const frame = root.getBoundingClientRect();
    const at = (event.clientX - frame.left) * (width / frame.width);
    const value = stops.reduce((best, stop) => (Math.abs(atX(stop) - at) < Math.abs(atX(best) - at) ? stop : best));
    place = stops.indexOf(value);
    show(value, event.clientX, event.clientY);
  });
  root.addEventListener("pointerleave", hide);
  root.addEventListener("blur", hide);
  root.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    place = Math.min(stops.length - 1, Math.max(0, place + step));
    const frame = root.getBoundingClientRect();
    show(stops[place], frame.left + atX(stops[place]) * (frame.width / width), frame.top + 40);
  });
}
