"""Estimators in files: a loaded model equals the saved one, and forged files are refused."""

import hashlib
import struct
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from hypothesis_settings import examples
from longterm.errors import InputError, SnapshotError
from longterm.linear_model import (
    BudgetLinearClassifier,
    BudgetLinearLearner,
    BudgetLinearRegressor,
    BudgetPathClassifier,
    BudgetPathRegressor,
    EvolvingLinearLearner,
)
from longterm.storage.snapshot import read_snapshot

X = pd.DataFrame(np.random.default_rng(0).standard_normal((120, 4)), columns=["width", "height", "age", "noise"])
TWO = np.where(X["width"] > X["height"], "yes", "no")
THREE = X.to_numpy()[:, :3].argmax(axis=1)
TARGETS = 50 + 3 * X["width"].to_numpy()

FITTED = {
    "two": (BudgetLinearClassifier(random_state=0, class_weight={"yes": 2.0, "no": 1.0}), TWO),
    "three": (BudgetLinearClassifier(3.0, rule="penalised-ftrl", random_state=0), THREE),
    "targets": (BudgetLinearRegressor(random_state=0), TARGETS),
    "penalised": (BudgetLinearRegressor(2.0, rule="penalised-ftrl", random_state=0), TARGETS),
    "path": (BudgetPathClassifier(3, random_state=0, n_jobs=1), THREE),
    "path of targets": (BudgetPathRegressor([0.1, 10.0], random_state=0, n_jobs=1), TARGETS),
}


@pytest.mark.parametrize("name", FITTED)
def test_a_loaded_model_predicts_and_continues_bit_for_bit(tmp_path, name):
    model, y = FITTED[name]
    for learn in (model.fit, model.partial_fit):
        learn(X, y)
        model.save(tmp_path / "model")
        again = type(model).load(tmp_path / "model")
        assert (
            model.to_bytes() == (tmp_path / "model").read_bytes() == type(model).from_bytes(model.to_bytes()).to_bytes()
        )
        assert repr(again.get_params()) == repr(model.get_params())
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
        np.testing.assert_array_equal(getattr(again, "classes_", []), getattr(model, "classes_", []))
        assert str(again.summary()) == str(model.summary())
        for one in (model, again):
            one.partial_fit(X[:9], y[:9])
        np.testing.assert_array_equal(again.coef_, model.coef_)
        np.testing.assert_array_equal(again.cumulative_loss_, model.cumulative_loss_)
        np.testing.assert_array_equal(again.average_coef_, model.average_coef_)
        if name.startswith("path"):
            np.testing.assert_array_equal(again.loss_path_, model.loss_path_)
            np.testing.assert_array_equal(again.standard_error_path_, model.standard_error_path_)


@pytest.mark.parametrize("labels", [[False, True], [1, 5], [0.0, 1.0], ["a", "bé"], np.array(["a", "b"], dtype=object)])
def test_labels_of_every_kind_are_restored(tmp_path, labels):
    model = BudgetLinearClassifier(random_state=0).fit(X, np.asarray(labels)[(TWO == "yes").astype(int)])
    model.save(tmp_path / "model")
    again = BudgetLinearClassifier.load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    assert again.predict(X[:20]).tolist() == model.predict(X[:20]).tolist()


@pytest.mark.parametrize("kind", [BudgetLinearRegressor, BudgetLinearLearner, EvolvingLinearLearner])
def test_bytes_that_no_model_of_this_kind_made_are_refused(kind):
    other = BudgetLinearClassifier(random_state=0).fit(X, TWO).to_bytes()
    for data, reason in ((b"", "truncated"), (b"a,b\n1,2\n", "foreign"), (other[:-1], "truncated"), (other, "foreign")):
        with pytest.raises(SnapshotError, match=reason):
            kind.from_bytes(data)


@pytest.mark.parametrize("kind", [BudgetLinearLearner, EvolvingLinearLearner])
def test_a_learner_continues_from_its_bytes(kind):
    learner = kind(4, 1.0)
    learner.learn(X.to_numpy(), np.where(TWO == "yes", 1.0, -1.0))
    again = kind.from_bytes(learner.to_bytes())
    for one in (learner, again):
        one.step_dense(X.to_numpy()[0], 1.0)
    assert again.to_bytes() == learner.to_bytes()


def test_a_model_that_cannot_be_stored_writes_no_file(tmp_path):
    with pytest.raises(NotFittedError):
        BudgetLinearRegressor().save(tmp_path / "model")
    model = BudgetLinearRegressor(random_state=np.random.RandomState(0)).fit(X, TARGETS)
    with pytest.raises(InputError, match="random_state: RandomState cannot be stored"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    model.set_params(random_state=3).save(tmp_path / "model")


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "file"
    BudgetLinearLearner(3, 1.0).save(path)
    with pytest.raises(SnapshotError, match="budget linear learner") as caught:
        BudgetLinearClassifier.load(path)
    assert caught.value.reason == "foreign"
    BudgetLinearClassifier(random_state=0).fit(X, TWO).save(path)
    with pytest.raises(SnapshotError, match="not a BudgetLinearRegressor"):
        BudgetLinearRegressor.load(path)


# --- forged files ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A file of three classes, and of a path: as they are read, before anything is believed."""
    folder = tmp_path_factory.mktemp("stored")
    found = {}
    for model in (BudgetLinearClassifier(random_state=0), BudgetPathClassifier(2, random_state=0, n_jobs=1)):
        model.fit(X, THREE).save(folder / "file")
        found[type(model)] = read_snapshot(folder / "file", type(model).file_kind, 1)
    return found


def forged(snapshot, tmp_path, change):
    metadata, arrays = dict(snapshot.metadata), dict(snapshot.arrays)
    change(metadata, arrays)
    (tmp_path / "forged").write_bytes(replace(snapshot, metadata=metadata, arrays=arrays).encode())
    return tmp_path / "forged"


def put(key, value):
    return lambda metadata, arrays: metadata.__setitem__(key, value)


def array(key, value):
    return lambda metadata, arrays: arrays.__setitem__(key, value)


FORGERIES = {
    "a parameter too many": put("parameters", {"budget": 1.0, "__class__": "os.system"}),
    "a parameter of no kind": put("parameters", {"budget": {"call": ["os.system", "true"]}}),
    "a parameter within": put("parameters", {"class_weight": {"pairs": [["a", [1]]]}}),
    "a model that is none": put("parameters", {"predict_with": "__dict__"}),
    "classes of another kind": put("classes", {"dtype": "<M8[s]", "values": [1, 2, 3]}),
    "classes of a long text": put("classes", {"dtype": "<U999999999", "values": ["a", "b", "c"]}),
    "classes twice": put("classes", {"dtype": "<i8", "values": [0, 0, 1]}),
    "a class that is no number": put("classes", {"dtype": "<i8", "values": [0, "1", 2]}),
    "two classes, three learners": put("classes", {"dtype": "<i8", "values": [0, 1]}),
    "no classes": lambda metadata, arrays: metadata.pop("classes"),
    "another number of names": put("feature_names", ["a"]),
    "names that are numbers": put("feature_names", [1, 2, 3, 4]),
    "a newer learner": put("learner_version", 99),
    "no learners": put("learners", []),
    "learners that are none": put("learners", [1, 2, 3]),
    "one key more": put("code", "print()"),
    "not fitted": put("fitted", 1),
    "an average of nothing": put("samples", [1]),
    "an array more": array("learner.7.state.scalars", np.zeros(1)),
    "a learner's round": array("learner.1.state.scalars", np.full(27, 7.0)),
    "a learner's vector": array("learner.0.state.vector", np.full(4, np.nan)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_file_is_refused(stored, tmp_path, forgery):
    with pytest.raises(SnapshotError) as caught:
        BudgetLinearClassifier.load(forged(stored[BudgetLinearClassifier], tmp_path, FORGERIES[forgery]))
    assert caught.value.reason == "damaged"


def test_an_average_that_is_not_finite_is_refused(stored, tmp_path):
    change = array("average.0.mean", np.array([0.0, np.inf, 0.0, 0.0, 0.0]))
    with pytest.raises(SnapshotError, match="average"):
        BudgetLinearClassifier.load(forged(stored[BudgetLinearClassifier], tmp_path, change))


@pytest.mark.parametrize(
    "change",
    [
        array("scores.0.counts", np.array([-1, 1201, 8])),
        array("scores.0.counts", np.array([120, 1080, 9])),
        array("scores.0.sums", np.zeros(3)),
        array("scores.1.ends", np.full((16, 2), np.nan)),
        lambda metadata, arrays: metadata["parameters"].__setitem__("choose", "worst"),
        lambda metadata, arrays: metadata.__setitem__("learners", metadata["learners"][:5]),
    ],
)
def test_a_forged_path_is_refused(stored, tmp_path, change):
    original = stored[BudgetPathClassifier]
    original = replace(original, metadata={**original.metadata, "parameters": dict(original.metadata["parameters"])})
    with pytest.raises(SnapshotError):
        BudgetPathClassifier.load(forged(original, tmp_path, change))


@pytest.mark.slow
@examples(40)
@given(place=st.integers(20, 5000), bits=st.integers(1, 255))
def test_a_file_with_a_changed_byte_and_a_valid_checksum(stored, tmp_path_factory, place, bits):
    data = bytearray(stored[BudgetLinearClassifier].encode())
    place = 20 + place % (len(data) - 52)
    data[place] ^= bits
    data[12:20] = struct.pack("<Q", len(data))
    path = tmp_path_factory.mktemp("bits") / "file"
    path.write_bytes(bytes(data[:-32]) + hashlib.sha256(bytes(data[:-32])).digest())
    try:
        model = BudgetLinearClassifier.load(path)
    except SnapshotError:
        return
    rows = X.set_axis(model.feature_names_in_, axis=1)
    assert np.isfinite(model.decision_function(rows)).all()
    with suppress(InputError):  # of a parameter, as if it had come from set_params
        model.partial_fit(rows[:5], model.classes_[[0, 1, 2, 0, 1]])


# --- summaries ------------------------------------------------------------------------------------------------


def test_a_summary_lists_the_largest_weights():
    model = BudgetLinearRegressor(6.0, random_state=0).fit(X, TARGETS)
    lines = str(model.summary(top=1)).splitlines()
    assert lines[0].startswith("BudgetLinearRegressor: ")
    weights = model.coef_ * model._learners[0].sizes
    np.testing.assert_allclose(model._learners[0].sizes, X.to_numpy().std(axis=0), rtol=0.02)
    used = np.abs(weights).sum() + 0.5 * weights @ weights
    assert f"budget 6, used {used:.4g} ({used / 6:.1%}), multiplier {model.multiplier_:.4g}" in lines[1]
    assert "does not bind" not in lines[1]
    assert lines[2].split() == ["feature", "weight"]
    assert lines[3].split()[0] == "(intercept)"
    assert lines[4].split() == ["width", f"{model.coef_[0]:.4g}"]
    others = np.count_nonzero(model.coef_) - 1
    assert len(lines) == 5 + (others > 0)


def test_a_summary_does_not_depend_on_units():
    """Features in another unit: the same model, and so the same use of its budget."""
    titles = [
        str(BudgetLinearRegressor(6.0, scale_features=True, random_state=0).fit(unit * X, TARGETS).summary())
        for unit in (1.0, 1024.0)
    ]
    one, other = (title.splitlines()[1].split(", multiplier")[0] for title in titles)
    assert one == other
    assert "%" in one


def test_a_summary_of_several_classes_has_a_column_for_each():
    model = BudgetLinearClassifier(random_state=0, fit_intercept=False).fit(X.to_numpy(), THREE)
    table = model.summary(top=2)
    assert table.headings == ("feature", "0", "1", "2")
    assert "budget" not in table.title  # there is none, so nothing is said about one
    assert {row[0] for row in table.rows[:2]} <= {"x0", "x1", "x2"}
    assert "<table>" in table._repr_html_()
