"""The built site in a browser: axe-core finds nothing serious, nothing is cut off, and nothing is missing.

It needs the site (`make docs`) and axe-core: `npm install --prefix build/axe axe-core`, or `LONGTERM_AXE=FILE`.
"""

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from browser import chromium, open_at

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"
AXE = Path(os.environ.get("LONGTERM_AXE", ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"))
PAGES = (
    "index.html",
    "start.html",
    "tutorials/first_constraint.html",
    "guides/ledger.html",
    "guides/choose.html",
    "explanation/concepts.html",
    "proofs/theory.html",
    "proofs/guarantees.html",
    "benchmarks/arena.html",
    "gallery_pages/index.html",
    "gallery_pages/plot_01_own_problem.html",
    "reference/api/index.html",
    "reference/api/command_line.html",
    "reference/api/longterm.learners.html",
    "reference/api/longterm.learners.HedgedCuts.html",
    "reference/bibliography.html",
    "_modules/longterm/errors.html",
    "search.html",
    "genindex.html",
    "_static/play/index.html",
)
"""One of each kind of page."""
FAULTS = """
const done = arguments[0];
axe.run(document, {preload: false, resultTypes: ["violations"]}).then((found) => done(found.violations
  .filter((one) => one.impact === "serious" || one.impact === "critical")
  .map((one) => `${one.id}: ${one.nodes.length} × ${one.nodes[0].html.slice(0, 120)}`)));
"""
CUT_OFF = """
return [...document.querySelectorAll("div.highlight > pre")].filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.textContent.split("\\n").reduce((a, b) => (a.length > b.length ? a : b)));
"""
pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    if not (SITE / "_static" / "scroll.js").exists():
        pytest.skip("the site is not built: make docs")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        driver.set_script_timeout(60)
        yield driver


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_serious_fault_at_either_width_and_theme(driver, address, page):
    if not AXE.exists():
        pytest.skip("axe-core is missing: npm install --prefix build/axe axe-core")
    for width in (390, 1440):
        for scheme in ("light", "dark"):
            open_at(driver, f"{address}/{page}", width, 900, scheme)
            missing = [one["message"] for one in driver.get_log("browser") if one["level"] == "SEVERE"]
            assert missing == []
            driver.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 300))")  # scroll.js
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width
            driver.execute_script(AXE.read_text(encoding="utf-8"))
            assert driver.execute_async_script(FAULTS) == [], (width, scheme)


@pytest.mark.parametrize("page", PAGES)
def test_no_code_is_cut_off_on_a_wide_screen(driver, address, page):
    open_at(driver, f"{address}/{page}", 1440, 900)
    assert driver.execute_script(CUT_OFF) == []
