// Text from the records only ever becomes text nodes, never markup.
function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(key, value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

function section(id, title, lead, ...children) {
  return element("section", { id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, title), lead ? element("p", { class: "lead" }, lead) : null, ...children);
}

function choice(label, options, value, change) {
  const select = element("select", { change: (event) => change(event.target.value) },
    ...options.map(([key, text]) => element("option", { value: key, selected: String(key) === String(value) }, text)));
  return element("label", { class: "field" }, label, select);
}

function segments(label, options, value, change) {
  const buttons = options.map(([key, text]) => element("button", {
    type: "button", "data-key": key, "aria-pressed": String(key === value),
    click: () => {
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.key === key)));
      change(key);
    },
  }, text));
  return element("div", { class: "field", role: "group", "aria-label": label }, label,
    element("div", { class: "segments" }, ...buttons));
}

// Draws into a box whenever its width changes, and returns a function that draws again.
function drawn(box, draw) {
  let width = 0;
  const again = () => { if (width) box.replaceChildren(draw(width)); };
  const follow = () => {
    const now = Math.floor(box.clientWidth);
    if (now && now !== width) { width = now; again(); }
  };
  // not at once: a drawing changes the page's height and so the very widths that are being reported
  new ResizeObserver(() => requestAnimationFrame(follow)).observe(box);
  return again;
}
