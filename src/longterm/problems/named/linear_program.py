"""An online linear program."""

from __future__ import annotations

import numpy as np

from longterm._base import validate
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.problem import Problem
from longterm.problems.sets import Box


def online_linear_program(
    rounds: int = 5000, *, instance: int = 0, dimension: int = 2, constraints: int = 3
) -> Problem:
    """Return f_t(x) = ⟨c_t, x⟩ on [−1, 1]^d with A x ≤ b, entries of A uniform in [0, 1] and of b in [0, 2].

    A and b are drawn from the seed `instance`. The costs come from `streams.resources.DriftingCosts` with the same
    dimension and rounds. Their mean changes sign four times, so that constraints bind in some phases only. Yu and Neely
    (JMLR 21, 2020) use d = 2, three constraints and 5000 rounds. 0 is feasible and (−1, …, −1) is a Slater point.

    R = √d, Δ = 2R. With ρ = √d (T^0.1 + 2) ≥ ‖c_t‖: G = max(ρ, max_j ‖a_j‖), F = 2Rρ, D = max_j (Σ_k a_jk + b_j).

    Parameters
    ----------
    rounds : int
        T, which enters the bound on the costs.
    instance, dimension, constraints : int
        The seed of A and b, the dimension d, and the number m of constraints.

    Examples
    --------
    >>> from longterm.problems.named.linear_program import online_linear_program
    >>> c = online_linear_program(1024).constants
    >>> round(c.loss_gradient_bound, 4), round(c.loss_range, 4)  # √2 · 4, and 2√2 times that
    (5.6569, 16.0)
    """
    d, m = validate.dimension("dimension", dimension), validate.dimension("constraints", constraints)
    rng = np.random.default_rng(validate.seed("instance", instance))
    constraint = Affine(rng.random((m, d)), 2 * rng.random(m))
    cost_norm = float(np.sqrt(d)) * (validate.count("rounds", rounds) ** 0.1 + 2)
    name = f"online linear program {instance}"
    return Problem(Box.cube(d, -1.0, 1.0), Linear(d, cost_norm), constraint, name=name)
