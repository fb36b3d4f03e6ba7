"""A-FTRL for linear models as a kernel: `learners.MixedAFTRL`.

The state's vector is z, the sum of the gradients so far. With τ = Λ_t l1 and w = −soft(z, τ), x_t = s w, where s is the
factor of the mixture of scales (`mixture`).

A round has two passes over the coordinates: one for ⟨u, w⟩ and ‖u‖², one that adds the gradient to z and sums ‖w‖₁ and
‖w‖² of the next w, which give g(x_{t+1}). λ_{t+1}, and so the next τ, is known between the two. The features of a row
are (row − means) · factors; the first pass stores them in `u` for the second.
"""

from __future__ import annotations

from collections.abc import Callable

from longterm.linear_model.kernels.compile import helper, use
from longterm.linear_model.kernels.layout import RESIDUAL, WEIGHTS
from longterm.linear_model.kernels.round import (
    add_gradient,
    ascend,
    charge_scales,
    clip,
    observe,
    place_intercept,
    place_leader,
    score,
)


def row_loop(digest: str) -> Callable[..., None]:
    """Return the function that learns rows by this rule and writes their margins, to be compiled with this digest."""

    def learn_rows(parameters, scalars, mixtures, z, u, means, factors, rows, labels, weights, margins):
        use(digest)
        p, s, d = parameters[0], scalars[0], len(z)
        mixture, residual = mixtures[WEIGHTS], mixtures[RESIDUAL]
        for i in range(len(rows)):
            threshold = s.multiplier_sum * p.l1
            dot, length = score(z, threshold, u, means, factors, rows, i)
            if length > p.longest_row:
                return i
            margins[i], slope = begin_round(p, s, mixture, residual, dot, length, labels[i], weights[i])
            threshold = s.multiplier_sum * p.l1
            norm_1 = norm_2 = 0.0
            for j in range(d):
                total = z[j] + slope * u[j]
                z[j] = total
                w = clip(total, threshold) - total
                norm_1 += abs(w)
                norm_2 += w * w
            s.norm_1, s.norm_2 = norm_1, norm_2
            end_round(p, s, mixture, residual, norm_2, slope, labels[i], weights[i])
        return len(rows)

    return learn_rows


@helper
def begin_round(p, s, mixture, residual, dot, length, label, weight):
    """Do what a round does before z changes. Return the margin and the weighted slope of the loss."""
    margin, slope, g = observe(p, s, dot, label, weight)
    add_gradient(p, s, slope, length)
    ascend(p, s, g)
    s.multiplier_sum += s.multiplier
    charge_scales(p, s, mixture, residual, dot, length, slope)
    return margin, slope


@helper
def end_round(p, s, mixture, residual, norm_2, slope, label, weight):
    """Do what a round does after z has changed, with ‖w‖² of the next w."""
    place_leader(p, s, mixture, s.multiplier_sum, norm_2)
    place_intercept(p, s, residual, slope, label, weight)
    s.round += 1
