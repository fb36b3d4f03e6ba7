"""Linear programs for absolute, quantile and hinge losses, beside HiGHS by hand."""

import numpy as np
import pytest
from scipy.optimize import linprog

from longterm import InputError, Problem, hindsight
from longterm.hindsight import Hindsight
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Absolute, Hinge, Quantile
from longterm.problems.sets import Box, Simplex
from longterm.problems.streams import Replay

D = 4
LOSSES = {
    "absolute": (Absolute(D, 1.0, 2.0), 1.0, 1.0),
    "quantile": (Quantile(D, 1.0, 2.0, 0.8), 0.8, 0.2),
    "hinge": (Hinge(D, 1.0), None, None),
}


def rows_and_labels(rng, count, name):
    rows = rng.standard_normal((count, D))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = rows @ [0.9, -0.4, 0.2, 0.0] + 0.3 * rng.standard_normal(count)
    return rows, np.where(labels > 0, 1.0, -1.0) if name == "hinge" else np.clip(labels, -2.0, 2.0)


def by_hand(name, rows, labels, matrix, limit):
    """The primal program: one variable above each piece of each loss, x in [−1, 1]^d."""
    count, one = len(rows), np.eye(len(rows))
    if name == "hinge":
        pieces, right = np.hstack([-labels[:, None] * rows, -one]), -np.ones(count)
    else:
        _, below, above = LOSSES[name]
        pieces = np.vstack([np.hstack([above * rows, -one]), np.hstack([-below * rows, -one])])
        right = np.concatenate([above * labels, -below * labels])
    table = np.vstack([pieces, np.hstack([matrix, np.zeros((len(matrix), count))])])
    bounds = [(-1, 1)] * D + [(0, None)] * count
    return linprog(np.r_[np.zeros(D), np.ones(count)], table, np.r_[right, limit], bounds=bounds).fun


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_loss_is_that_of_the_program_by_hand(name, seed):
    rng = np.random.default_rng(seed)
    rows, labels = rows_and_labels(rng, 260, name)
    matrix, limit = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, -1.0, 1.0, 0.3]]), np.array([0.3, 0.2])
    problem = Problem(Box.cube(D, -1.0, 1.0), LOSSES[name][0], Affine(matrix, limit))
    rounds = [1, 3, 40, 90, 260]  # up to 72 rows are solved whole, more from the previous solution
    found = hindsight.best(problem, Replay([rows, labels]), rounds, progress=None)
    assert found.solver == "linear programs"
    assert np.all(found.gap <= 1e-9)
    assert np.max(found.x @ matrix.T - limit) <= 1e-9
    for k, t in enumerate(rounds):
        expected = by_hand(name, rows[:t], labels[:t], matrix, limit)
        assert found.loss[k] == pytest.approx(expected, abs=1e-7)
        values = problem.loss.value(np.broadcast_to(found.x[k], (t, D)), rows[:t], labels[:t])
        assert found.loss[k] == pytest.approx(values.sum(), abs=1e-9)


def test_many_rounds_without_a_previous_solution():
    """Every eighth row gives the start; the whole program has 1,500 columns."""
    rows, labels = rows_and_labels(np.random.default_rng(2), 1500, "absolute")
    problem = Problem(Box.cube(D, -1.0, 1.0), LOSSES["absolute"][0], Affine([[1.0, 1.0, 0.0, 0.0]], [0.3]))
    found = hindsight.best(problem, Replay([rows, labels]), [1500], progress=None)
    assert found.gap[0] <= 1e-9
    assert found.loss[0] == pytest.approx(by_hand("absolute", rows, labels, np.eye(D)[:1] + np.eye(D)[1:2], [0.3]))


@pytest.mark.parametrize("over", [Box.cube(D, -0.5, 1.0), Simplex(D)])
def test_constraints_that_change(over):
    """x is feasible in every round so far, and the gap is certified."""
    rng = np.random.default_rng(3)
    rows, labels = rows_and_labels(rng, 120, "quantile")
    normals = rng.standard_normal((120, 2, D))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    limits = np.maximum(normals @ np.full(D, 0.25), 0.0) + rng.uniform(0.1, 0.4, (120, 2))
    problem = Problem(over, LOSSES["quantile"][0], VaryingAffine(D, 2, 1.0, 2.0))
    found = hindsight.best(problem, Replay([rows, labels], [normals, limits]), [30, 120], progress=None)
    assert found.solver == "linear programs"
    assert np.max(normals @ found.x[-1] - limits) <= 1e-8
    assert np.all(found.gap <= 1e-9)


def test_an_empty_set_is_reported():
    problem = Problem(Box.cube(D, -1.0, 1.0), LOSSES["absolute"][0], VaryingAffine(D, 1, 1.0, 2.0))
    rows, labels = rows_and_labels(np.random.default_rng(4), 2, "absolute")
    normals = np.array([[[1.0, 0.0, 0.0, 0.0]], [[-1.0, 0.0, 0.0, 0.0]]])
    with pytest.raises(InputError, match="no decision of B"):
        hindsight.best(problem, Replay([rows, labels], [normals, np.full((2, 1), -0.5)]), [2], progress=None)


def test_the_repr_shows_the_worst_gap():
    found = Hindsight(np.array([1, 2]), np.zeros((2, D)), np.ones(2), np.array([2e-4, 7e-12]), solver="some")
    assert "certified to 0.0002" in repr(found)
