"""Intervals, estimators, panels and levels."""

import numpy as np
import pandas as pd
import pytest

from longterm.calibration import (
    Calibration,
    Intervals,
    OnlineConformalClassifier,
    OnlineConformalRegressor,
    PanelIntervals,
)
from longterm.errors import InputError


class Zero:
    """A regressor that predicts 0."""

    def predict(self, X):
        return np.zeros(len(X))


class Coin:
    """A classifier of three labels whose probabilities are its features."""

    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, X):
        return np.asarray(X)


@pytest.mark.parametrize("symmetric", [True, False])
def test_intervals_cover_overall_and_in_new_groups(symmetric):
    rng, intervals = np.random.default_rng(0), Intervals(0.9, groups=["weekday"], symmetric=symmetric)
    for t in range(1500):
        groups = ["weekday"] if t % 7 < 5 else ["weekend"]
        interval = intervals.ask(1.0, groups)
        assert interval.lower <= interval.upper
        intervals.tell(interval, 1.0 + rng.normal() * (1 if t % 7 < 5 else 5))
    assert set(intervals.coverage) == {"", "weekday", "weekend"}
    assert all(abs(share - 0.9) < 0.03 for share in intervals.coverage.values())
    assert abs(intervals.error[""]) < 20
    bound, error = intervals.bound(), list(intervals.error.values())
    assert np.all(bound.lower <= error)
    assert np.all(error <= bound.upper)


def test_late_and_skipped_outcomes():
    rng, intervals, open_ = np.random.default_rng(1), Intervals(0.8), []
    for t in range(400):
        open_.append(intervals.ask(0.0))
        if len(open_) > 10:
            one = open_.pop(int(rng.integers(len(open_))))
            intervals.skip(one) if t % 5 == 0 else intervals.tell(one, rng.normal())
    assert intervals.open_rounds == len(open_)
    assert abs(intervals.coverage[""] - 0.8) < 0.06


def test_plot_returns_a_figure_as_traces_do():
    plt = pytest.importorskip("matplotlib.pyplot")
    intervals = Intervals(0.9)
    for outcome in (1.0, 2.0, 3.0):
        intervals.tell(intervals.ask(0.0), outcome)
    figure = intervals.plot()
    assert len(figure.axes) == 3
    drawn, axes = plt.subplots(3, 1)
    assert intervals.plot(axes=axes) is drawn
    plt.close("all")


def test_wrong_input_leaves_the_intervals_as_they_were():
    intervals = Intervals(0.9)
    interval = intervals.ask(0.0)
    for call, match in [
        (lambda: intervals.tell(interval, float("nan")), "outcome"),
        (lambda: intervals.ask(float("inf")), "prediction"),
        (lambda: intervals.ask(0.0, "weekend"), "list of names"),
        (lambda: intervals.tell(interval, "many"), "outcome"),
        (lambda: intervals.tell(interval, 1e200), "score"),
        (lambda: intervals.tell("1", 1.0), "interval"),
        (lambda: intervals.ask(True), "prediction"),
        (lambda: intervals.ask(0.0, None), "groups"),
        (lambda: intervals.ask(0.0, [""]), "groups"),
        (lambda: intervals.ask(0.0, [3]), "groups"),
        (lambda: Intervals(1.0), "confidence_level"),
        (lambda: Intervals([0.8, 0.9]), "confidence_level"),
        (lambda: intervals.plot(window=0), "window"),
    ]:
        with pytest.raises(InputError, match=match):
            call()
    assert intervals.open_rounds == 1
    intervals.tell(interval, 1.0)
    with pytest.raises(InputError, match="not open"):
        intervals.tell(interval, 1.0)
    assert float(intervals.state.told) == 1


def test_regressor_batches_count_as_predicted():
    """The intervals that `update` counts are those that `predict_interval` gave for the same rows."""
    rng, model = np.random.default_rng(2), OnlineConformalRegressor(Zero(), 0.8)
    inside = []
    for _ in range(150):
        X, y = np.zeros((4, 1)), rng.normal(size=4)
        _, interval = model.predict_interval(X)
        inside += list((interval[:, 0, 0] <= y) & (y <= interval[:, 1, 0]))
        model.update(X, y)
    assert np.mean(inside) == pytest.approx(model.coverage_[""], abs=1e-12)
    lower, upper = model.certificate_.lower[0], model.certificate_.upper[0]
    assert lower <= model.error_[""] <= upper
    before = model.error_
    for call, match in [
        (lambda: model.update(X, y[:2]), "y"),
        (lambda: model.update(X, ["many"] * 4), "y"),
        (lambda: model.update(X, [0.0, 0.0, 0.0, 1e200]), "y"),
        (lambda: model.update(X, y, groups=[["a"], ["b"], ["c"], [4]]), "groups"),
        (lambda: model.predict_interval(X, groups=[["a"]]), "groups"),
        (lambda: model.predict_interval(X, groups=["a", "b", "c", "d"]), r"groups: 'a' is not a list. .*\[\['north'\]"),
    ]:
        with pytest.raises(InputError, match=match):
            call()
    assert model.error_ == before


def test_predicting_opens_no_round_and_adds_no_group():
    model = OnlineConformalRegressor(Zero())
    model.predict_interval(np.zeros((3, 1)), groups=[["a"], ["b"], ["a"]])
    assert set(model.coverage_) == {""}
    model.update(np.zeros((3, 1)), np.ones(3), groups=[["a"], ["b"], ["a"]])
    assert set(model.coverage_) == {"", "a", "b"}


def test_classifier_sets_cover():
    rng, model, held, size = np.random.default_rng(3), OnlineConformalClassifier(Coin(), 0.9), 0, 0
    for _ in range(600):
        p = rng.dirichlet([2.0, 1.0, 0.5])
        label = rng.choice(Coin.classes_, p=p)
        best, sets = model.predict_set(p[None])
        assert best[0] == Coin.classes_[np.argmax(p)]
        held += sets[0, list(Coin.classes_).index(label), 0]
        size += sets.sum()
        model.update(p[None], [label])
    assert abs(held / 600 - 0.9) < 0.03
    assert size / 600 < 2.7
    with pytest.raises(InputError, match="y"):
        model.update(p[None], ["d"])


def test_levels_never_cross_and_are_calibrated():
    rng, levels = np.random.default_rng(4), Calibration(np.array([0.3, 0.2, 0.05]), nested=True)
    state, misses = levels.init(), np.zeros(3)
    for _ in range(1500):
        asked, score = levels.ask(state), rng.exponential()
        assert np.all(np.diff(asked.threshold[np.isfinite(asked.threshold)]) >= 0)
        misses += score > asked.threshold
        state = levels.tell(state, asked, score)
    np.testing.assert_allclose(misses / 1500, [0.3, 0.2, 0.05], atol=0.02)
    assert np.all(levels.excess(state) <= levels.bound(state).upper)
    assert np.all(levels.excess(state) >= levels.bound(state).lower)
    with pytest.raises(InputError, match="decrease"):
        Calibration(np.array([0.05, 0.2]), nested=True)


def test_an_outcome_beyond_two_crossed_thresholds_counts_twice():
    """The adversary waits inside the interval until the thresholds cross."""
    intervals, missed, rounds = Intervals(0.9, symmetric=False), 0, 2000
    for t in range(rounds):
        interval = intervals.ask(0.0)
        below, above = interval.asked.threshold.tolist()
        middle = 0.5 * (above - below) if np.isfinite(above + below) else (-1.0) ** t
        outcome = middle + 0.2 * (below + above) if np.isfinite(above + below) else middle
        missed += not -below <= outcome <= above
        intervals.tell(interval, outcome)
    assert missed < 0.06 * rounds  # the nominal number is a tenth
    assert intervals.coverage[""] <= 1 - missed / rounds
    assert missed - 0.1 * rounds <= intervals.bound().upper[0]
    assert intervals.bound().lower[0] - 1e-9 <= intervals.error[""] <= intervals.bound().upper[0] + 1e-9


@pytest.mark.parametrize("delay", [0, 9])
@pytest.mark.parametrize("kind", ["above the lowest", "below the highest", "between", "scales"])
def test_levels_keep_their_bound_against_adversaries(kind, delay):
    rng, levels = np.random.default_rng(6), Calibration(np.array([0.4, 0.3, 0.05]), nested=True)
    state, waiting = levels.init((8, 3)), []
    for t in range(400):
        asked = levels.ask(state, open_rounds=len(waiting))
        q = np.where(np.isfinite(asked.threshold), asked.threshold, 1.0)
        score = {
            "above the lowest": q[:, 0] + 0.01,
            "below the highest": q[:, 2] - 0.01,
            "between": np.where(t % 3 == 0, q[:, 1], 0.5 * (q[:, 0] + q[:, 2])),
            "scales": 10.0 ** rng.integers(-3, 3, 8) * rng.standard_normal(8),
        }[kind]
        waiting.append((asked, np.clip(score, -1e90, 1e90)[:, None]))
        if len(waiting) > delay:
            state = levels.tell(state, *waiting.pop(int(rng.integers(len(waiting)))))
        excess, bound = levels.excess(state), levels.bound(state)
        assert np.all(excess <= bound.upper + 1e-7)
        assert np.all(excess >= bound.lower - 1e-7)


def test_panel_of_series_with_two_steps_ahead():
    rng, panel = np.random.default_rng(5), PanelIntervals(level=[80, 95])
    inside = np.zeros(2)
    ids = [f"series {i}" for i in range(20)]
    for t in range(150):
        frame = pd.DataFrame({"unique_id": np.repeat(ids, 2), "ds": np.tile([t, t + 1], 20), "Naive": 0.0, "Mean": 1.0})
        result = panel.predict(frame)
        y = rng.normal(size=20)
        settled = panel.update(pd.DataFrame({"unique_id": ids, "ds": t, "y": y}))
        assert settled == (40 if t == 0 else 80)
        now = result[result["ds"] == t]
        inside += [np.sum((now[f"Naive-lo-{p}"] <= y) & (y <= now[f"Naive-hi-{p}"])) for p in (80, 95)]
    np.testing.assert_allclose(inside / 3000, [0.8, 0.95], atol=0.03)
    assert panel.coverage_[80] == pytest.approx(0.8, abs=0.03)
    with pytest.raises(InputError, match="actuals"):
        panel.update(pd.DataFrame({"unique_id": [], "y": []}))
    with pytest.raises(InputError, match="forecasts"):
        panel.predict(pd.DataFrame({"id": [1]}))


@pytest.mark.parametrize("level", [[], [0], [80, 100], [np.nan], ["90"], [True]])
def test_wrong_levels_are_refused(level):
    with pytest.raises(InputError, match="level"):
        PanelIntervals(level)


@pytest.mark.parametrize("y", [1e200, -1e101, "many"])
def test_a_panel_is_unchanged_by_outcomes_that_it_cannot_use(y):
    panel, same = PanelIntervals(), PanelIntervals()
    frames = [pd.DataFrame({"unique_id": ["a"], "ds": [t], "Naive": [1.0]}) for t in range(5)]
    for frame in frames[:3]:
        panel.predict(frame), same.predict(frame)
    with pytest.raises(InputError, match="actuals"):
        panel.update(pd.DataFrame({"unique_id": ["a"] * 3, "ds": [0, 1, 2], "y": [1.5, 2.5, y]}))
    actuals = pd.DataFrame({"unique_id": ["a"] * 3, "ds": [0, 1, 2], "y": [1.5, 2.5, 3.5]})
    assert panel.update(actuals) == same.update(actuals) == 3
    pd.testing.assert_frame_equal(panel.predict(frames[3]), same.predict(frames[3]))
    with pytest.raises(InputError, match="forecasts"):
        panel.predict(frames[4].assign(Naive=y))
    pd.testing.assert_frame_equal(panel.predict(frames[4]), same.predict(frames[4]))
