"""Optimism: forecasts of the next gradient, and two learners that step on them before the round.

m_t is a guess of ∇f_t(x_t), made before round t: by a model that looks at the gradients so far, from a table of
forecasts that is given beforehand (`GivenHints`), or round by round in the feedback of the round before
(`Feedback.hint`), which goes before the model. In round 1 there is none but the model's.

Optimistic gradient descent: a step on the forecast before the round, a step on the truth after it.

With κ = 2^{−3/4} Δ, S_t = Σ_{s≤t} ‖∇f_s(x_s) − m_s‖² and η_t = κ/√(S_{t−1} + ε):

    x_t = Π_X( y_t − η_t m_t )  is played,         y_{t+1} = Π_X( y_t − η_t ∇f_t(x_t) )          y_1 = Π_X(centre of B)

X is {g ≤ 0} ∩ B where its projection is known and g fixed, and nothing is broken; else B, and the constraint plays no
part. Guarantees (the rule is well known, e.g. Rakhlin and Sridharan 2013; steps and constants are ours):

    Σ f_t(x_t) − f_t(x*) ≤ 5.11 Δ √(S_T + ε)

Proof. ⟨∇f_t, x_t − u⟩ ≤ (‖y_t − u‖² − ‖y_{t+1} − u‖²)/(2η_t) + min(½η_t e_t², Δe_t), e_t = ‖∇f_t − m_t‖. Where e_t² ≤
S_{t−1} + ε: ½η_te_t² ≤ κe_t²/√(2(S_t + ε)), in all √2 κ√(S_T + ε). Elsewhere S doubles, so Σ Δe_t ≤ 3.42 Δ√(S_T + ε).
With the first terms, Δ²/(2κ) √(S_T + ε): 5.1 Δ√(S_T + ε). ∎ Perfect forecasts have S = 0; useless ones no more than
twice √(Σ ‖∇f_t‖²). ε = 10^{−12} G_f² only keeps the first step finite.

Optimistic A-FTRL: the leader counts a forecast of the next loss as if it had come; curvature from the errors.

A-FTRL (`learners.aftrl`) with z_t + m_{t+1} in the place of z_t = Σ_{s≤t} ∇f_s(x_s), and with
η_t = 2^{−½} R/√(S_{t−1} + ε), ε = 10^{−4} G_f², in the place of R/(G_f√t):

    x_{t+1} = argmin_B ⟨z_t + m_{t+1}, x⟩ + Σ_{s≤t} ⟨λ_{s+1}, g(x)⟩ + ‖x − x_1‖²/(2η_{t+1})

Guarantees (ours): those of A-FTRL with P = R²/(2η_T) + Σ_t min(½η_t e_t², 2R e_t) ≤ 8.6 R√(S_T + ε), e_t = ‖∇f_t(x_t)
− m_t‖. m enters and leaves within one round: with x̃ the leader that knows ∇f_t, ⟨∇f_t, x_t − x̃⟩ ≤ ⟨∇f_t − m_t, x_t −
x̃⟩ + (what the leader's own inequality pays), and ‖x_t − x̃‖ ≤ min(η_te_t, 2R). Rounds with e_t² ≤ S_{t−1} + ε give
√2·2^{−½} R√(S_T + ε), in the others S doubles: 2R·3.42 √(S_T + ε); with the first term, R√(S_T + ε)/√2. ∎ The
multipliers' part is that of A-FTRL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, dot, like, namespace, rows_at, to_numpy
from longterm._validate import Hyper
from longterm.constraints.prox import Prox
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.duals import ProxLearner, ascend, default_theta, prox_of, values_of, with_dual
from longterm.learners.feedback import Feedback
from longterm.problems import Problem
from longterm.projections import Projection
from longterm.sets import Set
from longterm.theory.bounds import HARD, LONG_TERM, REGRET, NoTheoremError
from longterm.theory.schedules import DecoupledSchedule


class HintModel(ABC):
    """What guesses the next gradient; what it remembers is one array."""

    @abstractmethod
    def start(self, x: Array) -> Array:
        """The memory before round 1, for decisions of this shape."""

    @abstractmethod
    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        """m_t, shaped as x is."""

    @abstractmethod
    def update(self, memory: Array, t: Array, gradient: Array) -> Array:
        """The memory once ∇f_t(x_t) is known."""

    def following(self, memory: Array, t: Array, feedback: Feedback) -> tuple[Array, Array]:
        """The memory after round t, and m_{t+1}: the feedback's own hint, where it has one."""
        memory = self.update(memory, t, feedback.loss_gradient)
        if feedback.hint is not None:
            return memory, feedback.hint
        return memory, self.predict(memory, t + 1, feedback.loss_gradient)


@dataclass(frozen=True)
class NoHint(HintModel):
    """m_t = 0, unless the feedback brings one."""

    def start(self, x: Array) -> Array:
        return namespace(x).zeros_like(x[..., :1])

    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        return namespace(x).zeros_like(x)

    def update(self, memory: Array, t: Array, gradient: Array) -> Array:
        return memory


@dataclass(frozen=True)
class LastGradient(HintModel):
    """m_t = ∇f_{t−1}(x_{t−1})."""

    def start(self, x: Array) -> Array:
        return namespace(x).zeros_like(x)

    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        return memory

    def update(self, memory: Array, t: Array, gradient: Array) -> Array:
        return gradient + 0 * memory


@dataclass(frozen=True)
class Seasonal(HintModel):
    """m_t = ∇f_{t−n}(x_{t−n}), n the length of a season: a day of 24 hours, for example; 0 in the first season.

    Parameters
    ----------
    period : int
        The rounds of a season.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.learners.optimistic import Seasonal
    >>> model = Seasonal(2)
    >>> memory = model.start(np.zeros(1))
    >>> for t, gradient in ((1, [5.0]), (2, [7.0])):
    ...     memory = model.update(memory, np.asarray(t), np.array(gradient))
    >>> model.predict(memory, np.asarray(3), np.zeros(1)), model.predict(memory, np.asarray(4), np.zeros(1))
    (array([5.]), array([7.]))
    """

    period: int

    def __post_init__(self) -> None:
        validate.set_frozen(self, period=validate.count("period", self.period))

    def start(self, x: Array) -> Array:
        return namespace(x).zeros((*x.shape[:-1], self.period, x.shape[-1]), dtype=x.dtype)

    def _now(self, t: Array, x: Array) -> Array:
        xp = namespace(x)
        return xp.astype(xp.arange(self.period, dtype=t.dtype) == (t - 1) % self.period, x.dtype)[:, None]

    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        return namespace(memory).sum(memory * self._now(t, memory), axis=-2)

    def update(self, memory: Array, t: Array, gradient: Array) -> Array:
        now = self._now(t, gradient)
        return memory * (1 - now) + gradient[..., None, :] * now


@dataclass(frozen=True, eq=False)
class GivenHints(HintModel):
    """m_t from a table that is given beforehand, a row a round: forecasts for `run`; 0 after its end.

    Parameters
    ----------
    table : array_like
        Shape (rounds, d).
    """

    table: ArrayLike

    def __post_init__(self) -> None:
        table = np.asarray(self.table, dtype=np.float64)
        if table.ndim != 2 or not np.all(np.isfinite(table)):
            raise InputError("table", f"has shape {table.shape}, or numbers that are not", "Give one row a round")
        validate.set_frozen(self, table=validate.frozen(np.concatenate([table, np.zeros((1, table.shape[1]))])))

    def start(self, x: Array) -> Array:
        return namespace(x).zeros_like(x[..., :1])

    def predict(self, memory: Array, t: Array, x: Array) -> Array:
        xp, rows = namespace(x), np.asarray(self.table)
        index = xp.minimum(t - 1, xp.asarray(len(rows) - 1, dtype=t.dtype))
        return rows_at(like(rows, x), index) + 0 * x

    def update(self, memory: Array, t: Array, gradient: Array) -> Array:
        return memory


TINY_OF_OGD = 1e-12
"""ε as a share of G_f²."""


class OptimisticOGDState(NamedTuple):
    """(t, x_t, y_t, m_t, S_{t−1}, what the model remembers)."""

    round: Array
    x: Array
    anchor: Array
    hint: Array
    errors: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class OptimisticOGD(Learner[OptimisticOGDState]):
    """Gradient descent that steps on a forecast first.

    Parameters
    ----------
    enclosing_set : Set
        B.
    size : float
        G_f, which sets the scale of ε alone.
    hints : HintModel
        The forecasts.
    projection : callable, optional
        Onto X.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import run
    >>> from longterm.learners import OptimisticOGD
    >>> from longterm.learners.optimistic import GivenHints, NoHint
    >>> from longterm.problems import Problem
    >>> from longterm.constraints import L2Budget
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Ball
    >>> from longterm.streams import Replay
    >>> costs = np.random.default_rng(0).choice([-1.0, 1.0], (500, 1))
    >>> problem = Problem(Ball(1), Linear(1), L2Budget(1, budget=0.5))
    >>> for hints in (NoHint(), GivenHints(costs)):
    ...     learner = OptimisticOGD.for_problem(problem, hints=hints)
    ...     print(float(run(problem, learner, Replay([costs])).cumulative_loss[-1].round(1)))
    -12.5
    -250.0
    """

    enclosing_set: Set
    size: float
    hints: HintModel = LastGradient()
    projection: Projection | None = None

    name: ClassVar[str] = "optimistic_ogd"
    title: ClassVar[str] = "Optimistic OGD"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√Σ‖∇f − m‖²)", HARD: "0, where X is projected onto"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()

    def __post_init__(self) -> None:
        validate.set_frozen(self, size=validate.positive_scalar("size", self.size))

    @classmethod
    def for_problem(cls, problem: Problem, *, hints: HintModel | None = None) -> OptimisticOGD:
        """Gradient descent that steps on a forecast of the gradient before the round.

        Parameters
        ----------
        problem : Problem
            Gives B, and X where its projection is known.
        hints : HintModel, optional
            The forecasts; left out, the last gradient.
        """
        onto = None if problem.constraint.parameters else problem.projection
        model = LastGradient() if hints is None else hints
        return cls(problem.enclosing_set, problem.constants.loss_gradient_bound, model, onto)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        why = "it is about the errors of the forecasts"
        raise NoTheoremError(why, "Ask after the run: bound(problem, rounds, state=trace.state)")

    def theorem_after(self, problem: Problem, state: OptimisticOGDState) -> Mapping[str, FloatArray]:
        errors = np.asarray(to_numpy(state.errors), dtype=np.float64)
        regret = 5.11 * problem.constants.diameter * np.sqrt(errors + TINY_OF_OGD * self.size**2)
        return {REGRET: regret}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> OptimisticOGDState:
        y = self._project(self.initial_x(batch_shape, xp, dtype))
        t, errors, memory = xp.asarray(1, dtype=xp.int64), xp.zeros(y.shape[:-1], dtype=y.dtype), self.hints.start(y)
        hint = self.hints.predict(memory, t, y)
        return OptimisticOGDState(t, self._stepped(y, hint, errors), y, hint, errors, memory)

    def ask(self, state: OptimisticOGDState) -> Array:
        return state.x

    def hinted(self, state: OptimisticOGDState, hint: Array) -> OptimisticOGDState:
        """The same state with another forecast of this round, before it is asked."""
        return state._replace(x=self._stepped(state.anchor, hint, state.errors), hint=hint)

    def update(self, state: OptimisticOGDState, feedback: Feedback) -> OptimisticOGDState:
        gradient = feedback.loss_gradient
        y = self._stepped(state.anchor, gradient, state.errors)
        wrong = gradient - state.hint
        errors = state.errors + dot(wrong, wrong)
        memory, hint = self.hints.following(state.memory, state.round, feedback)
        return OptimisticOGDState(state.round + 1, self._stepped(y, hint, errors), y, hint, errors, memory)

    def _stepped(self, y: Array, direction: Array, errors: Array) -> Array:
        eta = 2**-0.75 * self.enclosing_set.diameter / namespace(y).sqrt(errors + TINY_OF_OGD * self.size**2)
        return self._project(y - as_column(eta) * direction)

    def _project(self, x: Array) -> Array:
        return self.enclosing_set.project(x) if self.projection is None else self.projection(x)

    def report(self, state: OptimisticOGDState) -> dict[str, Array]:
        return {"errors": state.errors}


TINY_OF_AFTRL = 1e-4
"""ε as a share of G_f²."""


class OptimisticAFTRLState(NamedTuple):
    """(t, x_t, λ_t, z_{t−1}, Σ λ, m_t, S_{t−1}, what the model remembers)."""

    round: Array
    x: Array
    multiplier: Array
    gradient_sum: Array
    multiplier_sum: Array
    hint: Array
    errors: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class OptimisticAFTRL(ProxLearner[OptimisticAFTRLState]):
    """A-FTRL that counts a forecast of the next gradient.

    Parameters
    ----------
    prox : Prox
        The closed form of the argmin.
    schedule : DecoupledSchedule
        θ_t and μ_t; its η_t is not used.
    size : float
        G_f, which sets the scale of ε alone.
    hints : HintModel
        The forecasts.
    """

    prox: Prox
    schedule: DecoupledSchedule
    size: float
    hints: HintModel = LastGradient()

    name: ClassVar[str] = "optimistic_aftrl"
    title: ClassVar[str] = "Optimistic A-FTRL"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√Σ‖∇f − m‖² + T^β)", LONG_TERM: "O(T^(1−β/2))"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()

    def __post_init__(self) -> None:
        validate.set_frozen(self, enclosing_set=self.prox.over, size=validate.positive_scalar("size", self.size))

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        hints: HintModel | None = None,
        beta: Hyper = 2 / 3,
        theta_0: Hyper | None = None,
    ) -> OptimisticAFTRL:
        """A-FTRL that counts a forecast of the next gradient as if it had come.

        Parameters
        ----------
        problem : Problem
            Gives B, the prox of g, R, G_f, D and F.
        hints : HintModel, optional
            The forecasts; left out, the last gradient.
        beta : float or array
            β in (0, 1): larger favours the constraint, smaller the regret.
        theta_0 : float or array, optional
            Above 0; D²/(10F) unless given.
        """
        prox, c = prox_of(cls.__name__, cls.needs, problem), problem.constants
        step = c.radius / validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        schedule = DecoupledSchedule(step, default_theta(problem, prox, theta_0), beta)
        return cls(prox, schedule, c.loss_gradient_bound, LastGradient() if hints is None else hints)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        why = "it is about the errors of the forecasts"
        raise NoTheoremError(why, "Ask after the run: bound(problem, rounds, state=trace.state)")

    def theorem_after(self, problem: Problem, state: OptimisticAFTRLState) -> Mapping[str, FloatArray]:
        errors, t = (np.asarray(to_numpy(one), dtype=np.float64) for one in (state.errors, state.round))
        P = 8.6 * problem.constants.radius * np.sqrt(errors + TINY_OF_AFTRL * self.size**2)
        return with_dual(P, self.prox, self.schedule, problem, t - 1)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> OptimisticAFTRLState:
        x = self.initial_x(batch_shape, xp, dtype)
        multiplier = xp.zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype)
        t, memory, errors = xp.asarray(1, dtype=xp.int64), self.hints.start(x), xp.zeros(x.shape[:-1], dtype=x.dtype)
        nothing = xp.zeros_like(x)
        state = OptimisticAFTRLState(t, x, multiplier, nothing, multiplier, nothing, errors, memory)
        return self.hinted(state, self.hints.predict(memory, t, x))

    def ask(self, state: OptimisticAFTRLState) -> Array:
        return state.x

    def hinted(self, state: OptimisticAFTRLState, hint: Array) -> OptimisticAFTRLState:
        """The same state with another forecast of this round, before it is asked."""
        curvature = (
            2**0.5 / self.enclosing_set.radius * namespace(hint).sqrt(state.errors + TINY_OF_AFTRL * self.size**2)
        )
        centre = as_column(curvature) * like(self.enclosing_set.centre, hint)
        x = self.prox.argmin(state.gradient_sum + hint - centre, state.multiplier_sum, curvature)
        return state._replace(x=x, hint=hint)

    def update(self, state: OptimisticAFTRLState, feedback: Feedback) -> OptimisticAFTRLState:
        values = values_of(feedback, self.prox.constraint.count)
        multiplier = ascend(state.multiplier, values, self.schedule.at(state.round, state.x))
        wrong = feedback.loss_gradient - state.hint
        memory, hint = self.hints.following(state.memory, state.round, feedback)
        after = state._replace(
            round=state.round + 1,
            multiplier=multiplier,
            gradient_sum=state.gradient_sum + feedback.loss_gradient,
            multiplier_sum=state.multiplier_sum + multiplier,
            errors=state.errors + dot(wrong, wrong),
            memory=memory,
        )
        return self.hinted(after, hint)

    def report(self, state: OptimisticAFTRLState) -> dict[str, Array]:
        return {"errors": state.errors}
