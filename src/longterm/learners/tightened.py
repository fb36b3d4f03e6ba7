"""A learner on a tightened constraint: it receives g + γ_t, so that the margin makes up for the violation allowed.

The learner is A-OGD or another with one multiplier for g = max_j g_j. Where Lemma 5 allows it at most Σ γ_t on g + γ,
Σ g(x_t) ≤ 0. A Slater point x̂ in B with g(x̂) ≤ −ε makes room for margins γ_t ≤ ε: the comparator
u_t = (1 − γ_t/ε) x* + (γ_t/ε) x̂ has g(u_t) ≤ −γ_t by convexity, and costs at most (F/ε) Σ γ_t more than x*.

A margin is a slot. With W and 𝓡 of Lemma 5 (`theory.margins`) and D + γ_t for D,

    constant   Σ f_t(x_t) − f_t(x*) ≤ 𝓡_γ + (γ/ε) F T,         Σ g(x_t) ≤ √(2 W (𝓡_γ + F T)) − γT
    decaying   the same with Σ γ_t for γT, and the cost of a comparator that moves in 𝓡_γ (`DecayingMargin.bounds`).

Where constraints change, the Slater point must be one of every g_t. The proof uses nothing else of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.theory.bounds import REGRET, SIGNED, NoTheoremError, horizons_of
from longterm.theory.facts import Assumption, Constants
from longterm.theory.paper import lemma_5
from longterm.theory.per_learner import PerLearner
from longterm.theory.schedules import Schedule
from longterm.theory.slater import SlaterPoint, find_slater_point, require_slack
from longterm.theory.step_sums import step_sums, tabulate


class Margin(PerLearner, ABC):
    """The margin slot: γ_t, and the bounds of A-OGD on g + γ_t."""

    @abstractmethod
    def at(self, t: Array, x: Array) -> Array:
        """Return γ_t in the library and dtype of x."""

    @abstractmethod
    def bounds(
        self, schedule: Schedule, epsilon: float, c: Constants, rounds: NDArray[np.int64], axes: tuple[int, ...]
    ) -> Mapping[str, FloatArray]:
        """Return the bounds after `rounds`, with the axes of a grid of learners after those of the rounds."""


@dataclass(frozen=True, eq=False)
class ConstantMargin(Margin):
    """The same γ in every round.

    Parameters
    ----------
    gamma : float or array
        γ, above 0.
    """

    gamma: Hyper

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "gamma")

    def at(self, t: Array, x: Array) -> Array:
        return like(self.gamma, x) + 0 * namespace(x).astype(t, x.dtype)

    def bounds(
        self, schedule: Schedule, epsilon: float, c: Constants, rounds: NDArray[np.int64], axes: tuple[int, ...]
    ) -> Mapping[str, FloatArray]:
        """Return Lemma 5 on g + γ with D + γ for D, against u = (1 − γ/ε) x* + (γ/ε) x̂."""
        T, D, gamma = horizons_of(rounds, axes), c.constraint_bound, np.asarray(self.gamma)
        sums, plain = step_sums(schedule, rounds, c.strong_convexity), lemma_5(schedule, c, rounds).regret
        regret = _expand(plain, rounds.ndim, axes) + ((D + gamma) ** 2 - D**2) * _expand(sums.mu, rounds.ndim, axes)
        root = _allowed(schedule, c, rounds, regret, axes)
        return {REGRET: regret + gamma / epsilon * c.loss_range * T, SIGNED: root - gamma * T}


@dataclass(frozen=True, eq=False)
class DecayingMargin(Margin):
    """γ_t = min(limit, c t^{−power}).

    Parameters
    ----------
    coefficient : float or array
        c, above 0.
    power : float or array
        Above 0.
    limit : float
        The largest γ_t, above 0.
    """

    coefficient: Hyper
    power: Hyper
    limit: float

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "coefficient", "power", "limit")

    def at(self, t: Array, x: Array) -> Array:
        decayed = like(self.coefficient, x) * namespace(x).astype(t, x.dtype) ** like(-self.power, x)
        return namespace(x).minimum(decayed, self.limit)

    def bounds(
        self, schedule: Schedule, epsilon: float, c: Constants, rounds: NDArray[np.int64], axes: tuple[int, ...]
    ) -> Mapping[str, FloatArray]:
        """Return Lemma 5 against the comparator u_t = (1 − γ_t/ε) x* + (γ_t/ε) x̂, which moves.

        With a_t = ‖x_t − u_t‖² the x-steps add up as before, plus

            Σ (‖x_{t+1} − u_{t+1}‖² − ‖x_{t+1} − u_t‖²)/(2η_t)
                ≤ Σ (Δ/η_t) ‖u_{t+1} − u_t‖ ≤ (Δ²/ε) Σ (γ_t − γ_{t+1})/η_t,

        because both u's and x_{t+1} are in B. D² S_μ becomes Σ μ_t (D + γ_t)².
        """
        extra, gammas = [], []
        for steps in tabulate(schedule, int(rounds.max())):
            new = slice(0 if steps.rounds[0] == 1 else 1, None)
            t = steps.rounds[new].reshape(-1, *(1 for _ in axes))
            eta, mu = (_expand(step[new], 1, axes) for step in (steps.eta, steps.mu))
            gamma = self.at(t, np.zeros(1))
            moved = gamma - self.at(t + 1, np.zeros(1))
            wider = mu * ((c.constraint_bound + gamma) ** 2 - c.constraint_bound**2)
            extra.append(wider + c.diameter**2 / epsilon * moved / eta)
            gammas.append(gamma)
        margins, more = (np.cumsum(np.concatenate(parts), axis=0)[rounds - 1] for parts in (gammas, extra))
        regret = _expand(lemma_5(schedule, c, rounds).regret, rounds.ndim, axes) + more
        root = _allowed(schedule, c, rounds, regret, axes)
        return {REGRET: regret + c.loss_range / epsilon * margins, SIGNED: root - margins}


def _allowed(
    schedule: Schedule, c: Constants, rounds: NDArray[np.int64], regret: FloatArray, axes: tuple[int, ...]
) -> FloatArray:
    """Return √(2 W (𝓡 + F T)), what Lemma 5 allows."""
    sums = step_sums(schedule, rounds, c.strong_convexity)
    weight = _expand(sums.theta + sums.delta_mu, rounds.ndim, axes)
    return np.asarray(np.sqrt(2 * weight * (regret + c.loss_range * horizons_of(rounds, axes))))


def _expand(values: FloatArray, lead: int, axes: tuple[int, ...]) -> FloatArray:
    """Return `values`, whose first `lead` axes are rounds, with the axes of a grid of learners after them."""
    missing = len(axes) - (values.ndim - lead)
    return values.reshape(values.shape[:lead] + (1,) * missing + values.shape[lead:])


@dataclass(frozen=True, eq=False, kw_only=True)
class Tightened(Learner[AOGDState]):
    """A learner with one multiplier that receives g + γ_t in place of g.

    Parameters
    ----------
    learner : AOGD
        The learner that receives g + γ_t.
    margin : Margin
        γ_t.
    slater : SlaterPoint
        ε, and where known x̂.
    checked : tuple of Assumption
        What was checked when the margin was chosen.
    """

    learner: AOGD
    margin: Margin
    slater: SlaterPoint
    checked: tuple[Assumption, ...] = ()

    needs: ClassVar[frozenset[Need]] = frozenset({Need.SLATER_POINT})

    def __post_init__(self) -> None:
        if self.learner.duals.count > 1:
            what = f"has {self.learner.duals.count} multipliers, and the margin is on max_j g_j"
            raise InputError("learner", what, "Use a learner with one multiplier")
        validate.set_frozen(self, enclosing_set=self.learner.enclosing_set)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        self.learner.require_playable(problem)
        require_slack(self.slater, problem.constraint, problem.enclosing_set)

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.learner.gradient_bound

    @property
    def strong_convexity(self) -> Hyper:
        return self.learner.strong_convexity

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.learner.assumptions + self.checked

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Return the bounds of the margin, in every round of a run."""
        if not self.learner.penalty.is_half_square:
            raise NoTheoremError("the margins are those of the paper's penalty λ²/2")
        c, epsilon = problem.constants, self.slater.epsilon
        return self.margin.bounds(self.learner.schedule, epsilon, c, rounds, self.batch_shape)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AOGDState:
        return self.learner.init(np.broadcast_shapes(batch_shape, self.batch_shape), xp=xp, dtype=dtype)

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        margin = self.margin.at(state.round, state.x)
        return self.learner.update(state, feedback._replace(constraint=feedback.constraint + margin))

    def report(self, state: AOGDState) -> dict[str, Array]:
        return {**self.learner.report(state), "margin": self.margin.at(state.round, state.x)}


def slater_point_for(problem: Problem, given: SlaterPoint | None) -> SlaterPoint:
    """Return the given Slater point, or the problem's; raise if there is none."""
    if given is None:
        return problem.slater_point or find_slater_point(problem.constraint, problem.enclosing_set)
    validate.require_at_most("slater", given.epsilon, problem.constants.constraint_bound, "|g| is never above D")
    require_slack(given, problem.constraint, problem.enclosing_set)
    return given


def require_papers_penalty(learner: AOGD) -> AOGD:
    """Return the learner if its penalty is the paper's, else raise: no margin is known for another φ."""
    if not learner.penalty.is_half_square:
        raise InputError("learner", "its penalty is not the paper's λ²/2", "No margin is known for another φ")
    return learner


def full_scale(scale: Hyper) -> Assumption:
    """Return the assumption that the whole margin of the theorem is taken."""
    return Assumption.worst("1 ≤ scale", 1.0, scale, "A smaller margin is a choice of yours; judge it by its runs")
