"""Problems for adversarial streams."""

from __future__ import annotations

import numpy as np

from longterm._base import validate
from longterm.problems.constraints import Affine, ElasticNetBudget, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.problem import Problem
from longterm.problems.sets import Box


def late_reversal(radius: float = 1.0, gradient_bound: float = 1.0, epsilon: float = 1e-3) -> Problem:
    """Return the problem B = [−R, R] with linear losses and g(x) = ε (|x| − R) ≤ 0 on B, so that λ stays 0.

    The stream `LateReversal` pushes the learner to one end, waits until its steps are small, and then reverses the
    cost. The learner needs 2 T^β rounds to reach the other end (`docs/proofs/theory.md`).

    Parameters
    ----------
    radius, gradient_bound, epsilon : float
        R, G and ε.
    """
    radius = validate.positive_scalar("radius", radius)
    epsilon = validate.positive_scalar("epsilon", epsilon)
    constraint = ElasticNetBudget(1, budget=epsilon * radius, l1=epsilon, l2=0.0)
    return Problem(Box.cube(1, -radius, radius), Linear(1, gradient_bound), constraint, name="late reversal")


def random_half_spaces(dimension: int = 3, count: int = 6, *, instance: int = 0) -> Affine:
    """Draw half-spaces ⟨a_k, x⟩ ≤ b_k with correlated unit vectors a_k and b_k uniform in [0.1, 0.5].

    Parameters
    ----------
    dimension, count, instance : int
        d, the number of half-spaces and the seed.

    Returns
    -------
    Affine
        The half-spaces.

    Examples
    --------
    >>> from longterm.problems.named.adversarial import random_half_spaces
    >>> random_half_spaces(2, 3).limit.round(2)
    array([0.32, 0.47, 0.43])
    """
    rng = np.random.default_rng(validate.seed("instance", instance))
    d, k = validate.dimension("dimension", dimension), validate.dimension("count", count)
    rows = rng.standard_normal((k, d)) + rng.standard_normal(d)
    return Affine(rows / np.linalg.norm(rows, axis=1, keepdims=True), rng.uniform(0.1, 0.5, k))


def switching_constraints(pool: Affine, cost_norm: float = 1.0) -> Problem:
    """Return f_t(x) = ⟨c_t, x⟩ on [−1, 1]^d with one constraint ⟨a, x⟩ ≤ b of the `pool` in each round.

    `streams.costs.SwitchingConstraints` keeps each constraint for as long as all rounds before it, with costs that
    push across it. The multiplier learnt for one constraint is then wrong for the next. Compare with a point that is
    feasible in every round (`EveryRound`). A point that is feasible on average (`OnAverage`) has a smaller loss, but
    cannot be matched in general (Mannor, Tsitsiklis and Yu 2009).

    R = √d, Δ = 2R, F = Δ‖c‖. G and D are those of the pool: D = max_k (‖a_k‖₁ + b_k) if b ≥ 0.

    Parameters
    ----------
    pool : Affine
        The half-spaces.
    cost_norm : float
        ‖c_t‖.

    Examples
    --------
    >>> from longterm.problems.constraints import Affine
    >>> from longterm.problems.named.adversarial import switching_constraints
    >>> c = switching_constraints(Affine([[0.6, 0.8], [0.0, 1.0]], [0.2, 0.3])).constants
    >>> round(c.constraint_bound, 12), c.constraint_gradient_bound, round(c.loss_range, 4)
    (1.6, 1.0, 2.8284)
    """
    d, B = pool.dimension, Box.cube(pool.dimension, -1.0, 1.0)
    constraint = VaryingAffine(d, 1, pool.gradient_bound(B), float(np.abs(pool.limit).max()))
    exact = {"constraint_bound": pool.value_bound(B)}
    return Problem(B, Linear(d, cost_norm), constraint, name=f"{pool.count} constraints that switch", declared=exact)
