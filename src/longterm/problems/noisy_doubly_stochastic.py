"""Online estimation of doubly-stochastic matrices from targets that are not: the constraint matters to the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from longterm import _validate as validate
from longterm.losses import SquaredDistance
from longterm.problems.doubly_stochastic import doubly_stochastic
from longterm.problems.problem import Problem
from longterm.sets import Ball


def noisy_doubly_stochastic(size: int, noise: float = 0.5) -> Problem:
    """f_t(X) = ½ ‖X − Y_t‖² over p × p doubly-stochastic X, Y_t a permutation matrix plus entries of at most `noise`.

    In the paper's first experiment the mean of the targets is itself feasible: whoever follows the losses alone
    ends up there. Here the targets of `longterm.streams.NoisyPermutations` have errors that do not average out, sums
    that are not 1 and entries below 0; in hindsight the best matrix is the projection of their mean onto Birkhoff's
    polytope (`longterm.hindsight.nearest_to_mean` finds it). With ν the noise:

        R = √p,  D = p + 1,  G = R + ρ,  F = 2Rρ,  σ = 1,     ρ² = p (1 + ν)² + (p² − p) ν² ≥ ‖Y_t‖², attained.

    >>> from longterm.problems import noisy_doubly_stochastic
    >>> c = noisy_doubly_stochastic(4, noise=0.5).constants
    >>> c.radius, c.constraint_bound, round(c.gradient_bound, 4), round(c.loss_range, 4)  # ρ = √12
    (2.0, 5.0, 5.4641, 13.8564)
    """
    p, nu = validate.dimension("size", size), validate.non_negative_scalar("noise", noise)
    longest = float(np.sqrt(p * (1 + nu) ** 2 + (p * p - p) * nu**2))
    loss = SquaredDistance(p * p, targets=Ball(p * p, radius=longest))
    return replace(doubly_stochastic(p), loss=loss, name=f"noisy doubly-stochastic p={p}")
