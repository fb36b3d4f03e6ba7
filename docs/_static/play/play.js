"use strict";
/* The page: settings in, drawings out. All numbers come from rounds.js. */

const COLOURS = { "A-OGD": "var(--a)", "OGD (Mahdavi et al. 2012)": "var(--b)", "Hedged cuts": "var(--c)" };
const SVG = "http://www.w3.org/2000/svg";
const settings = { beta: 0.67, rounds: 1000, stream: "random", a: [0.8, 0.3], b: [0.3, -0.7] };
let traces = {}, timer = null;

const element = (id) => document.getElementById(id);

function make(name, attributes, parent, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

/** Play all learners again with the present settings. */
function replay() {
  const targets = makeTargets(settings.stream, settings.rounds, settings.a, settings.b);
  traces = Object.fromEntries(
    Object.entries(LEARNERS).map(([name, build]) => [name, playRounds(build(settings), targets)]),
  );
  const slider = element("round");
  const atEnd = Number(slider.value) >= Number(slider.max) || Number(slider.value) > settings.rounds;
  slider.max = settings.rounds;
  if (atEnd) slider.value = settings.rounds;
  element("beta-shown").textContent = settings.beta.toFixed(2);
  element("rounds-shown").textContent = settings.rounds.toLocaleString("en");
  draw();
}

function draw() {
  const t = Number(element("round").value), withBounds = element("bounds").checked;
  element("round-shown").textContent = t.toLocaleString("en");
  element("bounds-key").hidden = !withBounds;
  drawDisc(t);
  drawChart("regret", t, withBounds);
  drawChart("violation", t, withBounds);
  drawChart("multiplier", t, false);
}

function drawDisc(t) {
  const svg = element("disc");
  svg.replaceChildren();
  const y = Math.sqrt(1 - PROBLEM.limit ** 2);
  make("circle", { r: 1, fill: "var(--shade)", stroke: "var(--line)", "stroke-width": 0.01 }, svg);
  make("path", { d: `M ${PROBLEM.limit} ${-y} A 1 1 0 1 0 ${PROBLEM.limit} ${y} Z`, fill: "var(--free)" }, svg);
  make("line", { x1: PROBLEM.limit, x2: PROBLEM.limit, y1: -y, y2: y, stroke: "var(--soft)", "stroke-width": 0.012 }, svg);
  make("text", { x: PROBLEM.limit + 0.03, y: -y - 0.04, fill: "var(--soft)", "font-size": 0.08 }, svg, "x₁ = ¼");
  for (const [name, trace] of Object.entries(traces)) {
    const first = Math.max(0, t - 200), points = trace.x.slice(first, t);
    const line = points.map(([x, y]) => `${x.toFixed(4)},${(-y).toFixed(4)}`).join(" ");
    make("polyline", { points: line, fill: "none", stroke: COLOURS[name], "stroke-width": 0.008, opacity: 0.5 }, svg);
    const [x, y] = trace.x[t - 1];
    make("circle", { cx: x, cy: -y, r: 0.035, fill: COLOURS[name], stroke: "var(--free)", "stroke-width": 0.01 }, svg);
  }
  for (const key of ["a", "b"]) {
    if (key === "b" && settings.stream === "circle") continue;
    const [x, y] = settings[key];
    make("circle", { cx: x, cy: -y, r: 0.065, class: "target", "data-target": key, tabindex: 0, role: "button",
      "aria-label": `target ${key.toUpperCase()}` }, svg);
    make("text", { x, y: -y, class: "target-label" }, svg, key.toUpperCase());
  }
}

/** About `count` round numbers between low and high. */
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k += 1) found.push(k * step);
  return found;
}

function logTicks(low, high) {
  const found = [];
  for (let k = Math.ceil(Math.log10(low)); k <= Math.floor(Math.log10(high)); k += 1) found.push(10 ** k);
  return found.length > 1 ? found : [low, high];
}

const format = (value) => (Math.abs(value) >= 1000 ? `${+(value / 1000).toPrecision(3)}k` : `${+value.toPrecision(3)}`);

function drawChart(measure, t, withBounds) {
  const svg = element(measure), width = svg.clientWidth || 600, height = measure === "multiplier" ? 150 : 220;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  svg.replaceChildren();
  const log = element("log").checked, T = settings.rounds, left = 62, bottom = height - 36, top = 6, right = width - 8;
  const rounds = [...new Set(Array.from({ length: 240 }, (_, i) => Math.max(1, Math.round(T ** (i / 239))))),
    ...Array.from({ length: 160 }, (_, i) => Math.max(1, Math.round(T * i / 159)))].sort((p, q) => p - q);
  const curves = Object.entries(traces)
    .filter(([, trace]) => trace[measure][0] !== null)
    .map(([name, trace]) => ({ colour: COLOURS[name], dash: "", values: rounds.map((r) => trace[measure][r - 1]) }));
  if (withBounds) {
    for (const [printed, dash] of [[false, "6 4"], [true, "1.5 3"]]) {
      const values = rounds.map((r) => theorem1(r, settings.beta, printed)[measure]);
      curves.push({ colour: COLOURS["A-OGD"], dash, values });
    }
  }
  const all = curves.flatMap((curve) => curve.values);
  const positive = all.filter((value) => value > 0);
  const high = Math.max(...all, 1e-3) * (log ? 1 : 1.05), low = log ? Math.max(Math.min(...positive, high), high * 1e-5) : Math.min(0, ...all);
  const place = log
    ? (value) => bottom - (bottom - top) * Math.log(Math.max(value, low) / low) / Math.log(high / low || 2)
    : (value) => bottom - (bottom - top) * (value - low) / (high - low);
  const across = log
    ? (r) => left + (right - left) * Math.log(r) / Math.log(Math.max(T, 2))
    : (r) => left + (right - left) * (r - 1) / Math.max(T - 1, 1);
  for (const value of log ? logTicks(low, high) : ticks(low, high, 4)) {
    make("line", { x1: left, x2: right, y1: place(value), y2: place(value), class: "axis" }, svg);
    make("text", { x: left - 6, y: place(value) + 4, class: "tick", "text-anchor": "end" }, svg, format(value));
  }
  for (const r of log ? logTicks(1, T) : ticks(0, T, 5).filter((r) => r >= 1)) {
    make("text", { x: across(r), y: bottom + 14, class: "tick", "text-anchor": "middle" }, svg, format(r));
  }
  make("text", { x: (left + right) / 2, y: height - 5, class: "tick", "text-anchor": "middle" }, svg, "round t");
  const middle = (top + bottom) / 2;
  make("text", { x: 12, y: middle, class: "tick", "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, svg, measure);
  for (const { colour, dash, values } of curves) {
    const points = values.map((value, i) => `${across(rounds[i]).toFixed(1)},${place(value).toFixed(1)}`).join(" ");
    make("polyline", { points, fill: "none", stroke: colour, "stroke-width": dash ? 1.3 : 2, "stroke-dasharray": dash }, svg);
  }
  make("line", { x1: across(t), x2: across(t), y1: top, y2: bottom, stroke: "var(--soft)", "stroke-dasharray": "2 3" }, svg);
}

/** Let the pointer, or the arrow keys, move a target. */
function makeDraggable() {
  const svg = element("disc");
  let dragged = null;
  const position = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return projectDisc([point.x, -point.y]);
  };
  svg.addEventListener("pointerdown", (event) => {
    dragged = event.target.dataset.target ?? null;
    if (dragged) svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    settings[dragged] = position(event);
    replay();
  });
  svg.addEventListener("pointerup", () => { dragged = null; });
  svg.addEventListener("keydown", (event) => {
    const key = event.target.dataset.target, moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!key || !moves[event.key]) return;
    event.preventDefault();
    settings[key] = projectDisc(add(settings[key], moves[event.key], 0.05));
    replay();
    svg.querySelector(`[data-target="${key}"]`)?.focus();
  });
}

function play() {
  if (timer) {
    clearInterval(timer);
    timer = null;
  } else {
    const slider = element("round");
    if (Number(slider.value) >= settings.rounds) slider.value = 1;
    timer = setInterval(() => {
      slider.value = Number(slider.value) + Math.max(1, Math.round(settings.rounds / 300));
      draw();
      if (Number(slider.value) >= settings.rounds) play();
    }, 33);
  }
  element("play").textContent = timer ? "Pause" : "Play";
}

element("beta").addEventListener("input", (event) => { settings.beta = Number(event.target.value); replay(); });
element("rounds").addEventListener("input", (event) => {
  settings.rounds = Math.max(shortestHorizon(), Math.round(10 ** Number(event.target.value)));
  replay();
});
element("stream").addEventListener("change", (event) => { settings.stream = event.target.value; replay(); });
for (const id of ["round", "bounds", "log"]) element(id).addEventListener("input", draw);
element("play").addEventListener("click", play);
addEventListener("resize", draw);
for (const [name, colour] of Object.entries(COLOURS)) {
  const item = document.createElement("span");
  item.style.setProperty("--colour", colour);
  item.textContent = name;
  element("legend").appendChild(item);
}
/* In a clone of the repository the pages are Markdown. */
if (location.pathname.includes("/docs/_static/")) {
  for (const link of document.querySelectorAll("a.page")) link.href = link.getAttribute("href").replace(/html$/, "md");
}
makeDraggable();
replay();
