"""Rows, learners, their states and comparisons that tests of linear models share."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from longterm.linear_model import BudgetLinearLearner
from longterm.linear_model._average import DrawnRounds
from longterm.linear_model.kernels import heap
from longterm.linear_model.kernels.layout import WEIGHTS
from longterm.linear_model.kernels.losses import CODES

LOSSES = tuple(CODES)


def rows_and_labels(n=300, d=7, seed=0, regression=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    signal = X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, signal if regression else np.where(signal > 0, 1.0, -1.0)


def sparse_rows(rng, n, d, density=0.05, dtype=np.float64):
    X = csr_array(random_array((n, d), density=density, rng=rng, dtype=dtype, data_sampler=rng.standard_normal))
    X.sort_indices()
    return csr_array((X.data.astype(dtype), X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=(n, d))


def learner_for(rule, d=7, **more):
    return BudgetLinearLearner(d, 1.0, rule=rule, **{"scale_features": False} | more)


def learner_with(rule, parameters, dimension, sparse=False, one_scale=False):
    """A learner that plays with just these constants; with `one_scale` all of the mixture is in the largest radius."""
    p = parameters
    learner = BudgetLinearLearner(
        dimension,
        p.budget,
        l1=p.l1,
        l2=p.l2,
        loss=LOSSES[p.loss],
        loss_parameter=p.loss_parameter or None,
        rule=rule,
        fit_intercept=p.intercept_bound > 0,
        intercept_bound=p.intercept_bound,
        sparse=sparse,
        scale_features=False,
    )
    learner._state.mixtures[...] = np.zeros((), dtype=learner._state.mixtures.dtype)
    learner._state.use(parameters)
    if one_scale:
        learner._state.scalars["first_length"] = 1.0  # priors are set
        mixture = learner._state.mixture(WEIGHTS)
        mixture.prior[:], mixture.share[:] = -np.inf, 0.0
        mixture.prior[0], mixture.share[0] = 0.0, 1.0
    return learner


def put(learner, vector, **scalars):
    """Give a learner this state, by the names of its scalars. Its average is not drawn any more."""
    for name, value in scalars.items():
        learner._state.scalars[name] = value
    learner._until_drawn = 10**12
    learner._state.z[:] = vector
    learner._state.rebuild_heap()
    return learner


def as_if_drawn(learner):
    """The average as if every stretch so far had had its round: a state that was put in had none."""
    average = learner._average
    n = learner.rounds // average.length + 1
    average.drawn = DrawnRounds(np.array([n], dtype=np.int64), np.zeros(learner._state.dimension + 1))
    return learner


def same(one, other):
    assert one._specification() == other._specification()
    mine, theirs = one._arrays(), other._arrays()
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        np.testing.assert_array_equal(array.view(np.uint64), theirs[name].view(np.uint64), err_msg=name)


def step_all(learner, X, y, weights=None):
    return np.array(
        [
            learner.step_dense(u, label, 1.0 if weights is None else weights[i])
            for i, (u, label) in enumerate(zip(X, y, strict=True))
        ]
    )


def trace_of(learner, X, y):
    """Learn row by row. Return the non-zeros and the multiplier before each row, and the sums after it, as columns."""
    lines = []
    for t in range(len(y)):
        before = learner.nonzeros, learner.multiplier
        learner.learn(X[t : t + 1], y[t : t + 1])
        lines.append((*before, learner.cumulative_loss, learner.signed_violation))
    return dict(zip(("nonzeros", "multiplier", "loss", "signed_violation"), np.array(lines).T, strict=True))


def require_sound(learner, drift=1e-300):
    """Every promise of a sparse learner's heap, checked from outside. `drift` is what larger sums may have left."""
    rule = learner._state
    s, places = rule.scalars[0], rule.dimension.bit_length()
    words, entries = rule.vector["entry"], rule.heap[: s["entries"]]
    lengths, threshold = np.abs(rule.z), s["multiplier_sum"] * rule.parameters["l1"][0]
    alive = lengths > threshold
    assert s["active"] == np.count_nonzero(alive)
    if threshold == 0:  # no heap before the budget binds
        assert s["live"] == s["entries"] == np.count_nonzero(words) == 0
        alive = np.zeros(len(alive), dtype=bool)
    assert s["live"] == np.count_nonzero(words)
    assert len(entries) <= len(rule.heap) == 2 * rule.dimension + heap.SLACK
    assert np.isin(words[words > 0], entries).all()
    assert (words[alive] > 0).all()
    assert np.array_equal(words[words > 0] & np.uint64(2**places - 1), np.flatnonzero(words) + 1)
    keys = (words >> np.uint64(places) << np.uint64(places) >> np.uint64(1)).view(np.float64)
    assert (keys[alive] <= lengths[alive]).all()
    parents = (np.arange(1, len(entries)) - 1) // heap.ARITY
    assert (entries[parents] <= entries[1:]).all()
    w = np.maximum(lengths - threshold, 0)
    assert s["norm_1"] + s["norm_1_low"] == pytest.approx(math.fsum(w), rel=1e-11, abs=drift)
    assert s["norm_2"] + s["norm_2_low"] == pytest.approx(math.fsum(w * w), rel=1e-11, abs=drift)
