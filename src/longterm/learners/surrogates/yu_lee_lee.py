"""Yu, Lee and Lee (2026, arXiv 2606.31480): changing constraints without a Slater point and without a horizon.

A queue Q_t of the violations so far, less an allowance, sets the weight of the constraint:

    w_t     = γ_t exp(γ_t Q_t),                      W_t = Σ_{s≤t} w_s²
    x_{t+1} = Π_B( x_t − η_t d_t ),                  d_t = ∇f_t(x_t) + w_t ∇g_t(x_t),          x_1 = centre of B
    Q_{t+1} = Q_t + g_t(x_t) − κ γ_t D² − ( Ψ(W_t) − Ψ(W_{t−1}) ) / w_t,       Ψ(W) = 4 Δ G √W,      Q_1 = 0

with g_t = max_j g_{t,j}, or, in the hard form, [g_t]₊ in its place. Q_t may be negative.

Steps: η_t = Δ/√(2 (1 + Σ_{s≤t} ‖d_s‖²)) for convex losses, η_t = 1/(σt + (2G/Δ) √W_t) for σ-strongly convex ones.
γ_t and κ are `Published` or `Sharp` (`queue_rates`). The authors' code leaves out κ γ_t D² and multiplies γ_t by some
hundreds; no theorem is known for that.
Needs: no horizon, no Slater point, no projection.
Guarantees: `QueuePrice.bounds`, at every T. If the g_t are drawn independently of the past, both lines hold in
expectation against any x*, fixed in advance, with E max_j g_{t,j}(x*) ≤ 0. Constants and proof are ours
(`docs/proofs/after_the_paper.md`).
Not promised: a small Σ [g_t(x_t)]₊ without `hard=True`, an early effect of the constraint. With
`Published`, w_t passes 1 when Q_t is about 12 D √t ln(12 D √t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm._base.validate import Hyper
from longterm.learners.interface.needs import StepKind, require_strong_convexity
from longterm.learners.surrogates.inner import AdaGradNorm, Inner, StronglyConvexOGD
from longterm.learners.surrogates.queue_rates import RATES, Rates
from longterm.learners.surrogates.surrogate import Price, Surrogate
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.theory.bounds import HARD, REGRET, SIGNED, BoundValues, require_covered


@dataclass(frozen=True, eq=False)
class QueuePrice(Price):
    """The weight w_t = γ_t exp(γ_t Q_t). Its queue holds Q_t and W_{t−1}, shape (..., 2). `hard` prices [g_t]₊."""

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

    def bounds(self, inner: Inner, constants: Constants, rounds: FloatArray) -> BoundValues:
        """Return the bounds against x* with g_t(x*) ≤ 0 in every round; [g_t]₊ stands for g_t in the hard form.

            P = 2ΔG_f √T + Δ/√2  (convex)   or   (G_f²/σ)(1 + ln T)  (strongly convex),      C = P + (1/e) ln(γ_1/γ_T)
            Σ f_t(x_t) − f_t(x*) ≤ C + 1
            Σ g_t(x_t)           ≤ (1/γ_T) ln E + κ D² Σ γ_t + 4ΔG + 2ΔG √(2T ln(T E)),      E = 1 + C + F T

        Other inner learners have no theorem.
        """
        T, rates = rounds, self.rates
        diameter, scale = np.asarray(rates.diameter), np.asarray(rates.diameter * rates.gradient_bound)
        if isinstance(inner, AdaGradNorm) and inner.offset == 1:
            primal = diameter * (2 * constants.loss_gradient_bound * np.sqrt(T) + 1 / np.sqrt(2))
        elif isinstance(inner, StronglyConvexOGD) and np.allclose(inner.damping, _damping(rates)):
            primal = constants.loss_gradient_bound**2 / np.asarray(inner.strong_convexity) * (1 + np.log(T))
        else:
            return super().bounds(inner, constants, rounds)
        declared = {
            "Δ": (rates.diameter, inner.enclosing_set.diameter),
            "G": (rates.gradient_bound, constants.gradient_bound),
            "D": (rates.constraint_bound, constants.constraint_bound),
        }
        require_covered(declared, "Use YuLeeLee.for_problem")
        first, last = (np.asarray(rates.gamma(t)) for t in (np.ones_like(T), T))
        cost = primal + np.log(first / last) / np.e
        gain = 1 + cost + constants.loss_range * T
        queue = np.log(gain) / last + rates.allowance * np.asarray(rates.constraint_bound) ** 2 * rates.total(T)
        violation = queue + 4 * scale + 2 * scale * np.sqrt(2 * T * np.log(T * gain))
        return {REGRET: cost + 1, HARD if self.hard else SIGNED: violation}


def _damping(rates: Rates) -> Hyper:
    """Return 2G/Δ, the damping of the steps for strongly convex losses."""
    return 2 * rates.gradient_bound / rates.diameter


class YuLeeLee(Surrogate):
    """Keep a limit that changes without knowing the number of rounds.

    An inner learner descends on f_t + w_t g_t, where a queue sets w_t. The hard form has [g_t]₊ in place of g_t.

    The inner learner is AdaGradNorm with offset 1, or StronglyConvexOGD with damping 2G/Δ.

    Examples
    --------
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()
    >>> for rates in ("published", "sharp"):
    ...     bound = lt.learners.YuLeeLee.for_problem(problem, rates=rates).bound(problem, [1000, 100_000])
    ...     print(bound["regret"].round(0), bound["signed_violation"].round(0))
    [ 256. 2534.] [ 5126. 76194.]
    [ 255. 2533.] [ 1640. 21353.]
    """

    price: QueuePrice

    name = "yu_lee_lee"
    title = "Yu–Lee–Lee"
    drifting = ({},)
    promises = {
        REGRET: "O(√T), O(log T)",
        SIGNED: "O(√(T log T)), published rates O(√T log T)",
        HARD: "the same, with hard=True",
    }
    variants = ({}, {"hard": True}, {"steps": "strongly convex"})

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
        steps : {"convex", "strongly convex"}
            AdaGrad's steps, or those for strongly convex losses.
        rates : {"sharp", "published"}
            γ_t and κ: ours, or the article's.
        hard : bool
            True to price the hard violation, so that slack in one round does not offset another.
        """
        validate.choice("rates", rates, RATES)
        c, B = problem.constants, problem.enclosing_set
        chosen = RATES[rates](c.diameter, c.gradient_bound, c.constraint_bound)
        if steps == "convex":
            return cls(AdaGradNorm(B, offset=1.0), QueuePrice(chosen, hard), c)
        inner = StronglyConvexOGD(B, require_strong_convexity(problem, steps), _damping(chosen))
        return cls(inner, QueuePrice(chosen, hard), c)
