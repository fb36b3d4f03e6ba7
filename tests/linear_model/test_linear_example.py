"""The worked example, and what docs/linear_model.md prints."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from longterm.data import DataError, load_sample
from longterm.linear_model import __main__ as command
from longterm.linear_model.example import study, table

PAGE = Path(__file__).parents[2] / "docs" / "linear_model.md"
EXAMPLES = re.findall(r"```python\n([^`]*)```\n\n((?:    [^\n]*\n)+)", PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("example", EXAMPLES, ids=["estimator", "one row"])
def test_the_page_prints_what_it_says(example):
    code, wanted = example
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, PAGE.name, "exec"), {})
    assert printed.getvalue().split() == wanted.split()


def test_at_the_same_budget_no_penalty_of_the_grid_does_better():
    found = study(load_sample(), budget=7.0, grid=[1e-3, 3e-3, 1e-2, 2e-2, 3e-2])
    ours, penalised = found.ours
    assert penalised.size.max() <= 7.0 * (1 + 1e-9)
    assert np.mean(ours.size[10:]) == pytest.approx(7.0, rel=0.02)
    assert ours.loss[-1] < found.chosen()["best α within budget"].loss[-1]
    assert ours.nonzeros[-1] < 30
    assert "best α of all" in table(found)


def test_the_command_plays_the_sample_where_the_data_are_not(tmp_path, monkeypatch, capsys):
    def missing(name):
        raise DataError(tmp_path / name, "it is not here", "Download it")

    monkeypatch.setattr(command, "load", missing)
    path = tmp_path / "figure.png"
    assert command.main(["--rows", "1500", "--figure", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("covtype sample: 1,500 rows") == 1
    assert "Download it" in printed.err
    assert path.stat().st_size > 10_000
