"""Constraints that change, no Slater point, no horizon (Yu, Lee, Lee 2026, arXiv 2606.31480): signed and hard form.

A queue Q_t of the violations so far, less what the theory can spare, sets the weight of the constraint:

    w_t     = γ_t exp(γ_t Q_t),                      W_t = Σ_{s≤t} w_s²
    x_{t+1} = Π_B( x_t − η_t d_t ),                  d_t = ∇f_t(x_t) + w_t ∇g_t(x_t),          x_1 = centre of B
    Q_{t+1} = Q_t + g_t(x_t) − κ γ_t D² − ( Ψ(W_t) − Ψ(W_{t−1}) ) / w_t,       Ψ(W) = 4 Δ G √W,      Q_1 = 0

with g_t = max_j g_{t,j}, or, in the hard form, [g_t]₊ in its place. Q_t may be negative. The last term is
computed as 4ΔG w_t/(√W_t + √W_{t−1}), which is the same and loses nothing to rounding.

Steps: η_t = Δ/√(2 (1 + Σ_{s≤t} ‖d_s‖²)) for convex losses, η_t = 1/(σt + (2G/Δ) √W_t) for σ-strongly convex ones.
γ_t and κ are `Published`, the article's min(1/(12 D √t), 1/(24 Δ G), 1) and 12, or `Sharp`, ours, which the same proof
allows. The authors' code leaves out κ γ_t D² and multiplies γ_t by some hundreds; no theorem is known for that.
Needs: value and one subgradient of f_t and g_t at x_t. No horizon, no Slater point, no projection.
Guarantees: `theorem`, at every T: O(√T) regret (strongly convex: O(log T)), and for Σ g_t(x_t) O(√T log T)
(`Sharp`: O(√(T log T))), against any x* with g_t(x*) ≤ 0 in every round; in expectation, where the g_t are drawn
independently of the past, against any x*, fixed in advance, with E max_j g_{t,j}(x*) ≤ 0. That each E g_{t,j}(x*) ≤ 0
is **not** enough (`DriftPlusPenalty` can do with that). The hard form bounds Σ [g_t(x_t)]₊, against an x* that is
feasible in every round.
Checked: constants and proof are ours (`docs/after_the_paper.md`). With γ_t that change a negative Q_t costs the
proof (1/e) ln(γ_1/γ_T), a logarithm that is in our bound.
Not promised: that the constraint is felt soon. With `Published`, w_t passes 1 when Q_t is about 12 D √t ln(12 D √t): on
the unit disc with D = 5/4 and a constraint broken by ½ in every round that takes some tens of thousands of rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, dot, like, namespace, resolution
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import StepKind, require_strong_convexity
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import HARD, REGRET, SIGNED, horizons_of
from longterm.theory.per_learner import PerLearner


@dataclass(frozen=True, eq=False)
class Rates(PerLearner, ABC):
    """How fast the queue speaks: γ_t, and what it is spared in every round, κ γ_t D².

    The proof (`docs/after_the_paper.md`) asks that γ_t does not increase and, with A = D (1 + κ γ_1 D) and
    ϱ = (e^u − 1 − u)/u² at u = γ_1 D (0.515 at u = 1/12, 0.545 at u = ¼),

        κ D² ≥ ϱ A²   and   2 ϱ γ_1 (2A + 4ΔG) ≤ 1.

    The published rates keep both with a lot of room, and pay for it: (1/γ_T) ln T is 12 D √T ln T. The sharp ones use
    the room, and balance (1/γ_T) ln T with Σ γ_t D², so that the violation is O(√(T log T)).

    Parameters
    ----------
    diameter, gradient_bound, constraint_bound : float or array
        Δ, G and D.
    """

    diameter: Hyper
    gradient_bound: Hyper
    constraint_bound: Hyper
    spared: ClassVar[float]
    """κ of the two conditions."""

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "diameter", "gradient_bound", "constraint_bound")

    @property
    @abstractmethod
    def flat(self) -> Hyper:
        """What γ_t never exceeds."""

    @abstractmethod
    def falling(self, t: Array) -> Array:
        """What γ_t is in the long run: 1/√t times something that does not decrease."""

    def gamma(self, t: Array) -> Array:
        """γ_t, the smaller of the two, for rounds as floats, in their library and dtype."""
        return namespace(t).minimum(self.falling(t), like(self.flat, t))

    def total(self, T: FloatArray) -> FloatArray:
        """Σ_{t≤T} γ_t at most: Σ 1/√t ≤ 2√T."""
        return np.asarray(np.minimum(self.flat * T, 2 * T * self.falling(T)))


@dataclass(frozen=True, eq=False)
class Published(Rates):
    """γ_t = min( 1/(12 D √t), 1/(24 Δ G), 1 ), κ = 12: the article's.

    Parameters
    ----------
    diameter, gradient_bound, constraint_bound : float or array
        Δ, G and D.
    """

    spared: ClassVar[float] = 12.0

    @property
    def flat(self) -> Hyper:
        return np.minimum(1 / (24 * np.asarray(self.diameter * self.gradient_bound)), 1.0)

    def falling(self, t: Array) -> Array:
        return 1 / (12 * like(self.constraint_bound, t) * t**0.5)


@dataclass(frozen=True, eq=False)
class Sharp(Rates):
    """γ_t = min( √(ln(e t)/(2t))/D, 1/(4D + 5ΔG) ), κ = 1: ours.

    Parameters
    ----------
    diameter, gradient_bound, constraint_bound : float or array
        Δ, G and D.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.learners import Published, Sharp
    >>> [float(rates(2.0, 1.0, 1.0).gamma(np.asarray(1e4)).round(5)) for rates in (Published, Sharp)]
    [0.00083, 0.02259]
    """

    spared: ClassVar[float] = 1.0

    @property
    def flat(self) -> Hyper:
        return 1 / np.asarray(4 * self.constraint_bound + 5 * self.diameter * self.gradient_bound)

    def falling(self, t: Array) -> Array:
        xp = namespace(t)
        return xp.sqrt((1 + xp.log(t)) / (2 * t)) / like(self.constraint_bound, t)


RATES: Mapping[str, type[Rates]] = {"sharp": Sharp, "published": Published}


class YuLeeLeeState(NamedTuple):
    """(t, x_t, Q_t, W_{t−1}, Σ_{s<t} ‖d_s‖²)."""

    round: Array
    x: Array
    queue: Array
    weight_square_sum: Array
    gradient_square_sum: Array


@dataclass(frozen=True, eq=False)
class YuLeeLee(Learner[YuLeeLeeState]):
    """The signed form, or the hard one, which is told [g_t]₊, so that no slack round makes up for a broken one.

    Parameters
    ----------
    enclosing_set : Set
        B, which it projects onto.
    rates : Rates
        γ_t and κ; they hold Δ, G and D.
    strong_convexity : float or array
        The σ of the steps for strongly convex losses; 0 for the others'.
    hard : bool
        Whether it is told [g_t]₊ in the place of g_t.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import observe, run
    >>> from longterm.learners import YuLeeLee
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import Replay
    >>> problem = two_dimensional()  # g = x₁ − ¼
    >>> learner, targets = YuLeeLee.for_problem(problem), Replay([np.tile([0.8, 0.6], (20_000, 1))])
    >>> trace = run(problem, learner, targets, record=[5000, 20_000])
    >>> trace.signed_violation.round(0)
    array([2155., 4370.])
    >>> learner = YuLeeLee.for_problem(problem, hard=True, rates="published")
    >>> state = learner.tell(learner.init(), observe(problem, np.zeros(2), [np.array([0.8, 0.6])]))  # g(x_1) = −¼
    >>> round(float(state.queue), 4)  # −12 γ_1 D² − 4ΔG, γ_1 = 1/(24ΔG) = 1/96
    -16.1953
    """

    enclosing_set: Set
    rates: Rates
    strong_convexity: Hyper = 0.0
    hard: bool = False

    name: ClassVar[str] = "yu_lee_lee"
    title: ClassVar[str] = "Yu–Lee–Lee"
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), O(log T)",
        SIGNED: "O(√(T log T)), published rates O(√T log T)",
        HARD: "the same, with hard=True",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"hard": True}, {"steps": "strongly convex"})

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.strong_convexity) != 0):
            validate.set_frozen(self, strong_convexity=validate.positive("strong_convexity", self.strong_convexity))

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        steps: StepKind = "convex",
        rates: Literal["sharp", "published"] = "sharp",
        hard: bool = False,
    ) -> YuLeeLee:
        """Yu, Lee and Lee: an exponential price without a horizon, of the signed or (hard) of the positive part.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ, G, D and σ.
        steps : {"convex", "strongly convex"}
            AdaGrad's, or those for strongly convex losses.
        rates : {"sharp", "published"}
            γ_t and κ: ours, or the article's.
        hard : bool
            Whether no slack round is to make up for a broken one.
        """
        if rates not in RATES:
            raise InputError("rates", f"{rates!r} is not known", "Choose 'sharp' or 'published'")
        c = problem.constants
        sigma = 0.0 if steps == "convex" else require_strong_convexity(problem, steps)
        chosen = RATES[rates](c.diameter, c.gradient_bound, c.constraint_bound)
        return cls(problem.enclosing_set, chosen, sigma, hard)

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.rates.gradient_bound

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """For any losses, against x* with g_t(x*) ≤ 0 in every round.

            P = 2ΔG_f √T + Δ/√2  (convex)   or   (G_f²/σ)(1 + ln T)  (strongly convex)
            C = P + (1/e) ln(γ_1/γ_T)
            Σ f_t(x_t) − f_t(x*) ≤ C + 1
            Σ g_t(x_t)           ≤ (1/γ_T) ln E + κ D² Σ γ_t + 4ΔG + 2ΔG √(2T ln(T E)),      E = 1 + C + F T

        In the hard form [g_t]₊ stands for g_t. For g_t drawn independently of the past both hold in expectation, the
        signed form's against every fixed x* with E max_j g_{t,j}(x*) ≤ 0. The constants are ours, from a proof of our
        own (`docs/after_the_paper.md`); the article states the rates.

        Examples
        --------
        >>> from longterm.learners import YuLeeLee
        >>> from longterm.problems import two_dimensional
        >>> problem = two_dimensional()
        >>> for rates in ("published", "sharp"):
        ...     bound = YuLeeLee.for_problem(problem, rates=rates).bound(problem, [1000, 100_000])
        ...     print(bound["regret"].round(0), bound["signed_violation"].round(0))
        [ 256. 2534.] [ 5126. 76194.]
        [ 255. 2533.] [ 1640. 21353.]
        """
        T, c, rates = horizons_of(rounds, self.batch_shape), problem.constants, self.rates
        steepness, D = np.asarray(rates.diameter * rates.gradient_bound), np.asarray(rates.constraint_bound)
        if self._for_convex_losses:
            primal = rates.diameter * (2 * c.loss_gradient_bound * np.sqrt(T) + 1 / np.sqrt(2))
        else:
            primal = c.loss_gradient_bound**2 / np.asarray(self.strong_convexity) * (1 + np.log(T))
        first, last = (np.asarray(rates.gamma(t)) for t in (np.ones_like(T), T))
        cost = primal + np.log(first / last) / np.e
        gain = 1 + cost + c.loss_range * T
        queue = np.log(gain) / last + rates.spared * D**2 * rates.total(T)
        violation = queue + 4 * steepness + 2 * steepness * np.sqrt(2 * T * np.log(T * gain))
        return {REGRET: cost + 1, HARD if self.hard else SIGNED: violation}

    @property
    def _for_convex_losses(self) -> bool:
        return isinstance(self.strong_convexity, float) and self.strong_convexity == 0

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> YuLeeLeeState:
        x = self.initial_x(batch_shape, xp, dtype)
        zero = xp.zeros(x.shape[:-1], dtype=x.dtype)
        return YuLeeLeeState(xp.asarray(1, dtype=xp.int64), x, zero, zero, zero)

    def ask(self, state: YuLeeLeeState) -> Array:
        return state.x

    def update(self, state: YuLeeLeeState, feedback: Feedback) -> YuLeeLeeState:
        xp, D = namespace(state.x), like(self.rates.constraint_bound, state.x)
        feedback = self._positive_part(feedback) if self.hard else feedback
        gamma, weight = self._weight(state)
        weight_square_sum = state.weight_square_sum + weight**2
        descent = feedback.loss_gradient + as_column(weight) * feedback.constraint_gradient
        gradient_square_sum = state.gradient_square_sum + dot(descent, descent)
        eta = self._eta(state.round, weight_square_sum, gradient_square_sum)
        roots = xp.sqrt(weight_square_sum) + xp.sqrt(state.weight_square_sum)
        steepness = like(self.rates.diameter * self.rates.gradient_bound, state.x)
        spared = self.rates.spared * gamma * D**2 + 4 * steepness * weight / roots
        return YuLeeLeeState(
            round=state.round + 1,
            x=self.enclosing_set.project(state.x - as_column(eta) * descent),
            queue=state.queue + feedback.constraint - spared,
            weight_square_sum=weight_square_sum,
            gradient_square_sum=gradient_square_sum,
        )

    def _weight(self, state: YuLeeLeeState) -> tuple[Array, Array]:
        """γ_t and w_t."""
        xp = namespace(state.x)
        gamma = self.rates.gamma(xp.astype(state.round, state.x.dtype))
        return gamma, gamma * xp.exp(gamma * state.queue)

    def _eta(self, t: Array, weight_square_sum: Array, gradient_square_sum: Array) -> Array:
        xp, wide = namespace(weight_square_sum), like(self.rates.diameter, weight_square_sum)
        if self._for_convex_losses:
            return wide / xp.sqrt(2 * (1 + gradient_square_sum))
        sigma = like(self.strong_convexity, weight_square_sum)
        brake = 2 * like(self.rates.gradient_bound, weight_square_sum) / wide * xp.sqrt(weight_square_sum)
        return 1 / (sigma * xp.astype(t, weight_square_sum.dtype) + brake)

    def _positive_part(self, feedback: Feedback) -> Feedback:
        """The same round with [g]₊ for g = max_j g_j; its gradient is 0 where g ≤ 1e-9 D.

        Learners often stand on the boundary, where rounding would otherwise decide, in a batch and in a single run
        differently. A gradient that is left out there costs the theorem 1e-9 D at most.
        """
        xp, g = namespace(feedback.constraint), feedback.constraint
        broken = g > resolution(g) * like(self.rates.constraint_bound, g)
        return feedback._replace(
            constraint=xp.maximum(g, 0.0),
            constraint_gradient=xp.where(as_column(broken), feedback.constraint_gradient, 0.0),
        )

    def report(self, state: YuLeeLeeState) -> dict[str, Array]:
        gamma, weight = self._weight(state)
        return {"multiplier": weight, "queue": state.queue, "gamma": gamma}
