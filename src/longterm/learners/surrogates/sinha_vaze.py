"""Sinha and Vaze (NeurIPS 2024): √T regret and Õ(√T) hard violation against adversarial constraints.

With g_t = max_j g_{t,j} and the violation so far, round t included, Q(t) = Σ_{s≤t} [g_s(x_s)]₊, an inner learner plays
against d_t = ∇f_t(x_t) + w_t ∇[g_t(x_t)]₊ (`longterm.learners.surrogates.surrogate`).

- "convex": w_t = (G_f/G_g) ω exp(ωQ(t)/(2G_gΔ)) with ω = 1/(2√T). The inner learner is AdaGrad. The article divides
  f_t and g_t by 2GΔ and has one G, which makes the same points.
- "strongly convex": w_t = 2Q(t)/V with V = 8G_g² (1 + ln T)/σ, and inner steps 1/(σt). The article's algorithm prints
  steps that are V times too long and break its bound.

Needs: the horizon (`DoublingRestarts` does without).
Guarantees: `theorem`, against every x* with g_t(x*) ≤ 0 in all rounds, without a Slater point.
Proofs: `docs/proofs/after_the_paper.md`. Not promised: feasibility in a single round, an early effect of the price. For
T up to a few thousand the violation can be all that the set allows.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm._base.validate import Hyper
from longterm.learners.interface.horizons import MadeForHorizon, require_within_horizon
from longterm.learners.interface.needs import Need, StepKind, require_strong_convexity
from longterm.learners.surrogates.inner import AdaGradNorm, Inner, StronglyConvexOGD
from longterm.learners.surrogates.surrogate import Price, Surrogate, SurrogateState
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.theory.bounds import HARD, REGRET, BoundValues, Rounds, horizons_of, require_covered
from longterm.theory.paper import violation_bound

LARGEST_EXPONENT = 40.0
"""The exponent of a covered run stays below it for T ≤ 10^16. Runs without a theorem must not overflow."""


class ViolationPrice(Price):
    """A weight w = Φ'(Q)/V of the violation so far, with a convex potential Φ, for T rounds."""

    horizon: Hyper

    @abstractmethod
    def weight(self, violation: Array) -> Array:
        """Return w, shaped as the violation is."""

    def for_horizon(self, rounds: Array) -> Self:
        """Return the price for another T."""
        return self.with_hyper_arrays({"horizon": rounds})

    def charge(self, queue: Array, t: Array, constraint: Array) -> tuple[Array, Array]:
        violation = queue + constraint
        return self.weight(violation), violation

    def report(self, queue: Array, t: Array) -> dict[str, Array]:
        return {"multiplier": self.weight(queue)}

    def _horizon_like(self, violation: Array) -> Array:
        """Return T for each learner."""
        return like(self.horizon, violation) * namespace(violation).ones_like(violation)


@dataclass(frozen=True, eq=False)
class ExponentialPrice(ViolationPrice):
    """An exponential price: Φ(Q) = exp(ωQ/s_g) − 1 with ω = 1/(2√T), for f_t/s_f: w = (s_f/s_g) ω exp(ωQ/s_g)."""

    horizon: Hyper
    loss_scale: float
    constraint_scale: float

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "horizon")
        validate.validate_fields(self, validate.positive_scalar, "loss_scale", "constraint_scale")

    def weight(self, violation: Array) -> Array:
        xp, omega = namespace(violation), 0.5 / self._horizon_like(violation) ** 0.5
        exponent = xp.minimum(omega * violation / self.constraint_scale, LARGEST_EXPONENT)
        return self.loss_scale / self.constraint_scale * omega * xp.exp(exponent)

    def bounds(self, inner: Inner, constants: Constants, rounds: FloatArray) -> BoundValues:
        if type(inner) is not AdaGradNorm or inner.offset > 0:
            return super().bounds(inner, constants, rounds)
        both = constants.loss_gradient_bound, constants.constraint_gradient_bound
        least = [2 * inner.enclosing_set.diameter * bound for bound in both]
        declared = {"2ΔG_f": (self.loss_scale, least[0]), "2ΔG_g": (self.constraint_scale, least[1])}
        require_covered(declared, "Use SinhaVaze.for_problem")
        omega = 1 / (2 * np.sqrt(np.asarray(self.horizon, dtype=np.float64)))
        regret = self.loss_scale * np.sqrt(rounds) * (1 + omega)
        most = (1 + np.sqrt(rounds) + constants.loss_range * rounds / self.loss_scale) / (1 - omega * np.sqrt(rounds))
        return {REGRET: regret, HARD: self.constraint_scale / omega * np.log(most)}


@dataclass(frozen=True, eq=False)
class QuadraticPrice(ViolationPrice):
    """A quadratic price: Φ(Q) = Q² and V = 8G_g² (1 + ln T)/σ: w = 2Q/V = Qσ/(4G_g² (1 + ln T))."""

    horizon: Hyper
    constraint_gradient_bound: float
    strong_convexity: float

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "horizon")
        validate.validate_fields(self, validate.positive_scalar, "constraint_gradient_bound", "strong_convexity")

    def weight(self, violation: Array) -> Array:
        logarithm = 1 + namespace(violation).log(self._horizon_like(violation))
        return violation * self.strong_convexity / (4 * self.constraint_gradient_bound**2 * logarithm)

    def bounds(self, inner: Inner, constants: Constants, rounds: FloatArray) -> BoundValues:
        steps = inner if isinstance(inner, StronglyConvexOGD) else None
        if steps is None or steps.strong_convexity != self.strong_convexity or steps.damping != 0:
            return super().bounds(inner, constants, rounds)
        declared = {"G_g": (self.constraint_gradient_bound, constants.constraint_gradient_bound)}
        require_covered(declared, "Use SinhaVaze.for_problem")
        logarithm = 1 + np.log(np.asarray(self.horizon, dtype=np.float64))
        V = 8 * self.constraint_gradient_bound**2 * logarithm / self.strong_convexity
        regret = constants.loss_gradient_bound**2 / self.strong_convexity * (1 + np.log(rounds))
        return {REGRET: regret, HARD: violation_bound(V, regret, constants, rounds)}


class SinhaVaze(Surrogate, MadeForHorizon[SurrogateState]):
    """Keep a limit that changes, with a guaranteed total violation, for a known number of rounds.

    An inner learner descends on f_t + w_t [g_t]₊, where the price w_t grows with the violation so far.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()  # σ = G_g = 1, g = x₁ − ¼
    >>> learner = lt.learners.SinhaVaze.for_problem(problem, horizon=1, steps="strongly convex")  # w = Q/4
    >>> state = learner.init()
    >>> for _ in range(2):
    ...     state = learner.tell(state, lt.observe(problem, learner.ask(state), [np.array([1.0, 0.0])]))
    >>> learner.ask(state), float(state.queue)  # (1, 0) − ½ · w_2 (1, 0), w_2 = ¾/4
    (array([0.90625, 0.     ]), 0.75)
    """

    price: ViolationPrice

    needs = frozenset({Need.HORIZON})
    name = "sinha_vaze"
    title = "Sinha–Vaze"
    drifting = ({},)
    promises = {REGRET: "O(√T), O(log T)", HARD: "O(√T log T), O(√(T log T))"}
    variants = ({}, {"steps": "strongly convex"})

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int, steps: StepKind = "convex") -> SinhaVaze:
        """Descend on the loss plus an exponential price of the violation so far, for a known horizon.

        Parameters
        ----------
        steps : {"convex", "strongly convex"}
            The exponential price and AdaGrad, or the quadratic price and steps 1/(σt).
        """
        T, c, B = validate.count("horizon", horizon), problem.constants, problem.enclosing_set
        if steps == "convex":
            scales = (2 * c.diameter * bound for bound in (c.loss_gradient_bound, c.constraint_gradient_bound))
            return cls(AdaGradNorm(B), ExponentialPrice(T, *scales), c)
        sigma = require_strong_convexity(problem, steps)
        return cls(StronglyConvexOGD(B, sigma), QuadraticPrice(T, c.constraint_gradient_bound, sigma), c)

    def for_horizon(self, rounds: Array) -> SinhaVaze:
        return self.with_steps(price=self.price.for_horizon(rounds))

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds in any round t ≤ T.

        The exponential price, with s_f = 2ΔG_f, s_g = 2ΔG_g, ω = 1/(2√T):

            Σ f_s(x_s) − f_s(x*) ≤ s_f √t (1 + ω)
            Σ [g_s(x_s)]₊        ≤ (s_g/ω) ln( (1 + √t + F t/s_f)/(1 − ω√t) )

        The quadratic price, with V = 8G_g² (1 + ln T)/σ:

            Σ f_s(x_s) − f_s(x*) ≤ P = (G_f²/σ)(1 + ln t),      Σ [g_s(x_s)]₊ ≤ √( 2V (P + F t) )
        """
        t = horizons_of(rounds, self.batch_shape)
        require_within_horizon(t, self.price.horizon, "Give at most as many, or use DoublingRestarts")
        return super().theorem(problem, rounds)
