"""Descent, then the half-space or the set of the latest constraint: no knowledge of the comparator's path (ours).

    y_t = Π_B( x_t − η_t ∇f_t(x_t) ),   η_t = Δ/(G_f t^β);     x_{t+1} = the projection of y_t, onto
    "cut":  {z : g_t(x_t) + ⟨∇g_t(x_t), z − x_t⟩ ≤ 0}, then onto B: a Polyak step on the linearised constraint
    "set":  {z ∈ B : g_t(z) ≤ 0} itself, for one affine g_t: x_{t+1} = Π_B(y_t − λ∇g_t), λ ≥ 0 by bisection

Only the latest g_t is used: no multiplier, no weight, no Slater point, and no path P. Guarantees, against all u_t in B
with g_t(u_t) ≤ 0 in its own round and Σ ‖u_t − u_{t−1}‖ ≤ P:

    Σ f_t(x_t) − f_t(u_t) ≤ (Δ²/2 + ΔP)/η_T + ½ G_f² Σ η_t                              = O(T^β(1 + P) + T^{1−β})
    Σ [g_t(x_t)]₊²        ≤ 2G_g² (Δ² + 2ΔP + 2G_fΔ Σ η_t + 2G_f² Σ η_t²)               = O(T^{1−β} + P)

and the hard violation is at most √T times the root of the second. Proof: `docs/proofs/drift.md`. For σ-strongly convex
losses and P = 0, η_t = 1/(σt): (G_f²/(2σ))(1 + ln T), and 2G_g² (Δ² + (2G_fΔ/σ)(1 + ln T) + 4G_f²/σ²).
Not promised: a hard violation below T^{3/4} for β = ½, feasibility in a single round.
CLASP (Ferreira, Xavier, Soares, ICML 2026) seems to be the same rule: its abstract states these rates. We could read
the abstract only, so the name, the constants and the proof here are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, dot, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.cuts.cuts import cut_along
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import StepKind, require_strong_convexity
from longterm.learners.interface.states import PointState
from longterm.problems import Problem
from longterm.problems.constraints import VaryingAffine
from longterm.problems.sets import Set
from longterm.theory.bounds import HARD, REGRET, SQUARED, NoTheoremError, horizons_of
from longterm.theory.step_sums import power_sum

Onto = Literal["cut", "set"]
BISECTIONS, SMALL = 52, 1e-12
"""Bisections of the multiplier λ, to the last bit of a float64, and an offset that keeps λ finite."""


@dataclass(frozen=True, eq=False)
class LatestCut(Learner[PointState]):
    """Keep a limit that changes from round to round with one gradient step and one projection.

    The step has the size ``first_step / t**decay``. Then the latest constraint projects the point.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    first_step, decay : float or array
        The size of the first step, and the power of t by which steps shrink.
    onto : {"cut", "set"}
        "cut" projects onto the half-space of the linearised constraint, "set" onto all points that satisfy it.
    sigma : float or array
        The strong convexity of the losses that the steps were made for (σ). 0 for none.
    path : float
        An upper limit, used by `bound` alone, on how far the best decision moves in all rounds together (P in the
        formulas). 0 is one best decision for all rounds. The rule does not read it.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import observe
    >>> from longterm.learners.cuts.latest_cut import LatestCut
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = LatestCut.for_problem(problem, steps="strongly convex")
    >>> state = learner.init()
    >>> for target in ([1.0, 0.0], [0.0, 1.0]):
    ...     state = learner.tell(state, observe(problem, learner.ask(state), [np.array(target)]))
    >>> learner.ask(state)
    array([0.125, 0.5  ])
    """

    enclosing_set: Set
    first_step: Hyper
    decay: Hyper
    onto: Onto = "cut"
    sigma: Hyper = 0.0
    path: float = 0.0

    name: ClassVar[str] = "latest_cut"
    title: ClassVar[str] = "Latest cut"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(T^β(1 + P) + T^(1−β)), moving",
        SQUARED: "O(T^(1−β) + P)",
        HARD: "O(T^(1−β/2) + √(TP))",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"onto": "set"})

    def __post_init__(self) -> None:
        if self.onto not in ("cut", "set"):
            raise InputError("onto", f"{self.onto!r} is not known", "Choose 'cut' or 'set'")
        validate.validate_fields(self, validate.positive, "first_step")
        validate.validate_fields(self, validate.non_negative, "decay", "sigma")
        validate.validate_fields(self, validate.non_negative_scalar, "path")

    @classmethod
    def for_problem(
        cls, problem: Problem, *, steps: StepKind = "convex", beta: Hyper = 0.5, onto: Onto = "cut", path: float = 0.0
    ) -> LatestCut:
        """Descend, then project onto the latest constraint, without knowing how far the comparator moves.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ, G_f and σ.
        steps : {"convex", "strongly convex"}
            Δ/(G_f t^β), or 1/(σt).
        beta : float or array
            β in (0, 1).
        onto : {"cut", "set"}
            The half-space of the linearised constraint, or, for one affine constraint, the set itself.
        path : float
            P, for `bound` alone.
        """
        c = problem.constants
        if steps != "convex":
            sigma = require_strong_convexity(problem, steps)
            return cls(problem.enclosing_set, 1 / sigma, 1.0, onto, sigma, path)
        decay = validate.open_unit_interval("beta", beta)
        return cls(problem.enclosing_set, c.diameter / c.loss_gradient_bound, decay, onto, 0.0, path)

    @property
    def strong_convexity(self) -> Hyper:
        return self.sigma

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        g = problem.constraint
        affine = g.count == 1 and (isinstance(g, VaryingAffine) or g.as_affine() is not None)
        if self.onto == "set" and not affine:
            what = f"onto='set' works for one affine constraint only, and {problem.name!r} has others"
            raise InputError("onto", what, "Choose onto='cut'")

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        G, G_g, diameter, P = c.loss_gradient_bound, c.constraint_gradient_bound, c.diameter, self.path
        if np.any(np.asarray(self.sigma) > 0):
            if P > 0:
                raise NoTheoremError(
                    "no theorem covers steps 1/(σt) against comparators that move", "Use steps='convex'"
                )
            sigma, log = np.asarray(self.sigma), 1 + np.log(T)
            if not (np.allclose(sigma * self.first_step, 1, atol=0) and np.all(np.asarray(self.decay) == 1)):
                raise NoTheoremError("its steps are not the 1/(σt) of the theorem", "Use LatestCut.for_problem")
            regret = G**2 / (2 * sigma) * log
            squared = diameter**2 + 2 * G * diameter / sigma * log + 4 * (G / sigma) ** 2
        else:
            step, decay = np.asarray(self.first_step), np.asarray(self.decay)
            steps, squares = step * power_sum(T, decay), step**2 * power_sum(T, 2 * decay)
            regret = (diameter**2 / 2 + diameter * P) * T**decay / step + 0.5 * G**2 * steps
            squared = diameter**2 + 2 * diameter * P + 2 * G * diameter * steps + 2 * G**2 * squares
        squared = 2 * G_g**2 * squared
        return {REGRET: regret, SQUARED: squared, HARD: np.sqrt(T * squared)}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> PointState:
        return PointState(xp.asarray(1, dtype=xp.int64), self.initial_x(batch_shape, xp, dtype))

    def update(self, state: PointState, feedback: Feedback) -> PointState:
        x, xp, project = state.x, namespace(state.x), self.enclosing_set.project
        y = project(x - as_column(self._eta(state)) * feedback.loss_gradient)
        normal = feedback.constraint_gradient
        excess = xp.maximum(feedback.constraint + dot(y - x, normal), 0.0)
        cut = cut_along(normal, dot(normal, normal), excess)
        if self.onto == "cut":
            return PointState(state.round + 1, project(cut.project(y)))
        # ⟨∇g, Π_B(y − λ∇g)⟩ falls in λ = λ_1 s/(1 − s), s in [0, 1]. If it is never low enough, nothing in B is
        # feasible, and the last point is taken.
        low, high = xp.zeros_like(excess), xp.ones_like(excess)

        def moved(share: Array) -> Array:
            length = self.enclosing_set.diameter * share / (1 - share + SMALL)
            return project(y - as_column(length) * cut.normal)

        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            infeasible = feedback.constraint + dot(moved(middle) - x, normal) > 0
            low, high = xp.where(infeasible, middle, low), xp.where(infeasible, high, middle)
        return PointState(state.round + 1, moved(xp.where(excess > 0, high, xp.zeros_like(high))))

    def report(self, state: PointState) -> dict[str, Array]:
        return {"eta": self._eta(state)}

    def _eta(self, state: PointState) -> Array:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return like(self.first_step, state.x) / t ** like(self.decay, state.x)
