"""Yu, Lee and Lee (2026, arXiv 2606.31480): changing constraints without a Slater point and without a horizon.

A queue Q_t of the violations so far, less an allowance, sets the weight of the constraint:

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
(`Sharp`: O(√(T log T))), against any x* with g_t(x*) ≤ 0 in every round. If the g_t are drawn independently of the
past, both hold in expectation against any x*, fixed in advance, with E max_j g_{t,j}(x*) ≤ 0. That each
E g_{t,j}(x*) ≤ 0 is **not** enough (for that, use `DriftPlusPenalty`). The hard form bounds Σ [g_t(x_t)]₊ against an x*
that is feasible in every round.
Checked: constants and proof are ours (`docs/proofs/after_the_paper.md`). With γ_t that change a negative Q_t costs the
proof (1/e) ln(γ_1/γ_T), a logarithm that is in our bound.
Not promised: an early effect of the constraint. With `Published`, w_t passes 1 when Q_t is about 12 D √t ln(12 D √t).
On the unit disc with D = 5/4 and a constraint violated by ½ in every round that takes tens of thousands of rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.inner import AdaGradNorm, Inner, StronglyConvexOGD
from longterm.learners.needs import StepKind, require_strong_convexity
from longterm.learners.surrogate import Price, Surrogate
from longterm.problems import Problem
from longterm.theory.bounds import HARD, REGRET, SIGNED
from longterm.theory.facts import Constants
from longterm.theory.per_learner import PerLearner


@dataclass(frozen=True, eq=False)
class Rates(PerLearner, ABC):
    """The rate γ_t of the queue, and its allowance κ γ_t D² in every round.

    The proof (`docs/proofs/after_the_paper.md`) needs that γ_t does not increase and, with A = D (1 + κ γ_1 D) and
    ϱ = (e^u − 1 − u)/u² at u = γ_1 D (0.515 at u = 1/12, 0.545 at u = ¼),

        κ D² ≥ ϱ A²   and   2 ϱ γ_1 (2A + 4ΔG) ≤ 1.

    The published rates satisfy both with much slack, at a cost: (1/γ_T) ln T is 12 D √T ln T. The sharp ones use
    the slack, and balance (1/γ_T) ln T with Σ γ_t D², so that the violation is O(√(T log T)).

    Parameters
    ----------
    diameter, gradient_bound, constraint_bound : float or array
        Δ, G and D.
    """

    diameter: Hyper
    gradient_bound: Hyper
    constraint_bound: Hyper
    allowance: ClassVar[float]
    """The κ of the two conditions."""

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "diameter", "gradient_bound", "constraint_bound")

    @property
    @abstractmethod
    def largest(self) -> Hyper:
        """The value that γ_t never exceeds."""

    @abstractmethod
    def decaying(self, t: Array) -> Array:
        """Return γ_t for large t: 1/√t times a factor that does not decrease."""

    def gamma(self, t: Array) -> Array:
        """Return γ_t, the smaller of the two, for rounds as floats, in their library and dtype."""
        return namespace(t).minimum(self.decaying(t), like(self.largest, t))

    def total(self, T: FloatArray) -> FloatArray:
        """Return an upper bound of Σ_{t≤T} γ_t, from Σ 1/√t ≤ 2√T."""
        return np.asarray(np.minimum(self.largest * T, 2 * T * self.decaying(T)))


@dataclass(frozen=True, eq=False)
class Published(Rates):
    """γ_t = min( 1/(12 D √t), 1/(24 Δ G), 1 ), κ = 12: the article's rates.

    Parameters
    ----------
    diameter, gradient_bound, constraint_bound : float or array
        Δ, G and D.
    """

    allowance: ClassVar[float] = 12.0

    @property
    def largest(self) -> Hyper:
        return np.minimum(1 / (24 * np.asarray(self.diameter * self.gradient_bound)), 1.0)

    def decaying(self, t: Array) -> Array:
        return 1 / (12 * like(self.constraint_bound, t) * t**0.5)


@dataclass(frozen=True, eq=False)
class Sharp(Rates):
    """γ_t = min( √(ln(e t)/(2t))/D, 1/(4D + 5ΔG) ), κ = 1: our rates.

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

    allowance: ClassVar[float] = 1.0

    @property
    def largest(self) -> Hyper:
        return 1 / np.asarray(4 * self.constraint_bound + 5 * self.diameter * self.gradient_bound)

    def decaying(self, t: Array) -> Array:
        xp = namespace(t)
        return xp.sqrt((1 + xp.log(t)) / (2 * t)) / like(self.constraint_bound, t)


RATES: Mapping[str, type[Rates]] = {"sharp": Sharp, "published": Published}


@dataclass(frozen=True, eq=False)
class QueuePrice(Price):
    """The weight w_t = γ_t exp(γ_t Q_t). Its queue holds Q_t and W_{t−1}, shape (..., 2).

    Parameters
    ----------
    rates : Rates
        γ_t and κ. They hold Δ, G and D.
    hard : bool
        Whether [g_t]₊ is priced instead of g_t.
    """

    rates: Rates
    hard: bool = False

    def start(self, x: Array) -> Array:
        return namespace(x).zeros((*x.shape[:-1], 2), dtype=x.dtype)

    def charge(self, queue: Array, t: Array, constraint: Array) -> tuple[Array, Array]:
        xp, rates, before = namespace(queue), self.rates, queue[..., 1]
        gamma, weight = self._weight(queue, t)
        after = before + weight**2
        scale, D = like(rates.diameter * rates.gradient_bound, queue), like(rates.constraint_bound, queue)
        allowed = rates.allowance * gamma * D**2 + 4 * scale * weight / (xp.sqrt(after) + xp.sqrt(before))
        return weight, xp.stack([queue[..., 0] + constraint - allowed, after], axis=-1)

    def _weight(self, queue: Array, t: Array) -> tuple[Array, Array]:
        """Return γ_t and w_t."""
        xp = namespace(queue)
        gamma = self.rates.gamma(xp.astype(t, queue.dtype))
        return gamma, gamma * xp.exp(gamma * queue[..., 0])

    def report(self, queue: Array, t: Array) -> dict[str, Array]:
        gamma, weight = self._weight(queue, t)
        return {"multiplier": weight, "queue": queue[..., 0], "gamma": gamma}

    def bounds(self, inner: Inner, constants: Constants, rounds: FloatArray) -> Mapping[str, FloatArray]:
        """Return the bounds against x* with g_t(x*) ≤ 0 in every round, for any losses.

            P = 2ΔG_f √T + Δ/√2  (convex)   or   (G_f²/σ)(1 + ln T)  (strongly convex)
            C = P + (1/e) ln(γ_1/γ_T)
            Σ f_t(x_t) − f_t(x*) ≤ C + 1
            Σ g_t(x_t)           ≤ (1/γ_T) ln E + κ D² Σ γ_t + 4ΔG + 2ΔG √(2T ln(T E)),      E = 1 + C + F T

        In the hard form [g_t]₊ stands for g_t. For g_t drawn independently of the past both hold in expectation, the
        signed form's against every fixed x* with E max_j g_{t,j}(x*) ≤ 0. The constants are ours, from a proof of our
        own (`docs/proofs/after_the_paper.md`). The article states the rates.
        """
        T, rates = rounds, self.rates
        diameter, scale = np.asarray(rates.diameter), np.asarray(rates.diameter * rates.gradient_bound)
        if isinstance(inner, AdaGradNorm) and inner.offset == 1:
            primal = diameter * (2 * constants.loss_gradient_bound * np.sqrt(T) + 1 / np.sqrt(2))
        elif isinstance(inner, StronglyConvexOGD) and np.allclose(inner.damping, _damping(rates)):
            primal = constants.loss_gradient_bound**2 / np.asarray(inner.strong_convexity) * (1 + np.log(T))
        else:
            return super().bounds(inner, constants, rounds)
        first, last = (np.asarray(rates.gamma(t)) for t in (np.ones_like(T), T))
        cost = primal + np.log(first / last) / np.e
        gain = 1 + cost + constants.loss_range * T
        queue = np.log(gain) / last + rates.allowance * np.asarray(rates.constraint_bound) ** 2 * rates.total(T)
        violation = queue + 4 * scale + 2 * scale * np.sqrt(2 * T * np.log(T * gain))
        return {REGRET: cost + 1, HARD if self.hard else SIGNED: violation}


def _damping(rates: Rates) -> Hyper:
    """Return 2G/Δ, the damping of the steps for strongly convex losses."""
    return 2 * rates.gradient_bound / rates.diameter


@dataclass(frozen=True, eq=False)
class YuLeeLee(Surrogate):
    """An inner learner on f_t + w_t g_t, or, in the hard form, on f_t + w_t [g_t]₊.

    Parameters
    ----------
    inner : Inner
        AdaGradNorm with offset 1, or StronglyConvexOGD with damping 2G/Δ.
    price : QueuePrice
        The weights w_t.
    made_for : Constants, optional
        The problem's constants that the rates were made for.

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
    >>> for rates in ("published", "sharp"):
    ...     bound = YuLeeLee.for_problem(problem, rates=rates).bound(problem, [1000, 100_000])
    ...     print(bound["regret"].round(0), bound["signed_violation"].round(0))
    [ 256. 2534.] [ 5126. 76194.]
    [ 255. 2533.] [ 1640. 21353.]
    """

    price: QueuePrice

    name: ClassVar[str] = "yu_lee_lee"
    title: ClassVar[str] = "Yu–Lee–Lee"
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), O(log T)",
        SIGNED: "O(√(T log T)), published rates O(√T log T)",
        HARD: "the same, with hard=True",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"hard": True}, {"steps": "strongly convex"})

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        steps: StepKind = "convex",
        rates: Literal["sharp", "published"] = "sharp",
        hard: bool = False,
    ) -> YuLeeLee:
        """Descend on the loss plus an exponential price of the constraint, without a horizon.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ, G, D and σ.
        steps : {"convex", "strongly convex"}
            AdaGrad's steps, or those for strongly convex losses.
        rates : {"sharp", "published"}
            γ_t and κ: ours, or the article's.
        hard : bool
            Whether the hard violation is priced, so that slack in one round does not offset another.
        """
        if rates not in RATES:
            raise InputError("rates", f"{rates!r} is not known", "Choose 'sharp' or 'published'")
        c, B = problem.constants, problem.enclosing_set
        chosen = RATES[rates](c.diameter, c.gradient_bound, c.constraint_bound)
        if steps == "convex":
            return cls(AdaGradNorm(B, offset=1.0), QueuePrice(chosen, hard), c)
        inner = StronglyConvexOGD(B, require_strong_convexity(problem, steps), _damping(chosen))
        return cls(inner, QueuePrice(chosen, hard), c)
