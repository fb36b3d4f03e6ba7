"use strict";
// Draws what /history returns: one section for each object, one chart for each question. Texts are set, never parsed.

const HEIGHT = 130, PAD = { left: 46, right: 8, top: 8, bottom: 20 }, COLOURS = 6;
let seconds = 3600, latest = null, timer = null;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, "e");
  const format = { maximumSignificantDigits: size >= 100 && size < 1e4 ? 4 : 3 };
  return new Intl.NumberFormat("en", size >= 1e4 ? { ...format, notation: "compact" } : format).format(value);
}

const percent = value => value === null || value === undefined ? "–" : (100 * value).toFixed(1) + " %";
const clock = time => {
  const day = seconds > 86400 ? { weekday: "short" } : {};
  return new Date(1000 * time).toLocaleString("en-GB", { ...day, hour: "2-digit", minute: "2-digit" });
};
const colour = index => `var(--c${index % COLOURS})`;

// --- charts ------------------------------------------------------------------------------------------------------

function niceTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map(step => step * power).find(step => step >= value * 0.999);
}

function chart({ title, about, times, series, kind = "line", format = number, tickFormat = format, range = null, until }) {
  const legend = make("div"), caption = make("figcaption", {}, make("b", {}, title), legend);
  const values = series.map((one, index) => {
    const text = make("span");
    const mark = make("i", one.dashed ? { class: "dashed" } : {});
    mark.style.borderTopColor = one.dashed ? "var(--soft)" : colour(one.colour ?? index);
    const last = make("span", {}, `${one.name} `, text);
    last.prepend(mark);
    legend.append(last);
    return text;
  });
  const svg = draw("svg", { role: "img", "aria-label": title });
  if (about) caption.append(make("p", {}, about));
  const figure = make("figure", {}, caption, svg);
  figure.redraw = () => {
    const width = Math.max(figure.clientWidth, 200), inner = width - PAD.left - PAD.right;
    const first = until - seconds, start = Math.max(first, Math.min(times[0] ?? first, until - 60));
    const x = time => PAD.left + inner * (time - start) / (until - start);
    const sums = times.map((_, k) => series.reduce((sum, one) => sum + (one.values[k] ?? 0), 0));
    const every = kind === "bars" ? sums : series.flatMap(one => one.values.filter(v => v !== null && v !== undefined));
    const most = every.reduce((a, b) => Math.max(a, b), 0);
    const [low, high] = range ?? [0, kind === "bars" ? 2 * Math.ceil(niceTop(most) / 2) : niceTop(most)];
    const y = value => HEIGHT - PAD.bottom - (HEIGHT - PAD.bottom - PAD.top) * (value - low) / (high - low);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    for (const tick of [low, (low + high) / 2, high]) {
      svg.append(draw("line", { class: "grid", x1: PAD.left, x2: width - PAD.right, y1: y(tick), y2: y(tick) }));
      svg.append(draw("text", { x: PAD.left - 6, y: y(tick) + 4, "text-anchor": "end" }, tickFormat(tick)));
    }
    for (const [time, anchor] of [[start, "start"], [until, "end"]]) {
      svg.append(draw("text", { x: x(time), y: HEIGHT - 5, "text-anchor": anchor }, clock(time)));
    }
    if (kind === "bars") {
      const gap = times.length > 1 ? x(times.at(-1)) - x(times.at(-2)) : 4, wide = Math.max(1, Math.min(gap - 1, 14));
      times.forEach((time, k) => {
        let below = 0;
        series.forEach((one, index) => {
          const count = one.values[k] ?? 0;
          if (!count) return;
          const [top, bottom] = [y(below + count), y(below)];
          const box = { x: Math.min(x(time), width - PAD.right - wide), y: top, width: wide, height: bottom - top };
          svg.append(draw("rect", { ...box, fill: colour(one.colour ?? index) }));
          below += count;
        });
      });
    } else {
      series.forEach((one, index) => {
        const points = times.map((time, k) => [time, one.values[k]]).filter(([, v]) => v !== null && v !== undefined);
        if (!points.length) return;
        const path = points.map(([t, v], k) => `${k ? "L" : "M"}${x(t).toFixed(1)} ${y(Math.min(v, high)).toFixed(1)}`);
        const look = { class: one.dashed ? "curve dashed" : "curve", d: path.join("") };
        svg.append(draw("path", { ...look, stroke: one.dashed ? "var(--soft)" : colour(one.colour ?? index) }));
      });
    }
    const cursor = draw("line", { class: "cursor", y1: PAD.top, y2: HEIGHT - PAD.bottom, visibility: "hidden" });
    svg.append(cursor);
    const show = k => series.forEach((one, index) => {
      const total = one.values.reduce((a, b) => a + (b ?? 0), 0);
      values[index].textContent = k === null && kind === "bars" ? format(total) : format(one.values[k ?? times.length - 1]);
    });
    show(null);
    svg.onpointermove = event => {
      if (!times.length) return;
      const at = start + (event.offsetX - PAD.left) / inner * (until - start);
      const k = times.reduce((best, time, place) => Math.abs(time - at) < Math.abs(times[best] - at) ? place : best, 0);
      for (const side of ["x1", "x2"]) cursor.setAttribute(side, x(times[k]));
      cursor.setAttribute("visibility", "visible");
      show(k);
    };
    svg.onpointerleave = () => { cursor.setAttribute("visibility", "hidden"); show(null); };
  };
  return figure;
}

// --- objects -----------------------------------------------------------------------------------------------------

function partsOf(figures, key) {
  const found = figures?.[key];
  if (found === null || found === undefined) return {};
  return typeof found === "object" ? found : { "": found };
}

const ABOUT = {
  money: "Dashed: what an even spender would have spent by now.",
  limit: "Dashed: the limit.",
  price: "The reward that one more unit of money would bring. Cheap actions are preferred while it is high.",
  multiplier: "How strongly the learner counts its constraint. It rises while the constraint is violated.",
  actions: "How often each action was chosen.",
  refusals: "Requests that the limit could not pay for.",
  coverage: "The share of outcomes inside their interval.",
  violation: "The sum of the constraint over all rounds, 0 if it is kept in the long run.",
};
const MOST_CHARTS = 12, EVENTS = 50;
const searched = {}, selected = {};

function accountTable(name, last, unit, redo) {
  const parts = Object.keys(last.spent), input = make("input", { type: "search", placeholder: "Search accounts", "aria-label": "Search accounts" });
  const rows = make("tbody"), shown = make("p", { class: "empty" });
  const fill = () => {
    const found = parts.filter(part => part.toLowerCase().includes((searched[name] ?? "").toLowerCase()));
    found.sort((a, b) => last.spent[b] / last.limit[b] - last.spent[a] / last.limit[a] || a.localeCompare(b));
    shown.textContent = `${found.length} of ${parts.length} accounts${found.length > EVENTS ? `, the first ${EVENTS} are shown` : ""}`;
    rows.replaceChildren(...found.slice(0, EVENTS).map(part => {
      const open = make("button", { type: "button", class: "link" }, part);
      open.addEventListener("click", () => { selected[name] = part; redo(); });
      const share = last.limit[part] > 0 ? percent(last.spent[part] / last.limit[part]) : "–";
      const cells = [number(last.spent[part]), number(last.held[part]), number(last.limit[part]), share];
      return make("tr", {}, make("th", { scope: "row" }, open), ...cells.map(text => make("td", {}, text)));
    }));
  };
  input.value = searched[name] ?? "";
  input.addEventListener("input", () => { searched[name] = input.value; fill(); });
  fill();
  const heads = ["account", "spent", "held", "limit", "used"].map(text => make("th", { scope: "col" }, text));
  const about = make("p", { class: "empty" }, `In ${unit || "the object's unit"}. Choose an account to see its chart.`);
  return make("div", { class: "accounts" }, input, about, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), rows), shown);
}

function events(id, title, found, unavailable = {}) {
  const missing = Object.keys(unavailable);
  if (!found.length && !missing.length) return [];
  const rows = found.slice(0, EVENTS).map(one => make("tr", {},
    make("td", {}, new Date(1000 * one.time).toLocaleString("en-GB")), make("td", {}, one.what),
    make("td", {}, [one.object, one.account].filter(Boolean).join("/")), make("td", {}, one.detail), make("td", {}, one.who)));
  const heads = ["time", "what", "where", "detail", "who"].map(text => make("th", { scope: "col" }, text));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
  const heading = make("h2", {}, title, make("small", {}, `the last ${EVENTS}`));
  const note = missing.length ? [make("p", { class: "bad" }, `Not listed, since the database does not answer: ${missing.join(", ")}`)] : [];
  return [make("section", { id }, heading, ...note, make("div", { class: "scroll", tabindex: "0" }, table))];
}

function section(name, data) {
  const { intervals, kinds, units, periods, actions, now } = data;
  const mine = intervals.filter(one => one.figures[name]), times = mine.map(one => one.time), until = now;
  const last = mine.at(-1)?.figures[name] ?? {};
  const column = (key, part) => mine.map(one => partsOf(one.figures[name], key)[part] ?? null);
  const counted = (kind, label) => mine.map(one => one.counts
    .filter(row => row[0] === kind && row[1] === name && (label === undefined || row[2] === label))
    .reduce((sum, row) => sum + row.at(-1), 0));
  const common = { times, until }, charts = [], unit = units[name] ? `, ${units[name]}` : "";
  const called = (what, part, alone) => part && !alone ? `${what}: ${part}` : what;

  const every = Object.keys(partsOf(last, "spent")), crowded = every.length > MOST_CHARTS;
  for (const part of crowded ? [selected[name] ?? every[0]] : every) {
    const alone = Object.keys(last.spent).length === 1 && kinds[name] !== "ledger";
    const flat = partsOf(last, "plan")[part] === partsOf(last, "limit")[part] && kinds[name] === "ledger";
    const lines = [{ name: "spent", values: column("spent", part) }];
    lines.push({ name: flat ? "limit" : "plan", values: column("plan", part), dashed: true });
    const period = periods[name]?.[part] ?? periods[name]?.[""] ?? "";
    const title = called("Money", part, alone) + unit + (period ? `, ${period}` : "");
    charts.push(chart({ ...common, title, about: flat ? ABOUT.limit : ABOUT.money, series: lines }));
  }
  const prices = Object.keys(partsOf(last, "price"));
  if (prices.length) {
    const series = prices.map(part => ({ name: prices.length > 1 ? part : "", values: column("price", part) }));
    const learns = kinds[name] === "learner", about = learns ? ABOUT.multiplier : ABOUT.price;
    charts.push(chart({ ...common, title: learns ? "Multiplier" : "Price of money", about, series }));
  }
  const chosen = (actions[name] ?? []).map(action => ({ name: action, values: counted("actions", action) }));
  if (chosen.some(one => one.values.some(count => count))) {
    charts.push(chart({ ...common, title: "Actions chosen", about: ABOUT.actions, series: chosen, kind: "bars" }));
  }
  const refused = { name: "", values: counted("refused"), colour: 4 }, refusals = refused.values.reduce((a, b) => a + b, 0);
  if (refusals) charts.push(chart({ ...common, title: "Refusals", about: ABOUT.refusals, series: [refused], kind: "bars" }));
  if (last.coverage) {
    const groups = Object.keys(last.coverage);
    const series = groups.map(group => ({ name: group || "overall", values: column("coverage", group) }));
    series.push({ name: "target", values: column("target", ""), dashed: true });
    const least = series.flatMap(one => one.values).filter(v => v !== null).reduce((a, b) => Math.min(a, b), 1);
    const range = [Math.max(0, Math.floor(10 * Math.min(least, last.target) - 0.5) / 10), 1];
    charts.push(chart({ ...common, title: "Coverage", about: ABOUT.coverage, series, range, format: percent, tickFormat: v => (100 * v).toFixed(0) + " %" }));
  }
  if (last.violation !== undefined) {
    const values = column("violation", "").map(v => v === null ? null : Math.max(v, 0));
    charts.push(chart({ ...common, title: "Violation", about: ABOUT.violation, series: [{ name: "", values }] }));
  }

  const facts = make("dl");
  const fact = (term, text, bad) => facts.append(make("div", {}, make("dt", {}, term), make("dd", bad ? { class: "bad" } : {}, text)));
  const total = key => Object.values(partsOf(last, key)).reduce((a, b) => a + b, 0);
  const single = Object.keys(partsOf(last, "spent")).length === 1;
  if (last.requests !== undefined) fact("requests", number(last.requests));
  if (single) fact("spent", `${number(total("spent"))} of ${number(total("limit"))}`);
  if (last.held !== undefined) fact("held", number(single ? total("held") : Math.max(...Object.values(last.held))));
  if (last.open !== undefined) fact("open", number(last.open));
  if (["ledger", "chooser", "router", "pacer"].includes(kinds[name])) fact("refused in this time", number(refusals));
  if (last.overshoot !== undefined && total("overshoot") > 0) fact("over the limit", number(total("overshoot")), true);
  if (last.coverage) fact("coverage", `${percent(last.coverage[""])} of ${percent(last.target)}`);
  const heading = make("h2", {}, name, make("small", {}, kinds[name]));
  const body = times.length ? make("div", { class: "charts" }, ...charts) : make("p", { class: "empty" }, "No figures yet.");
  const table = crowded ? [accountTable(name, last, units[name], render)] : [];
  return make("section", { "data-object": name }, heading, facts, ...table, body);
}

function render() {
  if (latest === null) return;
  document.title = document.getElementById("title").textContent = latest.title;
  const typing = document.activeElement?.closest("section")?.dataset.object;
  const place = document.activeElement?.selectionStart;
  const sections = Object.keys(latest.kinds).map(name => section(name, latest));
  document.getElementById("objects").replaceChildren(
    ...sections, ...events("changes", "Changes and corrections", latest.changes, latest.unavailable), ...events("refusals", "Refusals", latest.refusals));
  document.getElementById("guide").replaceChildren(...(latest.guide ? [make("a", { href: latest.guide }, "Guide")] : []));
  if (typing !== undefined && place !== undefined && place !== null) {
    const input = document.querySelector(`[data-object="${CSS.escape(typing)}"] input`);
    input?.focus();
    input?.setSelectionRange(place, place);
  }
  redraw();
}

function redraw() {
  for (const figure of document.querySelectorAll("figure")) figure.redraw();
}

async function refresh() {
  clearTimeout(timer);
  const state = document.getElementById("state");
  try {
    const response = await fetch(`history?seconds=${seconds}`);
    if (!response.ok) throw new Error((await response.json()).error?.message ?? response.status);
    latest = await response.json();
    render();
    state.textContent = `updated ${new Date().toLocaleTimeString("en-GB")}`;
    state.className = "";
  } catch (error) {
    state.textContent = `no answer: ${error.message}`;
    state.className = "bad";
  }
  timer = setTimeout(refresh, 1000 * Math.max(latest?.step ?? 5, 2));
}

for (const button of document.querySelectorAll("nav button")) {
  button.addEventListener("click", () => {
    seconds = Number(button.dataset.seconds);
    for (const one of document.querySelectorAll("nav button")) one.setAttribute("aria-pressed", one === button);
    refresh();
  });
}
addEventListener("resize", redraw);
refresh();
