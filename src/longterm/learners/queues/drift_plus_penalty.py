"""Drift plus penalty: one rule of three articles. Constraints may change from round to round.

With queues Q in R^m, and ĝ_j(x) = g_j^t(x_t) + ⟨∇g_j^t(x_t), x − x_t⟩, which is never above g_j^t,

    x_{t+1}  = Π_B( x_t − ( V ∇f_t(x_t) + Σ_j Q_j(t) ∇g_j^t(x_t) ) / (2α) )          x_1 = centre of B
    Q_j(t+1) = [ Q_j(t) + ĝ_j(x_{t+1}) ]₊                                           Q(1) = 0

The queue sees the *new* point. Presets:
- "yu-neely-wei" (NeurIPS 2017): V = √T, α = T; g_t drawn independently from one law, x* feasible on average.
- "neely-yu" (arXiv 1702.04783): the same numbers; g_t of an adversary, x* feasible in every round. A V below √T buys
  less violation with more regret: O(T/V), and O(√V √T) for the sum of g over any rounds in a row, for V in [1, √T].
- "liakopoulos" (ICML 2019): V in (K, T), α = max(T, V√T); g_t of an adversary, x* feasible on average over every K
  rounds in a row.
- "tuned": V = M²√T/(r G_f), α = M²T/(2r²), the same in any units; regret at most (3/2) r G_f √T. M bounds ‖ĝ(x_{t+1})‖.

Needs: the horizon; value and one subgradient of every g_j^t at x_t.
Guarantees: `theorem`, `theorem_with` for windows of K rounds, `overspend_bound` for the sum of g over any rounds in a
row, `expected_theorem` for points that are feasible on average. Proofs: `docs/proofs/after_the_paper.md`.
Not promised: anything about Σ [g_t(x_t)]₊.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import OnBrokenBound
from longterm.learners.interface.horizons import MadeForHorizon
from longterm.learners.interface.needs import Need
from longterm.learners.interface.states import QueueState
from longterm.learners.saddle_point.multiplier_rules import DualLearner, Duals, per_constraint
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Set
from longterm.theory.bounds import LONG_TERM, REGRET, BoundValues, Rounds, horizons_of, require_covered

Preset = Literal["tuned", "yu-neely-wei", "neely-yu", "liakopoulos"]
"""The source of V and α."""


@dataclass(frozen=True, eq=False)
class DriftPlusPenalty(DualLearner[QueueState], MadeForHorizon[QueueState]):
    """Keep several long-term limits by queues of their violations, for a known number of rounds.

    Every step weighs the loss gradient by V and each constraint gradient by its queue.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    horizon : float or array
        The number of rounds for which the weights were made (T).
    V, alpha : float or array
        The weight of the losses, and that of the distance from the last decision.
    duals : Duals
        The constraints that have a queue: their maximum, or each of them.
    lipschitz : float
        A number G_m with ‖Σ_j w_j ∇g_j‖ ≤ G_m‖w‖, for the bounds.
    value_bound : float
        A number D_m of at least ‖(g_1(x), …, g_m(x))‖ on B, for the bounds.
    made_for : Constants, optional
        The problem's constants that the weights were made for.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.DriftPlusPenalty.for_problem(problem, horizon=4, preset="neely-yu")  # V = 2, α = 4
    >>> state = learner.init()
    >>> for _ in range(3):
    ...     state = learner.tell(state, lt.observe(problem, learner.ask(state), [np.array([1.0, 0.0])]))
    >>> learner.ask(state), float(state.queue)
    (array([0.5546875, 0.       ]), 0.4921875)
    """

    enclosing_set: Set
    horizon: Hyper
    V: Hyper
    alpha: Hyper
    duals: Duals
    lipschitz: float
    value_bound: float
    made_for: Constants | None = None

    needs = frozenset({Need.HORIZON})
    name = "drift_plus_penalty"
    title = "Drift plus penalty"
    drifting = ({},)
    promises = {REGRET: "O(√T)", LONG_TERM: "O(√T) with a Slater point, else O(T^(3/4))"}
    variants = ({}, {"preset": "yu-neely-wei"})

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "horizon", "V", "alpha")
        validate.validate_fields(self, validate.positive_scalar, "lipschitz", "value_bound")

    @classmethod
    def for_problem(
        cls, problem: Problem, *, horizon: int, preset: Preset = "tuned", window: int = 10, V: Hyper | None = None
    ) -> DriftPlusPenalty:
        """Weigh losses against virtual queues of the constraints, for a known horizon.

        Parameters
        ----------
        preset : {"tuned", "yu-neely-wei", "neely-yu", "liakopoulos"}
            The source of V and α: our numbers, the same in any units; V = √T and α = T, for constraints of one law or
            of an adversary; or α = max(T, V√T), for x* that are feasible on average over every `window` rounds.
        window : int
            K, of "liakopoulos": x* is feasible on average over every K rounds.
        V : float or array, optional
            V of "liakopoulos", between K and T (default: √(KT)), or of "neely-yu" (default: √T).
        """
        T, c = validate.count("horizon", horizon), problem.constants
        validate.choice("preset", preset, get_args(Preset))
        if V is not None and preset not in ("neely-yu", "liakopoulos"):
            remedy = "Leave it out, or use 'neely-yu' or 'liakopoulos'"
            raise InputError("V", f"is not a parameter of the preset {preset!r}", remedy)
        weight: Any
        alpha: Any
        if preset == "tuned":
            square = (problem.joint_value_bound + problem.joint_gradient_bound * c.diameter) ** 2
            G_f = validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
            weight, alpha = square * T**0.5 / (c.radius * G_f), square * T / (2 * c.radius**2)
        elif preset in ("yu-neely-wei", "neely-yu"):
            weight, alpha = T**0.5 if V is None else np.asarray(validate.positive("V", V)), T
        else:
            K = validate.count("window", window)
            weight = np.sqrt(K * T) if V is None else np.asarray(validate.positive("V", V))
            if np.any(weight < K) or np.any(weight > T):
                remedy = "Give a V between the window and the horizon"
                raise InputError("V", f"{weight} is outside [K, T] = [{K}, {T}]", remedy)
            alpha = np.maximum(T, weight * T**0.5)
        facts = problem.joint_gradient_bound, problem.joint_value_bound, c
        return cls(problem.enclosing_set, T, weight, alpha, per_constraint(problem.constraint.count), *facts)

    def for_horizon(self, rounds: Array) -> DriftPlusPenalty:
        longer = rounds / like(self.horizon, rounds)
        V, alpha = like(self.V, rounds) * longer**0.5, like(self.alpha, rounds) * longer
        return self.with_steps(horizon=rounds, V=V, alpha=alpha)

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        super().require(feedback, x, t, on_broken_bound)
        if self.reads_pullback and feedback.pushforward is None:
            raise InputError(
                "pushforward", "is missing", "Give the function v ↦ (⟨∇g_j(x_t), v⟩)_j, as `observe` does", round=t
            )

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds against x* that is feasible in every round: `theorem_with` the problem's Slater point."""
        point = problem.slater_point
        return self.theorem_with(problem, rounds, slack=None if point is None else point.epsilon)

    def theorem_with(
        self, problem: Problem, rounds: Rounds, *, window: int = 1, slack: float | None = None
    ) -> BoundValues:
        """Return the bounds against x* that is feasible on average over K = `window` rounds, with slack ε or none.

            V Σ Δf_t + ½‖Q(T+1)‖² ≤ α r² + V²G_f² T/(4α) + M²T/2 + (K − 1) M D_m T/2,       M = D_m + G_mΔ
            Σ_t g_j^t(x_t)         ≤ Q_j(T+1) + (G_g/(2α)) Σ_t (V G_f + G_m‖Q(t)‖)

        Where some x̂ in B has g_j^t(x̂) ≤ −ε in every round, no queue is longer than √( q² + 2αΔ² + 2VG_fΔ + M² ),
        q = (VG_fΔ + M²/2)/ε.
        """
        T = horizons_of(np.asarray(rounds), self.batch_shape)
        total, queue = self._drift(problem, T, window, slack)
        return {REGRET: total / np.asarray(self.V), LONG_TERM: self._violation(problem, T, queue)}

    def overspend_bound(
        self,
        problem: Problem,
        rounds: Rounds,
        *,
        length: int | None = None,
        window: int = 1,
        slack: float | None = None,
    ) -> FloatArray:
        """Return a bound on Σ_{t∈I} g_j^t(x_t) for each j and each I of at most `length` rounds in a row.

            Σ_{t∈I} g_j^t(x_t) ≤ Q_j at the end + (G_g/(2α)) Σ_{t∈I} (V G_f + G_m‖Q(t)‖)

        So the long-term bound of `theorem_with` holds for every I, and a short I has a smaller one. `window` and
        `slack` are those of `theorem_with`. By default I has any length.
        """
        T = horizons_of(np.asarray(rounds), self.batch_shape)
        _, queue = self._drift(problem, T, window, slack)
        return self._violation(problem, T if length is None else np.minimum(T, validate.count("length", length)), queue)

    def _drift(
        self, problem: Problem, T: FloatArray, window: int, slack: float | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the right-hand side of the first line of `theorem_with`, and a bound on every ‖Q(t)‖ up to T."""
        declared = {
            "G_m": (self.lipschitz, problem.joint_gradient_bound),
            "D_m": (self.value_bound, problem.joint_value_bound),
        }
        require_covered(declared, "Use DriftPlusPenalty.for_problem")
        K, V, alpha = validate.count("window", window), np.asarray(self.V), np.asarray(self.alpha)
        c, M = problem.constants, self._largest_change(problem)
        windows = (K - 1) * M * self.value_bound * T / 2
        total = alpha * c.radius**2 + V**2 * c.loss_gradient_bound**2 * T / (4 * alpha) + M**2 * T / 2 + windows
        queue = np.sqrt(2 * (total + V * c.loss_range * T))
        if slack is not None:
            spent = V * c.loss_gradient_bound * c.diameter + M**2 / 2
            q = spent / validate.positive_scalar("slack", slack)
            queue = np.minimum(queue, np.sqrt(q**2 + 2 * alpha * c.diameter**2 + 2 * spent))
        return total, queue

    def expected_theorem(self, problem: Problem, rounds: Rounds, *, slack: float) -> BoundValues:
        """Return the bounds in expectation, for g^t of one law that are independent of everything before round t.

        x* and x̂ are fixed in advance and feasible and slack on average, for each j. With c = VG_fΔ + M²/2 and
        b = 2M + 2G_mΔ + ε, E‖Q(t)‖ ≤ 2(c/ε + Δ√(2α)) + D_m + √(2c) + (2b²/ε) ln(9b²/ε²) = O(√T).
        """
        T, epsilon = horizons_of(np.asarray(rounds), self.batch_shape), validate.positive_scalar("slack", slack)
        V, alpha, c, M = np.asarray(self.V), np.asarray(self.alpha), problem.constants, self._largest_change(problem)
        spent = V * c.loss_gradient_bound * c.diameter + M**2 / 2
        jump = 2 * M + 2 * self.lipschitz * c.diameter + epsilon
        level = 2 * (spent / epsilon + c.diameter * np.sqrt(2 * alpha))
        tail = 2 * jump**2 / epsilon * np.log(9 * jump**2 / epsilon**2)
        queue = level + self.value_bound + np.sqrt(2 * spent) + tail
        return {REGRET: self.theorem_with(problem, rounds)[REGRET], LONG_TERM: self._violation(problem, T, queue)}

    def _largest_change(self, problem: Problem) -> float:
        """Return M ≥ ‖ĝ(x_{t+1})‖, the largest change of the queues' length in a round."""
        return self.value_bound + self.lipschitz * problem.constants.diameter

    def _violation(self, problem: Problem, T: FloatArray, queue: FloatArray) -> FloatArray:
        """Return the bound on Σ_t g_j^t(x_t) that follows from a bound on every ‖Q(t)‖."""
        c, twice = problem.constants, 2 * np.asarray(self.alpha)
        moves = (np.asarray(self.V) * c.loss_gradient_bound + self.lipschitz * queue) / twice
        return np.asarray(queue + c.constraint_gradient_bound * T * moves)

    def first_state(self, t: Array, x: Array) -> QueueState:
        return QueueState(t, x, namespace(x).zeros((*x.shape[:-1], *self.duals.shape), dtype=x.dtype))

    def update(self, state: QueueState, feedback: Feedback) -> QueueState:
        V, alpha = self._steps(state.x)
        descent = as_column(V) * feedback.loss_gradient + self.duals.pullback(feedback, state.queue)
        x = self.enclosing_set.project(state.x - descent / as_column(2 * alpha))
        linearised = self.duals.values(feedback) + self.duals.pushforward(feedback, x - state.x)
        return QueueState(state.round + 1, x, namespace(x).maximum(state.queue + linearised, 0.0))

    def report(self, state: QueueState) -> dict[str, Array]:
        V, alpha = self._steps(state.x)
        return {"multiplier": state.queue / self.duals.expand(V), "V": V, "alpha": alpha}

    def _steps(self, x: Array) -> tuple[Array, Array]:
        """Return V and α, one for each learner."""
        one = namespace(x).ones_like(x[..., 0])
        return like(self.V, x) * one, like(self.alpha, x) * one
