// The league is ranked again when the reader moves the weight. Every figure follows the chosen violation and the mark.
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
    const write = (cell, text, value) => { cell.textContent = text; cell.dataset.value = value; }; // headings sort by the value
    const ahead = 1 + scores.filter((other) => other < scores[k]).length;
    write(place, ahead, ahead);
    write(score, scores[k].toFixed(3), scores[k]);
    write(lost, shares.learners[k].shares[measure].toFixed(3), shares.learners[k].shares[measure]);
    const exponent = shares.learners[k].slopes[measure];
    slope.textContent = exponent === "–" ? exponent : "T";
    if (exponent === "–") delete slope.dataset.value;
    else slope.dataset.value = Number(exponent.replace("−", "-"));
    if (exponent !== "–") slope.append(Object.assign(document.createElement("sup"), { textContent: exponent.replace("-", "−") }));
    row.classList.toggle("marked", shares.learners[k].name === mark.value);
  });
  const order = rows.map((_, k) => k).sort((a, b) => scores[a] - scores[b] || a - b);
  league.querySelector("tbody").append(...order.map((k) => rows[k]));
}

// The points that no other point beats in both measures; of equal points, the first.
function frontier(points, measure) {
  const best = [];
  for (const point of [...points].sort((a, b) => a.lost[measure] - b.lost[measure] || a.regret - b.regret)) {
    if (!best.length || point.regret < best[best.length - 1].regret) best.push(point);
  }
  return best;
}

function sentence(best, points) {
  const [first, last] = [best[0], best[best.length - 1]];
  const one = `${first.name} has the smallest violation and the smallest regret.`;
  const two = `${first.name} has the smallest violation, ${last.name} the smallest regret`;
  const others = best.slice(1, -1).map((p) => p.name), left_out = others.length > 8 ? others.length - 6 : 0;
  const between = others.slice(0, others.length - left_out).join("; ") + (left_out ? `; and ${left_out} more` : "");
  const rest = points.length - best.length;
  return (best.length === 1 ? one : between ? `${two}; between them: ${between}.` : `${two}.`)
    + (rest ? `\u200e ${rest === 1 ? "One other is" : `${rest} others are`} worse in both.` : "");
}

function drawFrontier(figure) {
  const data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const plot = figure.querySelector(".plot"), measure = violation.value;
  const best = frontier(data.points, measure), words = sentence(best, data.points);
  const axis = (label, threshold, values) => ({ label, kind: "symlog", threshold, values: [0, ...values] });
  figure.querySelector(".best").textContent = words;
  plot.setAttribute("aria-label", `Regret against violation of ${data.points.length} learners. ${words}`);
  draw(plot, {
    x: axis("violation (slack counts as 0)", data.thresholds[measure], data.points.map((p) => p.lost[measure])),
    y: axis("regret", data.thresholds.regret, data.points.map((p) => p.regret)),
    curves: [{ role: "frontier", look: { colour: "#59616b", on_dark: "#a3abb5" }, x: best.map((p) => p.lost[measure]), y: best.map((p) => p.regret), stepped: true }],
    points: data.points.map((p) => ({ look: p, x: p.lost[measure], y: p.regret, hollow: !p.anytime, marked: p.name === mark.value, name: p.name, label: best.includes(p) || p.name === mark.value ? p.name : "" })),
    told: (left, top, x, y) => {
      const away = data.points.map((p) => Math.hypot(x(p.lost[measure]) - left, y(p.regret) - top)), k = away.indexOf(Math.min(...away));
      if (away[k] > 28) return null;
      const p = data.points[k], row = (value, name, order) => ({ value, name, top: order });
      return { heading: p.name, left: x(p.lost[measure]), lines: [row(written(p.regret), "regret", 0), row(written(p.violation[measure]), "violation", 1), row("", `${p.oracle}, ${p.anytime ? "anytime" : "needs the horizon"}`, 2)] };
    },
  });
}

function saveFrontier(figure, format) {
  const section = figure.closest("section"), title = `${section.querySelector("h2").textContent}: ${violation.selectedOptions[0].textContent.split(":")[0].toLowerCase()} violation and regret`;
  const looks = JSON.parse(figure.querySelector("script[type='application/json']").textContent).points;
  const legend = [...new Map(looks.map((p) => [p.oracle, { look: p, name: p.oracle }])).values(), { look: { ...looks[0], shape: "" }, name: "hollow: needs the horizon" }];
  return savePlot(figure.querySelector(".plot"), title, legend, `${section.id}-frontier`, format);
}

const figures = [...document.querySelectorAll("figure.frontier")];
const drawAll = () => figures.forEach(drawFrontier);
remember(weight, "weight", rank);
for (const [choice, name] of [[violation, "violation"], [mark, "mark"]]) remember(choice, name, () => { rank(); drawAll(); });
figures.forEach((figure) => {
  seen.observe(figure.querySelector(".plot"));
  figure.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => saveFrontier(figure, button.dataset.save)));
});
rank();
drawAll();
