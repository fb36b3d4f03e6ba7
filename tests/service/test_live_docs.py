"""The example in docs/guides/live.md prints what it says, and docs/benchmarks/choosing.md has the cost of delay."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from delays import regret_in_blocks
from longterm.problems import late_reversal
from longterm.theory import gradient_bound_under_delay, lemma_5_delayed
from longterm.theory.schedules import ConvexSchedule

DOCS = Path(__file__).parents[2] / "docs"
PAGE, LATE = ((DOCS / name).read_text(encoding="utf-8") for name in ("guides/live.md", "benchmarks/choosing.md"))


def test_the_example_runs(tmp_path, monkeypatch):
    ((code, wanted),) = re.findall(r"```python\n([^`]*)```\n\n((?:    [^\n]*\n)+)", PAGE)
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "live.md", "exec"), {})
    assert printed.getvalue().split() == wanted.split()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["service.db"]


FIGURES = re.findall(r"^    steps made for (the|no) delay.* ([\d.]+)$", LATE, flags=re.MULTILINE)


def test_there_are_figures_of_the_cost_of_delay():
    assert [steps for steps, _ in FIGURES] == ["the", "no"]


@pytest.mark.parametrize(("steps", "figure"), FIGURES)
def test_the_cost_of_delay(steps, figure):
    G = gradient_bound_under_delay(1.0, 99) if steps == "the" else 1.0
    schedule = ConvexSchedule(2.0, G, 0.5)
    regret = regret_in_blocks(99, 1000, schedule)
    assert regret == pytest.approx(float(figure), abs=0.051)
    assert regret <= lemma_5_delayed(schedule, late_reversal().constants, 1000, 99).regret
