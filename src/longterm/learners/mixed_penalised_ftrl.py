"""Penalised FTRL with a mixture of scales: O(1) hard violation, and no harm in a generous budget.

The leaders of `MixedAFTRL`, x^k_t = argmin_{‖x‖ ≤ R_k} ⟨z_{t−1}, x⟩ + ν_t g(x) + (√V_{t−1}/(2R_k))‖x‖², share one ν_t,
which never falls: with p_t known,

    ν_t = the smallest ν ≥ ν_{t−1} with g( Σ_k p_{t,k} x^k_t ) ≤ 0, or W_t = Σ_{s≤t} w_s if that is smaller,  ν_1 = 0,

with `AdaptivePenalisedFTRL`'s weights w_{t+1} = (2R M_t/D)(t + 1)^{1+e}, w_1 = 0. ν_t is a sum of λ_t = ν_t − ν_{t−1},
at least 0, that are known before they are played with, so `MixedAFTRL`'s theorem holds for it; and λ_t g(x_t) is at
least w_t [g(x_t)]₊: ν only rises to where g is 0, or to W_t, which is w_t above any ν before.

Needs: an elastic-net budget with {g ≤ 0} inside the ball. No horizon, no G_f, no F.
Guarantees, from what happened: regret at most P_0 + N_0, and hard violation Σ[g(x_t)]₊ bounded for every T
(`docs/scales.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, like, namespace
from longterm.constraints.prox import ElasticNetProx
from longterm.learners import _scale_mixture as mixture
from longterm.learners._given import penalty_prox_of, require_same_constraint
from longterm.learners._online_constants import no_theorem_beforehand, numbers, positive_or_one
from longterm.learners._scale_mixture import Hedge
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import HARD, REGRET

STAGES, POINTS = 10, 32
"""The root is looked for between 32 points, ten times over: to 1e-15 of where it can lie."""


class MixedPenalisedFTRLState(NamedTuple):
    """`AdaptivePenalisedFTRLState`, then p_t, and Q, m, U of the mixture."""

    round: Array
    x: Array
    multiplier: Array
    """ν_t, the weight in force, which never falls."""
    gradient_sum: Array
    weight_sum: Array
    square_sum: Array
    largest_gradient: Array
    inverse_sum: Array
    shares: Array
    hedge_losses: Array
    """Q; from here on what `_scale_mixture.Hedge` holds, in its order."""
    hedge_clip: Array
    hedge_squares: Array
    hedge_clip_cost: Array
    hedge_correction: Array
    hedge_waiting: Array
    hedge_owed: Array
    hedge_owed_squares: Array
    hedge_tilt: Array
    hedge_waits: Array

    @property
    def hedge(self) -> Hedge:
        """The mixture."""
        return Hedge(*self[-len(Hedge._fields) :])


@dataclass(frozen=True, eq=False)
class MixedPenalisedFTRL(Learner[MixedPenalisedFTRLState]):
    """Penalised FTRL with constants found online and eight scales in one leader.

    Parameters
    ----------
    prox : ElasticNetProx
        Of the budget, on a ball about 0 that holds {g ≤ 0}.
    weight_scale : float
        Above 0.
    typical_size : float
        r_0 of the priors π_k ∝ (R_k + r_0)^{−½}, above 0.
    growth : float
        e, above 0.

    Examples
    --------
    >>> from longterm import Problem, run
    >>> from longterm.learners import MixedPenalisedFTRL
    >>> from longterm.constraints import ElasticNetBudget
    >>> from longterm.losses import Linear
    >>> from longterm.streams import SwitchingCosts
    >>> g = ElasticNetBudget(5, budget=1.0)
    >>> problem = Problem(g.enclosing_ball(), Linear(5), g)
    >>> learner = MixedPenalisedFTRL.for_problem(problem)
    >>> run(problem, learner, SwitchingCosts(5), rounds=500, record=[10, 500]).hard_violation.round(3)
    array([0., 0.])
    """

    prox: ElasticNetProx
    weight_scale: float
    typical_size: float
    growth: float = 0.5
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name: ClassVar[str] = "mixed_penalised_ftrl"
    title: ClassVar[str] = "Mixed penalised FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), from what happened",
        HARD: "O(1), from what happened",
    }

    def __post_init__(self) -> None:
        validate.remember(
            self,
            prox=mixture.require_ray(type(self).__name__, self.prox),
            weight_scale=validate.positive_scalar("weight_scale", self.weight_scale),
            typical_size=validate.positive_scalar("typical_size", self.typical_size),
            growth=validate.positive_scalar("growth", self.growth),
            enclosing_set=self.prox.over,
        )

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        weight_scale: float | None = None,
        typical_size: float | None = None,
        growth: float = 0.5,
    ) -> MixedPenalisedFTRL:
        """Penalised FTRL with no bound on the gradients known, and no harm in a generous budget.

        Parameters
        ----------
        problem : Problem
            Gives the ball, the budget, R and D.
        weight_scale : float, optional
            Above 0; 2R/D unless given.
        typical_size : float, optional
            r_0; R/4⁴, the middle of the scales, unless given.
        growth : float
            e of the weights, above 0.
        """
        prox = mixture.require_ray(cls.__name__, penalty_prox_of(cls.__name__, cls.needs, problem))
        c = problem.constants
        scale = 2 * c.radius / c.constraint_bound if weight_scale is None else weight_scale
        return cls(prox, scale, prox.over.radius / 4**4 if typical_size is None else typical_size, growth)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_constraint(self.prox, problem)

    @property
    def _log_priors(self) -> FloatArray:
        return mixture.log_priors(self.prox.over.radius, self.typical_size)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        raise no_theorem_beforehand(type(self).__name__)

    def theorem_after(self, problem: Problem, state: MixedPenalisedFTRLState) -> Mapping[str, FloatArray]:
        """After T rounds, for any x* with g(x*) ≤ 0 and any losses, τ the first round with a gradient other than 0:

            Σ f_t(x_t) − f_t(x*)  ≤ P_0 + N_0
            Σ [g(x_t)]₊           ≤ (C M_T + F) ( (τ + 1)/w_{τ+1} + Σ_{τ+1<t≤T} 1/w_t )

        with C the most that P_0 + N_0 is for V = U = m = 1: P_0 + N_0 ≤ C M_T T (`docs/scales.md`).
        """
        R, c = self.prox.over.radius, problem.constants
        hedge = mixture.paid(state.hedge, state.shares, R)  # as if the block ended now
        regret = mixture.primal_bounds(R, self._log_priors, state.square_sum, hedge)[..., 0]
        M, one = numbers(state.largest_gradient), np.ones_like(numbers(state.largest_gradient))
        at_most = mixture.begin(M.shape, np, M.dtype)._replace(
            clip=one, squares=one, clip_cost=R * one, correction=0.4 * one, waiting=0.6 * R * one
        )
        most = mixture.primal_bounds(R, self._log_priors, one, at_most)[..., 0]
        return {REGRET: regret, HARD: (most * M + c.loss_range) * numbers(state.inverse_sum)}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> MixedPenalisedFTRLState:
        x = self.at_the_centre(batch_shape, xp, dtype)
        zero, first = xp.zeros(x.shape[:-1], dtype=x.dtype), xp.asarray(1, dtype=xp.int64)
        hedge = mixture.begin(x.shape[:-1], xp, x.dtype)
        p = mixture.shares(hedge, self.prox.over.radius, self._log_priors)
        return MixedPenalisedFTRLState(first, x, zero, xp.zeros_like(x), zero, zero, zero, zero, p, *hedge)

    def ask(self, state: MixedPenalisedFTRLState) -> Array:
        return state.x

    def update(self, state: MixedPenalisedFTRLState, feedback: Feedback) -> MixedPenalisedFTRLState:
        gradient, xp, R = feedback.loss_gradient, namespace(state.x), self.prox.over.radius
        following = state.round + 1
        t = xp.astype(following, state.x.dtype)
        w, s = self._experts(state.gradient_sum, state.multiplier, state.square_sum)
        hedge, ends = mixture.charged(state.hedge, state.shares, s, dot(gradient, w), state.round, R)
        hedge, p = mixture.settled(hedge, state.shares, s, ends, R, self._log_priors)
        square = dot(gradient, gradient)
        square_sum, largest = state.square_sum + square, xp.maximum(state.largest_gradient, xp.sqrt(square))
        new = like(self.weight_scale, t) * largest * t ** (1 + like(self.growth, t))
        weight_sum, gradient_sum = state.weight_sum + new, state.gradient_sum + gradient
        weight = self._raised(state.multiplier, weight_sum, gradient_sum, square_sum, hedge, p)
        w, s = self._experts(gradient_sum, weight, square_sum)
        inverse = xp.where(new > 0, 1 / positive_or_one(new), new)
        inverse_sum = state.inverse_sum + xp.where(state.inverse_sum > 0, inverse, t * inverse)
        x = column(mixture.factor(hedge, p, s, R)) * w
        return MixedPenalisedFTRLState(
            following, x, weight, gradient_sum, weight_sum, square_sum, largest, inverse_sum, p, *hedge
        )

    def _experts(self, gradient_sum: Array, weight: Array, square_sum: Array) -> tuple[Array, Array]:
        w = mixture.direction(self.prox, gradient_sum, weight)
        return w, mixture.factors(self.prox, w, weight, square_sum)

    def _raised(
        self, weight: Array, weight_sum: Array, gradient_sum: Array, square_sum: Array, hedge: Hedge, p: Array
    ) -> Array:
        """The smallest ν ≥ `weight` whose mixture has g ≤ 0, or W: g falls in ν, so points between enclose the root."""
        xp = namespace(gradient_sum)
        low, high = column(weight), column(weight_sum)
        if self.prox.constraint.l1 > 0:  # from there on x = 0
            gone = xp.max(xp.abs(gradient_sum), axis=-1, keepdims=True) / self.prox.constraint.l1
            high = xp.minimum(high, xp.maximum(gone, low))
        hedge = hedge._replace(tilt=column(hedge.tilt), owed=hedge.owed[..., None, :])
        grid = like(np.linspace(0.0, 1.0, POINTS), gradient_sum)
        for _ in range(STAGES):
            points = low + (high - low) * grid
            w, s = self._experts(gradient_sum[..., None, :], points, square_sum[..., None])
            x = column(mixture.factor(hedge, p[..., None, :], s, self.prox.over.radius)) * w
            over = self.prox.constraint.values(x)[..., 0] > 0
            lowest = xp.max(xp.where(over, points, low), axis=-1, keepdims=True)
            highest = xp.min(xp.where(over, high, points), axis=-1, keepdims=True)
            low, high = lowest, highest
        return high[..., 0]

    def report(self, state: MixedPenalisedFTRLState) -> dict[str, Array]:
        return {
            "multiplier": state.multiplier,
            "weight": state.weight_sum,
            "square_sum": state.square_sum,
            "largest_gradient": state.largest_gradient,
        }
