"""Run the code of the pages: each block prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n((?:    [^\n]*\n)+))?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")
RUN_ELSEWHERE = {
    "guides/service.md",  # tests/server/test_guide.py
    "guides/litellm.md",  # tests/compat/test_litellm_ledger.py
    "guides/live.md",  # tests/play/live_learner/test_docs.py
    "guides/pacing.md",  # tests/money/pacing/test_data.py
    "guides/problems.md",  # tests/catalogue/test_scenarios.py
    "guides/linear_model.md",  # tests/examples/test_linear_model.py
    "guides/decisions.md",  # tests/examples/test_routing.py
    "guides/experiments.md",  # tests/cli/test_cli.py
    "guides/calibration.md",  # tests/calibration/test_page.py
    "tutorials/own_algorithm.md",  # tests/learners/test_outside.py
}
GENERATED = {"_build", "api", "gallery_pages"}
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if not GENERATED & set(page.relative_to(DOCS).parts)
    and str(page.relative_to(DOCS)) not in RUN_ELSEWHERE
    and BLOCK.search(page.read_text(encoding="utf-8"))
)
NEEDS = {
    "linear_model": "numba",
    "BudgetLinear": "numba",
    ".plot(": "matplotlib",
    "load_table": "pandas",
    "import torch": "torch",
}


def assert_same_output(printed: str, wanted: str) -> None:
    """Compare words exactly and numbers to five per cent: rounding differs between processors."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", wanted).split()
    ours, theirs = ([float(one.replace(",", "")) for one in NUMBER.findall(text)] for text in (printed, wanted))
    assert ours == pytest.approx(theirs, rel=0.05, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_prints_what_it_says(page, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    for word, module in NEEDS.items():
        if word in text:
            pytest.importorskip(module, reason=f"the page uses {word}")
    if ".plot(" in text:
        pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for code, wanted in BLOCK.findall(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        if wanted:
            assert_same_output(printed.getvalue(), wanted)


def test_the_comparison_notices_a_wrong_number():
    assert_same_output("spent 1,003 of 2,000", "spent 1,001 of 2,000")
    with pytest.raises(AssertionError):
        assert_same_output("spent 1,003", "spent 1,303")
    with pytest.raises(AssertionError):
        assert_same_output("spent 1", "won 1")
