// SVG plots: two axes, bands, curves, points with names, a card at the pointer, zoom by dragging.
// draw(plot, what) draws a description that is plain data; colours follow the page's scheme.
const create = (name, attributes = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const LETTER = 6.7; // the width of a letter of 12 px, on average
const MARKERS = 8; // on a curve
const MANY = 12; // curves: with more there are no markers and lines are thin
const CROWD = 12; // names in a plot: with more, only points with this distance in pixels have names
const APART = 60;
const ROWS = 9; // of the card at the pointer
const ink = (look, more = {}) => ({ class: "ink", style: `--light:${look.colour};--dark:${look.on_dark}`, ...more });

// Axes. A scale folds a value into the coordinate in which its axis is even.
const FOLDS = {
  linear: () => ({ fold: (v) => v, unfold: (u) => u }),
  log: () => ({ fold: Math.log10, unfold: (u) => 10 ** u }),
  // Logarithmic on both sides of zero, linear within ± the threshold: matplotlib's symlog.
  symlog: (threshold) => ({
    fold: (v) => Math.sign(v) * (Math.abs(v) <= threshold ? Math.abs(v) / threshold : 1 + Math.log10(Math.abs(v) / threshold)),
    unfold: (u) => Math.sign(u) * threshold * (Math.abs(u) <= 1 ? Math.abs(u) : 10 ** (Math.abs(u) - 1)),
  }),
};

function evenTicks(low, high, count) {
  const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

function ticks(axis, count) {
  const [low, high] = [axis.unfold(axis.low), axis.unfold(axis.high)];
  const inside = (values) => values.filter((v) => v >= low - 1e-9 * Math.abs(low) && v <= high + 1e-9 * Math.abs(high));
  const powers = (from, to, step) => Array.from({ length: Math.max(0, Math.floor((to - from) / step) + 1) }, (_, k) => from + k * step);
  let found = [];
  if (axis.kind === "log") {
    const every = (step) => powers(Math.ceil(axis.low / step - 1e-9) * step, axis.high + 1e-9, step).map((k) => 10 ** k);
    const times = (factors) => inside(powers(Math.floor(axis.low), axis.high, 1).flatMap((k) => factors.map((m) => m * 10 ** k)));
    const step = Math.max(1, Math.ceil((axis.high - axis.low) / count));
    const fits = [every(step), every(1), times([1, 2, 5]), times([1, 1.5, 2, 3, 4, 5, 7])].filter((found) => found.length <= count + 2);
    found = fits.find((one) => one.length >= 3) ?? fits[0] ?? [];
  } else if (axis.kind === "symlog") {
    const side = (end) => {
      const decades = Math.floor(Math.log10(Math.max(end, axis.threshold) / axis.threshold) + 1e-9);
      const step = Math.max(1, Math.ceil((2 * decades) / count));
      return end < axis.threshold ? [] : powers(decades % step, decades, step).map((k) => axis.threshold * 10 ** k);
    };
    found = inside([...side(-low).map((v) => -v), 0, ...side(high)]);
  }
  if (found.length < 2) found = evenTicks(low, high, count);
  return found.map((value) => ({ value, u: axis.fold(value), text: tickText(value) }));
}

const RAISED = { "-": "⁻", ...Object.fromEntries([..."⁰¹²³⁴⁵⁶⁷⁸⁹"].map((letter, k) => [k, letter])) };
function tickText(value) {
  const size = Math.abs(Number(value.toPrecision(6)));
  if (size === 0) return "0";
  const power = Math.floor(Math.log10(size) + 1e-9), factor = Number((size / 10 ** power).toPrecision(4));
  const raised = [...String(power)].map((letter) => RAISED[letter]).join("");
  const text = size >= 1e5 || size < 1e-3 ? `${factor === 1 ? "" : `${factor}×`}10${raised}` : size.toLocaleString("en-GB", { maximumFractionDigits: 6 });
  return (value < 0 ? "−" : "") + text;
}

// The range of an axis: all its values with a margin, or the zoomed range.
function axisOf(given, zoomed) {
  const kind = FOLDS[given.kind](given.threshold);
  const folded = given.values.filter((v) => v !== null && (given.kind !== "log" || v > 0)).map(kind.fold);
  let low = folded.length ? folded.reduce((a, b) => Math.min(a, b)) : 0, high = folded.length ? folded.reduce((a, b) => Math.max(a, b)) : 1;
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const margin = given.tight ? 0 : 0.05 * (high - low);
  [low, high] = zoomed ?? [low - margin, high + margin];
  return { ...given, ...kind, low, high };
}

// Positions of labels along a line, in order, moved apart by the smallest distances.
function apart(wanted, gap, top, bottom) {
  const order = wanted.map((_, k) => k).sort((a, b) => wanted[a] - wanted[b]);
  const places = [...wanted];
  order.forEach((k, i) => { places[k] = Math.max(places[k], i ? places[order[i - 1]] + gap : top); });
  [...order].reverse().forEach((k, i, back) => { places[k] = Math.min(places[k], i ? places[back[i - 1]] - gap : bottom); });
  return places;
}

const short = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);

function path(x, y, xs, ys, stepped) {
  let text = "", pen = "M", before = 0;
  xs.forEach((value, k) => {
    if (ys[k] === null || ys[k] === undefined) { pen = "M"; return; }
    const [left, top] = [x(value).toFixed(1), y(ys[k]).toFixed(1)];
    text += stepped && pen === "L" ? `L${left} ${before}L${left} ${top}` : `${pen}${left} ${top}`;
    [pen, before] = ["L", top];
  });
  return text;
}

// In print, the plots of an experiment share the width of A4, so that letters keep their size.
let onPaper = false;
for (const event of ["beforeprint", "afterprint"]) {
  addEventListener(event, () => {
    onPaper = event === "beforeprint";
    document.querySelectorAll(".plot").forEach((plot) => { if (plot.drawn) draw(plot, plot.drawn); });
  });
}
const sizeOf = (plot) => {
  const beside = onPaper && plot.closest(".plots");
  if (beside) return beside.children.length > 2 ? [226, 230] : [330, 270];
  if (onPaper) return [680, 330];
  return [plot.clientWidth || 600, Number(getComputedStyle(plot).getPropertyValue("--height")) || 380];
};

function draw(plot, what) {
  const [width, height] = sizeOf(plot);
  const zoom = plot.zoom ?? {};
  const xAxis = axisOf(what.x, zoom.x), yAxis = axisOf(what.y, zoom.y);
  const yTicks = ticks(yAxis, Math.max(3, Math.floor(height / 55)));
  const left = 34 + LETTER * yTicks.reduce((longest, tick) => Math.max(longest, tick.text.length), 1);
  const frame = { left, right: width - 16, top: 12, bottom: height - 46 };
  const xTicks = ticks(xAxis, Math.max(2, Math.floor((frame.right - frame.left) / 85)));
  const across = (u) => frame.left + ((u - xAxis.low) / (xAxis.high - xAxis.low)) * (frame.right - frame.left);
  const up = (u) => frame.bottom - ((u - yAxis.low) / (yAxis.high - yAxis.low)) * (frame.bottom - frame.top);
  const x = (value) => across(xAxis.fold(value));
  const y = (value) => up(yAxis.kind === "log" && !(value > 0) ? yAxis.low : yAxis.fold(value));
  const clip = `${plot.id}-clip`;
  const inside = create("g", { "clip-path": `url(#${clip})` }), labels = create("g", { class: "names" });
  const many = (what.curves ?? []).filter((curve) => curve.role === "mean").length > MANY;
  const svg = create("svg", { viewBox: `0 0 ${width} ${height}`, class: many ? "many" : "", "aria-hidden": "true" },
    create("clipPath", { id: clip }, create("rect", { x: frame.left, y: frame.top - 6, width: frame.right - frame.left + 6, height: frame.bottom - frame.top + 6 })));

  for (const tick of yTicks) {
    svg.append(create("line", { class: tick.value === 0 ? "zero" : "grid", x1: frame.left, x2: frame.right, y1: up(tick.u), y2: up(tick.u) }),
      create("text", { class: "tick", x: frame.left - 7, y: up(tick.u) + 4, "text-anchor": "end" }, tick.text));
  }
  for (const tick of xTicks) {
    svg.append(create("line", { class: tick.value === 0 ? "zero" : "grid", x1: across(tick.u), x2: across(tick.u), y1: frame.top, y2: frame.bottom + 4 }),
      create("text", { class: "tick", x: across(tick.u), y: frame.bottom + 18, "text-anchor": "middle" }, tick.text));
  }
  svg.append(create("path", { class: "frame", d: `M${frame.left} ${frame.top}V${frame.bottom}H${frame.right}` }),
    create("text", { class: "axis", x: (frame.left + frame.right) / 2, y: height - 8, "text-anchor": "middle" }, what.x.label),
    create("text", { class: "axis", transform: `translate(13 ${(frame.top + frame.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, what.y.label),
    inside, labels);

  for (const band of what.bands ?? []) {
    const seen = band.x.map((_, k) => k).filter((k) => band.low[k] !== null && band.high[k] !== null);
    const edge = (ks, side) => ks.map((k) => `${x(band.x[k]).toFixed(1)} ${y(side[k]).toFixed(1)}`).join("L");
    if (seen.length) inside.append(create("path", ink(band.look, { class: "ink band", d: `M${edge(seen, band.high)}L${edge(seen.reverse(), band.low)}Z` })));
  }
  for (const curve of what.curves ?? []) {
    const group = create("g", ink(curve.look, { class: `ink curve ${curve.role}`, "data-curve": curve.index }));
    group.append(create("path", { class: "stroke", d: path(x, y, curve.x, curve.y, curve.stepped), "stroke-dasharray": curve.dashes }));
    if (curve.role === "mean" && !many) {
      const every = Math.max(1, Math.ceil(curve.x.length / MARKERS));
      curve.y.forEach((value, k) => {
        if (value !== null && k % every === (curve.index * 2) % every) group.append(create("path", { d: curve.look.shape, transform: `translate(${x(curve.x[k]).toFixed(1)} ${y(value).toFixed(1)}) scale(0.85)` }));
      });
    }
    inside.append(group);
  }
  const named = (what.curves ?? []).filter((curve) => curve.label && curve.y.some((value) => value !== null));
  const ends = named.map((curve) => { const k = curve.y.findLastIndex((value) => value !== null); return Math.min(frame.bottom, Math.max(frame.top + 10, y(curve.y[k]) - 5)); });
  apart(ends, 14, frame.top + 10, frame.bottom - 4).forEach((place, k) => labels.append(
    create("text", ink(named[k].look, { x: frame.right - 4, y: place, "text-anchor": "end" }), short(named[k].label, Math.floor((0.6 * width) / LETTER)))));
  for (const point of what.points ?? []) {
    inside.append(create("path", ink(point.look, { class: `ink point${point.hollow ? " hollow" : ""}${point.marked ? " marked" : ""}`, d: point.look.shape, transform: `translate(${x(point.x)} ${y(point.y)}) scale(${point.marked ? 1.9 : 1.15})` })));
  }
  const steps = (what.curves ?? []).filter((curve) => curve.stepped).flatMap((curve) => curve.x.slice(1).flatMap((next, k) => {
    const [l, r, t, b] = [x(curve.x[k]), x(next), y(curve.y[k]), y(curve.y[k + 1])];
    return [[l, t - 1, r, t + 1], [r - 1, Math.min(t, b), r + 1, Math.max(t, b)]];
  }));
  namePoints((what.points ?? []).map((point) => ({ ...point, left: x(point.x), top: y(point.y) })), steps, frame, labels);

  const pointer = create("g", { class: "pointer" });
  const surface = create("rect", { class: "surface", x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top });
  svg.append(pointer, surface);
  plot.replaceChildren(svg, Object.assign(document.createElement("div"), { className: "card", hidden: true }));
  plot.drawn = what;
  listen(plot, { what, frame, x, y, xAxis, yAxis, pointer, surface, width });
}

// Place names beside their points where there is space: right, left, above, below, further away. With very many names,
// only isolated points and one point of each cluster are named.
const pen = document.createElement("canvas").getContext("2d");
function namePoints(points, lines, frame, labels) {
  const every = points.filter((p) => p.label), named = [];
  const alone = (p) => p.marked || every.length <= CROWD || named.every((other) => Math.hypot(p.left - other.left, p.top - other.top) > APART);
  every.forEach((p) => { if (alone(p)) named.push(p); });
  pen.font = `11.5px ${style("--sans")}`;
  const taken = points.map((p) => [p.left - 6, p.top - 6, p.left + 6, p.top + 6]);
  const apartFrom = (boxes, box) => !boxes.some(([l, t, r, b]) => box[0] < r && box[2] > l && box[1] < b && box[3] > t);
  const free = (box) => apartFrom(taken, box) && box[0] >= frame.left && box[2] <= frame.right + 12 && box[1] >= frame.top - 8 && box[3] <= frame.bottom;
  for (const point of named) {
    const text = short(point.label, 34), wide = pen.measureText(text).width, room = [];
    for (const far of [0, 12, 24, 38, 54]) {
      for (const side of [[9, -far], [-9 - wide, -far], [9, far], [-9 - wide, far], [-wide / 2, -14 - far], [-wide / 2, 14 + far]]) {
        room.push([point.left + side[0], point.top + side[1] - 7, point.left + side[0] + wide, point.top + side[1] + 7]);
      }
    }
    const box = room.find((one) => free(one) && apartFrom(lines, one)) ?? room.find(free);
    if (!box) continue; // the text below the plot names it
    taken.push(box);
    const middle = (box[1] + box[3]) / 2, near = Math.min(Math.max(point.left, box[0]), box[2]);
    if (Math.abs(middle - point.top) > 10) labels.append(create("line", { class: "leader", x1: point.left, y1: point.top, x2: near, y2: middle + (middle < point.top ? 6 : -6) }));
    labels.append(create("text", { class: "name", x: box[0], y: middle + 4 }, text));
  }
}

function listen(plot, drawn) {
  const { what, frame, x, y, xAxis, yAxis, pointer, surface, width } = drawn;
  const card = plot.querySelector(".card");
  const at = (event) => { const box = plot.querySelector("svg").getBoundingClientRect(), scale = width / box.width; return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale]; };
  const leave = () => { card.hidden = true; pointer.replaceChildren(); };
  let from = null;
  const told = (left, top) => {
    const rows = what.told(left, top, x, y);
    if (!rows || !rows.lines.length) return leave();
    const near = [...rows.lines].sort((a, b) => Math.abs(a.top - top) - Math.abs(b.top - top)).slice(0, ROWS).sort((a, b) => a.top - b.top);
    const line = (one) => {
      const row = document.createElement("div");
      if (one.look) row.append(create("svg", ink(one.look, { class: "ink dot", viewBox: "-6 -6 12 12" }), create("path", { d: one.look.shape })));
      row.append(Object.assign(document.createElement("b"), { textContent: one.value }), Object.assign(document.createElement("span"), { textContent: one.name }));
      return row;
    };
    card.replaceChildren(Object.assign(document.createElement("p"), { textContent: rows.heading }), ...near.map(line));
    const left_out = rows.lines.length - near.length;
    if (left_out) card.append(Object.assign(document.createElement("p"), { textContent: `and ${left_out} more` }));
    card.hidden = false;
    const room = plot.clientWidth / width;
    const beyond = rows.left * room + 14 + card.offsetWidth > plot.clientWidth;
    card.style.left = `${Math.max(0, beyond ? rows.left * room - 14 - card.offsetWidth : rows.left * room + 14)}px`;
    card.style.top = `${Math.max(0, Math.min(top * room - 20, plot.clientHeight - card.offsetHeight))}px`;
    pointer.replaceChildren(create("line", { x1: rows.left, x2: rows.left, y1: frame.top, y2: frame.bottom }));
  };
  surface.addEventListener("pointermove", (event) => {
    const [left, top] = at(event);
    if (!from) return told(left, top);
    const [l, r, t, b] = [Math.min(from[0], left), Math.max(from[0], left), Math.min(from[1], top), Math.max(from[1], top)];
    card.hidden = true;
    pointer.replaceChildren(create("rect", { x: l, y: t, width: r - l, height: b - t }));
  });
  surface.addEventListener("pointerleave", () => { if (!from) leave(); });
  surface.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    from = at(event);
    surface.setPointerCapture(event.pointerId);
  });
  surface.addEventListener("pointerup", (event) => {
    if (!from) return;
    const [a, b] = [from, at(event)];
    from = null;
    leave();
    if (Math.abs(a[0] - b[0]) < 8 || Math.abs(a[1] - b[1]) < 8) return;
    const u = (axis, start, end, pixels) => [start, end].map((s) => axis.low + s * (axis.high - axis.low)).sort((p, q) => p - q);
    const share = (p) => Math.min(1, Math.max(0, p));
    const [wide, high] = [frame.right - frame.left, frame.bottom - frame.top];
    plot.zoom = {
      x: u(xAxis, share((a[0] - frame.left) / wide), share((b[0] - frame.left) / wide)),
      y: u(yAxis, share((frame.bottom - a[1]) / high), share((frame.bottom - b[1]) / high)),
    };
    draw(plot, what);
  });
  surface.addEventListener("dblclick", () => { plot.zoom = null; draw(plot, what); });
}

// Draw again when the window changes its size.
const seen = new ResizeObserver((entries) => entries.forEach(({ target }) => { if (target.drawn && target.clientWidth !== target.width) draw(target, target.drawn); target.width = target.clientWidth; }));

// A plot as a separate file with title, legend and explicit colours.
const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight", "font-style", "fill-opacity"];
function standalone(plot, title, legend) {
  const svg = plot.querySelector("svg"), [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const copy = svg.cloneNode(true), originals = [...svg.querySelectorAll("*")];
  [...copy.querySelectorAll("*")].forEach((one, k) => {
    const found = getComputedStyle(originals[k]);
    one.setAttribute("style", KEPT.map((name) => `${name}:${found.getPropertyValue(name)}`).join(";"));
  });
  copy.querySelectorAll(".surface, .pointer").forEach((one) => one.remove());
  const font = `font-family:${style("--sans").replace(/"/g, "'")};font-size:12px;fill:${style("--text")}`;
  let left = 12, top = 40 + height + 16;
  const entries = legend.map(({ look, name }) => {
    const line = look.dash ? 18 : 0, wide = 26 + line + LETTER * name.length;
    if (left > 12 && left + wide > width) [left, top] = [12, top + 18];
    const colour = dark.matches ? look.on_dark : look.colour;
    const entry = create("g", { transform: `translate(${left} ${top})` }, ...(line ? [create("line", { x1: 0, x2: 30, y1: -4, y2: -4, style: `stroke:${colour};stroke-width:1.6`, "stroke-dasharray": look.dash.join(" ") || undefined })] : []),
      create("path", { d: look.shape, transform: `translate(${6 + line / 2} -4)`, style: `fill:${colour}` }), create("text", { x: 16 + line, style: font }, name));
    left += wide + 10;
    return entry;
  });
  const total = top + 14;
  copy.removeAttribute("aria-hidden");
  for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${total}`, width, height: total, xmlns: "http://www.w3.org/2000/svg" })) copy.setAttribute(key, value);
  copy.replaceChildren(create("rect", { width, height: total, style: `fill:${style("--panel")}` }), create("text", { x: 12, y: 24, style: `${font};font-size:14px;font-weight:600` }, title),
    create("g", { transform: "translate(0 36)" }, ...copy.childNodes), ...entries);
  return { text: new XMLSerializer().serializeToString(copy), width, height: total };
}

async function savePlot(plot, title, legend, name, format) {
  const { text, width, height } = standalone(plot, title, legend);
  if (format === "svg") return download(`${name}.svg`, text, "image/svg+xml");
  const image = new Image(), canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
  return canvas.toBlob((blob) => download(`${name}.png`, blob, "image/png"));
}
