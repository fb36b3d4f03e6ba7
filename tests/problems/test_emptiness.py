"""Proofs that {g ≤ 0} ∩ B is empty: found for empty sets, and never for others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm import AOGD, InputError, Problem, run
from longterm.problems import doubly_stochastic
from longterm.problems.constraints import (
    Affine,
    CustomConstraint,
    ElasticNetBudget,
    L1Budget,
    L2Budget,
    Maximum,
    OnFirstCoordinates,
    PositiveSemidefinite,
    Scaled,
    Smooth,
    Stack,
    VaryingAffine,
)
from longterm.problems.feasibility import proof_of_emptiness
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box, Product, RowStochastic, Simplex
from longterm.problems.streams import RandomCosts
from zoo import constraints, problems, sets

FAR = Ball(2, 1.0, np.array([3.0, 2.0]))
ACROSS = Affine([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [-0.1, 0.0, 0.0])  # x + y ≤ −0.1 and both ≥ 0


def away_from(point, radius):
    return CustomConstraint(
        2, lambda x: ((x - point) ** 2).sum(-1) - radius**2, lambda x: 2 * (x - np.asarray(point)), 20.0, 50.0
    )


EMPTY = {
    "one half-space": (Ball(1), Affine([[1.0]], [-2.0])),
    "two half-spaces of a disc": (Ball(2), Affine(np.eye(2), [-0.8, -0.8])),
    "opposite half-spaces": (Box.cube(2, -1.0, 1.0), Affine([[1.0, 1.0], [-1.0, -1.0]], [-1e-4, -1e-4])),
    "three half-spaces": (Box.cube(2, -1.0, 1.0), ACROSS),
    "simplex under planes": (Simplex(3), Affine(np.eye(3), [0.3, 0.3, 0.3])),
    "scaled": (Ball(1), Scaled(Affine([[1.0]], [-2.0]), 3.0)),
    "disc apart": (FAR, L2Budget(2, np.sqrt(13) - 1.001)),
    "cross-polytope apart": (FAR, L1Budget(2, 5 - np.sqrt(2) - 0.001)),
    "cross-polytope and simplex": (Simplex(4), L1Budget(4, 0.999)),
    "disc and simplex": (Simplex(4), L2Budget(4, 0.499)),
    "elastic net and box": (Box([1.0, -3.0], [2.0, -2.0]), ElasticNetBudget(2, 5.49)),
    "elastic net and ball": (FAR, ElasticNetBudget(2, 6.0)),
    "budget on the first": (Product([FAR, Box([-1.0], [1.0])]), OnFirstCoordinates(L2Budget(2, 2.5))),
    "stacked": (FAR, Stack([Affine([[1.0, 0.0]], [9.0]), L2Budget(2, 2.5)])),
    "maximum": (FAR, Maximum([Affine([[1.0, 0.0]], [9.0]), L2Budget(2, 2.5)], over=FAR)),
    "smooth": (FAR, Smooth(ElasticNetBudget(2, 3.0, l1=0.0), smoothness=1.0)),
    "eigenvalues": (Ball(4), PositiveSemidefinite(2, np.sqrt(0.5) + 1e-3)),
    "own": (Ball(2), away_from([3.0, 0.0], 1.9)),
    "own, two discs": (Ball(2), Stack([away_from([0.8, 0.8], 0.5), away_from([-0.3, -0.3], 0.5)])),
    "doubly stochastic in a small ball": (Ball(9, 0.9), doubly_stochastic(3).constraint),
}
NOT_EMPTY = {
    "half-space that touches": (Ball(1), Affine([[1.0]], [-1.0])),
    "half-spaces that touch": (Box.cube(2, -1.0, 1.0), Affine([[1.0, 1.0], [-1.0, -1.0]], [0.0, 0.0])),
    "half-spaces of a disc that touch": (Ball(2), Affine(np.eye(2), [-np.sqrt(0.5), -np.sqrt(0.5)])),
    "simplex under planes": (Simplex(3), Affine(np.eye(3), np.full(3, 1 / 3))),
    "disc that touches": (FAR, L2Budget(2, np.sqrt(13) - 1)),
    "cross-polytope that touches": (FAR, L1Budget(2, 5 - np.sqrt(2))),
    "cross-polytope and simplex": (Simplex(4), L1Budget(4, 1.0)),
    "disc and simplex": (Simplex(4), L2Budget(4, 0.5)),
    "elastic net and box": (Box([1.0, -3.0], [2.0, -2.0]), ElasticNetBudget(2, 5.5)),
    "eigenvalues": (Ball(4), PositiveSemidefinite(2, np.sqrt(0.5))),
    "own that touches": (Ball(2), away_from([3.0, 0.0], 2.0)),
    "doubly stochastic": (Ball(9, np.sqrt(3)), doubly_stochastic(3).constraint),
    "doubly stochastic in a ball that touches": (Ball(9, 1.0), doubly_stochastic(3).constraint),
    "doubly stochastic in rows": (RowStochastic(3, 3), doubly_stochastic(3, enclosing="rows").constraint),
    "far from zero": (Ball(2, 1.0, np.array([1e9, 0.0])), Affine([[1.0, 0.0]], [1e9 - 1.0])),
}


@pytest.mark.parametrize(("over", "constraint"), EMPTY.values(), ids=EMPTY)
def test_an_empty_set_is_noticed_before_round_1(over, constraint):
    problem = Problem(over, Linear(over.dimension), constraint)
    with pytest.raises(InputError, match="nowhere on B below") as refused:
        run(problem, AOGD.for_problem(problem), RandomCosts(over.dimension), 5)
    assert refused.value.argument == "problem"
    assert "constraint" in str(refused.value)


@pytest.mark.parametrize(("over", "constraint"), NOT_EMPTY.values(), ids=NOT_EMPTY)
def test_a_set_that_only_touches_is_not_empty(over, constraint):
    assert proof_of_emptiness(constraint, over) is None


@pytest.mark.parametrize("name", problems())
def test_the_zoo_is_not_empty(name):
    assert problems()[name][0].emptiness is None


def test_changing_constraints_have_no_proof_of_emptiness():
    problem = Problem(Ball(1), Linear(1), VaryingAffine(1, 1, 1.0, 9.0))
    assert problem.emptiness is None


@pytest.mark.parametrize("over", sets().values(), ids=sets())
@pytest.mark.parametrize("name", [name for name, g in constraints().items() if not g.parameters])
def test_least_values_are_lower_bounds(over, name):
    constraint = constraints()[name]
    least = constraint.least_values(over)
    points = over.sample(np.random.default_rng(0), 500)
    assert least.shape == (constraint.count,)
    assert np.all(constraint.values(points) >= least - 1e-9 * constraint.value_bound(over))


@given(seed=st.integers(0, 10**6), d=st.integers(1, 6), m=st.integers(1, 6), kind=st.integers(0, 4))
def test_a_set_with_a_feasible_point_is_never_called_empty(seed, d, m, kind):
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal(d) * rng.choice([0.0, 1.0, 100.0])
    over = [
        Ball(d, rng.uniform(0.1, 2), centre),
        Box(centre - rng.uniform(0, 2, d), centre + rng.uniform(0, 2, d)),
        Simplex(d, rng.uniform(0.1, 3)),
        Product([Simplex(d), Ball(d, 1.0, centre)]),
        RowStochastic(1, d),
    ][kind]
    point = over.sample(rng, 7)[seed % 7]  # some extreme point of B, the hardest case: g touches 0 there
    rows = rng.standard_normal((m, len(point))) * rng.choice([1e-3, 1.0, 1e3], (m, 1))
    affine = Affine(rows, rows @ point)
    size = float(np.abs(point).sum())
    parts = [affine, L1Budget(len(point), max(size, 1e-9)), L2Budget(len(point), max(np.linalg.norm(point), 1e-9))]
    parts.append(ElasticNetBudget(len(point), max(0.7 * size + 0.65 * float(point @ point), 1e-9), l1=0.7, l2=1.3))
    for constraint in (*parts, Stack(parts), Stack([affine, parts[1]])):
        assert proof_of_emptiness(constraint, over) is None


@given(seed=st.integers(0, 10**6), d=st.integers(1, 5), margin=st.floats(0.01, 2.0))
def test_contradicting_half_spaces_are_detected(seed, d, margin):
    """Farkas: Σ u_j a_j = 0 and Σ u_j b_j < 0 for some u ≥ 0, at random; the linear program finds such u."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((d + 1, d))
    weights = rng.uniform(0.5, 1.0, d + 1)
    rows[-1] = -(weights[:-1] @ rows[:-1]) / weights[-1]
    offset = rng.standard_normal(d + 1)
    offset -= (weights @ offset + margin) / weights.sum()  # now Σ u_j b_j = −margin
    over = Ball(d, 3.0) if seed % 2 else Box.cube(d, -3.0, 3.0)
    proof = proof_of_emptiness(Affine(rows, offset), over)
    assert proof is not None


def test_targets_of_squared_distances_are_a_set_of_the_same_dimension():
    for wrong in (1.0, Ball(2), "ball"):
        with pytest.raises(InputError, match="targets"):
            SquaredDistance(1, wrong)
