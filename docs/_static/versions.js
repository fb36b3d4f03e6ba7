/* A list of the published versions in the sidebar, from published.js. A site that was only built shows its own. */
(function () {
  "use strict";
  const root = document.documentElement.dataset.content_root || "./";

  function fill(select, versions, current) {
    select.replaceChildren();
    for (const version of versions) {
      const option = document.createElement("option");
      option.value = version.folder;
      option.textContent = version.title;
      option.selected = version.folder === current;
      select.append(option);
    }
  }

  function open(folder, current) {
    const page = location.pathname.split("/" + current + "/").pop();
    const base = new URL(root + "../" + folder + "/", location.href);
    const wanted = new URL(page, base);
    fetch(wanted, { method: "HEAD" })
      .then((answer) => location.assign(answer.ok ? wanted : base))
      .catch(() => location.assign(base));
  }

  document.addEventListener("DOMContentLoaded", function () {
    const box = document.querySelector(".versions");
    if (!box) return;
    const select = box.querySelector("select");
    const current = new URL(root, location.href).pathname.split("/").filter(Boolean).pop() || "";
    select.addEventListener("change", () => open(select.value, current));
    if (PUBLISHED.length) fill(select, PUBLISHED, current);
  });
})();
