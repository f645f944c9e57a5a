(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  const form = document.getElementById("controls");
  const rows = document.getElementById("explorer-rows");
  const sliders = ["recall", "capacity", "tolerance", "bias"];
  let view = null;

  const percent = (value) => (100 * value).toFixed(1) + "%";
  const points = (value) => (100 * value).toFixed(1);
  const range = (ends) => ends[0] === null ? "–"
    : percent(ends[0]) + " (" + points(ends[1]) + " to " + points(ends[2]) + ")";

  function state() {
    const at = (id) => Number(document.getElementById(id).value);
    const wish = form.elements.wish.value;
    const key = [wish, at(wish), at("tolerance")].join("|");
    return { wish: wish, level: at(wish), tolerance: at("tolerance"), bias: at("bias"),
      cell: data.cells[key] };
  }

  function label() {
    for (const id of sliders) {
      const slider = document.getElementById(id);
      const text = data.controls[id][Number(slider.value)];
      put(id + "-value", text);
      slider.setAttribute("aria-valuetext", text);
    }
  }

  function cellOf(kind, text, name) {
    const element = document.createElement(kind);
    if (name) { element.dataset.label = name; }
    element.textContent = text;
    if (kind === "th") { element.scope = "row"; }
    return element;
  }

  function showTable(now) {
    rows.replaceChildren(...now.cell.groups.map((group, i) => {
      const row = document.createElement("tr");
      row.append(cellOf("th", data.groups[i]), cellOf("td", group.cut, "Select if"),
        cellOf("td", range(group.tpr), "True positive rate"),
        cellOf("td", range(group.selected), "Share selected"));
      return row;
    }));
  }

  function put(id, text) { document.getElementById(id).textContent = text; }

  function inWords(now) {
    const total = percent(now.cell.total) + " of everybody";
    if (now.wish === "recall") {
      return "To find at least " + data.controls.recall[now.level] +
        " of the positives of every group, " + total + " are selected.";
    }
    const found = now.cell.groups.map((group) => group.tpr[0]);
    const ends = [Math.min(...found), Math.max(...found)].map(percent);
    return "With " + total + " selected, " + (ends[0] === ends[1] ? ends[0] : ends.join(" to ")) +
      " of the positives of each group are found.";
  }

  function showWords(now) {
    const gap = now.cell.gap[now.bias];
    const fpr = now.cell.fpr_gap;
    const between = (ends) => points(Math.max(0, ends[1])) + " to " + points(ends[2]) + " points";
    put("explorer-says", inWords(now));
    put("explorer-gap", between(gap) + (now.bias > 0 ? ", with the bias granted" : ""));
    put("explorer-fpr", fpr[0] === null ? "unknown" :
      now.bias > 0 ? "not bounded if labels are biased" : between(fpr));
    put("explorer-open", now.cell.open[now.bias] || "nothing: both gaps are above zero");
  }

  function figureRows(now) {
    const listed = [];
    now.cell.groups.forEach((group, i) => {
      listed.push({ measure: "True positive rate", group: data.groups[i],
        value: group.tpr[0], low: group.tpr[1], high: group.tpr[2],
        wide_low: group.shifted[now.bias][0], wide_high: group.shifted[now.bias][1] });
      listed.push({ measure: "Share selected", group: data.groups[i],
        value: group.selected[0], low: group.selected[1], high: group.selected[2],
        wide_low: group.selected[1], wide_high: group.selected[2] });
    });
    return listed;
  }

  function show() {
    const now = state();
    for (const wish of ["recall", "capacity"]) {
      document.getElementById(wish).closest(".control").hidden = wish !== now.wish;
    }
    label();
    showTable(now);
    showWords(now);
    if (view) { view.data("rows", figureRows(now)).run(); }
  }

  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  const spec = data.spec;
  // Names of groups and margins take some room beside the figure.
  const room = document.getElementById("explorer-figure").clientWidth - 100;
  spec.spec.width = Math.max(180, Math.min(spec.spec.width, room));
  spec.datasets = { rows: figureRows(state()) };
  vegaEmbed("#explorer-figure", spec, { actions: false, renderer: "svg", tooltip: false })
    .then((embedded) => {
      view = embedded.view;
      const svg = document.querySelector("#explorer-figure svg");
      svg.setAttribute("aria-hidden", "true");
      show();
      document.documentElement.dataset.explorer = "ready";
    });
  show();
})();
