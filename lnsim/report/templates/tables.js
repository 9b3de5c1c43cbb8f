// Tables that sort and filter. Without script a table is complete, in its own order, and has none of these controls.
(function () {
  const LONG = 14, VERY_LONG = 100; // a very long table is filtered by words too
  const name = (text) => text.replace(/^[a-z]/, (letter) => letter.toUpperCase()); // a label that begins with γ keeps it
  const make = (tag, set) => Object.assign(document.createElement(tag), set);

  const compare = (column) => (x, y) => {
    const [a, b] = [x.cells[column], y.cells[column]], [v, w] = [a.dataset.v, b.dataset.v];
    if (v !== undefined && w !== undefined) return v - w;
    if (v !== undefined || w !== undefined) return v !== undefined ? -1 : 1; // numbers before what is none
    return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  };

  // One press sorts upwards, the next downwards, the third gives the table its own order back.
  const sortable = (table) => {
    const body = table.tBodies[0], own = [...body.rows], head = [...table.tHead.rows].pop();
    [...head.cells].forEach((th, column) => {
      if (th.tagName !== "TH" || !th.textContent.trim()) return;
      const button = make("button", { type: "button", textContent: th.textContent });
      th.replaceChildren(button);
      button.onclick = () => {
        const next = { ascending: "descending", descending: "" }[th.getAttribute("aria-sort")] ?? "ascending";
        [...head.cells].forEach((cell) => cell.removeAttribute("aria-sort"));
        const rows = [...own];
        if (next) {
          th.setAttribute("aria-sort", next);
          rows.sort(compare(column));
          if (next === "descending") rows.reverse();
        }
        table.classList.toggle("sorted", !!next);
        body.append(...rows);
      };
    });
  };

  // Each control keeps its own condition; a row is shown where all of them hold.
  const kindButtons = (rows, kinds, tools, choose) => {
    const count = (kind) => rows.filter((row) => !kind || row.dataset.kind === kind).length;
    ["", ...kinds].forEach((kind) => {
      const button = make("button", { type: "button", textContent: `${kind ? name(kind) : "All"} ${count(kind)}` });
      button.setAttribute("aria-pressed", String(!kind));
      button.onclick = () => {
        [...tools.querySelectorAll("button")].forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
        choose("kind", (row) => !kind || row.dataset.kind === kind);
      };
      tools.append(button);
    });
  };

  const wordField = (tools, choose) => {
    const label = make("label", { textContent: "Rows with " }), field = make("input", { type: "search" });
    field.autocomplete = "off";
    field.oninput = () => {
      const words = field.value.trim().toLowerCase().replace(/-(?=\d)/g, "−").split(/\s+/);
      choose("words", (row) => words.every((word) => row.textContent.toLowerCase().replace(/-(?=\d)/g, "−").includes(word)));
    };
    label.append(field);
    tools.append(label);
  };

  const filterable = (table) => {
    const rows = [...table.tBodies[0].rows], kinds = [...new Set(rows.map((row) => row.dataset.kind))].filter(Boolean);
    if (kinds.length < 2 && rows.length <= LONG) return;
    const box = table.closest(".scroll"), tools = make("div", { className: "tools" }), wanted = {};
    const said = make("span", { className: "state num" });
    tools.setAttribute("role", "group");
    tools.setAttribute("aria-label", "Filter the rows of " + (table.caption.querySelector("b") ?? table.caption).textContent);
    said.setAttribute("role", "status");
    const choose = (which, holds) => {
      wanted[which] = holds;
      rows.forEach((row) => { row.hidden = !Object.values(wanted).every((one) => one(row)); });
      const n = rows.filter((row) => !row.hidden).length;
      said.textContent = n === rows.length ? "" : `${n} of ${rows.length} rows`;
    };
    if (kinds.length > 1) kindButtons(rows, kinds, tools, choose);
    if (kinds.length < 2 || rows.length > VERY_LONG) wordField(tools, choose);
    tools.append(said);
    box.before(tools);
  };

  document.querySelectorAll("table.sorts").forEach((table) => { sortable(table); filterable(table); });
})();
