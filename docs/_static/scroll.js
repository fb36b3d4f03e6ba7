/* What is wider than its box scrolls inside of it. The keyboard can reach such a box, and a screen reader names it. */
window.addEventListener("load", function () {
  "use strict";
  const BOXES = {
    "div.highlight > pre": "Code",
    "div.table-wrapper": "Table",
    "div.math": "Formula",
    "span.math.wide": "Formula",
    ".toc-scroll, .sidebar-scroll": "Navigation",
  };
  function mark() {
    for (const [selector, name] of Object.entries(BOXES)) {
      for (const box of document.querySelectorAll(selector)) {
        const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
        if (scrolls) {
          box.tabIndex = 0;
          box.setAttribute("role", "group");
          box.setAttribute("aria-label", name);
        } else if (box.getAttribute("role") === "group") {
          box.removeAttribute("tabindex");
          box.removeAttribute("role");
          box.removeAttribute("aria-label");
        }
      }
    }
  }
  // The gallery draws each link over a picture and hides its text; the bibliography calls a list what has links in it.
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) {
    link.setAttribute("aria-label", link.textContent.trim());
  }
  document.querySelector(".citation-list")?.removeAttribute("role");
  const ready = window.MathJax && window.MathJax.startup ? window.MathJax.startup.promise : Promise.resolve();
  ready.then(() => requestAnimationFrame(mark));
  window.addEventListener("resize", mark);
});
