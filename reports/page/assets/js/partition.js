function partitionSection(content) {
  if (!content.partition) return null;
  const { classes, clients, setting } = content.partition;
  const most = Math.max(...clients.flatMap(([, , counts]) => counts));
  const total = clients.reduce((sum, [, , counts]) => sum + counts.reduce((a, b) => a + b, 0), 0);
  const box = element("div", { class: "chart" });
  drawn(box, (width) => bubbleChart(width, content.partition));
  return section("partition", "Partition", `Training data per client${setting ? ` (${setting})` : ""}: ${clients.length} clients, ${classes.length} classes, ${total} samples. The area of a bubble is the number of samples; the largest is ${most}.`, element("figure", {}, box));
}
