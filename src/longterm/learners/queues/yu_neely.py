"""Yu and Neely (JMLR 2020): O(√T) regret, and a violation that does not grow with T if there is a Slater point.

With queues Q in R^m, written with γ and α as in the article:

    Q_j(t)  = max( −γ g_j(x_t),  Q_j(t−1) + γ g_j(x_t) )                              Q(0) = 0
    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + ⟨w_t, g(x)⟩ + α‖x − x_t‖²                x_1 = centre of B
    w_t     = γ ( Q(t) + γ g(x_t) )

Affine constraints and budgets have the argmin in closed form. `constraints.Smooth` gives smooth ones theirs, up to an
error that the theorem counts. A gradient in place of g itself is **not** covered by the theorem.

Presets: "published" has γ = T^{1/4}, α = (G_m² + 1)√T/2, where G_m is the Lipschitz constant of the vector g (the
article's β). That depends on units. "tuned" does not, with α = G_f√T/r and γ²G_m² = α, and has regret (3/2) r G_f √T.
Any γ²G_m² < 2α has a bound.
Needs: a fixed constraint with a prox; the horizon (`DoublingRestarts` does without).
Guarantees: `theorem`: O(√T) regret; each Σ_t g_j(x_t) = O(1) given a Slater point, else O(T^{1/4}). Proof:
`docs/proofs/after_the_paper.md`. Not promised: anything about Σ [g(x_t)]₊. The sum is signed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, like, namespace
from longterm._base.validate import Hyper
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.horizons import MadeForHorizon
from longterm.learners.interface.needs import Need
from longterm.learners.interface.prox_learner import ProxLearner, as_reported, prox_of, values_of
from longterm.learners.interface.states import QueueState
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import LONG_TERM, REGRET, BoundValues, NoTheoremError, Rounds, horizons_of, require_covered


@dataclass(frozen=True, eq=False)
class YuNeely(MadeForHorizon[QueueState], ProxLearner[QueueState]):
    """Keep long-term limits by queues, when their proximal map and the number of rounds are known.

    Yu and Neely's method: queues, with the constraints themselves in the step.

    Parameters
    ----------
    prox : Prox
        The closed form of the step, from `Constraint.prox(over)`.
    horizon : float or array
        The number of rounds for which γ and α were made (T).
    gamma, alpha : float or array
        The weight of the constraints in the step (γ), and that of the distance from the last decision (α).
    lipschitz : float
        A number G_m with ‖g(x) − g(y)‖ ≤ G_m‖x − y‖ for the vector of all constraints.
    made_for : Constants, optional
        The problem's constants that the steps were made for.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> at_least = constraints.Affine([[-1.0, 0.0]], [-0.5])  # x₁ ≥ ½, against every cost
    >>> problem = lt.Problem(sets.Ball(2), losses.Linear(2), at_least)
    >>> learner = lt.learners.YuNeely.for_problem(problem, horizon=10_000)
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (10_000, 1))]))
    >>> round(float(trace.signed_violation.max()), 2)
    0.5
    """

    horizon: Hyper
    gamma: Hyper
    alpha: Hyper
    lipschitz: float
    made_for: Constants | None = None

    needs = ProxLearner.needs | {Need.HORIZON}
    name = "yu_neely"
    title = "Yu–Neely"
    promises = {REGRET: "O(√T)", LONG_TERM: "O(1) with a Slater point, else O(T^(1/4))"}
    variants = ({}, {"preset": "published"})

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "horizon", "gamma", "alpha")
        validate.validate_fields(self, validate.positive_scalar, "lipschitz")
        super().__post_init__()

    @classmethod
    def for_problem(cls, problem: Problem, *, horizon: int, preset: Literal["tuned", "published"] = "tuned") -> YuNeely:
        """Use virtual queues for a fixed constraint and a known horizon: violation O(1) with an interior.

        Parameters
        ----------
        preset : {"tuned", "published"}
            α = G_f√T/r and γ = √α/G_m, the same in any units, or the article's γ = T^{1/4} and α = (G_m² + 1)√T/2.
        """
        prox = prox_of(cls.__name__, cls.needs, problem)
        T, G_m, c = validate.count("horizon", horizon), problem.joint_gradient_bound, problem.constants
        G_f = validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        if validate.choice("preset", preset, ("tuned", "published")) == "tuned":
            alpha = G_f * T**0.5 / c.radius
            return cls(prox, T, alpha**0.5 / G_m, alpha, G_m, c)
        return cls(prox, T, T**0.25, (G_m**2 + 1) * T**0.5 / 2, G_m, c)

    def for_horizon(self, rounds: Array) -> YuNeely:
        longer = rounds / like(self.horizon, rounds)
        gamma, alpha = like(self.gamma, rounds) * longer**0.25, like(self.alpha, rounds) * longer**0.5
        return self.with_steps(horizon=rounds, gamma=gamma, alpha=alpha)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        value = (np.asarray(self.gamma) * self.lipschitz) ** 2
        return (Assumption.worst("γ²G_m² ≤ 2α", value, 2 * np.asarray(self.alpha), "Take a smaller γ or a larger α"),)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds for η = 2α − γ²G_m² > 0 and D_m ≥ ‖g(x)‖ on B, against any x* with g(x*) ≤ 0.

            Σ f_t(x_t) − f_t(x*) ≤ α r² + G_f² T/(2η) + e T
            √(Σ_j [Σ_t g_j(x_t)]₊²) ≤ (1/γ) √( 2αr² + γ²D_m² + (T − 1)(G_f²/η + 2F + 2e) )

        and if some x̂ in B has every g_j(x̂) ≤ −ε, with q = γD_m + (G_fΔ + e)/(γε), no more than

            (1/γ) √( q² + 2αΔ² + 2(G_fΔ + e) + γ²D_m² ).

        e is 0 where the argmin has a closed form. If its error is up to ρ (`Prox.error`), e = (G_f + G_m‖w‖ + 4αΔ) ρ.
        """
        point = problem.slater_point
        return self.theorem_with_slack(problem, rounds, None if point is None else point.epsilon)

    def theorem_with_slack(self, problem: Problem, rounds: Rounds, slack: float | None) -> BoundValues:
        """Return the bounds with a given slack ε in the place of the problem's, or with none."""
        T, c, D_m = horizons_of(np.asarray(rounds), self.batch_shape), problem.constants, self.prox.values_norm_bound()
        declared = {"G_m": (self.lipschitz, problem.joint_gradient_bound)}
        require_covered(declared, "Use YuNeely.for_problem")
        gamma, alpha = np.asarray(self.gamma), np.asarray(self.alpha)
        eta = 2 * alpha - (gamma * self.lipschitz) ** 2
        if np.any(eta <= 0):
            raise NoTheoremError(f"2α − γ²G_m² = {np.min(eta):.6g} is not positive", "Take a smaller γ or a larger α")
        G_f, r, diameter = c.loss_gradient_bound, c.radius, c.diameter

        def longest_queue(error: FloatArray) -> FloatArray:
            square = 2 * alpha * r**2 + (gamma * D_m) ** 2 + (T - 1) * (G_f**2 / eta + 2 * c.loss_range + 2 * error)
            if slack is not None:
                cost = G_f * diameter + error
                q = gamma * D_m + cost / (gamma * validate.positive_scalar("slack", slack))
                square = np.minimum(square, q**2 + 2 * alpha * diameter**2 + 2 * cost + (gamma * D_m) ** 2)
            return np.asarray(np.sqrt(square))

        def error_of(queue: FloatArray) -> FloatArray:
            weight = gamma * (queue + gamma * D_m)  # ≥ ‖w‖; Σ_j w_j ≤ √m ‖w‖
            distance = self.prox.error(np.sqrt(self.prox.constraint.count) * weight, 2 * alpha)
            return np.asarray((G_f + self.lipschitz * weight + 4 * alpha * diameter) * distance)

        # A queue up to q̄ has errors up to error_of(q̄). If it stays below q̄ with such errors, it always does. Such a q̄
        # exists: the bound grows like the root of the error, and the error like the queue.
        queue = longest_queue(np.zeros_like(T))
        while np.any(longest_queue(error_of(queue)) > queue):
            queue = longest_queue(2 * error_of(queue))
        regret = alpha * r**2 + G_f**2 * T / (2 * eta) + error_of(queue) * T
        return {REGRET: regret, LONG_TERM: longest_queue(error_of(queue)) / gamma}

    def first_state(self, t: Array, x: Array) -> QueueState:
        return QueueState(t, x, namespace(x).zeros((*x.shape[:-1], self.prox.constraint.count), dtype=x.dtype))

    def update(self, state: QueueState, feedback: Feedback) -> QueueState:
        gamma, alpha = self._steps(state.x)
        scaled = as_column(gamma) * values_of(feedback, self.prox.constraint.count)
        queue = namespace(scaled).maximum(-scaled, state.queue + scaled)
        weights = as_column(gamma) * (queue + scaled)
        slope = feedback.loss_gradient - as_column(2 * alpha) * state.x
        return QueueState(state.round + 1, self.prox.argmin(slope, weights, 2 * alpha), queue)

    def report(self, state: QueueState) -> dict[str, Array]:
        gamma, alpha = self._steps(state.x)
        return {"multiplier": as_reported(as_column(gamma) * state.queue), "gamma": gamma, "alpha": alpha}

    def _steps(self, x: Array) -> tuple[Array, Array]:
        """Return γ and α, one for each learner."""
        one = namespace(x).ones_like(x[..., 0])
        return like(self.gamma, x) * one, like(self.alpha, x) * one
