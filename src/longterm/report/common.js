// What every page's script can use. Files of this folder are joined into one function.
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// plotly reads some markup in names; a user's name is shown as it stands.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const written = (value) => {
  if (value === null) return "–";
  const size = Math.abs(value);
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : 2;
  const text = size !== 0 && (size < 0.005 || size >= 1e7)
    ? size.toExponential(1).replace("-", "−")
    : size.toLocaleString("en-GB", { minimumFractionDigits: size ? digits : 0, maximumFractionDigits: digits });
  return (value < 0 ? "−" : "") + text;
};

// Logarithmic on both sides of zero, linear within ± the threshold: matplotlib's symlog.
const folded = (threshold) => (value) => {
  if (value === null) return null;
  const size = Math.abs(value) / threshold;
  return Math.sign(value) * (size <= 1 ? size : 1 + Math.log10(size));
};

const foldedTicks = (threshold, values) => {
  const fold = folded(threshold);
  const sides = [[1, Math.max(...values, 0)], [-1, -Math.min(...values, 0)]];
  const ticks = [0];
  for (const [sign, end] of sides) {
    const decades = Math.max(0, Math.floor(Math.log10(end / threshold) + 1e-9));
    const step = Math.max(1, Math.ceil(decades / 4));
    for (let k = decades; k >= 0 && end >= threshold; k -= step) ticks.push(sign * threshold * 10 ** k);
  }
  ticks.sort((a, b) => a - b);
  return { tickvals: ticks.map(fold), ticktext: ticks.map((t) => (t === 0 ? "0" : plain(shortTick(t)))) };
};

const shortTick = (value) => {
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-3 ? `1e${Math.round(Math.log10(size))}`.replace("-", "−") : size.toLocaleString("en-GB");
  return (value < 0 ? "−" : "") + text;
};

const present = (values) => values.filter((value) => value !== null);

async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

document.querySelectorAll("button.copy").forEach((button) => button.addEventListener("click", () => copy(button)));

function download(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A press on a column's heading sorts its table, by the numbers behind the cells where there are any.
function sortable(table) {
  const body = table.tBodies[0];
  const rows = table.tHead.rows;
  const heads = rows.length > 1 ? [rows[0].cells[0], ...rows[1].cells] : [...rows[0].cells];
  heads.forEach((head, column) => {
    head.classList.add("sorts");
    head.tabIndex = 0;
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down === 1 ? "ascending" : "descending");
      const key = (row) => { const cell = row.cells[column]; return cell.dataset.value === undefined ? null : Number(cell.dataset.value); };
      const text = (row) => row.cells[column].textContent;
      [...body.rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x !== null && y !== null) return down * (x - y);
        if (x !== null || y !== null) return x === null ? 1 : -1; // what has no number stands last
        return down * text(a).localeCompare(text(b));
      }).forEach((row) => body.append(row));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
  });
}

document.querySelectorAll("table").forEach((table) => { if (table.tHead && table.tBodies.length) sortable(table); });

// On paper a drawing is as wide as its column, whatever the window was: plotly draws in fixed pixels.
addEventListener("beforeprint", () => document.querySelectorAll(".plot .main-svg").forEach((svg) => {
  svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
}));

// A search box shows the rows whose name has the words in it.
document.querySelectorAll("input[data-filters]").forEach((box) => box.addEventListener("input", () => {
  const wanted = box.value.trim().toLowerCase();
  for (const row of document.getElementById(box.dataset.filters).tBodies[0].rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
}));
