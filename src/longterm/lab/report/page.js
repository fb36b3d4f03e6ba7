// The report's figures. The reader's choices are kept in the URL.
const SPREADS = {
  range: { words: "with the smallest and the largest of them", edges: (c, m) => [c.least[m], c.most[m]], told: (c, m, k) => `${written(c.mean[m][k])} (${written(c.least[m][k])} to ${written(c.most[m][k])})` },
  deviation: { words: "with a band of one standard deviation", edges: (c, m) => [-1, 1].map((sign) => c.mean[m].map((v, k) => (v === null ? null : v + sign * c.std[m][k]))), told: (c, m, k) => `${written(c.mean[m][k])} ± ${written(c.std[m][k])}` },
  sequences: { words: "and each of them as a thin line", told: (c, m, k) => `${written(c.mean[m][k])} (${written(c.least[m][k])} to ${written(c.most[m][k])})` },
  none: { words: "without their spread", told: (c, m, k) => written(c.mean[m][k]) },
};

class Chart {
  constructor(figure) {
    this.figure = figure;
    this.id = figure.closest("section").id;
    this.data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    this.boxes = [...figure.querySelectorAll(".plot-box")];
    this.beside = null;
    const drawn = this.data.curves.length;
    this.hidden = new Set((address.get(`${this.id}.hide`) ?? "").split(",").filter((k) => k !== "" && Number(k) < drawn).map(Number));
    figure.querySelectorAll("[data-keep]").forEach((control) => remember(control, `${this.id}.${control.dataset.keep}`, () => { this.boxes.forEach((box) => { box.querySelector(".plot").zoom = null; }); this.draw(); }));
    figure.querySelectorAll(".legend button").forEach((button) => button.addEventListener("click", () => this.toggle(Number(button.dataset.curve))));
    figure.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => this.save(button.dataset.save)));
    this.draw();
    this.boxes.forEach((box) => seen.observe(box.querySelector(".plot")));
  }

  get view() {
    const chosen = (name) => this.figure.querySelector(`[data-keep='${name}']`);
    return { log: this.figure.querySelector("[data-keep='axes']:checked").value === "log", spread: chosen("spread").value, bounds: Boolean(chosen("bounds")?.checked) };
  }

  get visible() { return this.data.curves.map((curve, index) => ({ curve, index })).filter(({ index }) => !this.hidden.has(index)); }

  toggle(index) {
    if (!this.hidden.delete(index)) this.hidden.add(index);
    address.set(`${this.id}.hide`, [...this.hidden].sort((a, b) => a - b).join(","));
    this.draw();
  }

  // All values that the vertical axis must show.
  values(measure, view) {
    const bounds = this.bounds(measure, view).map((bound) => bound.y);
    const spread = SPREADS[view.spread].edges;
    const edges = view.log || !spread ? [] : this.visible.flatMap(({ curve }) => spread(curve, measure));
    const single = view.spread === "sequences" ? this.visible.flatMap(({ curve }) => curve.sequences[measure]) : [];
    const all = [...this.visible.map(({ curve }) => curve.mean[measure]), ...bounds, ...edges, ...single].flat();
    return view.log && this.data.measures[measure].kind === "log" ? all : [0, ...all];
  }

  // On linear axes a bound far above the curves would flatten them.
  bounds(measure, view) {
    if (!view.bounds) return [];
    const highest = Math.max(...this.visible.flatMap(({ curve }) => present(curve.mean[measure]).map(Math.abs)));
    const fits = (values) => values && (view.log || values[values.length - 1] <= 3 * highest);
    return this.visible.flatMap(({ curve, index }) => [[curve.bounds, "6 4", "bound"], [curve.printed, "1.5 3", "bound as printed"]]
      .filter(([known]) => fits(known[measure]))
      .map(([known, dashes, words]) => ({ role: "bound", index, look: curve, x: this.data.rounds, y: known[measure], dashes, label: `${words}: ${curve.name}` })));
  }

  described(measure, view) {
    const last = this.data.rounds.length - 1;
    const ends = this.visible.map(({ curve }) => `${curve.name} ${written(curve.mean[measure][last])} ± ${written(curve.std[measure][last])}`);
    return `${this.data.measures[measure].name} against the round, ${view.log ? "logarithmic" : "linear"} axes. `
      + `After ${this.data.rounds[last].toLocaleString("en-GB")} rounds: ${ends.join("; ")}.`;
  }

  drawing(measure, view) {
    const { rounds } = this.data, scale = this.data.measures[measure], spread = SPREADS[view.spread];
    const other = this.beside?.data.measures[measure];
    const shared = other && other.kind === scale.kind && other.threshold === scale.threshold ? this.beside.values(measure, view) : [];
    const mean = ({ curve, index }) => ({ role: "mean", index, look: curve, x: rounds, y: curve.mean[measure], dashes: curve.dash.join(" ") || undefined, name: curve.name });
    const single = view.spread !== "sequences" ? [] : this.visible.flatMap(({ curve, index }) => curve.sequences[measure].map((y) => ({ role: "sequence", index, look: curve, x: rounds, y })));
    return {
      x: { kind: view.log ? "log" : "linear", label: "round t", values: view.log ? rounds : [0, ...rounds], tight: true },
      y: { kind: view.log ? scale.kind : "linear", threshold: scale.threshold, label: scale.name.toLowerCase(), values: [...this.values(measure, view), ...shared] },
      bands: spread.edges ? this.visible.map(({ curve }) => { const [low, high] = spread.edges(curve, measure); return { look: curve, x: rounds, low, high }; }) : [],
      curves: [...single, ...this.bounds(measure, view), ...this.visible.map(mean)],
      told: (left, top, x, y) => {
        const far = rounds.map((t) => Math.abs(x(t) - left)), k = far.indexOf(Math.min(...far));
        const lines = this.visible.filter(({ curve }) => curve.mean[measure][k] !== null)
          .map(({ curve }) => ({ look: curve, top: y(curve.mean[measure][k]), value: spread.told(curve, measure, k), name: curve.name }));
        return { heading: `round ${rounds[k].toLocaleString("en-GB")}`, left: x(rounds[k]), lines };
      },
    };
  }

  draw() {
    const { view } = this;
    this.figure.querySelectorAll(".legend button").forEach((button) => button.setAttribute("aria-pressed", String(!this.hidden.has(Number(button.dataset.curve)))));
    this.figure.querySelector(".spread-words").textContent = SPREADS[view.spread].words;
    for (const box of this.boxes) {
      const plot = box.querySelector(".plot"), measure = box.querySelector("select").value;
      const { formula, words } = this.data.measures[measure];
      box.querySelector(".formula").textContent = formula;
      box.querySelector(".words").textContent = words;
      plot.setAttribute("aria-label", this.described(measure, view));
      draw(plot, this.drawing(measure, view));
    }
  }

  // The numbers behind all plots, one row for each curve and round.
  csv() {
    const measures = Object.keys(this.data.measures), kinds = { mean: "mean", std: "std", least: "min", most: "max" };
    const harmless = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text); // a spreadsheet evaluates such text as a formula
    const quoted = (text) => `"${harmless(String(text)).replace(/"/g, '""')}"`;
    const head = ["curve", "round", ...measures.flatMap((m) => Object.values(kinds).map((kind) => `${m} ${kind}`))];
    const rows = this.data.curves.flatMap((c) => this.data.rounds.map((t, k) => [quoted(c.name), t, ...measures.flatMap((m) => Object.keys(kinds).map((kind) => c[kind][m][k] ?? ""))]));
    return [head.map(quoted), ...rows].map((row) => row.join(",")).join("\n") + "\n";
  }

  save(format) {
    if (format === "csv") return download(`${this.id}.csv`, this.csv(), "text/csv");
    const legend = this.visible.map(({ curve }) => ({ look: curve, name: curve.name }));
    const heading = this.figure.closest("section").querySelector("h2").textContent;
    return Promise.all(this.boxes.map((box) => {
      const { value, selectedOptions } = box.querySelector("select");
      return savePlot(box.querySelector(".plot"), `${heading}: ${selectedOptions[0].textContent.toLowerCase()}`, legend, `${this.id}-${value.replaceAll("_", "-")}`, format);
    }));
  }
}

const charts = [...document.querySelectorAll("figure.chart")].map((figure) => new Chart(figure));

// Two runs side by side: the others are hidden, equal measures have equal axes, and facts that differ are marked.
const chosen = [...document.querySelectorAll(".beside select")];
function setBeside() {
  const pair = chosen.map((select) => charts.find((chart) => chart.id === select.value));
  const both = pair.every(Boolean) && pair[0] !== pair[1];
  document.querySelector("main").classList.toggle("two", both);
  for (const chart of charts) {
    chart.figure.closest("section").hidden = both && !pair.includes(chart);
    chart.beside = both && pair.includes(chart) ? pair[1 - pair.indexOf(chart)] : null;
  }
  const facts = (chart) => [...chart.figure.closest("section").querySelectorAll(".facts div, .facts dd")].filter((one) => one.tagName === "DIV");
  const told = (row) => row.querySelector("dt").textContent;
  charts.forEach((chart) => facts(chart).forEach((row) => row.classList.remove("unlike")));
  if (both) {
    pair.forEach((chart, k) => facts(chart).forEach((row) => {
      const same = facts(pair[1 - k]).find((other) => told(other) === told(row));
      row.classList.toggle("unlike", same?.textContent !== row.textContent);
    }));
  }
  charts.forEach((chart) => chart.draw());
}
chosen.forEach((select) => remember(select, select.dataset.keep, setBeside));
if (chosen.length) setBeside();
