/* Formulas on narrow screens. A displayed one shrinks to 75 % of its size at least and then scrolls inside its box. One in
   the text that is wider than its line scrolls, too. */
window.addEventListener("load", function () {
  "use strict";
  function fit() {
    for (const svg of document.querySelectorAll("div.math mjx-container > svg")) {
      const width = svg.getAttribute("width");
      if (width && width.endsWith("ex")) svg.style.minWidth = `calc(0.75 * ${width})`;
    }
    for (const span of document.querySelectorAll("span.math")) {
      const line = span.closest("p, li, dd, blockquote");
      span.classList.remove("wide");
      if (!line) continue;
      const right = line.getBoundingClientRect().right;
      span.classList.toggle("wide", span.getBoundingClientRect().right > right + 1);
    }
  }
  const ready = window.MathJax && window.MathJax.startup ? window.MathJax.startup.promise : Promise.resolve();
  ready.then(fit);
  window.addEventListener("resize", fit);
});
