const MINUS = "−";
const signed = (text) => text.replace("-", MINUS);
const fixed = (value, digits = 2) => (value === null || value === undefined ? "–" : signed(value.toFixed(digits)));
const significant = (value) => (value === null ? "–" : signed(String(Number(value.toPrecision(4)))));
const pValue = (p) => (p < 0.001 ? "< 0.001" : p.toFixed(3));

// A unit that suits the largest of several values, so that an axis has one.
function unitFor(kind, largest) {
  const units = {
    bytes: [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
    time: [[3600, "h"], [60, "min"], [1, "s"]],
    round: [[1, ""]],
  }[kind];
  const [size, name] = units.find(([least]) => largest >= least) || units.at(-1);
  return { size, name };
}
function withUnit(kind, value) {
  if (value === null || value === undefined) return "–";
  const { size, name } = unitFor(kind, value);
  const number = value / size;
  return `${number >= 100 || size === 1 && kind === "bytes" ? Math.round(number) : number.toFixed(1)} ${name}`.trim();
}
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
