// The system's choice, until the reader makes one; it is kept where the browser allows.
function startTheme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
  let chosen = kept;
  const apply = () => {
    const dark = chosen ? chosen === "dark" : system.matches;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light colours" : "Dark colours";
  };
  button.addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", chosen); } catch { /* not kept */ }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}
