"""RECOO: the prox-penalty step with a rectified queue (Guo, Liu, Wei, Ying, NeurIPS 2022).

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

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.learners.penalty_step import require_penalty_step
from longterm.learners.prox_penalty import PenaltyFamily, scaled_alpha
from longterm.problems import Problem
from longterm.theory.facts import Assumption, Constants


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
        validate.remember(
            self,
            gamma=validate.positive("gamma", self.gamma),
            floor=validate.positive("floor", self.floor),
            gamma_power=validate.non_negative("gamma_power", self.gamma_power),
            floor_power=validate.non_negative("floor_power", self.floor_power),
        )

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
        validate.remember(self, rounds=rounds, floor=floor)

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
