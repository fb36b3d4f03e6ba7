"""Scales of FTRL with one leader: given constants, strongly convex losses, constants found online.

    given             a_t = √t/s                           P = R² √T/(2s) + (G_f² s/2) Σ 1/√t
    strongly convex   σ(t − 1), from the losses' models    P = (G_f²/(2σ)) (1 + ln T)
    online            a_t = √V_{t−1}/R                     P = (5/2) R √V_T,     V_t = Σ_{s≤t} ‖∇f_s(x_s)‖²

a_t is the curvature that x_t is chosen with, and R = max ‖c − x‖ over B. For given constants the published step is
s = R/G_f. For σ-strongly convex losses each loss is remembered by its quadratic model
⟨∇f_s(x_s), x⟩ + (σ/2)‖x − x_s‖², and nothing else regularises. Proofs: `docs/proofs/aftrl.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, as_float, dot, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.learners.ftrl.slots import FTRLDual, FTRLState, Leader, NoState, Scale, SingleLeader, require_state
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.needs import StepKind, require_strong_convexity
from longterm.learners.interface.prox_learner import positive_or_one
from longterm.learners.interface.states import as_numbers
from longterm.problems import Problem
from longterm.problems.constraints.prox import Prox
from longterm.theory.step_sums import power_sum


@dataclass(frozen=True, eq=False)
class GivenScale(Scale):
    """Steps η_t = step/√t for convex losses.

    Parameters
    ----------
    step : float or array
        s, above 0.
    """

    step: Hyper

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "step")

    def eta(self, t: Array, x: Array) -> Array:
        """Return η_t in the library and dtype of x."""
        return like(self.step, x) / as_float(t, x) ** 0.5

    def leader(self, prox: Prox, state: FTRLState) -> tuple[Leader, NoState]:
        curvature = 1 / self.eta(state.round, state.gradient_sum)
        return SingleLeader.about_centre(prox, state.gradient_sum, curvature), NoState()

    def report(self, prox: Prox, state: FTRLState) -> dict[str, Array]:
        return {"eta": self.eta(state.round, state.x)}

    def primal(self, prox: Prox, problem: Problem, T: FloatArray, state: FTRLState | None) -> FloatArray:
        c, s = problem.constants, np.asarray(self.step)
        return np.asarray(c.radius**2 * np.sqrt(T) / (2 * s) + c.loss_gradient_bound**2 * s / 2 * power_sum(T, 0.5))

    def primal_per_round(self, problem: Problem, state: FTRLState | None) -> FloatArray:
        c, s = problem.constants, np.asarray(self.step)
        return np.asarray(c.radius**2 / (2 * s) + c.loss_gradient_bound**2 * s / 2)


@dataclass(frozen=True, eq=False)
class StronglyConvexScale(Scale):
    """Quadratic models of σ-strongly convex losses, which regularise by themselves: η_t = 1/(σt).

    Parameters
    ----------
    strong_convexity : float or array
        σ, above 0.
    """

    strong_convexity: Hyper = field()

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "strong_convexity")

    def require(self, prox: Prox, dual: FTRLDual) -> None:
        if not isinstance(dual, Multiplier):
            what = "is a penalty, which does not work with strongly convex losses: the first step has no curvature"
            raise InputError("dual", what, "Use a Multiplier, or a GivenScale")

    def eta(self, t: Array, x: Array) -> Array:
        """Return η_t in the library and dtype of x."""
        return 1 / (like(self.strong_convexity, x) * as_float(t, x))

    def slope(self, gradient: Array, x: Array) -> Array:
        return gradient - as_column(like(np.asarray(self.strong_convexity), x)) * x

    def leader(self, prox: Prox, state: FTRLState) -> tuple[Leader, NoState]:
        curvature = 1 / self.eta(state.round - 1, state.x)
        return SingleLeader(prox, state.gradient_sum, curvature), NoState()

    def report(self, prox: Prox, state: FTRLState) -> dict[str, Array]:
        return {"eta": self.eta(state.round, state.x)}

    def primal(self, prox: Prox, problem: Problem, T: FloatArray, state: FTRLState | None) -> FloatArray:
        sigma = np.asarray(self.strong_convexity)
        return np.asarray(problem.constants.loss_gradient_bound**2 / (2 * sigma) * power_sum(T, 1.0))


def scale_for(problem: Problem, steps: StepKind, size: float, share: float) -> GivenScale | StronglyConvexScale:
    """Return the scale with η_t = size/(share G_f √t) for convex losses, or with 1/(σt) for strongly convex ones."""
    if steps == "convex":
        G = validate.positive_scalar("loss_gradient_bound", problem.constants.loss_gradient_bound)
        return GivenScale(size / (share * G))
    return StronglyConvexScale(require_strong_convexity(problem, steps))


class OnlineState(NamedTuple):
    """The state (V_{t−1}, M_{t−1}): the sum of the gradients' squared lengths, and the longest length."""

    square_sum: Array
    largest_gradient: Array

    @classmethod
    def zeros(cls, x: Array) -> OnlineState:
        """Return V = M = 0, for learners that play x."""
        zero = namespace(x).zeros(x.shape[:-1], dtype=x.dtype)
        return cls(zero, zero)

    def after(self, gradient: Array) -> OnlineState:
        """Return V and M with one more gradient."""
        xp, square = namespace(gradient), dot(gradient, gradient)
        return OnlineState(self.square_sum + square, xp.maximum(self.largest_gradient, xp.sqrt(square)))


@dataclass(frozen=True, eq=False)
class OnlineScale(Scale):
    """The curvature √V/R from the gradients so far. Nothing about the losses is known beforehand.

    While every gradient was 0, the learner stays at the centre. Gradients must be 0 or between 1e-140 and 1e140 long,
    since their squares must be floats.
    """

    finds_unit = True

    def init(self, prox: Prox, x: Array) -> OnlineState:
        return OnlineState.zeros(x)

    def observe(self, prox: Prox, state: FTRLState, feedback: Feedback) -> OnlineState:
        return OnlineState(*state.scale).after(feedback.loss_gradient)

    def unit(self, scale: OnlineState) -> Array:
        return scale.largest_gradient

    def _curvature(self, prox: Prox, scale: OnlineState) -> Array:
        # While V is 0, so are z and Λ, and with any curvature the argmin is the centre.
        return positive_or_one(namespace(scale.square_sum).sqrt(scale.square_sum) / prox.over.radius)

    def leader(self, prox: Prox, state: FTRLState) -> tuple[Leader, OnlineState]:
        return SingleLeader.about_centre(prox, state.gradient_sum, self._curvature(prox, state.scale)), state.scale

    def report(self, prox: Prox, state: FTRLState) -> dict[str, Array]:
        return {"eta": 1 / self._curvature(prox, state.scale), **state.scale._asdict()}

    def primal(self, prox: Prox, problem: Problem, T: FloatArray, state: FTRLState | None) -> FloatArray:
        return np.asarray(2.5 * problem.constants.radius * np.sqrt(as_numbers(require_state(state).scale.square_sum)))

    def primal_per_round(self, problem: Problem, state: FTRLState | None) -> FloatArray:
        return np.asarray(2.5 * problem.constants.radius * as_numbers(require_state(state).scale.largest_gradient))
