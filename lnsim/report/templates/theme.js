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
// The button that unfolds all code, and the mark on the section in sight; without script the contents are plain links.
(function () {
  const button = document.getElementById("code"), code = [...document.querySelectorAll("details.code")];
  if (button && code.length) {
    button.hidden = false;
    button.onclick = () => {
      const open = button.textContent.startsWith("Show");
      code.forEach((one) => { one.open = open; });
      button.textContent = open ? "Hide all code" : "Show all code";
    };
  }
  const links = new Map([...document.querySelectorAll(".contents a")].map((one) => [one.hash.slice(1), one]));
  const seen = new IntersectionObserver((entries) => entries.filter((one) => one.isIntersecting).forEach((one) => {
    links.forEach((link, id) => link.toggleAttribute("aria-current", id === one.target.getAttribute("aria-labelledby")));
  }), { rootMargin: "-10% 0px -70% 0px" });
  document.querySelectorAll(".sheet section").forEach((one) => seen.observe(one));
})();
// A link into something folded opens it.
addEventListener("hashchange", unfold);
unfold();
function unfold() {
  const at = document.getElementById(decodeURIComponent(location.hash.slice(1))), box = at && at.closest("details:not([open])");
  if (box) { box.open = true; at.scrollIntoView(); }
}
