// The same colours, dashes and markers as the printed figures.
const DASHES = ["", "7 2.5", "1.5 2", "7 2.5 1.5 2.5", "11 3 1.5 2.5 1.5 2.5"];
const MARKERS = [
  (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
  (r) => `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (r) => `M0,${-1.2 * r}L${1.15 * r},${r}H${-1.15 * r}z`,
  (r) => `M0,${-1.35 * r}L${1.35 * r},0L0,${1.35 * r}L${-1.35 * r},0z`,
  (r) => `M0,${1.2 * r}L${1.15 * r},${-r}H${-1.15 * r}z`,
  (r) => `M${-r},${-0.4 * r}h${0.6 * r}v${-0.6 * r}h${0.8 * r}v${0.6 * r}h${0.6 * r}v${0.8 * r}h${-0.6 * r}v${0.6 * r}h${-0.8 * r}v${-0.6 * r}h${-0.6 * r}z`,
  (r) => `M${-r},${-r}L0,${-0.35 * r}L${r},${-r}L${0.35 * r},0L${r},${r}L0,${0.35 * r}L${-r},${r}L${-0.35 * r},0z`,
];
// The default and the best of a sweep.
const DIAMOND = MARKERS[3];
const STAR = (r) => `M${[...Array(10)].map((_, i) => { const [length, angle] = [i % 2 ? 0.42 * r : r, (Math.PI * i) / 5]; return `${(length * Math.sin(angle)).toFixed(2)},${(-length * Math.cos(angle)).toFixed(2)}`; }).join("L")}z`;
const defaultMark = (x, y) => svg("path", { class: "default-mark", d: DIAMOND(7), transform: `translate(${x.toFixed(1)},${y.toFixed(1)})` });
const bestMark = (x, y, radius = 8) => svg("path", { class: "best-mark", d: STAR(radius), transform: `translate(${x.toFixed(1)},${y.toFixed(1)})` });

const BOUNDS = { local: "1.5 3", central: "9 4" };
const lookAt = (place) => ({ colour: `var(--c${place % 7})`, dash: DASHES[place % DASHES.length], marker: MARKERS[place % MARKERS.length] });
function looksOf(lines) {
  let place = 0;
  return lines.map((line) => (line.bound ? { colour: "var(--bound)", dash: BOUNDS[line.method], marker: null } : lookAt(place++)));
}
const marker = (look, x, y, radius = 3.5) =>
  look.marker && svg("path", { d: look.marker(radius), transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, fill: look.colour });
function swatch(look) {
  return svg("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" },
    svg("path", { d: "M1,6H25", class: "line", stroke: look.colour, "stroke-dasharray": look.dash }), marker(look, 13, 6));
}

// Round numbers that cover a range in about this many steps.
function niceTicks(low, high, about) {
  if (low === high) { low -= Math.abs(low) * 0.05 || 0.5; high += Math.abs(high) * 0.05 || 0.5; }
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
  return { ticks, digits: Math.max(0, Math.ceil(-Math.log10(step) + (String(step / power) === "2.5" ? 1 : 0))) };
}
function logTicks(low, high) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of [1, 2, 5]) {
      const tick = factor * 10 ** power;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks.length > 6 ? ticks.filter((tick) => Number.isInteger(Math.log10(tick) + 1e-12) || /^1(e|0*$)/.test(tick.toExponential())) : ticks;
}
