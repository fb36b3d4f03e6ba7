"""Rows, learners and comparisons that tests of the streaming object share."""

import numpy as np

from longterm.linear_model import BudgetLinearLearner


def rows_and_labels(n=300, d=7, seed=0, regression=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    signal = X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, signal if regression else np.where(signal > 0, 1.0, -1.0)


def learner_for(rule, d=7, **more):
    if rule == "mahdavi":
        more |= {"constants": {"feature_norm": 8.0, "rounds": 3000, "label_bound": 5.0}}
    return BudgetLinearLearner(d, 1.0, rule=rule, **more)


def same(one, other):
    assert one._specification() == other._specification()
    mine, theirs = one._arrays(), other._arrays()
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def step_all(learner, X, y, weights=None):
    return np.array(
        [
            learner.step_dense(u, label, 1.0 if weights is None else weights[i])
            for i, (u, label) in enumerate(zip(X, y, strict=True))
        ]
    )
