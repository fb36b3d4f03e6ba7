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
