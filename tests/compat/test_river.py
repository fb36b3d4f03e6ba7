"""River's interface: its own checks, features that come and go, frames, and the learner behind it."""

import pickle

import numpy as np
import pandas as pd
import pytest

from longterm.errors import InputError
from longterm.linear_model import EvolvingLinearLearner
from longterm.linear_model._parity import GroupPrices

checks = pytest.importorskip("river.checks", reason="the extra river is not installed")
ours = pytest.importorskip("longterm.compat.river")


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n)
    return [dict(zip("abcd", row.tolist(), strict=True)) for row in X], y


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # its checks try what warns
@pytest.mark.parametrize(
    "model",
    [
        ours.LinearClassifierStream(),
        pytest.param(ours.LinearRegressorStream(half_life=50.0), marks=pytest.mark.cross),
    ],
    ids=str,
)
def test_river_checks(model):
    assert not model._unit_test_skips()
    checks.check_estimator(model)


@pytest.mark.parametrize("budget", [None, 20.0])
def test_the_model_is_that_of_its_learner(budget):
    X, y = rows()
    model = ours.LinearRegressorStream(budget)
    predicted = []
    for x, target in zip(X, y, strict=True):
        predicted.append(model.predict_one(x))
        model.learn_one(x, target)
    used = model.learner.settings.budget
    learner = EvolvingLinearLearner(64, used, loss="squared", sparse=True)
    wide = np.pad(np.array([list(x.values()) for x in X]), ((0, 0), (0, 60)))
    known = 16 if budget is None else 0  # before that there is no scale, and the mean is all that is known
    np.testing.assert_allclose(predicted[known:], learner.learn(wide, y)[known:], rtol=1e-9, atol=1e-9)
    assert model.weights == pytest.approx(dict(zip("abcd", learner.weights[:4], strict=True)))
    if budget is None:
        assert predicted[13] == pytest.approx(np.mean(y[:13]))


def test_new_names_change_no_prediction():
    model, again = ours.LinearClassifierStream(50.0), ours.LinearClassifierStream(50.0)
    X, y = rows(400)
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        model.learn_one(x | {f"new {t}": 0.0}, target > 0)
        again.learn_one(x, target > 0)
    assert model.learner.settings.dimension == 512
    assert again.learner.settings.dimension == 64
    assert model.predict_proba_one(X[0]) == again.predict_proba_one(X[0])
    assert model.predict_proba_one({"unheard of": 1.0}) == again.predict_proba_one({})
    assert model.predict_one({}) in (True, False)


def test_frames_equal_single_rows():
    X, y = rows(200)
    one, many = ours.LinearClassifierStream(half_life=40.0), ours.LinearClassifierStream(half_life=40.0)
    for x, target in zip(X, y, strict=True):
        one.learn_one({name: value for name, value in x.items() if value > -1}, target > 0, 2.0)
    frame = pd.DataFrame(X)[["d", "b", "a", "c"]]
    frame = frame.where(frame > -1)  # what is missing is not there
    for start, stop in ((0, 7), (7, 120), (120, 200)):
        many.learn_many(frame[start:stop], pd.Series(y > 0)[start:stop], 2.0)
    assert many.weights == pytest.approx(one.weights, rel=1e-9)
    proba = many.predict_proba_many(pd.DataFrame(X[:5]))
    assert proba[True].to_numpy() == pytest.approx([one.predict_proba_one(x)[True] for x in X[:5]], rel=1e-9)
    assert pickle.loads(pickle.dumps(many)).weights == many.weights


def test_bad_rows():
    model = ours.LinearClassifierStream(1.0)
    with pytest.raises(InputError, match="'colour' is 'red'"):
        model.learn_one({"size": 1.0, "colour": "red"}, True)
    with pytest.raises(InputError, match="NaN"):
        model.learn_one({"size": float("nan")}, True)
    assert model.predict_proba_one({"size": 1.0}) == {False: 0.5, True: 0.5}


def test_online_conformal_covers_overall_and_by_group():
    from river import compose, linear_model

    from longterm.compat.river import OnlineConformal

    rng = np.random.default_rng(0)
    model = OnlineConformal(compose.Select("a") | linear_model.LinearRegression(), 0.8, groups=lambda x: [x["day"]])
    inside = {"weekday": [], "weekend": []}
    for t in range(1500):
        x = {"a": rng.normal(), "day": "weekend" if t % 7 > 4 else "weekday"}
        y = 2.0 * x["a"] + rng.normal() * (4.0 if t % 7 > 4 else 1.0)
        inside[x["day"]].append(y in model.predict_one(x, with_interval=True))
        model.learn_one(x, y)
    assert all(abs(np.mean(values) - 0.8) < 0.03 for values in inside.values())
    assert isinstance(model.predict_one(x), float)
    assert model.clone().intervals.state.told == 0


def test_fair_classifier_is_that_of_its_prices():
    """Rows are learned with the label and weight that the prices give; the group is no feature."""
    model, rng = ours.FairClassifierStream("sex", tolerance=0.05, budget=50.0), np.random.default_rng(0)
    learner, prices = EvolvingLinearLearner(64, 50.0, sparse=True), GroupPrices("demographic_parity", 0.05, 1000)
    for _ in range(200):
        u, sex = rng.standard_normal(2), str(rng.choice(["f", "m"]))
        x, y = {"a": u[0], "sex": sex, "b": u[1]}, bool(u[0] > 0)
        number, label = prices.numbers_of([sex]), np.array([1.0 if y else -1.0])
        signed = float(prices.signed_weights(number, label)[0])
        assert model.predict_proba_one(x) == model.predict_proba_one(x | {"sex": "?"})
        model.learn_one(x, y)
        margin = learner.step([0, 1], u, 1.0 if signed > 0 else -1.0, abs(signed))
        prices.observe(number, label, np.array([margin > 0]))
    assert model.weights == pytest.approx(dict(zip("ab", learner.weights[:2], strict=True)))
    assert model.group_rates == prices.rates()
    assert model.violation == prices.violation


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_river_checks_of_the_fair_classifier():
    checks.check_estimator(ours.FairClassifierStream())
