"""The text that a GPU compiles, compiled for the host: one thread a learner, the same arithmetic. And the GPU itself.

What the host cannot test: shuffles between the threads of a learner, and launches. `make test-gpu` does, on a machine
with CuPy and a GPU; there all of this file runs.
"""

from __future__ import annotations

import ctypes
import shutil

import numpy as np
import pytest

from longterm.errors import InputError
from longterm.linear_model import BudgetLinearLearner, BudgetPath
from longterm.linear_model._together import columns
from longterm.linear_model.gpu import device
from longterm.linear_model.kernels.layout import PARAMETERS, SCALARS
from longterm.linear_model.sequences import drawn_rows

LOSSES = ("logistic", "hinge", "squared_hinge", "squared", "huber", "quantile")
N, D, COUNT = 150, 7, 5  # few rounds: with given constants long games are chaotic
COMPILER = shutil.which("c++")


def gpu_is_there() -> bool:
    try:
        device.cupy()
    except (ImportError, RuntimeError):
        return False
    return True


def rows(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)).astype(np.float32).astype(np.float64)
    m = X @ np.linspace(-1, 1, D) + 0.3 * rng.standard_normal(N)
    return X, np.where(m > 0, 1.0, -1.0) if loss in LOSSES[:3] else m


def learners(loss, rule, online):
    constants = "online" if online else {"feature_norm": 8.0} | ({} if loss in LOSSES[:3] else {"label_bound": 9.0})
    options = {"loss": loss, "rule": rule, "constants": constants, "intercept_bound": 2.0}
    return [BudgetLinearLearner(D, budget, scales="one", **options) for budget in np.geomspace(0.1, 10, COUNT)]


def test_fields_are_those_of_the_layout():
    assert PARAMETERS.names == device.PARAMETER_FIELDS
    assert SCALARS.names == device.STATE_FIELDS


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize(
    ("loss", "rule", "online", "order"),
    [(loss, "a-ftrl", True, device.IN_ORDER) for loss in LOSSES]
    + [("logistic", "a-ftrl", False, device.ONE_ORDER), ("logistic", "a-ogd", False, device.DRAWN)]
    + [("squared", "a-ogd", True, device.OWN_ORDER), ("hinge", "a-ftrl", True, device.DRAWN)],
)
def test_the_same_text_on_the_host(tmp_path, loss, rule, online, order):
    X, y = rows(loss)
    made = learners(loss, rule, online)
    kind = device.Kind(rule == "a-ftrl", online, LOSSES.index(loss), order, True, "float64", 1, D)
    play = device.host_kernel(kind, tmp_path, COMPILER or "")
    rng = np.random.default_rng(1)
    one, own = rng.integers(N, size=N), rng.integers(N, size=(N, COUNT))
    seeds = np.arange(COUNT, dtype=np.uint64)
    orders = {
        device.IN_ORDER: [np.arange(N)] * COUNT,
        device.ONE_ORDER: [one] * COUNT,
        device.OWN_ORDER: list(own.T),
        device.DRAWN: [drawn_rows(int(seed), 0, N, N) for seed in seeds],
    }[order]
    parameters = columns([learner._rule.parameters for learner in made])
    state = columns([learner._rule.scalars for learner in made])
    weights = rng.random(N)
    arrays = {
        "features": X.astype(np.float32), "lengths": (X**2).sum(axis=1), "labels": y, "weights": weights,
        "order": (own if order == device.OWN_ORDER else one).astype(np.int32), "seeds": seeds,
        "powers": np.arange(1, N + 1.0) ** parameters[device.PARAMETER_FIELDS.index("beta"), 0],
        "parameters": parameters, "state": state, "vectors": np.zeros((COUNT, D)),
    }  # fmt: skip
    record, losses = np.array([100, N]), np.zeros((2, COUNT))
    drawn, totals = np.array([7, 8]), np.zeros((COUNT, D + 1))
    whole = ctypes.c_int64

    def at(array):
        assert array.flags.c_contiguous
        return ctypes.c_void_p(array.ctypes.data)

    play(
        *map(whole, (COUNT, D, D, N, N, 1)), *map(at, arrays.values()),
        at(record), whole(2), at(losses), at(drawn), whole(2), at(totals),
    )  # fmt: skip
    for k, learner in enumerate(made):
        learner.learn(X, y, weights, order=orders[k][:6])
        x_7 = learner.weights
        learner.learn(X, y, weights, order=orders[k][6:7])
        np.testing.assert_allclose(totals[k, :-1], x_7 + learner.weights, rtol=1e-9, atol=1e-12)
        learner.learn(X, y, weights, order=orders[k][7:100])
        np.testing.assert_allclose(losses[0, k], learner.cumulative_loss, rtol=1e-9)
        learner.learn(X, y, weights, order=orders[k][100:])
        np.testing.assert_allclose(losses[1, k], learner.cumulative_loss, rtol=1e-9)
        np.testing.assert_allclose(arrays["vectors"][k], learner._rule.vector, rtol=1e-9, atol=1e-9)
        for place, name in enumerate(device.STATE_FIELDS):
            if name not in ("round", "active", "live", "entries"):
                np.testing.assert_allclose(
                    state[place, k], learner._rule.number(name), rtol=1e-9, atol=1e-9, err_msg=name
                )


@pytest.mark.parametrize(("d", "count", "dtype"), [(54, 16384, "float64"), (54, 4096, "float32"), (3, 10, "float64"),
                                                   (2000, 100, "float32"), (1000, 5000, "float64")])  # fmt: skip
def test_lanes_hold_every_coordinate(d, count, dtype):
    lanes, coordinates = device.lanes_for(d, count, dtype)
    assert lanes in (1, 2, 4, 8, 16, 32)
    assert lanes * coordinates >= d > lanes * (coordinates - 1)
    with pytest.raises(ValueError, match="too many"):
        device.lanes_for(10**6, count, dtype)


@pytest.mark.skipif(gpu_is_there(), reason="there is a GPU")
def test_without_a_gpu_the_error_says_what_is_missing():
    with pytest.raises((ImportError, RuntimeError), match=r'device="gpu"'):
        BudgetPath(3, [1.0], device="gpu")
    with pytest.raises(InputError, match="device"):
        BudgetPath(3, [1.0], device="tpu")


def test_drawn_rows_are_even():
    drawn = np.concatenate([drawn_rows(seed, 0, 10_000, 10) for seed in range(10)])
    counts = np.bincount(drawn, minlength=10)
    assert ((counts > 9600) & (counts < 10_400)).all()
    np.testing.assert_array_equal(drawn_rows(3, 100, 50, 77), drawn_rows(3, 0, 150, 77)[100:])


# --- on a GPU -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not gpu_is_there(), reason="no GPU")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("d", [3, 54, 200, 1500])
def test_a_path_on_the_gpu(loss, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, d)).astype(np.float32).astype(np.float64)
    m = X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(3000)
    y = np.where(m > 0, 1.0, -1.0) if loss in LOSSES[:3] else 5 + 2 * m
    budgets = np.geomspace(0.1, 10, 37)
    one, other = (BudgetPath(d, budgets, loss=loss, device=where) for where in ("gpu", "cpu"))
    for block in (slice(0, 1000), slice(1000, 3000)):
        one.learn(X[block], y[block])
        other.learn(X[block], y[block])
    order = rng.permutation(3000)
    one.learn(X, y, order=order)
    other.learn(X, y, order=order)
    for a, b in zip(one.points, other.points, strict=True):
        np.testing.assert_allclose(a.loss, b.loss, rtol=1e-9)
        np.testing.assert_allclose(a.standard_error, b.standard_error, rtol=1e-9)
        np.testing.assert_allclose(a.learner.weights, b.learner.weights, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(a.learner.average()[0], b.learner.average()[0], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(a.learner.average()[1], b.learner.average()[1], rtol=1e-7, atol=1e-9)


@pytest.mark.skipif(not gpu_is_there(), reason="no GPU")
@pytest.mark.parametrize("rule", ["a-ogd", "a-ftrl"])
def test_sequences_on_the_gpu(rule):
    from longterm.linear_model.sequences import random_sequences

    X, y = rows("logistic")
    # A-OGD is chaotic where a weight crosses 0: few rounds
    options = {"budget": 2.0, "rule": rule, "rounds": 60 if rule == "a-ogd" else 2000, "sequences": 70}
    gpu = random_sequences(X, y, device="gpu", dtype="float64", **options)
    cpu = random_sequences(X, y, device="cpu", **options)
    np.testing.assert_allclose(gpu.loss, cpu.loss, rtol=1e-9)
    np.testing.assert_allclose(gpu.weights, cpu.weights, rtol=1e-6, atol=1e-8)
