"""Snapshots that an earlier version wrote still load, and the learner goes on as it did then."""

import json
from pathlib import Path

import numpy as np
import pytest

from longterm.linear_model import BudgetLinearLearner

GOLDEN = Path(__file__).parent / "golden"
MARGINS = json.loads((GOLDEN / "margins.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MARGINS)
def test_a_snapshot_of_an_earlier_version_loads_and_goes_on_as_it_did(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    y = np.sign(X[:, 0] + 0.3 * rng.standard_normal(50))
    learner = BudgetLinearLearner.load(GOLDEN / f"{name}.snapshot")
    assert learner.rounds == 50
    if name.endswith("sparse"):
        margins = [learner.step(np.arange(6), X[i], y[i]) for i in range(5)]
    else:
        margins = [learner.step_dense(X[i], y[i]) for i in range(5)]
    np.testing.assert_allclose(margins, MARGINS[name], rtol=1e-9, atol=1e-12)


def test_a_state_of_another_length_is_refused():
    learner = BudgetLinearLearner(6, 2.0)
    stored = learner._arrays()
    stored["game.numbers"] = stored["game.numbers"][:-1]
    with pytest.raises(ValueError, match="shorter"):
        learner.__setstate__({"specification": learner._specification(), "arrays": stored})
