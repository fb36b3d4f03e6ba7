"""The prox-penalty family: the positive part of the latest constraint inside the step, with a large weight.

    x_{t+1} = argmin_{x ∈ B} ⟨∇f_t(x_t), x⟩ + w_t [g_t(x)]₊ + α_t ‖x − x_t‖²,     α_t = α t^power,     x_1 = centre of B

The weights w_t are a slot (`penalty_weights`), and each preset fills it:

- "growing" (ours): w_t = w_0 t^{1+e}, without a queue.
- "recoo" (Guo, Liu, Wei, Ying, NeurIPS 2022): the rectified queue w_t = Q_t γ_t, here with γ_t η_t = w_0 t^{1+e}.
- "coldq" (Wang, Yan, Liu, AAAI 2025): a queue that forgets, with the floor γ = e T, and α_t = √t as published.

**The three presets are one method.** Lemma: let g_t(x) = ⟨a, x⟩ − b, and let no bound of B be active in the step. Then
the weight binds, that is g_t(x_{t+1}) > 0, if and only if

    w_t ‖a‖² < 2 α_t g_t(x_t) − ⟨a, ∇f_t(x_t)⟩,     which implies     w_t ‖a‖ < G_f + 2 α_t dist(x_t, {g_t ≤ 0}).

Where the weight does not bind, the step is the gradient step, projected onto {x ∈ B : g_t(x) ≤ 0}. On B, the weight
does not bind if some x̂ in B has g_t(x̂) ≤ −ε and w_t ≥ (G_f Δ + α_t Δ²)/ε. As w_t grows faster than α_t, the presets
differ in the first rounds at most, and an arena ranks the class once.

Steps: α_t = G_f √t/(√2 Δ) for convex losses, α_t = σt/2 for σ-strongly convex ones, w_0 = (F + ΔG_f)/D and e = ½.
Needs: the argmin (`PenaltyStep`): affine constraints on a ball, a box or a simplex, fixed or changing, or a budget. No
horizon, but for "coldq".
Guarantees: `theorem`, and `theorem_with` for constraints of known total change, if α_t/w_t does not increase. Where it
does, the rule can be played, with a warning, and has no bound. Proof: `docs/proofs/after_the_paper.md`.
Not promised: feasibility in a single round.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.interface.facts import Variants
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.needs import Need, StepKind, require_strong_convexity
from longterm.learners.interface.states import QueueState
from longterm.learners.penalties.penalty_step import PenaltyStep, require_penalty_step, require_same_step
from longterm.learners.penalties.penalty_weights import (
    ForgettingQueue,
    GrowingWeights,
    PenaltyWeights,
    RectifiedQueue,
)
from longterm.learners.saddle_point.multiplier_rules import DualLearner, Duals
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Set
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import HARD, REGRET, BoundValues, Rounds, horizons_of
from longterm.theory.step_sums import power_sum

WeightRule = Literal["growing", "recoo", "coldq"]
"""The rule for the weights: ours, or that of an article."""


@dataclass(frozen=True, eq=False)
class ProxPenalty(DualLearner[QueueState]):
    """Keep a limit that changes by penalising its violation inside every step.

    The step minimises a linearised loss plus the weighted violation [g_t]₊ itself.

    Parameters
    ----------
    penalty_step : PenaltyStep
        The minimisation that every step solves.
    weights : PenaltyWeights
        The rule for the weight of the violation in each round (w_t).
    alpha, power : float or array
        The weight α_t = alpha t^power of the distance from the last decision.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.ProxPenalty.for_problem(problem, steps="strongly convex")
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (500, 1))]))
    >>> trace.state.x.round(3), float(trace.hard_violation[-1].round(3))
    (array([0.25, 0.6 ]), 0.0)
    """

    penalty_step: PenaltyStep
    weights: PenaltyWeights
    alpha: Hyper
    power: Hyper = 0.5
    enclosing_set: Set = field(init=False, repr=False)
    duals: Duals = field(init=False, repr=False)

    name = "prox_penalty"
    title = "Prox penalty"
    needs = frozenset({Need.LATEST_PENALTY_PROX})
    promises = {REGRET: "O(√T), O(log T)", HARD: "O(1) for a fixed g, else O(T^(3/4)), O(√(T log T))"}
    variants: ClassVar[Variants] = ({}, {"steps": "strongly convex"})
    presets = {"RECOO": {"preset": "recoo"}, "COLDQ": {"preset": "coldq"}}

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "alpha", "power")
        needs = type(self).needs | self.weights.needs
        validate.set_frozen(self, enclosing_set=self.penalty_step.over, duals=self.penalty_step.duals, needs=needs)

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        preset: WeightRule = "growing",
        steps: StepKind = "convex",
        w_0: Hyper | None = None,
        growth: Hyper | None = None,
        horizon: int | None = None,
        share: Hyper | None = None,
    ) -> ProxPenalty:
        """Take gradient steps with [g_t]₊ itself in them, under a large weight: little hard violation.

        Parameters
        ----------
        preset : {"growing", "recoo", "coldq"}
            The rule for the weights.
        steps : {"convex", "strongly convex"}
            α_t = G_f √t/(√2 Δ), or σt/2. "coldq" has √t, or σt/2.
        w_0 : float or array, optional
            The first weight, of "growing" and "recoo". Default: (F + ΔG_f)/D.
        growth : float or array, optional
            e of w_t = w_0 t^{1+e}, above 0, of "growing" and "recoo". Default: ½.
        horizon : int, optional
            T, of "coldq". The other presets do not use it.
        share : float or array, optional
            e of the floor γ = e T, between 0 and D, of "coldq". Default: D/2.
        """
        step = require_penalty_step(cls.__name__, problem)
        validate.choice("preset", preset, get_args(WeightRule))
        foreign = {"w_0": w_0, "growth": growth} if preset == "coldq" else {"share": share}
        for argument, value in foreign.items():
            if value is not None:
                raise InputError(argument, f"is not a parameter of the preset {preset!r}", "Leave it out")
        if preset == "coldq":
            weights: PenaltyWeights = _forgetting_queue(problem, horizon, share)
            alpha = 1.0
        else:
            w_0, growth = default_weight(problem) if w_0 is None else w_0, 0.5 if growth is None else growth
            growing = GrowingWeights(w_0, growth)
            weights = growing if preset == "growing" else RectifiedQueue(1.0, w_0, growth + 0.5, 0.5)
            alpha = balanced_alpha(problem)
        if steps == "convex":
            return cls(step, weights, alpha)
        return cls(step, weights, require_strong_convexity(problem, steps) / 2, 1.0)

    @property
    def strong_convexity(self) -> Hyper:
        """The σ = 2α that the steps are made for where α_t grows like t, else 0."""
        sigma = np.where(np.asarray(self.power) == 1, 2 * np.asarray(self.alpha), 0.0)
        return sigma if sigma.ndim else float(sigma)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.weights.assumptions(self.power)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_same_step(self.penalty_step, problem)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return the bounds for weights w_t ≥ w t^e such that α_t/w_t does not increase, if g_t(x*) ≤ 0 in every round.

            Σ f_t(x_t) − f_t(x*) ≤ P_T = Σ G_f²/(4α_t) + r²[α_1 − σ/2]₊ + Δ² Σ_{t≥2} [α_t − α_{t−1} − σ/2]₊
            Σ [g(x_t)]₊          ≤ min(D, G_g r) + H_{T−1},     H_T = Σ_{t≤T} (F + G_f²/(4α_t))/(w t^e) + r² α_1/w
            Σ [g_t(x_t)]₊        ≤ H_T + G_g √( 2 Σ 1/α_t · (P_T + Σ G_f²/(4α_t) + F T) )

        The second line is for a fixed g, the third for changing g_t. σ counts only for α_t in proportion to t.
        """
        return self.theorem_with(problem, rounds, change=None if problem.constraint.parameters else 0.0)

    def theorem_with(self, problem: Problem, rounds: Rounds, *, change: ArrayLike | None) -> BoundValues:
        """Return the bounds where Σ_{t≥2} max_{x∈B} [g_t(x) − g_{t−1}(x)]₊ is at most `change`, for every T.

            Σ [g_t(x_t)]₊ ≤ min(D, G_g r) + H_{T−1} + change

        COLDQ's article has such a bound (Theorem 2), with change · D√m/e in the place of change. This one is smaller,
        and holds for every preset. None stands for an unknown change.
        """
        self.require_assumptions()
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        regret = self._regret(c, T)
        inverse = self._inverse_sum(T)
        energy = regret + c.loss_gradient_bound**2 / 4 * inverse + c.loss_range * T
        violation = self._residual(c, T) + c.constraint_gradient_bound * np.sqrt(2 * inverse * energy)
        if change is not None:
            total = validate.non_negative("change", change)
            slow = np.where(T > 1, self._residual(c, np.maximum(T - 1, 1.0)), 0.0) + np.asarray(total)
            slow = c.first_violation + slow
            violation = np.minimum(violation, slow) if problem.constraint.parameters else slow
        regret, violation = np.broadcast_arrays(regret, violation)
        return {REGRET: regret, HARD: violation}

    def _regret(self, c: Constants, T: FloatArray) -> FloatArray:
        """Return P_T of `theorem`."""
        alpha, power = np.asarray(self.alpha), np.asarray(self.power)
        credit = np.where(power == 1, c.strong_convexity / 2, 0.0)
        growth = np.where(power == 1, np.maximum(alpha - credit, 0.0) * (T - 1), alpha * (T**power - 1))
        spread = c.radius**2 * np.maximum(alpha - credit, 0.0) + c.diameter**2 * growth
        return np.asarray(c.loss_gradient_bound**2 / 4 * self._inverse_sum(T) + spread)

    def _residual(self, c: Constants, T: FloatArray) -> FloatArray:
        """Return H_T of `theorem`."""
        return self.weights.residual(c, T, self.alpha, self.power, self._regret(c, T))

    def _inverse_sum(self, T: FloatArray) -> FloatArray:
        """Return an upper bound of Σ 1/α_t."""
        return np.asarray(power_sum(T, self.power) / np.asarray(self.alpha))

    def first_state(self, t: Array, x: Array) -> QueueState:
        return QueueState(t, x, namespace(x).zeros(x.shape[:-1], dtype=x.dtype))

    def update(self, state: QueueState, feedback: Feedback) -> QueueState:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        queue = self.weights.before_step(t, state.queue, feedback.constraint)
        curvature = 2 * self._alpha(t) + 0 * feedback.constraint
        stepped = self.penalty_step.step(state.x, feedback, self.weights.weight(t, queue), curvature)
        return QueueState(state.round + 1, stepped.x, self.weights.after_step(t, queue, stepped.constraint))

    def _alpha(self, t: Array) -> Array:
        return like(self.alpha, t) * t ** like(self.power, t)

    def report(self, state: QueueState) -> dict[str, Array]:
        t = namespace(state.x).astype(state.round, state.x.dtype)
        return {"queue": state.queue, "alpha": self._alpha(t)}


def balanced_alpha(problem: Problem) -> float:
    """Return G_f/(√2 Δ), the α for which α_t = α√t balances the two terms of the regret."""
    c = problem.constants
    return validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound) / (2**0.5 * c.diameter)


def default_weight(problem: Problem) -> float:
    """Return (F + ΔG_f)/D, the first weight."""
    c = problem.constants
    return (c.loss_range + c.diameter * c.loss_gradient_bound) / c.constraint_bound


def _forgetting_queue(problem: Problem, horizon: int | None, share: Hyper | None) -> ForgettingQueue:
    """Return the queue of COLDQ with the floor `share` · T."""
    D = problem.constants.constraint_bound
    e = D / 2 if share is None else validate.positive("share", share)
    if np.any(np.asarray(e) >= D):
        raise InputError(
            "share", f"{share!r} is not below D = {D:g}", "Give a share above 0 and below D, D/2 for example"
        )
    if horizon is None:
        raise InputError("horizon", "is missing, and the preset 'coldq' needs it", "Give T, the number of rounds")
    T = validate.count("horizon", horizon)
    return ForgettingQueue(T, e * T)
