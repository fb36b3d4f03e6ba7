function traces(data, measure, view, narrow) {
  const named = narrow ? "" : "  %{fullData.name}";
  const scale = data.measures[measure];
  const fold = view.log && scale.kind === "symlog" ? folded(scale.threshold) : (value) => value;
  const positive = view.log && scale.kind === "log";
  const lowest = positive ? Math.min(...data.curves.flatMap((c) => present(c.mean[measure]))) / 4 : 0;
  // On linear axes a bound far above the curves would be an upright line, or press them flat.
  const highest = Math.max(...data.curves.flatMap((c, k) => (view.hidden.has(k) ? [] : present(c.mean[measure]).map(Math.abs))));
  const fits = (values) => view.bounds && values && (view.log || values[values.length - 1] <= 3 * highest);
  const shown = (value) => (value === null ? null : fold(positive ? Math.max(value, lowest) : value));
  return data.curves.flatMap((curve, index) => {
    const colour = dark.matches ? curve.on_dark : curve.colour;
    const common = { x: data.rounds, legendgroup: String(index), visible: !view.hidden.has(index), meta: { curve: index } };
    const mean = curve.mean[measure];
    const spread = curve.std[measure];
    const band = (sign) => mean.map((m, k) => (m === null ? null : shown(m + sign * spread[k])));
    const made = [];
    if (view.bands) {
      const edge = { ...common, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
      made.push({ ...edge, y: band(-1) });
      made.push({ ...edge, y: band(1), fill: "tonexty", fillcolor: `${colour}33` });
    }
    const bound = (values, dash, words) => ({
      ...common, name: plain(`${curve.name}, ${words}`), mode: "lines", y: values.map(shown),
      line: { color: colour, width: 1.4, dash }, text: values.map(written), hovertemplate: `%{text}${named}<extra></extra>`,
      meta: { curve: index, bound: words },
    });
    if (fits(curve.bounds[measure])) made.push(bound(curve.bounds[measure], "dash", "bound"));
    if (fits(curve.printed[measure])) made.push(bound(curve.printed[measure], "dot", "bound as printed"));
    made.push({
      ...common, name: plain(curve.name), mode: "lines+markers", y: mean.map(shown),
      line: { color: colour, width: 2.2, dash: curve.dash },
      marker: { symbol: curve.symbol, size: curve.symbol.startsWith("triangle") ? 9 : 7, color: colour, maxdisplayed: 9 },
      text: mean.map((m, k) => `${written(m)} ± ${written(spread[k])}`), hovertemplate: `<b>%{text}</b>${named}<extra></extra>`,
      meta: { curve: index, mean: true },
    });
    return made.map((trace) => ({ showlegend: false, hoverlabel: { namelength: -1 }, ...trace }));
  });
}

function layout(data, measure, view, drawn, narrow) {
  const scale = data.measures[measure];
  const text = style("--text"), quiet = style("--quiet"), line = style("--line"), panel = style("--panel");
  const axis = { gridcolor: line, linecolor: quiet, tickcolor: quiet, zerolinecolor: quiet, ticks: "outside", ticklen: 4, automargin: true };
  const x = { ...axis, title: { text: "round t", standoff: 8 }, type: view.log ? "log" : "linear", showline: true, zeroline: false, unifiedhovertitle: { text: "round %{x:,d}" } };
  const y = { ...axis, title: { text: scale.name.toLowerCase(), standoff: 6 }, type: "linear", separatethousands: true, exponentformat: "power", zeroline: true };
  if (view.log) x.dtick = 1;
  else x.nticks = narrow ? 5 : 8;
  if (view.log && scale.kind === "log") {
    y.type = "log";
    y.dtick = 1;
    y.zeroline = false;
  } else if (view.log) {
    const values = data.curves.flatMap((c) => [c.mean[measure], view.bounds && c.bounds[measure], view.bounds && c.printed[measure]])
      .filter(Boolean).flatMap(present);
    Object.assign(y, foldedTicks(scale.threshold, values));
  } else {
    const seen = drawn.filter((t) => t.visible).flatMap((t) => present(t.y));
    const low = Math.min(0, ...seen), high = Math.max(0, ...seen);
    const margin = 0.05 * (high - low || 1);
    y.range = [low === 0 ? -margin / 2 : low - margin, high === 0 ? margin / 2 : high + margin];
  }
  return {
    xaxis: x, yaxis: y, margin: { l: 12, r: 14, t: 14, b: 12 }, showlegend: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: style("--sans"), size: 12, color: text },
    hovermode: "x unified", hoverlabel: { bgcolor: panel, bordercolor: line, font: { color: text, size: narrow ? 11 : 12 } },
    dragmode: touch.matches ? false : "zoom",
  };
}

// What a reader who cannot see the plot is told.
function described(data, measure, view) {
  const last = data.rounds.length - 1;
  const ends = data.curves.filter((_, k) => !view.hidden.has(k))
    .map((c) => `${c.name} ${written(c.mean[measure][last])} ± ${written(c.std[measure][last])}`);
  return `${data.measures[measure].name} against the round, ${view.log ? "logarithmic" : "linear"} axes. `
    + `After ${data.rounds[last].toLocaleString("en-GB")} rounds: ${ends.join("; ")}.`;
}

// The numbers behind all plots of a figure, one row for each curve and round.
function csv(data) {
  const measures = Object.keys(data.measures);
  const quoted = (text) => `"${String(text).replace(/"/g, '""')}"`;
  const head = ["curve", "round", ...measures.flatMap((m) => [`${m} mean`, `${m} std`])];
  const rows = data.curves.flatMap((c) => data.rounds.map((t, k) => [quoted(c.name), t, ...measures.flatMap((m) => [c.mean[m][k] ?? "", c.std[m][k] ?? ""])]));
  return [head.map(quoted), ...rows].map((row) => row.join(",")).join("\n") + "\n";
}

function save(figure, data, format) {
  const name = figure.closest("section").id;
  if (format === "csv") return download(`${name}.csv`, csv(data), "text/csv");
  figure.querySelectorAll(".plot").forEach((plot, k) => Plotly.downloadImage(plot, { format, filename: `${name}-${k + 1}`, scale: format === "png" ? 2 : 1, width: plot.clientWidth, height: plot.clientHeight }));
}

function start(figure) {
  const data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const view = { log: true, bands: true, bounds: false, hidden: new Set() };
  const draw = () => figure.querySelectorAll(".plot-box").forEach((box) => {
    const plot = box.querySelector(".plot");
    const measure = box.querySelector("select").value;
    const { formula, words } = data.measures[measure];
    box.querySelector(".formula").textContent = formula;
    box.querySelector(".words").textContent = words;
    plot.setAttribute("aria-label", described(data, measure, view));
    const narrow = plot.clientWidth < 420;
    const drawn = traces(data, measure, view, narrow);
    const config = { responsive: true, displaylogo: false, displayModeBar: false };
    Plotly.react(plot, drawn, layout(data, measure, view, drawn, narrow), config);
  });
  figure.querySelectorAll("input[type='radio']").forEach((input) => input.addEventListener("change", () => {
    view.log = input.value === "log";
    draw();
  }));
  figure.querySelectorAll("input[type='checkbox']").forEach((input) => input.addEventListener("change", () => {
    view[input.value] = input.checked;
    draw();
  }));
  figure.querySelectorAll("select").forEach((select) => select.addEventListener("change", draw));
  figure.querySelectorAll(".legend button").forEach((button) => button.addEventListener("click", () => {
    const index = Number(button.dataset.curve);
    if (!view.hidden.delete(index)) view.hidden.add(index);
    button.setAttribute("aria-pressed", String(!view.hidden.has(index)));
    draw();
  }));
  figure.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => save(figure, data, button.dataset.save)));
  dark.addEventListener("change", draw);
  draw();
}

document.querySelectorAll("figure.chart").forEach(start);
