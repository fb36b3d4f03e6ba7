"""Snapshots that an earlier version wrote still load, and the learner goes on as it did then."""

import json
from pathlib import Path

import numpy as np
import pytest

from longterm import linear_model
from longterm.errors import SnapshotError
from longterm.linear_model import BudgetLinearLearner
from longterm.linear_model import _memory as memory
from longterm.storage.snapshot import read_snapshot

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


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_file_of_the_first_layout_says_who_wrote_it(form):
    with pytest.raises(SnapshotError, match=r"a longterm before 0\.1\.0 wrote it") as caught:
        BudgetLinearLearner.load(GOLDEN / "older" / f"layout_14_{form}.snapshot")
    assert caught.value.reason == "older"


SETTINGS = ["dimension", "budget", "l1", "l2", "loss", "loss_parameter", "rule", "intercept_bound", "beta", "growth"]
LAYOUTS = {
    1: {
        "metadata": ["settings", "widens", "sparse", "level", "seed"],
        "settings": [*SETTINGS, "given"],
        "dense": {
            "game.round": ("<i8", 1),
            "game.numbers": ("<f8", 15),
            "game.vector": ("<f8", 6),
            "average.stretches": ("<i8", 1),
            "average.total": ("<f8", 0),
        },
        "sparse": {
            "game.round": ("<i8", 4),
            "game.numbers": ("<f8", 17),
            "game.memory": ("<f8", 12),
            "game.heap": ("<u8", 0),
            "average.stretches": ("<i8", 1),
            "average.total": ("<f8", 0),
        },
    },
    2: {
        "metadata": ["settings", "widens", "sparse", "level", "seed"],
        "settings": [*SETTINGS, "given", "scales", "offset", "max_features", "residual_radius"],
        "dense": {
            "game.round": ("<i8", 1),
            "game.numbers": ("<f8", 15),
            "game.mixed": ("<f8", 11),
            "game.mixture": ("<f8", 128),
            "game.vector": ("<f8", 6),
            "average.stretches": ("<i8", 1),
            "average.total": ("<f8", 0),
        },
        "sparse": {
            "game.round": ("<i8", 4),
            "game.numbers": ("<f8", 17),
            "game.mixed": ("<f8", 11),
            "game.mixture": ("<f8", 128),
            "game.memory": ("<f8", 12),
            "game.heap": ("<u8", 0),
            "average.stretches": ("<i8", 1),
            "average.total": ("<f8", 0),
        },
    },
    3: {
        "metadata": ["settings", "widens", "sparse", "level", "seed"],
        "settings": [*SETTINGS, "given", "scales", "offset", "max_features", "residual_radius"],
        "dense": {
            "game.round": ("<i8", 1),
            "game.numbers": ("<f8", 15),
            "game.mixed": ("<f8", 12),
            "game.mixture": ("<f8", 128),
            "game.vector": ("<f8", 6),
            "average.stretches": ("<i8", 1),
            "average.total": ("<f8", 0),
        },
        "sparse": {
            "game.round": ("<i8", 4),
            "game.numbers": ("<f8", 17),
            "game.mixed": ("<f8", 12),
            "game.mixture": ("<f8", 128),
            "game.memory": ("<f8", 12),
            "game.heap": ("<u8", 0),
            "average.stretches": ("<i8", 1),
            "average.total": ("<f8", 0),
        },
    },
}
LAYOUTS[4] = LAYOUTS[3] | {
    "scaled": LAYOUTS[3]["dense"]
    | {f"scale.{name}": ("<f8", 6) for name in ("factors", "squares", "seen", "most", "means", "sums")}
    | {"scale.counts": ("<i8", 1), "scale.slopes": ("<f8", 1), "scale.steepness": ("<f8", 7)}
}
LAYOUTS[5] = LAYOUTS[4] | {
    form: LAYOUTS[4][form] | {"game.mixed": ("<f8", 25)} for form in ("dense", "sparse", "scaled")
}
"""What a fresh learner of six weights stores in each version. Never change one: add the next, with its golden files."""


@pytest.mark.parametrize("form", ["dense", "sparse", "scaled"])
def test_a_change_of_layout_raises_the_version(tmp_path, form):
    BudgetLinearLearner(6, 2.0, sparse=form == "sparse", scale_features=form == "scaled").save(tmp_path / "file")
    stored, _ = read_snapshot(tmp_path / "file", memory.KIND, memory.VERSION)
    layout = LAYOUTS[stored.version]
    assert list(stored.metadata) == layout["metadata"]
    assert list(stored.metadata["settings"]) == layout["settings"]
    assert {name: (array.dtype.str, array.size) for name, array in stored.arrays.items()} == layout[form]
    assert max(LAYOUTS) == memory.VERSION


ESTIMATORS = json.loads((GOLDEN / "estimators" / "predictions.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_of_an_earlier_version_loads_and_goes_on_as_it_did(name):
    """Files begin with the version of the learners in them."""
    known = ESTIMATORS[name]
    X = np.random.default_rng(0).standard_normal((60, 4)) + 3.0
    y = {"two": np.where(X[:, 0] > X[:, 1], 1, 0), "three": X[:, :3].argmax(axis=1), "targets": 50 + 3 * X[:, 0]}
    model = getattr(linear_model, known["class"]).load(GOLDEN / "estimators" / f"{name}.snapshot")
    scores = getattr(model, "decision_function", model.predict)
    exact = 1e-12 if name.startswith("5_") else 1e-9  # earlier ones were written with other kernels
    np.testing.assert_allclose(np.ravel(scores(X[:3])), known["before"], rtol=exact)
    model.partial_fit(X[:3], y[known["labels"]][:3])
    np.testing.assert_allclose(np.ravel(scores(X[:3])), known["after"], rtol=1e-9)
