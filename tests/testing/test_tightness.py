"""No learner's theorem is refuted by the search for worst-case sequences."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("joblib", reason="the catalogue needs the extra `experiments`")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import tightness


@pytest.mark.cross
@pytest.mark.parametrize("name", sorted(set(tightness.learners()) - set(tightness.SKIPPED)))
def test_no_theorem_is_refuted(name):
    """Every learner with a bound, on every small problem that it accepts."""
    for label, problem, case in tightness.cases(tightness.learners()[name], generations=10):
        assert case.ratio <= 1 + 1e-9, (label, problem, case)
