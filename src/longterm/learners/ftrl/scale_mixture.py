"""Eight radii in one leader, as a scale of FTRL: the size of the set costs a logarithm instead of a learning rate.

`OnlineScale` has the curvature √V/R. With a generous budget R is large and the first steps are long, whatever the
losses ask for. Here leaders on the balls of radius R_k = R/4^k, k = 0 … 7, and an expert that stays at 0 share z, V
and Λ. Under an elastic-net budget they lie on one ray,

    x^k = argmin_{‖x‖ ≤ R_k} ⟨z, x⟩ + Λ g(x) + (√V/(2R_k))‖x‖² = s_k w,
    w = −soft(z, Λ l1),     s_k = min( 1/(√V/R_k + Λ l2), R_k/‖w‖ ),

and x = Σ_k p_k x^k up to a tilt, with p from a multi-scale Hedge on ⟨∇f_t, x^k_t⟩ (`multi_scale_hedge`).

With a growing penalty all leaders share one ν_t, which never falls: the smallest ν ≥ ν_{t−1} with g(x) ≤ 0, or W_t.
Then ν_t is a sum of λ_t = ν_t − ν_{t−1} ≥ 0 that are known before round t, as the proof needs.

P = P_0 + N_0, and P_k + N_k against the smaller balls: `primal_bounds`. Proof: `docs/proofs/scales.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, dot, like, namespace
from longterm.errors import InputError
from longterm.learners.ftrl import multi_scale_hedge as hedges
from longterm.learners.ftrl.ftrl_scales import OnlineState
from longterm.learners.ftrl.multi_scale_hedge import HedgeState, radii
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.learners.ftrl.slots import FTRLDual, FTRLState, Scale, require_state
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.prox_learner import positive_or_one
from longterm.learners.interface.states import as_numbers
from longterm.problems import Problem
from longterm.problems.constraints.prox import ElasticNetProx, Prox
from longterm.problems.sets import Ball
from longterm.theory.scales import SCALES

STAGES, POINTS = 10, 32
"""The root ν is enclosed between 32 points, ten times: to 1e-15 of its interval."""


class ScaleMixtureState(NamedTuple):
    """(V_{t−1}, M_{t−1}, p_t) and the Hedge."""

    square_sum: Array
    largest_gradient: Array
    weights: Array
    """p_t, shape (..., 9): from the largest radius down, then the expert at 0."""
    unpriced: Array
    """Σ λ_t (g(x_t) − g(x^k_t)) over the rounds with α = 0, in which experts are not charged. Only bounds read it."""
    hedge: HedgeState


class Ray(NamedTuple):
    """The leaders of all radii: the ray w, and how far along it each of them is, s_k of shape (..., 9)."""

    direction: Array
    factors: Array


def ray_of(prox: ElasticNetProx, gradient_sum: Array, weight: Array, square_sum: Array) -> Ray:
    """Return the leaders for a weight (...,) on g. All are at 0 while V is 0, and the last one always."""
    xp, R = namespace(gradient_sum), like(radii(prox.over.radius), gradient_sum)
    threshold = as_column(weight) * prox.constraint.l1
    w = xp.maximum(-gradient_sum - threshold, 0.0) - xp.maximum(gradient_sum - threshold, 0.0)
    root, length = as_column(xp.sqrt(square_sum)), as_column(xp.sqrt(dot(w, w)))
    moves = root * like(np.append(np.ones(SCALES), 0.0), w) > 0
    inside = 1 / positive_or_one(root / R + as_column(weight) * prox.constraint.l2)
    longest = xp.where(length > 0, R / positive_or_one(length), inside)
    return Ray(w, xp.where(moves, xp.minimum(inside, longest), xp.zeros_like(inside)))


class MixtureLeader(NamedTuple):
    """The mixture as a function of the weight on g."""

    prox: ElasticNetProx
    gradient_sum: Array
    square_sum: Array
    weights: Array
    hedge: HedgeState

    def at(self, weight: Array) -> Array:
        w, s = ray_of(self.prox, self.gradient_sum, weight[..., 0], self.square_sum)
        return as_column(hedges.factor(self.hedge, self.weights, s, self.prox.over.radius)) * w

    def least_weight(self, floor: Array, limit: Array) -> Array:
        """Return the smallest ν ≥ `floor` with g ≤ 0, or `limit`. g does not rise with ν, so points enclose ν."""
        xp, z, constraint = namespace(self.gradient_sum), self.gradient_sum, self.prox.constraint
        low, high = as_column(floor), as_column(limit)
        if constraint.l1 > 0:  # from max|z|/l1 on, x = 0
            gone = xp.max(xp.abs(z), axis=-1, keepdims=True) / constraint.l1
            high = xp.minimum(high, xp.maximum(gone, low))
        hedge = self.hedge._replace(tilt=as_column(self.hedge.tilt), block_losses=self.hedge.block_losses[..., None, :])
        several = MixtureLeader(
            self.prox, z[..., None, :], self.square_sum[..., None], self.weights[..., None, :], hedge
        )
        grid = like(np.linspace(0.0, 1.0, POINTS), z)
        for _ in range(STAGES):
            points = low + (high - low) * grid
            above = constraint.values(several.at(as_column(points)))[..., 0] > 0
            lowest = xp.max(xp.where(above, points, low), axis=-1, keepdims=True)
            high = xp.min(xp.where(above, high, points), axis=-1, keepdims=True)
            low = lowest
        return high[..., 0]


@dataclass(frozen=True, eq=False)
class ScaleMixture(Scale):
    """A mixture of the leaders of eight radii and of 0.

    Parameters
    ----------
    typical_size : float
        r_0 of the priors π_k ∝ (R_k + r_0)^{−½}, above 0: a size of x that would not be surprising.
    priced : bool
        True to charge experts λ_t g(x^k_t) too, known before the round, once α > 0. Then the regret's theorem holds for
        every radius, and every round is a block.
    """

    typical_size: float
    priced: bool = False

    finds_unit = True

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "typical_size")

    def require(self, prox: Prox, dual: FTRLDual) -> None:
        require_ray(prox)
        if self.priced and not isinstance(dual, Multiplier):
            what = "is a growing penalty, which a priced mixture cannot use, because each would depend on the other"
            raise InputError("dual", what, "Use a Multiplier, or priced=False")

    def log_priors(self, prox: Prox) -> FloatArray:
        """Return ln π_k."""
        return hedges.log_priors(prox.over.radius, self.typical_size)

    def init(self, prox: Prox, x: Array) -> ScaleMixtureState:
        hedge = HedgeState.zeros(x.shape[:-1], namespace(x), x.dtype)
        p = hedges.weights_of(hedge, prox.over.radius, self.log_priors(prox))
        return ScaleMixtureState(*OnlineState.zeros(x), p, namespace(x).zeros_like(p), hedge)

    def observe(self, prox: Any, state: FTRLState, feedback: Feedback) -> ScaleMixtureState:
        before, R, gradient = state.scale, prox.over.radius, feedback.loss_gradient
        w, s = ray_of(prox, state.gradient_sum, state.weight[..., 0], before.square_sum)
        slope, p, unpriced = dot(gradient, w), before.weights, before.unpriced
        hedge, ends = hedges.add_round(before.hedge, p, s, slope, state.round, R, every_round=self.priced)
        if self.priced:  # p waits for the price of the next round
            excess = as_column(feedback.constraint) - _values_on(prox, w, s)
            unpriced = unpriced + _where_charged(before.hedge, 0.0, state.multiplier * excess)
        else:
            hedge, p = hedges.reweight(hedge, p, s, ends, R, self.log_priors(prox))
        return ScaleMixtureState(*OnlineState(*before[:2]).after(gradient), p, unpriced, hedge)

    def unit(self, scale: ScaleMixtureState) -> Array:
        return scale.largest_gradient

    def leader(self, prox: Any, state: FTRLState) -> tuple[MixtureLeader, ScaleMixtureState]:
        scale = self._price(prox, state) if self.priced else state.scale
        return MixtureLeader(prox, state.gradient_sum, scale.square_sum, scale.weights, scale.hedge), scale

    def _price(self, prox: Any, state: FTRLState) -> ScaleMixtureState:
        """Charge λ_t g(x^k_t) before round t where α > 0, and return the state with the weights that follow."""
        scale: ScaleMixtureState = state.scale
        ray = ray_of(prox, state.gradient_sum, state.weight[..., 0], scale.square_sum)
        price = _where_charged(scale.hedge, state.multiplier * _values_on(prox, *ray), 0.0)
        hedge = scale.hedge._replace(losses=scale.hedge.losses + price)
        return scale._replace(hedge=hedge, weights=hedges.weights_of(hedge, prox.over.radius, self.log_priors(prox)))

    def report(self, prox: Prox, state: FTRLState) -> dict[str, Array]:
        return {"square_sum": state.scale.square_sum, "largest_gradient": state.scale.largest_gradient}

    def primal_bounds(self, prox: Prox, scale: ScaleMixtureState) -> FloatArray:
        """Return P_k + N_k of every radius, the expert at 0 last, as if the open block ended now."""
        R = prox.over.radius
        closed = hedges.close_block(scale.hedge, scale.weights, R)
        return hedges.primal_bounds(R, self.log_priors(prox), scale.square_sum, closed) + as_numbers(scale.unpriced)

    def primal(self, prox: Prox, problem: Problem, T: FloatArray, state: FTRLState | None) -> FloatArray:
        return self.primal_bounds(prox, require_state(state).scale)[..., 0]

    def primal_per_round(self, problem: Problem, state: FTRLState | None) -> FloatArray:
        """Return C M_T, C the most that P_0 + N_0 is for V = U = m = 1 (`docs/proofs/scales.md`)."""
        M, R = as_numbers(require_state(state).scale.largest_gradient), problem.enclosing_set.radius
        one = np.ones_like(M)
        most = HedgeState.zeros(M.shape, np, M.dtype)._replace(
            clip=one, squares=one, clip_cost=R * one, correction=0.4 * one, block_cost=0.6 * R * one
        )
        priors = hedges.log_priors(R, self.typical_size)
        return np.asarray(hedges.primal_bounds(R, priors, one, most)[..., 0] * M)


def _values_on(prox: Any, direction: Array, factors: Array) -> Array:
    """Return g(x^k) of every expert, shape (..., 9)."""
    return prox.constraint.values(direction[..., None, :] * as_column(factors))[..., 0]


def _where_charged(hedge: HedgeState, one: Array, other: Array) -> Array:
    """Return `one` where α > 0, so that experts are charged, and `other` elsewhere."""
    xp = namespace(hedge.losses)
    return xp.where(as_column(hedges.inverse_rate(hedge)) > 0, one, other)


def require_ray(prox: Prox) -> ElasticNetProx:
    """Return the prox if its leaders of all radii lie on one ray, else raise."""
    if isinstance(prox, ElasticNetProx) and isinstance(prox.over, Ball):
        return prox
    what = "has leaders of different radii that do not lie on one ray: a mixture needs an elastic-net budget on a ball"
    raise InputError("problem", what, "Use AdaptiveAFTRL, or another constraint")


def default_typical_size(prox: Prox) -> float:
    """Return R/4⁴, the middle of the radii."""
    return prox.over.radius / 4**4
