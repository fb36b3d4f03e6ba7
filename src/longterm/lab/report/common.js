// Functions of every page's script. The files of this folder are joined into one function.
const dark = matchMedia("(prefers-color-scheme: dark)");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const written = (value) => {
  if (value === null) return "–";
  const size = Math.abs(value);
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : 2;
  const text = size !== 0 && (size < 0.005 || size >= 1e7)
    ? size.toExponential(1).replace("-", "−")
    : size.toLocaleString("en-GB", { minimumFractionDigits: size ? digits : 0, maximumFractionDigits: digits });
  return (value < 0 ? "−" : "") + text;
};

const present = (values) => values.filter((value) => value !== null);

// The state of the controls is kept in the URL after the anchor: #dsm&dsm.axes=linear.
const address = {
  read() {
    const [place, ...rest] = location.hash.slice(1).split("&");
    return { place, state: new URLSearchParams(rest.join("&")) };
  },
  get: (name) => address.state.get(name),
  set(name, value) {
    if (value) address.state.set(name, value);
    else address.state.delete(name);
    address.write();
  },
  write() {
    const text = String(address.state);
    history.replaceState(null, "", `#${address.read().place}${text && `&${text}`}`);
  },
};
address.state = address.read().state;
addEventListener("hashchange", () => {
  if (location.hash.includes("&")) location.reload(); // a link with a state of its own
  else address.write();
});
addEventListener("load", () => { if (location.hash.includes("&")) document.getElementById(decodeURIComponent(address.read().place))?.scrollIntoView(); });

// Initialise a control from the URL, and write its changes to the URL.
function remember(control, name, changed) {
  const box = control.type === "checkbox", radio = control.type === "radio";
  const standard = box ? control.defaultChecked : control.tagName === "SELECT" ? ([...control.options].find((one) => one.defaultSelected) ?? control.options[0]).value : control.defaultValue;
  const kept = address.get(name);
  if (kept !== null && box) control.checked = kept === "yes";
  else if (kept !== null && radio) control.checked = control.value === kept;
  else if (kept !== null && (control.tagName !== "SELECT" || [...control.options].some((one) => one.value === kept))) control.value = kept;
  const usual = () => (box ? control.checked === standard : radio ? control.defaultChecked : control.value === standard);
  control.addEventListener(control.type === "range" ? "input" : "change", () => {
    address.set(name, usual() ? "" : box ? (control.checked ? "yes" : "no") : control.value);
    changed();
  });
}

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

// A click on a column's heading sorts the table, by the exact numbers of the cells where there are any.
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
        if (x !== null || y !== null) return x === null ? 1 : -1; // cells without a number come last
        return down * text(a).localeCompare(text(b));
      }).forEach((row) => body.append(row));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
  });
}

// Mark a table that is wider than its box.
const wide = new ResizeObserver((entries) => entries.forEach(({ target }) => {
  const box = target.closest(".scroll");
  box.classList.toggle("wider", box.scrollWidth > box.clientWidth + 1);
}));
document.querySelectorAll(".scroll, .scroll > table").forEach((one) => wide.observe(one));
document.querySelectorAll(".scroll").forEach((box) => box.addEventListener("scroll", () => box.classList.toggle("ended", box.scrollLeft + box.clientWidth >= box.scrollWidth - 2)));

document.querySelectorAll("table").forEach((table) => { if (table.tHead && table.tBodies.length) sortable(table); });

// Print the remarks unfolded.
const folded = [...document.querySelectorAll(".remarks details:not([open])")];
for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => folded.forEach((one) => { one.open = event === "beforeprint"; }));

// A search box shows the rows whose name contains the text.
document.querySelectorAll("input[data-filters]").forEach((box) => box.addEventListener("input", () => {
  const wanted = box.value.trim().toLowerCase();
  for (const row of document.getElementById(box.dataset.filters).tBodies[0].rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
}));
