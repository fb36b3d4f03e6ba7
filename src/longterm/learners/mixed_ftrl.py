"""A-FTRL with a mixture of scales: the size of the set costs a logarithm where it used to be the learning rate.

`AdaptiveAFTRL` has the curvature √V/R. With a generous budget R is large, and the first steps are long, whatever the
losses ask for. Here eight leaders, on balls of radius R_k = R/4^k, and one that stays at 0 share z, V, Λ and the dual,

    x_t = Σ_k p_{t,k} x^k_t,    x^k_t = argmin_{‖x‖ ≤ R_k} ⟨z_{t−1}, x⟩ + Λ_t g(x) + (√V_{t−1}/(2R_k))‖x‖²,

and p is a multi-scale Hedge on ⟨n_t, x^k_t⟩ (`_scale_mixture`). The dual is `AdaptiveAFTRL`'s, driven by g(x_t).
Two readings: as written, p does not know of λ; with `priced` experts also pay λ_t g(x^k_t), known before the round.

Needs: an elastic-net budget, so that all leaders lie on one ray. No horizon, no G_f, no F.
Guarantees, from what happened: for every k and x with ‖x‖ ≤ R_k, g(x) ≤ 0 the regret is at most P_k + N_k and the
dual's term, where P_k + N_k is about R_k √V_T (6 + ½ ln(1/π_k)) (`scale_bounds`): `priced` always, else where λ_t = 0
or k = 0. The violation is bounded as `AdaptiveAFTRL`'s, with P_0 + N_0 for P. Proof: `docs/scales.md`.

Penalised FTRL with a mixture of scales: O(1) hard violation, and no harm in a generous budget.

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
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, dot, like, namespace
from longterm.constraints.prox import ElasticNetProx
from longterm.learners import _scale_mixture as mixture
from longterm.learners._scale_mixture import Hedge
from longterm.learners.adaptive_ftrl import with_weight
from longterm.learners.duals import (
    OnlineProxLearner,
    add_theta,
    as_reported,
    ascend,
    default_dual_scale,
    dual_steps,
    first_round,
    length_bound,
    numbers,
    penalty_prox_of,
    prox_of,
    regret_and_violation,
    start_of,
    values_of,
)
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.theory.bounds import HARD, LONG_TERM, REGRET


class MixedAFTRLState(NamedTuple):
    """`AdaptiveAFTRLState`, then p_t, and Q, m, U of the mixture."""

    round: Array
    x: Array
    multiplier: Array
    gradient_sum: Array
    multiplier_sum: Array
    square_sum: Array
    largest_gradient: Array
    theta_sum: Array
    first_gradient: Array
    shares: Array
    """p_t, shape (..., 9): the scales from the largest down, then the expert at 0."""
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
class MixedAFTRL(OnlineProxLearner[MixedAFTRLState]):
    """A-FTRL with constants found online and eight scales in one leader.

    Parameters
    ----------
    prox : ElasticNetProx
        Of the budget, on a ball about 0.
    dual_scale : float
        c of θ_t = c/(M_t t^β), above 0.
    typical_size : float
        r_0 of the priors π_k ∝ (R_k + r_0)^{−½}, above 0: a size of x that would not be surprising.
    beta : float
        β in (0, 1).
    priced : bool
        Whether scales pay the multiplier's part, too.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import AdaptiveAFTRL, MixedAFTRL
    >>> from longterm.problems import budgeted_logistic
    >>> from longterm.streams import ResampledRows
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((500, 20))
    >>> labels = np.sign(rows[:, 0] - 0.5 * rows[:, 1] + rng.standard_normal(500))
    >>> for budget in (1.0, 1000.0):
    ...     problem = budgeted_logistic(rows, budget=budget)
    ...     for rule in (AdaptiveAFTRL, MixedAFTRL):
    ...         trace = run(problem, rule.for_problem(problem), ResampledRows(rows, labels), rounds=500)
    ...         print(budget, rule.__name__, round(float(trace.cumulative_loss[-1]) / 500, 2))
    1.0 AdaptiveAFTRL 0.57
    1.0 MixedAFTRL 0.58
    1000.0 AdaptiveAFTRL 3.2
    1000.0 MixedAFTRL 0.53
    """

    prox: ElasticNetProx
    dual_scale: float
    typical_size: float
    beta: float = 2 / 3
    priced: bool = False

    name: ClassVar[str] = "mixed_aftrl"
    title: ClassVar[str] = "Mixed A-FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T + T^β), from what happened",
        LONG_TERM: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), from what happened",
    }

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "dual_scale", "typical_size")
        validate.set_frozen(
            self,
            prox=mixture.require_ray(type(self).__name__, self.prox),
            beta=validate.scalar("beta", validate.trade_off("beta", self.beta)),
            enclosing_set=self.prox.over,
        )

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        beta: float = 2 / 3,
        dual_scale: float | None = None,
        typical_size: float | None = None,
        priced: bool = False,
    ) -> MixedAFTRL:
        """A-FTRL with no bound on the gradients known, and no harm in a generous budget.

        Parameters
        ----------
        problem : Problem
            Gives the ball, the budget, R and D.
        beta : float
            β in (0, 1): larger favours the constraint, smaller the regret.
        dual_scale : float, optional
            c of θ_t = c/(M_t t^β), above 0; D²/(10R) unless given.
        typical_size : float, optional
            r_0; R/4⁴, the middle of the scales, unless given.
        priced : bool
            Whether scales pay λ_t g(x^k_t), too: then the regret's theorem holds for every scale.
        """
        prox = mixture.require_ray(cls.__name__, prox_of(cls.__name__, cls.needs, problem))
        c = default_dual_scale(problem, prox) if dual_scale is None else dual_scale
        return cls(prox, c, prox.over.radius / 4**4 if typical_size is None else typical_size, beta, priced)

    @property
    def _log_priors(self) -> FloatArray:
        return mixture.log_priors(self.prox.over.radius, self.typical_size)

    def theorem_after(self, problem: Problem, state: MixedAFTRLState) -> Mapping[str, FloatArray]:
        """After T rounds, for any x* with g(x*) ≤ 0 and any losses: `AdaptiveAFTRL`'s, with P_0 + N_0 for (5/2) R √V_T.

        Examples
        --------
        >>> from longterm import Problem, run
        >>> from longterm.constraints import ElasticNetBudget
        >>> from longterm.learners import MixedAFTRL
        >>> from longterm.losses import Linear
        >>> from longterm.streams import SwitchingCosts
        >>> g = ElasticNetBudget(5, budget=1.0)
        >>> problem = Problem(g.enclosing_ball(), Linear(5), g)
        >>> learner = MixedAFTRL.for_problem(problem)
        >>> trace = run(problem, learner, SwitchingCosts(5), rounds=1000)
        >>> bound = learner.bound(problem, 1000, state=trace.state)
        >>> bool(bound["regret"] < 1000), learner.scale_bounds(problem, trace.state).shape
        (True, (9,))
        """
        P = self._primal_bounds(state)[..., 0]
        regret, violation = self._with_dual(P, problem, state)
        return {REGRET: regret, LONG_TERM: violation}

    def scale_bounds(self, problem: Problem, state: MixedAFTRLState) -> FloatArray:
        """The regret's bound against every x within scale k, shape (..., 9); the last is against x = 0.

        With `priced` for any losses; without where the budget does not bind (λ = 0), and for k = 0 and x = 0 always.
        """
        P = self._primal_bounds(state)
        made = [self._with_dual(P[..., k], problem, state)[0] for k in range(P.shape[-1])]
        if not self.priced:
            made[-1] = P[..., -1]
        return np.stack(made, axis=-1)

    def _primal_bounds(self, state: MixedAFTRLState) -> FloatArray:
        R = self.prox.over.radius
        hedge = mixture.paid(state.hedge, state.shares, R)  # as if the block ended now
        return mixture.primal_bounds(R, self._log_priors, state.square_sum, hedge)

    def _with_dual(self, P: FloatArray, problem: Problem, state: MixedAFTRLState) -> tuple[FloatArray, FloatArray]:
        D = length_bound(self.prox, problem)
        return regret_and_violation(P, D, start_of(problem), self.dual_scale, self.beta, problem, state)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> MixedAFTRLState:
        x = self.initial_x(batch_shape, xp, dtype)
        zero = xp.zeros(x.shape[:-1], dtype=x.dtype)
        hedge = mixture.begin(x.shape[:-1], xp, x.dtype)
        p = mixture.shares(hedge, self.prox.over.radius, self._log_priors)
        first, never = xp.asarray(1, dtype=xp.int64), xp.zeros(x.shape[:-1], dtype=xp.int64)
        none = xp.zeros((*x.shape[:-1], 1), dtype=x.dtype)
        return MixedAFTRLState(first, x, none, xp.zeros_like(x), none, zero, zero, zero, never, p, *hedge)

    def ask(self, state: MixedAFTRLState) -> Array:
        return state.x

    def update(self, state: MixedAFTRLState, feedback: Feedback) -> MixedAFTRLState:
        gradient, xp, R = feedback.loss_gradient, namespace(state.x), self.prox.over.radius
        w, s = self._experts(state.gradient_sum, state.multiplier_sum, state.square_sum)
        before, along = s, dot(gradient, w)
        hedge, ends = mixture.charged(state.hedge, state.shares, s, along, state.round, R, every_round=self.priced)
        square = dot(gradient, gradient)
        square_sum, largest = state.square_sum + square, xp.maximum(state.largest_gradient, xp.sqrt(square))
        steps = dual_steps(state.round, largest, self.dual_scale, self.beta)
        multiplier = ascend(state.multiplier, values_of(feedback, 1), steps)
        multiplier_sum, gradient_sum = state.multiplier_sum + multiplier, state.gradient_sum + gradient
        w, s = self._experts(gradient_sum, multiplier_sum, square_sum)
        if self.priced:
            g = self.prox.constraint.values(w[..., None, :] * as_column(s))[..., 0]
            hedge = hedge._replace(losses=hedge.losses + multiplier * g)
        hedge, p = mixture.settled(hedge, state.shares, before, ends, R, self._log_priors)
        return MixedAFTRLState(
            round=state.round + 1,
            x=as_column(mixture.factor(hedge, p, s, R)) * w,
            multiplier=multiplier,
            gradient_sum=gradient_sum,
            multiplier_sum=multiplier_sum,
            square_sum=square_sum,
            largest_gradient=largest,
            theta_sum=add_theta(state.theta_sum, steps),
            first_gradient=first_round(state.first_gradient, state.round, largest),
            shares=p,
            **{f"hedge_{name}": value for name, value in hedge._asdict().items()},
        )

    def _experts(self, gradient_sum: Array, multiplier_sum: Array, square_sum: Array) -> tuple[Array, Array]:
        return mixture.leaders(self.prox, gradient_sum, multiplier_sum[..., 0], square_sum)

    def report(self, state: MixedAFTRLState) -> dict[str, Array]:
        return {
            "multiplier": as_reported(state.multiplier),
            "square_sum": state.square_sum,
            "largest_gradient": state.largest_gradient,
        }


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
class MixedPenalisedFTRL(OnlineProxLearner[MixedPenalisedFTRLState]):
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

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PENALTY_PROX})
    name: ClassVar[str] = "mixed_penalised_ftrl"
    title: ClassVar[str] = "Mixed penalised FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), from what happened",
        HARD: "O(1), from what happened",
    }

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive_scalar, "weight_scale", "typical_size", "growth")
        validate.set_frozen(
            self, prox=mixture.require_ray(type(self).__name__, self.prox), enclosing_set=self.prox.over
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

    @property
    def _log_priors(self) -> FloatArray:
        return mixture.log_priors(self.prox.over.radius, self.typical_size)

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
        x = self.initial_x(batch_shape, xp, dtype)
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
        w, s = mixture.leaders(self.prox, state.gradient_sum, state.multiplier, state.square_sum)
        hedge, ends = mixture.charged(state.hedge, state.shares, s, dot(gradient, w), state.round, R)
        hedge, p = mixture.settled(hedge, state.shares, s, ends, R, self._log_priors)
        square = dot(gradient, gradient)
        square_sum, largest = state.square_sum + square, xp.maximum(state.largest_gradient, xp.sqrt(square))
        sums = state.weight_sum, state.inverse_sum
        weight_sum, inverse_sum = with_weight(*sums, largest, t, self.weight_scale, self.growth)
        gradient_sum = state.gradient_sum + gradient
        weight = self._raised(state.multiplier, weight_sum, gradient_sum, square_sum, hedge, p)
        w, s = mixture.leaders(self.prox, gradient_sum, weight, square_sum)
        x = as_column(mixture.factor(hedge, p, s, R)) * w
        return MixedPenalisedFTRLState(
            following, x, weight, gradient_sum, weight_sum, square_sum, largest, inverse_sum, p, *hedge
        )

    def _raised(
        self, weight: Array, weight_sum: Array, gradient_sum: Array, square_sum: Array, hedge: Hedge, p: Array
    ) -> Array:
        """The smallest ν ≥ `weight` whose mixture has g ≤ 0, or W: g falls in ν, so points between enclose the root."""
        xp = namespace(gradient_sum)
        low, high = as_column(weight), as_column(weight_sum)
        if self.prox.constraint.l1 > 0:  # from there on x = 0
            gone = xp.max(xp.abs(gradient_sum), axis=-1, keepdims=True) / self.prox.constraint.l1
            high = xp.minimum(high, xp.maximum(gone, low))
        hedge = hedge._replace(tilt=as_column(hedge.tilt), owed=hedge.owed[..., None, :])
        grid = like(np.linspace(0.0, 1.0, POINTS), gradient_sum)
        for _ in range(STAGES):
            points = low + (high - low) * grid
            w, s = mixture.leaders(self.prox, gradient_sum[..., None, :], points, square_sum[..., None])
            x = as_column(mixture.factor(hedge, p[..., None, :], s, self.prox.over.radius)) * w
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
