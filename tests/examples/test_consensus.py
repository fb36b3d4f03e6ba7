"""The consensus study: its command, and what it shows."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the figure is matplotlib's")
pytest.importorskip("tyro", reason="examples need the extra `experiments`")

from consensus import agree, main
from longterm.cli import run_function


@pytest.mark.slow
def test_the_example_runs_and_its_agents_agree(tmp_path, capsys):
    assert run_function(main, ["--agents", "3", "--rounds", "300", "--sequences", "2", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "consensus.png").stat().st_size > 10_000
    assert "own mean target" in capsys.readouterr().out
    found = agree(4, 1500, 3)
    assert np.ptp(found.decisions[-1], axis=-1).max() < 0.05 * np.ptp(found.means)
    assert np.all(found.means_apart.mean(axis=1) <= found.means_apart_bound)
    assert np.all(found.regret <= found.regret_bound[:, None])
