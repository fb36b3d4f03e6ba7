"""The worked example of docs/guides/linear_model.md."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from longterm.data import load_sample
from longterm.errors import DataError

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "linear_model.py"


@pytest.fixture(scope="module")
def example():
    specification = spec_from_file_location("linear_model_example", SCRIPT)
    module = sys.modules[specification.name] = module_from_spec(specification)
    specification.loader.exec_module(module)
    yield module
    del sys.modules[specification.name]


@pytest.mark.slow
def test_at_the_same_budget_no_penalty_of_the_grid_does_better(example):
    comparison = example.compare(load_sample(), budget=7.0, grid=[1e-3, 3e-3, 1e-2, 2e-2, 3e-2])
    ours, penalised = comparison.ours
    assert penalised.size.max() <= 7.0 * (1 + 1e-9)
    assert np.mean(ours.size[10:]) == pytest.approx(7.0, rel=0.02)
    assert ours.loss[-1] < comparison.best_penalties()["best α within budget"].loss[-1]
    assert ours.nonzeros[-1] < 30
    assert "best α of all" in example.table(comparison)


@pytest.mark.slow
def test_a_part_of_the_rows_and_of_the_grid(example):
    comparison = example.compare(load_sample(), budget=7.0, rows=2000, grid=[1e-4, 1e-3])
    assert comparison.ours[0].rows[-1] == 2000
    assert comparison.ours[0].loss[-1] < 0.69
    assert [curve.alpha for curve in comparison.grid] == [1e-4, 1e-3]


@pytest.mark.slow
def test_the_sample_is_played_where_the_data_are_not(example, tmp_path, monkeypatch, capsys):
    def missing(name):
        raise DataError(tmp_path / name, "it is not here", "Download it")

    monkeypatch.setattr(example, "load", missing)
    path = tmp_path / "figure.png"
    example.main(rows=1500, figure=path)
    printed = capsys.readouterr()
    assert printed.out.count("covtype sample: 1,500 rows") == 1
    assert "Download it" in printed.err
    assert path.stat().st_size > 10_000


@pytest.mark.slow
def test_the_script_says_how_it_is_used():
    done = subprocess.run([sys.executable, str(SCRIPT), "--help"], capture_output=True, text=True, check=True)
    assert all(option in done.stdout for option in ("--data", "--rows", "--figure"))
