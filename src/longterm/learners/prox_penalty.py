"""The prox-penalty family: the latest constraint, cut off at 0, inside the step, with a weight that grows by itself.

    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + w_t [g_t(x)]₊ + α_t ‖x − x_t‖²,    w_t = w_0 t^{1+e},    x_1 = centre of B

`RECOO` (Guo, Liu, Wei, Ying 2022) and `COLDQ` (Wang, Yan, Liu 2025) have the same step and find w_t with a queue; the
bounds need no queue at all. The step nearly projects onto {g_t ≤ 0}: that is what buys an O(1) violation.

Steps: α_t = G_f √t/(√2 Δ) for convex losses, α_t = σt/2 for σ-strongly convex ones; w_0 = (F + ΔG_f)/D and e = ½
unless given.
Needs: the argmin (`PenaltyStep`): one affine constraint on a ball or a box, fixed or changing, or a budget. No horizon.
Guarantees, if α_t/w_t does not increase: for a fixed g and every T at once, regret at most √2 ΔG_f √T (strongly convex:
(G_f²/(2σ))(1 + ln T)) and **hard** violation Σ [g(x_t)]₊ = O(1); for g_t that change, against x* with g_t(x*) ≤ 0 in
every round, the same regret, and O(T^{3/4}) for Σ [g_t(x_t)]₊ (strongly convex: O(√(T log T))): x_{t+1} is chosen with
g_t and charged with g_{t+1}. Proof: `docs/after_the_paper.md`. With α_t = α t^power the condition is power ≤ 1 + e;
where it fails the rule can be played, with a warning, and no bound is given.
Not promised: feasibility in a single round.

RECOO: the prox-penalty step with a rectified queue (Guo, Liu, Wei, Ying, NeurIPS 2022).

    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + Q_t γ_t [g_t(x)]₊ + α_t ‖x − x_t‖²          x_1 = centre of B
    Q_{t+1} = max( Q_t + γ_t [g_t(x_{t+1})]₊, η_{t+1} )                                   Q_1 = η_1

The queue grows by the violation that is left at the *new* point under the *old* constraint, and never falls below η_t.

Steps: **the article's γ_t and η_t are not known to us**; the rule reached us through a paper that restates it. They are
parameters here, γ_t = gamma t^gamma_power and η_t = floor t^floor_power. Our choice is γ_t of order t^{½+e} and η_t of
order t^½, so that w_t = Q_t γ_t ≥ w_0 t^{1+e}, all that the bound uses; α_t = G_f √t/(√2 Δ), and w_0 and e as in
`ProxPenalty`.
Needs: as `ProxPenalty`. No horizon.
Guarantees: as for `ProxPenalty`, if γ_t grows at least as α_t does, power ≤ gamma_power (then α_t/w_t does not
increase, since Q_t never falls). Where it does not, the rule can be played, with a warning, and no bound is given.

COLDQ: the prox-penalty step with a queue that forgets and has a floor (Wang, Yan, Liu, AAAI 2025).

    Q_t     = max( (1 − 1/T) Q_{t−1} + [g_t(x_t)]₊, γ ),     γ = e T,     0 < e < D,               Q_1 = γ
    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + Q_t [g_t(x)]₊ + α_t ‖x − x_t‖²                       x_1 = centre of B

Steps: α_t = √t as published (`alpha=1`); G_f √t/(√2 Δ) is the choice with the units right. e = D/2 unless given. The
article has a queue for each constraint; here there is one constraint, which is what the step has a closed form for.
Needs: as `ProxPenalty`, and a horizon.
Guarantees: O(√T) regret and, for a fixed g, hard violation [g(x_1)]₊ + F/e + O(1/√T): the floor alone does that; for
g_t that change as `ProxPenalty`. The article bounds the violation by how much the g_t change in all; that bound is not
in the library.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, StepKind, require_strong_convexity
from longterm.learners.penalty_step import PenaltyStep, require_penalty_step, require_same_step
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import HARD, REGRET, horizons_of
from longterm.theory.conditions import power_sum
from longterm.theory.facts import Assumption, Constants


class PenaltyState(NamedTuple):
    """(t, x_t, Q_t or Q_{t−1}): a queue, where the member has one."""

    round: Array
    x: Array
    queue: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class PenaltyFamily(Learner[PenaltyState]):
    """x_{t+1} = argmin_B ⟨∇f_t(x_t), x⟩ + w_t [g_t(x)]₊ + α_t ‖x − x_t‖² with α_t = alpha t^power.

    What the family shares: the state, the order of a round, α_t, the theorem. Its members differ in their weights.
    """

    penalty_step: PenaltyStep
    alpha: Hyper
    power: Hyper = 0.5
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset({Need.LATEST_PENALTY_PROX})
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√T)", HARD: "O(1) for a fixed g, else O(T^(3/4))"}

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "alpha", "power")
        validate.set_frozen(self, enclosing_set=self.penalty_step.over)

    @property
    def strong_convexity(self) -> Hyper:
        """2α where α_t grows like t: such steps are made for σ = 2α."""
        sigma = np.where(np.asarray(self.power) == 1, 2 * np.asarray(self.alpha), 0.0)
        return sigma if sigma.ndim else float(sigma)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_step(self.penalty_step, problem)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """For any losses and any x* with g_t(x*) ≤ 0 in every round, where w_t ≥ w t^e and α_t/w_t does not increase:

            Σ f_t(x_t) − f_t(x*) ≤ P_T = Σ G_f²/(4α_t) + r²[α_1 − σ/2]₊ + Δ² Σ_{t≥2} [α_t − α_{t−1} − σ/2]₊
            Σ [g(x_t)]₊          ≤ min(D, G_g r) + H_{T−1},     H_T = Σ_{t≤T} (F + G_f²/(4α_t))/(w t^e) + r² α_1/w
            Σ [g_t(x_t)]₊        ≤ H_T + G_g √( 2 Σ 1/α_t · (P_T + Σ G_f²/(4α_t) + F T) )

        The second line is for a fixed g, the third for g_t that change. (σ counts for α_t in proportion to t only.)
        For `COLDQ`, H_T = (P_T + F T)/γ, whatever α_t does. Everything follows from the step: for z with g_t(z) ≤ 0,
        a_t = ‖x_t − z‖² and δ_t = x_{t+1} − x_t,

            f_t(x_t) − f_t(z) + w_t [g_t(x_{t+1})]₊ ≤ G_f²/(4α_t) + α_t (a_t − a_{t+1}) − (σ/2) a_t
            f_t(x_t) − f_t(z) + (α_t/2) ‖δ_t‖²      ≤ G_f²/(2α_t) + α_t (a_t − a_{t+1}) − (σ/2) a_t

        Examples
        --------
        >>> from longterm.learners import ProxPenalty
        >>> from longterm.problems import two_dimensional
        >>> problem = two_dimensional()
        >>> bound = ProxPenalty.for_problem(problem).bound(problem, [100, 10_000])
        >>> bound["regret"].round(1), bound["hard_violation"].round(2)
        (array([ 53. , 562.1]), array([2.9 , 2.98]))
        """
        self.require_assumptions()
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        regret = self._regret(c, T)
        if problem.constraint.parameters:
            inverse = self._inverse_sum(T)
            energy = regret + c.loss_gradient_bound**2 / 4 * inverse + c.loss_range * T
            moves = c.constraint_gradient_bound * np.sqrt(2 * inverse * energy)
            violation = self._left_after_steps(c, T) + moves
        else:
            first = min(c.constraint_bound, c.constraint_gradient_bound * c.radius)
            violation = first + np.where(T > 1, self._left_after_steps(c, np.maximum(T - 1, 1.0)), 0.0)
        regret, violation = np.broadcast_arrays(regret, violation)
        return {REGRET: regret, HARD: violation}

    def _regret(self, c: Constants, T: FloatArray) -> FloatArray:
        """P_T of `theorem`."""
        alpha, power = np.asarray(self.alpha), np.asarray(self.power)
        credit = np.where(power == 1, c.strong_convexity / 2, 0.0)
        growth = np.where(power == 1, np.maximum(alpha - credit, 0.0) * (T - 1), alpha * (T**power - 1))
        spread = c.radius**2 * np.maximum(alpha - credit, 0.0) + c.diameter**2 * growth
        return np.asarray(c.loss_gradient_bound**2 / 4 * self._inverse_sum(T) + spread)

    def _left_after_steps(self, c: Constants, T: FloatArray) -> FloatArray:
        """H_T: Σ_{t≤T} [g_t(x_{t+1})]₊ at most."""
        weight, exponent = (np.asarray(part) for part in self.least_weight())
        alpha, power = np.asarray(self.alpha), np.asarray(self.power)
        losses = c.loss_range * power_sum(T, exponent)
        losses = losses + c.loss_gradient_bound**2 / (4 * alpha) * power_sum(T, exponent + power)
        return np.asarray((losses + alpha * c.radius**2) / weight)

    def _inverse_sum(self, T: FloatArray) -> FloatArray:
        """Σ 1/α_t at most."""
        return np.asarray(power_sum(T, self.power) / np.asarray(self.alpha))

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> PenaltyState:
        x = self.initial_x(batch_shape, xp, dtype)
        return PenaltyState(xp.asarray(1, dtype=xp.int64), x, xp.zeros(x.shape[:-1], dtype=x.dtype))

    def ask(self, state: PenaltyState) -> Array:
        return state.x

    def update(self, state: PenaltyState, feedback: Feedback) -> PenaltyState:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        queue = self._queue(t, state.queue, feedback)
        curvature = 2 * self._alpha(t) + 0 * feedback.constraint
        stepped = self.penalty_step.step(state.x, feedback, self._weight(t, queue), curvature)
        return PenaltyState(state.round + 1, stepped.x, self._after(t, queue, stepped.constraint))

    def _alpha(self, t: Array) -> Array:
        return like(self.alpha, t) * t ** like(self.power, t)

    @abstractmethod
    def least_weight(self) -> tuple[Hyper, Hyper]:
        """(w, e) with w_t ≥ w t^e in every round: what the theorem uses of the weights."""

    @abstractmethod
    def _weight(self, t: Array, queue: Array) -> Array:
        """w_t, the weight of the penalty in round t."""

    def _queue(self, t: Array, queue: Array, feedback: Feedback) -> Array:
        """Q_t, once g_t(x_t) is known."""
        return queue

    def _after(self, t: Array, queue: Array, constraint: Array) -> Array:
        """The queue that round t leaves behind, once g_t(x_{t+1}) is known."""
        return queue

    def report(self, state: PenaltyState) -> dict[str, Array]:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return {"queue": state.queue, "alpha": self._alpha(t)}


@dataclass(frozen=True, eq=False, kw_only=True)
class ProxPenalty(PenaltyFamily):
    """The family's plainest member: w_t = w_0 t^{1+growth}.

    Parameters
    ----------
    penalty_step : PenaltyStep
        The argmin.
    alpha, power : float or array
        α_t = alpha t^power.
    w_0, growth : float or array
        The first weight, and e; both above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import ProxPenalty
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> learner = ProxPenalty.for_problem(problem, steps="strongly convex")
    >>> trace = run(problem, learner, Replay([np.tile([0.8, 0.6], (500, 1))]))
    >>> trace.state.x.round(3), float(trace.hard_violation[-1].round(3))
    (array([0.25, 0.6 ]), 0.0)
    """

    w_0: Hyper
    growth: Hyper = 0.5

    name: ClassVar[str] = "prox_penalty"
    title: ClassVar[str] = "Prox penalty"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), O(log T)",
        HARD: "O(1) for a fixed g, else O(T^(3/4)), O(√(T log T))",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"steps": "strongly convex"})

    def __post_init__(self) -> None:
        super().__post_init__()
        w_0, growth = validate.positive("w_0", self.w_0), validate.positive("growth", self.growth)
        validate.set_frozen(self, w_0=w_0, growth=growth)

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: StepKind = "convex", w_0: Hyper | None = None, growth: Hyper = 0.5
    ) -> ProxPenalty:
        """A gradient step that holds [g_t]₊ itself, under a growing weight: little hard violation.

        Parameters
        ----------
        problem : Problem
            Gives B, the argmin, Δ, G_f, D and F, or σ.
        steps : {"convex", "strongly convex"}
            α_t = G_f √t/(√2 Δ), or σt/2.
        w_0 : float or array, optional
            The first weight; (F + ΔG_f)/D unless given.
        growth : float or array
            e of w_t = w_0 t^{1+e}, above 0.
        """
        step, c = require_penalty_step(cls.__name__, problem), problem.constants
        if w_0 is None:
            w_0 = (c.loss_range + c.diameter * c.loss_gradient_bound) / c.constraint_bound
        if steps == "convex":
            return cls(penalty_step=step, alpha=scaled_alpha(problem), w_0=w_0, growth=growth)
        sigma = require_strong_convexity(problem, steps)
        return cls(penalty_step=step, alpha=sigma / 2, power=1.0, w_0=w_0, growth=growth)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        statement, remedy = "α_t/w_t does not increase (power ≤ 1 + growth)", "Raise growth, or lower power"
        return (Assumption.worst(statement, self.power, 1 + np.asarray(self.growth), remedy),)

    def least_weight(self) -> tuple[Hyper, Hyper]:
        return self.w_0, 1 + self.growth

    def _weight(self, t: Array, queue: Array) -> Array:
        return like(self.w_0, t) * t ** (1 + like(self.growth, t))


def scaled_alpha(problem: Problem) -> float:
    """The α for which α_t = α√t balances the two terms of the regret: G_f/(√2 Δ)."""
    c = problem.constants
    return validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound) / (2**0.5 * c.diameter)


@dataclass(frozen=True, eq=False, kw_only=True)
class RECOO(PenaltyFamily):
    """The rectified queue, with γ_t = gamma t^gamma_power and η_t = floor t^floor_power.

    Parameters
    ----------
    penalty_step : PenaltyStep
        The argmin.
    alpha, power : float or array
        α_t = alpha t^power.
    gamma, gamma_power : float or array
        γ_t = gamma t^gamma_power.
    floor, floor_power : float or array
        η_t = floor t^floor_power.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import RECOO
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> trace = run(problem, RECOO.for_problem(problem), Replay([np.tile([0.8, 0.6], (500, 1))]))
    >>> trace.state.x.round(3), float(trace.hard_violation[-1].round(3))
    (array([0.25, 0.6 ]), 0.0)
    """

    gamma: Hyper
    floor: Hyper
    gamma_power: Hyper = 1.0
    floor_power: Hyper = 0.5

    name: ClassVar[str] = "recoo"
    title: ClassVar[str] = "RECOO"

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.validate_fields(self, validate.positive, "gamma", "floor")
        validate.validate_fields(self, validate.non_negative, "gamma_power", "floor_power")

    @classmethod
    def for_problem(cls, problem: Problem, *, gamma: Hyper = 1.0, floor: Hyper | None = None) -> RECOO:
        """RECOO: the weight on [g_t]₊ is a queue of what was broken, which never falls below a floor that grows.

        Parameters
        ----------
        problem : Problem
            Gives B, the argmin, Δ, G_f, D and F.
        gamma : float or array
            γ_1, above 0.
        floor : float or array, optional
            η_1, above 0; unless given, the one that makes γ_t η_t the weight of `ProxPenalty`.
        """
        step, c = require_penalty_step(cls.__name__, problem), problem.constants
        if floor is None:
            floor = (c.loss_range + c.diameter * c.loss_gradient_bound) / (c.constraint_bound * gamma)
        return cls(penalty_step=step, alpha=scaled_alpha(problem), gamma=gamma, floor=floor)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        statement, remedy = "α_t/γ_t does not increase (power ≤ gamma_power)", "Raise gamma_power, or lower power"
        return (Assumption.worst(statement, self.power, self.gamma_power, remedy),)

    def least_weight(self) -> tuple[Hyper, Hyper]:
        return self.gamma * self.floor, self.gamma_power + self.floor_power

    def _gamma(self, t: Array) -> Array:
        return like(self.gamma, t) * t ** like(self.gamma_power, t)

    def _weight(self, t: Array, queue: Array) -> Array:
        return queue * self._gamma(t)

    def _queue(self, t: Array, queue: Array, feedback: Feedback) -> Array:
        return namespace(queue).maximum(queue, like(self.floor, t) * t ** like(self.floor_power, t))

    def _after(self, t: Array, queue: Array, constraint: Array) -> Array:
        return queue + self._gamma(t) * namespace(queue).maximum(constraint, 0.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class COLDQ(PenaltyFamily):
    """The forgetting queue for `rounds` rounds, with its floor γ.

    Parameters
    ----------
    penalty_step : PenaltyStep
        The argmin.
    alpha, power : float or array
        α_t = alpha t^power.
    rounds : int
        T.
    floor : float or array
        γ.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import COLDQ
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> trace = run(problem, COLDQ.for_problem(problem, horizon=500), Replay([np.tile([0.8, 0.6], (500, 1))]))
    >>> trace.state.x.round(3), float(trace.hard_violation[-1].round(3))
    (array([0.25, 0.6 ]), 0.0)
    """

    rounds: int
    floor: Hyper

    name: ClassVar[str] = "coldq"
    title: ClassVar[str] = "COLDQ"
    needs: ClassVar[frozenset[Need]] = PenaltyFamily.needs | {Need.HORIZON}

    def __post_init__(self) -> None:
        super().__post_init__()
        rounds, floor = validate.count("rounds", self.rounds), validate.positive("floor", self.floor)
        validate.set_frozen(self, rounds=rounds, floor=floor)

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int, share: Hyper | None = None, alpha: Hyper = 1.0) -> COLDQ:
        """COLDQ: the weight on [g_t]₊ is a queue that forgets and has a floor, for a known horizon.

        Parameters
        ----------
        problem : Problem
            Gives B, the argmin and D.
        horizon : int
            T, the number of rounds.
        share : float or array, optional
            The article's e of the floor γ = e T, between 0 and D; D/2 unless given.
        alpha : float or array
            α_1 of α_t = α_1 √t; 1 as published, and G_f/(√2 Δ) is the choice with the units right.
        """
        step, D = require_penalty_step(cls.__name__, problem), problem.constants.constraint_bound
        e = D / 2 if share is None else validate.positive("share", share)
        if np.any(np.asarray(e) >= D):
            raise InputError("share", f"{share!r} is not below D = {D:g}", "The article has 0 < e < D; D/2 for example")
        T = validate.count("horizon", horizon)
        return cls(penalty_step=step, alpha=alpha, rounds=T, floor=e * T)

    def least_weight(self) -> tuple[Hyper, Hyper]:
        return self.floor, 0.0

    def _left_after_steps(self, c: Constants, T: FloatArray) -> FloatArray:
        """(P_T + F T)/γ: the weights need not follow α_t."""
        return np.asarray((self._regret(c, T) + c.loss_range * T) / np.asarray(self.floor))

    def _weight(self, t: Array, queue: Array) -> Array:
        return queue

    def _queue(self, t: Array, queue: Array, feedback: Feedback) -> Array:
        xp, floor = namespace(queue), like(self.floor, queue) + 0 * queue
        kept = (1 - 1 / self.rounds) * queue + xp.maximum(feedback.constraint, 0.0)
        return xp.where(t > 1, xp.maximum(kept, floor), floor)
