const tooltip = document.getElementById("tooltip");
function showTooltip(children, x, y) {
  // a modal dialog hides all that is not in it
  const home = document.querySelector("dialog[open]") || document.body;
  if (tooltip.parentNode !== home) home.append(tooltip);
  tooltip.replaceChildren(...children);
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  const left = Math.min(Math.max(8, x + 14), innerWidth - width - 8);
  const top = y - height - 12 < 8 ? y + 18 : y - height - 12;
  tooltip.style.left = `${left}px`;
  tooltip.style.top = `${top}px`;
}
const hideTooltip = () => { tooltip.hidden = true; };
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTooltip(); });
addEventListener("scroll", hideTooltip, { passive: true });
const tipTitle = (text) => element("strong", {}, text);
const tipPair = (name, value, sign) => element("div", { class: "pair" }, element("span", {}, sign, name), element("span", {}, value));
