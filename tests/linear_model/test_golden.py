"""Files of version 1 load, and the learner continues as it did when they were written.

`python tests/linear_model/test_golden.py` writes the files again, after a deliberate change of the layout.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from longterm import linear_model
from longterm.linear_model import BudgetLinearLearner
from longterm.storage.snapshot import read_snapshot

GOLDEN = Path(__file__).parent / "golden"
LEARNERS = {
    "a-ftrl_dense": {"scale_features": False},
    "a-ftrl_sparse": {"scale_features": False, "sparse": True},
    "penalised-ftrl_dense": {"scale_features": False, "rule": "penalised-ftrl"},
    "scaled_a-ftrl_dense": {"scale_features": True},
}


def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    return X, np.sign(X[:, 0] + 0.3 * rng.standard_normal(50))


def continue_learning(learner, name):
    """Return the margins of five more rows."""
    X, y = rows()
    if name.endswith("sparse"):
        return [learner.step(np.arange(6), X[i], y[i]) for i in range(5)]
    return [learner.step_dense(X[i], y[i]) for i in range(5)]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_golden_file_loads_and_the_learner_continues(name):
    margins = json.loads((GOLDEN / "margins.json").read_text(encoding="utf-8"))
    learner = BudgetLinearLearner.load(GOLDEN / f"{name}.snapshot")
    assert learner.rounds == 50
    np.testing.assert_allclose(continue_learning(learner, name), margins[name], rtol=1e-9, atol=1e-12)


def test_a_state_of_another_length_is_refused():
    learner = BudgetLinearLearner(6, 2.0)
    stored = learner._arrays()
    stored["state.scalars"] = stored["state.scalars"][:-1]
    with pytest.raises(ValueError, match=r"state\.scalars is float64 of shape"):
        learner.__setstate__({"specification": learner._specification(), "arrays": stored})


SETTINGS = [
    "dimension", "budget", "l1", "l2", "loss", "loss_parameter", "rule", "intercept_bound", "beta", "growth",
    "offset", "max_features", "residual_radius",
]  # fmt: skip
DENSE = {
    "state.scalars": ("<f8", 28),
    "state.mixtures": ("<f8", 2 * 77),
    "state.vector": ("<f8", 6),
    "average.stretches": ("<i8", 1),
    "average.total": ("<f8", 0),
}
LAYOUT = {
    "dense": DENSE,
    "sparse": DENSE | {"state.entries": ("<u8", 6), "state.heap": ("<u8", 0)},
    "scaled": DENSE
    | {f"scale.{name}": ("<f8", 6) for name in ("factors", "squares", "seen", "bounds", "means", "sums")}
    | {"scale.units": ("<f8", 2), "scale.expected": ("<f8", 3)}
    | {"scale.counts": ("<i8", 1), "scale.slopes": ("<f8", 1), "scale.steepness": ("<f8", 7)},
}
"""The arrays that a new learner of six weights stores."""


@pytest.mark.parametrize("form", LAYOUT)
def test_the_layout_of_a_file(tmp_path, form):
    BudgetLinearLearner(6, 2.0, sparse=form == "sparse", scale_features=form == "scaled").save(tmp_path / "file")
    stored = read_snapshot(tmp_path / "file", BudgetLinearLearner.file_kind, 1)
    assert stored.version == 1
    assert list(stored.metadata) == ["settings", "sparse", "level", "seed"]
    assert list(stored.metadata["settings"]) == SETTINGS
    assert {name: (array.dtype.str, array.size) for name, array in stored.arrays.items()} == LAYOUT[form]


ESTIMATORS = {
    "classifier_stream": ("BudgetLinearClassifier", "two", {"budget": 5.0}),
    "forgetful_stream": ("BudgetLinearClassifier", "two", {"half_life": 20.0}),
    "regressor_stream": ("BudgetLinearRegressor", "targets", {}),
    "classes_stream": ("BudgetLinearClassifier", "three", {"budget": 5.0}),
    "path_stream": ("BudgetPathClassifier", "two", {"budgets": [0.5, 5.0]}),
}


def estimator_rows():
    X = np.random.default_rng(0).standard_normal((60, 4)) + 3.0
    return X, {
        "two": np.where(X[:, 0] > X[:, 1], 1, 0),
        "three": X[:, :3].argmax(axis=1),
        "targets": 50 + 3 * X[:, 0],
    }


def scores(model):
    X, _ = estimator_rows()
    return np.ravel(getattr(model, "decision_function", model.predict)(X[:3]))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_golden_estimator_loads_and_continues(name):
    known = json.loads((GOLDEN / "estimators" / "predictions.json").read_text(encoding="utf-8"))[name]
    kind, labels, _ = ESTIMATORS[name]
    X, y = estimator_rows()
    model = getattr(linear_model, kind).load(GOLDEN / "estimators" / f"{name}.snapshot")
    np.testing.assert_allclose(scores(model), known["before"], rtol=1e-12)
    model.partial_fit(X[:3], y[labels][:3])
    np.testing.assert_allclose(scores(model), known["after"], rtol=1e-9)


def write_golden_files():
    """Write all golden files and the numbers that they are compared with."""
    X, y = rows()
    margins = {}
    for name, options in LEARNERS.items():
        learner = BudgetLinearLearner(6, 2.0, **options)
        learner.learn(X, y)
        learner.save(GOLDEN / f"{name}.snapshot")
        margins[name] = continue_learning(learner, name)
    (GOLDEN / "margins.json").write_text(json.dumps(margins, indent=1) + "\n", encoding="utf-8")
    X, targets = estimator_rows()
    predictions = {}
    for name, (kind, labels, options) in ESTIMATORS.items():
        model = getattr(linear_model, kind)(**options)
        classes = {} if labels == "targets" else {"classes": np.unique(targets[labels])}
        model.partial_fit(X, targets[labels], **classes)
        model.save(GOLDEN / "estimators" / f"{name}.snapshot")
        before = scores(model).tolist()
        model.partial_fit(X[:3], targets[labels][:3])
        predictions[name] = {"before": before, "after": scores(model).tolist()}
    (GOLDEN / "estimators" / "predictions.json").write_text(json.dumps(predictions, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_golden_files()
