"""COLDQ (Wang, Yan, Liu, AAAI 2025): the prox-penalty step with a queue that forgets and has a floor.

    Q_t     = max( (1 − 1/T) Q_{t−1} + [g_t(x_t)]₊, γ ),     γ = e T,     0 < e < D,               Q_1 = γ
    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + Q_t [g_t(x)]₊ + α_t ‖x − x_t‖²                       x_1 = centre of B

Steps: α_t = √t as published (`alpha=1`). G_f √t/(√2 Δ) is the choice with the units right. e = D/2 by default. The
article has a queue for each constraint. Here there is one constraint, for which the step has a closed form.
Needs: as `ProxPenalty`, and a horizon.
Guarantees: O(√T) regret and, for a fixed g, hard violation [g(x_1)]₊ + F/e + O(1/√T), from the floor alone. For
changing g_t as `ProxPenalty`. Proof: `docs/proofs/after_the_paper.md`.
Not promised: feasibility in a single round, the article's bound by the total change of the g_t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.interface.needs import Need
from longterm.learners.penalties.penalty_step import require_penalty_step
from longterm.learners.penalties.penalty_weights import PenaltyWeights
from longterm.learners.penalties.prox_penalty import ProxPenalty
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.theory.bounds import HARD, REGRET


@dataclass(frozen=True, eq=False)
class ForgettingQueue(PenaltyWeights):
    """A queue that forgets: w_t = Q_t = max((1 − 1/T) Q_{t−1} + [g_t(x_t)]₊, γ), Q_1 = γ, with γ = floor."""

    horizon: int
    floor: Hyper

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.count, "horizon")
        validate.validate_fields(self, validate.positive, "floor")

    def weight(self, t: Array, queue: Array) -> Array:
        return queue

    def before_step(self, t: Array, queue: Array, constraint: Array) -> Array:
        xp, floor = namespace(queue), like(self.floor, queue) + 0 * queue
        decayed = (1 - 1 / self.horizon) * queue + xp.maximum(constraint, 0.0)
        return xp.where(t > 1, xp.maximum(decayed, floor), floor)

    def lower_bound(self) -> tuple[Hyper, Hyper]:
        return self.floor, 0.0

    def residual(self, c: Constants, T: FloatArray, alpha: Hyper, power: Hyper, regret: FloatArray) -> FloatArray:
        """Return (P_T + F T)/γ. No condition on α_t is needed."""
        return np.asarray((regret + c.loss_range * T) / np.asarray(self.floor))


class COLDQ(ProxPenalty):
    """The prox-penalty step with a queue that forgets (`ForgettingQueue`), for a known horizon.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.COLDQ.for_problem(problem, horizon=500)
    >>> lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (500, 1))])).state.x.round(2)
    array([0.25, 0.6 ])
    """

    name = "coldq"
    title = "COLDQ"
    needs = ProxPenalty.needs | {Need.HORIZON}
    promises = {REGRET: "O(√T)", HARD: "O(1) for a fixed g, else O(T^(3/4))"}
    variants = ({},)

    @classmethod
    def for_problem(  # type: ignore[override]
        cls, problem: Problem, *, horizon: int, share: Hyper | None = None, alpha: Hyper = 1.0
    ) -> COLDQ:
        """Weigh [g_t]₊ in the step by a queue that forgets and has a floor, for a known horizon.

        Parameters
        ----------
        share : float or array, optional
            The article's e of the floor γ = e T, between 0 and D. Left out, D/2.
        alpha : float or array
            α_1 of α_t = α_1 √t. 1 as published, and G_f/(√2 Δ) is the choice with the units right.
        """
        step, D = require_penalty_step(cls.__name__, problem), problem.constants.constraint_bound
        e = D / 2 if share is None else validate.positive("share", share)
        if np.any(np.asarray(e) >= D):
            raise InputError("share", f"{share!r} is not below D = {D:g}", "The article has 0 < e < D; D/2 for example")
        T = validate.count("horizon", horizon)
        return cls(step, ForgettingQueue(T, e * T), alpha)
