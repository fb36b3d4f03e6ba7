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
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, column, dot, namespace
from longterm.constraints.prox import ElasticNetProx
from longterm.learners import _scale_mixture as mixture
from longterm.learners._given import as_reported, ascend, length_bound, prox_of, require_same_constraint, values_of
from longterm.learners._online_constants import (
    add_theta,
    default_dual_scale,
    dual_steps,
    first_round,
    no_theorem_beforehand,
    regret_and_violation,
    start_of,
)
from longterm.learners._scale_mixture import Hedge
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import LONG_TERM, REGRET


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
class MixedAFTRL(Learner[MixedAFTRLState]):
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
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.FIXED_CONSTRAINT, Need.PROX})
    name: ClassVar[str] = "mixed_aftrl"
    title: ClassVar[str] = "Mixed A-FTRL"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T + T^β), from what happened",
        LONG_TERM: "(τ − 1)[g(x_1)]₊ + O(T^(1−β/2)), from what happened",
    }

    def __post_init__(self) -> None:
        validate.remember(
            self,
            prox=mixture.require_ray(type(self).__name__, self.prox),
            dual_scale=validate.positive_scalar("dual_scale", self.dual_scale),
            typical_size=validate.positive_scalar("typical_size", self.typical_size),
            beta=validate.scalar("beta", validate.open_unit_interval("beta", self.beta)),
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

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_constraint(self.prox, problem)

    @property
    def _log_priors(self) -> FloatArray:
        return mixture.log_priors(self.prox.over.radius, self.typical_size)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        raise no_theorem_beforehand(type(self).__name__)

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
        x = self.at_the_centre(batch_shape, xp, dtype)
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
            g = self.prox.constraint.values(w[..., None, :] * column(s))[..., 0]
            hedge = hedge._replace(losses=hedge.losses + multiplier * g)
        hedge, p = mixture.settled(hedge, state.shares, before, ends, R, self._log_priors)
        return MixedAFTRLState(
            round=state.round + 1,
            x=column(mixture.factor(hedge, p, s, R)) * w,
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
        total = multiplier_sum[..., 0]
        w = mixture.direction(self.prox, gradient_sum, total)
        return w, mixture.factors(self.prox, w, total, square_sum)

    def report(self, state: MixedAFTRLState) -> dict[str, Array]:
        return {
            "multiplier": as_reported(state.multiplier),
            "square_sum": state.square_sum,
            "largest_gradient": state.largest_gradient,
        }
