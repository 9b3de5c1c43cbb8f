// The button that switches the theme; without script it stays hidden and the system's theme holds.
(function () {
  const button = document.getElementById("theme"), root = document.documentElement;
  if (!button) return;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const name = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to the " + (dark() ? "light" : "dark") + " theme");
  };
  button.hidden = false;
  button.onclick = () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("lnsim-theme", root.dataset.theme); } catch (e) { /* no storage: this page only */ }
    name();
  };
  name();
})();
