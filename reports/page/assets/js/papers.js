function papersSection(content, looks) {
  if (!content.papers) return null;
  const { pairs, sources } = content.papers;
  const columns = [...new Set(pairs.map((pair) => pair.column))];
  const variants = [...new Set(pairs.map((pair) => pair.variant))];
  const state = { column: columns[0], variant: variants[0] };
  const box = element("div", { class: "chart" });
  const again = drawn(box, (width) => {
    const rows = pairs.filter((pair) => pair.column === state.column && pair.variant === state.variant).map((pair) => ({ ...pair, std: pair.std ?? null, name: content.lines[pair.line].label }));
    return rows.length ? pairChart(width, { rows, looks }) : element("p", { class: "lead" }, "No published numbers for this selection.");
  });
  const tools = element("div", { class: "tools" },
    variants.length > 1 ? choice("Setting", variants.map((place) => [place, content.variants[place].name]), state.variant, (place) => { state.variant = Number(place); again(); }) : null,
    columns.length > 1 ? choice("Column", columns.map((name) => [name, name]), state.column, (name) => { state.column = name; again(); }) : null);
  const key = element("div", { class: "key" },
    element("span", {}, svg("svg", { width: 12, height: 12, viewBox: "-6 -6 12 12", "aria-hidden": "true" }, svg("circle", { r: 5, fill: "var(--ink)" })), "ours, bar: ± sample standard deviation"),
    element("span", {}, svg("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" }, svg("path", { d: MARKERS[3](4.5), fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 1.5 })), "printed"),
    element("span", {}, "right: ours minus printed, in points"));
  const notes = Object.entries(sources).map(([paper, trust]) => element("li", {}, `${paper}: ${trust}.`));
  return section("papers", "Compared with papers", null, tools, key, element("figure", {}, box), element("ul", { class: "footnotes" }, ...notes));
}
