"""Projections of constraints on enclosing sets, and cases without one."""

import pickle

import numpy as np
import pytest

from longterm import InputError, Problem
from longterm.problems import covariance, doubly_stochastic
from longterm.problems.constraints import (
    Affine,
    CustomConstraint,
    DoublyStochastic,
    ElasticNetBudget,
    L1Budget,
    L2Budget,
    Maximum,
    PositiveSemidefinite,
    Stack,
    VaryingAffine,
)
from longterm.problems.losses import SquaredDistance
from longterm.problems.projections.birkhoff import project_onto_doubly_stochastic
from longterm.problems.projections.polyhedron import Polyhedron
from longterm.problems.sets import Ball, Box, Product, RowStochastic, Simplex

RNG = np.random.default_rng(11)
ROWS, LIMITS = RNG.standard_normal((9, 6)), RNG.uniform(0.1, 1.0, 9)


def test_constraints_know_their_projections():
    w = 3 * np.random.default_rng(9).standard_normal((4, 6))
    net = ElasticNetBudget(6, budget=1.2)
    known = {
        "net": (net, net.enclosing_ball()),
        "l1": (L1Budget(6, budget=1.0), Box.cube(6, -1.0, 1.0)),
        "l2": (L2Budget(6, budget=0.5), Ball(6)),
        "affine": (Affine(ROWS, LIMITS), Box.cube(6, -0.2, 0.3)),
        "stack": (Stack([Affine(ROWS[:3], LIMITS[:3]), Affine(ROWS[3:], LIMITS[3:])]), Ball(6, 0.4)),
        "maximum": (Maximum([Affine(ROWS, LIMITS)], over=Ball(6)), Ball(6, 0.4)),
        "simplex": (Affine(np.eye(6)[:2], [0.1, 0.2]), Simplex(6)),
        "rows": (Affine(np.eye(6)[:2], [0.1, 0.2]), RowStochastic(2, 3)),
        "product": (Affine(np.eye(6)[:2], [0.1, 0.2]), Product([Simplex(4), Box([-1.0, -1.0], [1.0, 1.0])])),
    }
    for g, B in known.values():
        z = g.projection(B)(w)
        assert np.all(B.contains(z))
        assert g.values(z).max() <= 1e-12
        others = g.projection(B)(B.sample(np.random.default_rng(1), 50))
        assert np.einsum("nd,nkd->nk", w - z, others[None] - z[:, None]).max() <= 1e-10


def test_no_projection_where_none_is_known():
    """One projection after the other is not the projection onto both: better none than a wrong one."""
    assert ElasticNetBudget(6, budget=1.2).projection(Ball(6, radius=0.3)) is None
    assert ElasticNetBudget(6, budget=1.2).projection(Ball(6, radius=5.0, centre=np.full(6, 2.0))) is None
    assert L2Budget(6, budget=1.0).projection(Simplex(6)) is None
    assert Affine(np.eye(6)[:1], [0.1]).projection(Product([Ball(3), Ball(3)])) is None
    assert Stack([L2Budget(6, budget=1.0), Affine(np.eye(6)[:1], [0.1])]).projection(Ball(6)) is None
    assert PositiveSemidefinite(2).projection(Ball(4, 1.0, np.array([1.0, 0.5, 0.5, 1.0]))) is None
    assert PositiveSemidefinite(2, floor=0.5).projection(Ball(4)) is None
    assert PositiveSemidefinite(2).projection(Box.cube(4, -1.0, 1.0)) is None
    tight = Box(np.array([1.0, -0.5, -0.5, 1.0]), np.array([1.0, 0.5, 0.5, 1.0]))
    assert PositiveSemidefinite(2).projection(tight) is None
    assert PositiveSemidefinite(2).projection(Simplex(4)) is None
    unit = Box(np.array([1.0, -1.0, -1.0, 1.0]), np.ones(4))
    assert PositiveSemidefinite(2, floor=0.5).projection(unit) is not None
    assert PositiveSemidefinite(2, floor=1.0).projection(unit) is None  # only the identity is left
    assert CustomConstraint(2, lambda x: x[..., 0], lambda x: x, 1.0, 1.0).projection(Ball(2)) is None
    assert VaryingAffine(2, 1, 1.0, 1.0).projection(Ball(2)) is None


def test_doubly_stochastic_matrices_in_other_sets():
    """Where B holds them all, their own projection; where it cuts some off, that of the polyhedron."""
    g, w = DoublyStochastic(3), 2 * np.random.default_rng(3).standard_normal((5, 9))
    free = project_onto_doubly_stochastic(w, 3)
    barycentre = np.full(9, 1 / 3)
    for B in (Ball(9, 3**0.5), Ball(9, 2**0.5, barycentre), Box.cube(9, 0.0, 1.0), RowStochastic(3, 3)):
        np.testing.assert_allclose(g.projection(B)(w), free, atol=1e-12)
        assert not isinstance(g.projection(B), Polyhedron)
    for B in (Ball(9, 0.5, barycentre), Box.cube(9, 0.1, 1.0)):
        z = g.projection(B)(w)
        assert isinstance(g.projection(B), Polyhedron)
        assert np.all(B.contains(z))
        assert g.values(z).max() <= 1e-12
        assert np.abs(z - free).max() > 0.1
    same = Affine(g.as_affine().matrix, g.as_affine().limit).projection(Ball(9, 3**0.5))
    np.testing.assert_allclose(same(w), free, atol=1e-12)


def test_problems_expose_it_and_it_travels():
    w = np.random.default_rng(4).standard_normal((2, 16))
    for problem in (doubly_stochastic(4), covariance(4), covariance(4, unit_diagonal=False)):
        there_and_back = pickle.loads(pickle.dumps(problem.projection))
        np.testing.assert_array_equal(there_and_back(w), problem.projection(w))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Polyhedron([[1.0, 0.0], [-1.0, 0.0]], [-1.0, -1.0]),
        lambda: Polyhedron([[0.0, 0.0]], [-1.0]),
        lambda: Polyhedron([[1.0, 0.0]], [-2.0], Ball(2)),
        lambda: Polyhedron([[1.0, 1.0], [-1.0, -1.0], [2.0, 2.0], [-2.0, -2.0]], [1.0, -1.0, 3.0, -3.0]),
        lambda: Polyhedron([[1.0, 1.0], [-1.0, -1.0]], [9.0, -9.0], Ball(2)),
        lambda: Polyhedron([[1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]], [1.0, -1.0, 0.5]),
        lambda: Problem(Ball(2), SquaredDistance(2), Affine([[1.0, 0.0]], [-2.0])).projection,
    ],
)
def test_empty_sets_are_refused(make):
    with pytest.raises(InputError, match="no x"):
        make()


def test_polyhedra_of_one_point_and_of_all_space():
    point = Polyhedron([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [1.0, -1.0, 2.0, -2.0])
    np.testing.assert_allclose(point(np.array([[5.0, 5.0], [1.0, 2.0]])), [[1, 2], [1, 2]], atol=1e-15)
    w = np.array([3.0, -4.0])
    np.testing.assert_array_equal(Polyhedron([[0.0, 0.0]], [1.0])(w), w)
    np.testing.assert_allclose(Polyhedron([[0.0, 0.0]], [1.0], Ball(2))(w), [0.6, -0.8])


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(8))
def test_a_corner_that_alone_is_feasible_is_found(seed, size):
    """By rounding no point satisfies such limits."""
    rng = np.random.default_rng(seed)
    corner, cost = size * np.eye(3)[2], np.sort(rng.uniform(0.1, 1.0, 3))
    found = Affine(-cost[None], [-(cost @ corner)]).projection(Simplex(3, size))(size * rng.standard_normal((4, 3)))
    np.testing.assert_allclose(found, np.tile(corner, (4, 1)), atol=1e-9 * size)
