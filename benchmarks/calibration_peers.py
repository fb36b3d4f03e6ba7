"""Other packages' rules on a stream of scores: online-conformal, MAPIE, crepes and River, where they are installed.

Each peer sees a forecast of 0 and the scores as outcomes, and returns its upper limits. None of them has groups.
"""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pandas as pd

WINDOW = 200
"""Rounds before the first interval, or kept, where a peer asks for a number."""


def installed_peers(alpha):
    """Return, by name, a function from scores to thresholds, or None where the package is not installed."""
    made = {
        "SAOCP": lambda: online_conformal("saocp", alpha),
        "FACI": lambda: online_conformal("faci", alpha),
        "MAPIE ACI": lambda: mapie_aci(alpha),
        "crepes": lambda: crepes_window(alpha),
        "River": lambda: river_jackknife(alpha),
    }
    found = {}
    for name, make in made.items():
        try:
            found[name] = make()
        except ImportError:
            found[name] = None
    return found


def online_conformal(kind, alpha):
    """Return SAOCP or FACI of online-conformal."""
    module = importlib.import_module(f"online_conformal.{kind}")

    def thresholds(scores):
        # Without a calibration set SAOCP takes 1 for the scale; give it what it would compute from the first scores.
        scale = {"max_scale": np.sqrt(3.0) * np.max(scores[:100])} if kind == "saocp" else {}
        peer = getattr(module, kind.upper())(None, None, calibrate=False, max_horizon=1, coverage=1.0 - alpha, **scale)
        found, zero = np.empty(len(scores)), pd.Series([0.0])
        for t, score in enumerate(scores):
            found[t] = np.max(np.abs(peer.predict(horizon=1)))
            peer.update(pd.Series([score]), zero, horizon=1)
        return found

    return thresholds


def mapie_aci(alpha, step=0.02, start=50):
    """Return MAPIE's ACI around a fitted forecast of 0; the first `start` scores calibrate it.

    Its intervals have two sides, so the outcomes get random signs, and half the width is the threshold.
    """
    from mapie.regression import TimeSeriesRegressor
    from sklearn.dummy import DummyRegressor

    def thresholds(scores):
        x = np.zeros((len(scores), 1))
        y = scores * np.random.default_rng(0).choice([-1.0, 1.0], len(scores))
        zero = DummyRegressor(strategy="constant", constant=0.0).fit(x, y)
        peer = TimeSeriesRegressor(zero, method="aci", cv="prefit").fit(x[:start], y[:start])
        found = np.full(len(scores), np.inf)
        for t in range(start, len(scores)):
            _, limits = peer.predict(x[t : t + 1], confidence_level=1.0 - alpha, allow_infinite_bounds=True)
            found[t] = 0.5 * (limits[0, 1, 0] - limits[0, 0, 0])
            now = x[t : t + 1], y[t : t + 1]
            peer.adapt_conformal_inference(*now, gamma=step, confidence_level=1.0 - alpha)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # `update` warns that it does not adapt
                peer.update(*now)
        return found

    return thresholds


def crepes_window(alpha):
    """Return crepes' split conformal regressor, fitted in every round to the last scores."""
    from crepes import ConformalRegressor

    def thresholds(scores):
        found = np.full(len(scores), np.inf)
        for t in range(int(1.0 / alpha), len(scores)):
            peer = ConformalRegressor().fit(scores[max(t - WINDOW, 0) : t])
            found[t] = peer.predict_int(np.zeros(1), confidence=1.0 - alpha)[0, 1]
        return found

    return thresholds


def river_jackknife(alpha):
    """Return River's RegressionJackknife around a model that predicts 0."""
    from river import conf, dummy, stats

    def thresholds(scores):
        peer = conf.RegressionJackknife(dummy.StatisticRegressor(stats.Sum()), 1.0 - 2.0 * alpha, window_size=WINDOW)
        peer.regressor.predict_one = lambda x: 0.0
        found = np.empty(len(scores))
        for t, score in enumerate(scores):
            found[t] = peer.predict_one({}, with_interval=True).upper
            peer.learn_one({}, score)
        return found

    return thresholds
