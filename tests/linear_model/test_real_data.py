"""Whole runs on real data: better rules have less regret and violation."""

import os
from pathlib import Path

import numpy as np
import pytest

from longterm import AOGD, hindsight, run
from longterm.data import load
from longterm.linear_model import BudgetLinearLearner
from longterm.problems import budgeted_logistic
from longterm.problems.streams import ResampledRows

BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[3] / "shared" / "data"
REAL = Path(os.environ.get("LONGTERM_DATA") or BESIDE_THE_CHECKOUT)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (REAL / "ijcnn1.bz2").exists(), reason="no folder with the real files: set LONGTERM_DATA to one"
    ),
]
BUDGETS = {"ijcnn1": 3.419, "covtype": 6.987}


@pytest.fixture(scope="module", params=["ijcnn1", pytest.param("covtype", marks=pytest.mark.cross)])
def stream_of_rows(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGTERM_DATA", str(REAL))
        patch.setenv("LONGTERM_CACHE", os.environ.get("LONGTERM_CACHE") or str(tmp_path_factory.mktemp("cache")))
        data = load(request.param)
    problem = budgeted_logistic(data.features, BUDGETS[request.param])
    return request.param, problem, ResampledRows(data.features, data.labels), data


def test_regret_and_violation_of_the_rules(stream_of_rows):
    """The figures that were asked for, on two of the ten sequences (`benchmarks/linear_regret.py` has all)."""
    name, problem, stream, data = stream_of_rows
    rounds, seeds = len(data.labels), (0, 1)
    best = hindsight.best(problem, stream, [rounds], seeds=seeds, progress=None)
    means = {}
    for rule in ("a-ftrl", "penalised-ftrl"):
        results = []
        for position, seed in enumerate(seeds):
            learner = BudgetLinearLearner(problem.dimension, BUDGETS[name], rule=rule, fit_intercept=False)
            learner.learn(data.features, data.labels, order=np.asarray(stream.drawn(seed, 0, rounds)))
            regret = learner.cumulative_loss - best.loss[-1, position]
            results.append((regret, learner.hard_violation, learner.nonzeros))
        means[rule] = np.mean(results, axis=0)
    aogd = run(problem, AOGD.for_problem(problem), stream, rounds, seeds=seeds, record=[rounds], progress=None)
    regret = (aogd.cumulative_loss[-1] - best.loss[-1]).mean()
    assert means["a-ftrl"][0] <= 0.4 * regret
    assert means["a-ftrl"][1] <= aogd.hard_violation[-1].mean()
    assert means["penalised-ftrl"][0] <= means["a-ftrl"][0]
    assert means["penalised-ftrl"][1] < 1
