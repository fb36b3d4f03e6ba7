// The league ranks again as the reader moves the weight; every figure follows the chosen violation and the mark.
const league = document.querySelector(".league");
const shares = JSON.parse(league.querySelector("script[type='application/json']").textContent);
const rows = [...league.querySelectorAll("tbody tr")];
const weight = document.querySelector(".weight");
const violation = document.querySelector(".violation");
const mark = document.querySelector(".mark");

function rank() {
  const share = Number(weight.value), measure = violation.value;
  const scores = shares.learners.map((one) => (1 - share) * one.shares.regret + share * one.shares[measure]);
  document.querySelector(".choices output").textContent = share.toFixed(2).replace(/0$/, "");
  rows.forEach((row, k) => {
    const [place, score, , lost, , slope] = row.querySelectorAll("td");
    place.textContent = 1 + scores.filter((other) => other < scores[k]).length;
    score.textContent = scores[k].toFixed(3);
    lost.textContent = shares.learners[k].shares[measure].toFixed(3);
    const exponent = shares.learners[k].slopes[measure];
    slope.textContent = exponent === "–" ? exponent : "T";
    if (exponent !== "–") slope.append(Object.assign(document.createElement("sup"), { textContent: exponent.replace("-", "−") }));
    row.classList.toggle("marked", shares.learners[k].name === mark.value);
  });
  const order = rows.map((_, k) => k).sort((a, b) => scores[a] - scores[b] || a - b);
  league.querySelector("tbody").append(...order.map((k) => rows[k]));
}

// Those that no other beats in both; of two that are equal, the first.
function frontier(points, measure) {
  const best = [];
  for (const point of [...points].sort((a, b) => a.lost[measure] - b.lost[measure] || a.regret - b.regret)) {
    if (!best.length || point.regret < best[best.length - 1].regret) best.push(point);
  }
  return best;
}

function drawFrontier(figure) {
  const data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const plot = figure.querySelector(".plot"), measure = violation.value;
  const foldX = folded(data.thresholds[measure]), foldY = folded(data.thresholds.regret);
  const best = frontier(data.points, measure);
  const colour = (point) => (dark.matches ? point.on_dark : point.colour);
  const marked = (point) => point.name === mark.value;
  const line = {
    x: best.map((p) => foldX(p.lost[measure])), y: best.map((p) => foldY(p.regret)),
    mode: "lines", line: { shape: "hv", color: style("--quiet"), width: 1.2 }, hoverinfo: "skip", showlegend: false,
  };
  const points = {
    x: data.points.map((p) => foldX(p.lost[measure])), y: data.points.map((p) => foldY(p.regret)),
    mode: "markers", showlegend: false, customdata: data.points.map((p) => p.name),
    text: data.points.map((p) => `<b>${plain(p.name)}</b><br>regret ${written(p.regret)}, violation ${written(p.violation[measure])}`
      + `<br>${p.oracle}, ${p.anytime ? "anytime" : "needs the horizon"}`),
    hovertemplate: "%{text}<extra></extra>",
    marker: {
      symbol: data.points.map((p) => (p.anytime ? p.symbol : `${p.symbol}-open`)), color: data.points.map(colour),
      size: data.points.map((p) => (marked(p) ? 17 : 10)), line: { width: 1.6, color: data.points.map(colour) },
    },
  };
  const text = style("--text"), quiet = style("--quiet"), rule = style("--line"), panel = style("--panel");
  const axis = { gridcolor: rule, linecolor: quiet, tickcolor: quiet, zerolinecolor: quiet, ticks: "outside", ticklen: 4, automargin: true };
  const layout = {
    xaxis: { ...axis, title: { text: "violation (slack counts as 0)", standoff: 8 }, ...foldedTicks(data.thresholds[measure], data.points.map((p) => p.lost[measure])) },
    yaxis: { ...axis, title: { text: "regret", standoff: 6 }, ...foldedTicks(data.thresholds.regret, data.points.map((p) => p.regret)) },
    margin: { l: 12, r: 14, t: 14, b: 12 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: style("--sans"), size: 12, color: text }, hovermode: "closest",
    hoverlabel: { bgcolor: panel, bordercolor: rule, font: { color: text, size: 12 }, align: "left" }, dragmode: touch.matches ? false : "zoom",
  };
  const names = best.map((p) => p.name).join("; ");
  figure.querySelector(".best").textContent = `On the frontier, the least violation first: ${names}.`;
  plot.setAttribute("aria-label", `Regret against violation of ${data.points.length} learners. On the frontier: ${names}.`);
  Plotly.react(plot, [line, points], layout, { responsive: true, displaylogo: false, displayModeBar: false });
}

const figures = [...document.querySelectorAll("figure.frontier")];
const drawAll = () => figures.forEach(drawFrontier);
weight.addEventListener("input", rank);
for (const choice of [violation, mark]) choice.addEventListener("change", () => { rank(); drawAll(); });
dark.addEventListener("change", drawAll);
rank();
drawAll();
