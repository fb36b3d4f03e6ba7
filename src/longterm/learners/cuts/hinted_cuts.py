"""Hedged cuts with forecasts: points along a forecast join the experts (ours).

Before round t, with m_t a guess of ∇f_t(x_t) and x̄_t the mixture of the experts of `HedgedCuts` alone, points

    z^i_t = x̄_t − r_i Δ m_t/‖m_t‖,   three times:  z ← Π_B( z cut by the constraint linearised at z ),   r = ½, ⅛, 1/32

are weighed together with the experts by one AdaHedge. A fixed g is known and evaluated at z. Of a changing g the latest
stands for the next: its maximum, linearised at x_{t−1}, relaxed by `bank`. The experts move as in hedged cuts. No hint
(m_t = 0) leaves z^i_t = x̄_t.
Guarantees [proved]: the regret line of hedged cuts with K + 3 in the place of K, for any forecasts: 2Γ_T bounds the
loss to each expert, and the experts' own line depends on n_t and the cuts at x_t only. Useless forecasts cost a
constant factor, √ln 7/√ln 4 = 1.18 of the meta term. The gain of good forecasts is [measured].
Proof: `docs/proofs/hedged_cuts.md`. Not promised: a bound on the violation, which is that of the points z [open].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, dot, least_divisor, like, namespace, norm
from longterm._base.selection import clamp_min, clamp_to_divisor
from longterm.errors import InputError
from longterm.learners.cuts.cuts import cut_together, cut_within
from longterm.learners.cuts.hedged_cuts import HedgedCuts
from longterm.learners.cuts.meta import AdaHedge
from longterm.learners.cuts.modes import totals_after
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need
from longterm.learners.interface.states import as_numbers
from longterm.learners.optimistic.hints import HintModel, LastGradient
from longterm.problems import Problem
from longterm.problems.constraints import Constraint
from longterm.problems.sets import Set
from longterm.theory.bounds import REGRET, horizons_of


class HintedCutsState(NamedTuple):
    """The state of hedged cuts with K + 3 experts, m_t, the memory of the model, and the latest g."""

    round: Array
    x: Array
    experts: Array
    """The experts and the hinted points, shape (..., K + 3, d)."""
    memory: Array
    square_sum: Array
    log_sum: Array
    totals: Array
    hint: Array
    model: Array
    latest_value: Array
    """ĝ(0) of the latest constraint, relaxed. −1 before the first."""
    latest_normal: Array


@dataclass(frozen=True, eq=False)
class HintedCuts(Learner[HintedCutsState]):
    """Keep hard limits as `HedgedCuts` does, and profit from forecasts of the next loss.

    Points along the forecast join the experts. Useless forecasts cost a constant factor in the bound.

    Parameters
    ----------
    cuts : HedgedCuts
        The hedged cuts that the points join.
    constraint : Constraint or None
        The constraint, if it is fixed. None where it changes.
    hints : HintModel
        The forecasts of the loss gradients.
    reaches : tuple of float
        How far the points go along the forecast, as shares of the diameter (r_i).

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.learners.optimistic.hints import GivenHints, NoHint
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> costs = np.random.default_rng(0).choice([-1.0, 1.0], (500, 1))
    >>> problem = lt.Problem(sets.Ball(1), losses.Linear(1), constraints.L2Budget(1, budget=0.5))
    >>> for hints in (NoHint(), GivenHints(costs)):
    ...     learner = lt.learners.HintedCuts.for_problem(problem, hints=hints)
    ...     print(bool(lt.run(problem, learner, streams.Replay([costs])).cumulative_loss[-1] < -200))
    False
    True
    """

    cuts: HedgedCuts
    constraint: Constraint | None
    hints: HintModel = LastGradient()  # noqa: RUF009 - frozen
    reaches: tuple[float, ...] = (0.5, 0.125, 0.03125)
    enclosing_set: Set = field(init=False, repr=False)

    needs: ClassVar[frozenset[Need]] = frozenset()
    name: ClassVar[str] = "hinted_cuts"
    title: ClassVar[str] = "Hinted cuts"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√T), whatever the hints"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.cuts.sigma) > 0) or not isinstance(self.cuts.meta, AdaHedge):
            raise InputError(
                "cuts",
                "has strongly convex steps, or weighs its experts without AdaHedge",
                "Give HedgedCuts(…) with the defaults",
            )
        reaches = tuple(float(validate.positive_scalar("reaches", one)) for one in self.reaches)
        validate.set_frozen(self, enclosing_set=self.cuts.enclosing_set, reaches=reaches)

    @classmethod
    def for_problem(
        cls, problem: Problem, *, hints: HintModel | None = None, experts: int = 4, bank: float = 0.0
    ) -> HintedCuts:
        """Add points along a forecast of the gradient to the experts of hedged cuts.

        Parameters
        ----------
        problem : Problem
            Gives B and the fixed constraint.
        hints : HintModel, optional
            The forecasts. Default: the last gradient.
        experts : int
            K.
        bank : float
            The share of the slack that may be spent, as in `HedgedCuts`.
        """
        model = LastGradient() if hints is None else hints
        known = None if problem.constraint.parameters or bank > 0 else problem.constraint
        cuts = HedgedCuts.for_problem(problem, steps="convex", experts=experts, cuts=3, bank=bank, query=False)
        return cls(cuts, known, model)

    @property
    def reads_pullback(self) -> bool:
        return self.cuts.reads_pullback

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        self.cuts.require_playable(problem)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        log = np.log(len(self.cuts.factors) + len(self.reaches))
        spread = self.cuts.expert_regret(c.diameter).min() + np.sqrt(log)
        G = c.loss_gradient_bound
        return {REGRET: spread * c.diameter * G * np.sqrt(T) + (4 / 3 * log + 2) * c.diameter * G}

    def theorem_after(self, problem: Problem, state: HintedCutsState) -> Mapping[str, FloatArray]:
        S, memory = as_numbers(state.square_sum), as_numbers(state.memory)
        diameter = problem.constants.diameter
        own = self.cuts.expert_regret(diameter).min() * diameter * np.sqrt(S)
        return {REGRET: own + self.cuts.meta.regret(memory)[..., 0]}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> HintedCutsState:
        plain = self.cuts.init(batch_shape, xp=xp, dtype=dtype)
        x, count = plain.x, len(self.cuts.factors) + len(self.reaches)
        memory = self.cuts.meta.start(xp.zeros((*x.shape[:-1], count), dtype=x.dtype))
        model = self.hints.start(x)
        hint = self.hints.predict(model, plain.round, x)
        zero = plain.square_sum
        zeros = xp.zeros_like(x)
        state = HintedCutsState(
            plain.round, x, plain.experts, memory, zero, zero, plain.totals, hint, model, zero - 1.0, zeros
        )
        return self._mixed(state, plain.experts)

    def hinted(self, state: HintedCutsState, hint: Array) -> HintedCutsState:
        """Return the state with another forecast of this round, before it is asked."""
        return self._mixed(state._replace(hint=hint), state.experts[..., : len(self.cuts.factors), :])

    def update(self, state: HintedCutsState, feedback: Feedback) -> HintedCutsState:
        x, gradient, K = state.x, feedback.loss_gradient, len(self.cuts.factors)
        square = dot(gradient, gradient)
        square_sum = state.square_sum + square
        divisor = clamp_min(square_sum, least_divisor(square_sum) ** 2)
        totals = totals_after(state.totals, feedback)
        experts = self.cuts.move(state.experts[..., :K, :], state.round, divisor, x, totals, feedback)
        values = feedback.constraint[..., None] if self.cuts.constraints == 1 else feedback.constraint_values
        latest = namespace(x).max(self.cuts.relaxation(totals)(values), axis=-1) - dot(feedback.constraint_gradient, x)
        losses = dot(state.experts - x[..., None, :], gradient[..., None, :])
        model, hint = self.hints.following(state.model, state.round, feedback)
        after = state._replace(
            round=state.round + 1,
            memory=self.cuts.meta.update(state.memory, losses),
            square_sum=square_sum,
            log_sum=state.log_sum + square / divisor,
            totals=totals,
            hint=hint,
            model=model,
            latest_value=latest,
            latest_normal=feedback.constraint_gradient,
        )
        return self._mixed(after, experts)

    def _mixed(self, state: HintedCutsState, experts: Array) -> HintedCutsState:
        """Return the state with the points along the hint and the mixture of all."""
        xp, K, project = namespace(experts), len(self.cuts.factors), self.enclosing_set.project
        weights = self.cuts.meta.weights(state.memory)
        plain = weights[..., :K]
        positive = plain + clamp_to_divisor(0 * plain)
        centre = (positive[..., None, :] @ experts)[..., 0, :] / xp.sum(positive, axis=-1, keepdims=True)
        unit = self.enclosing_set.diameter * state.hint / as_column(clamp_to_divisor(norm(state.hint)))
        z = centre[..., None, :] - like(np.asarray(self.reaches), experts)[:, None] * unit[..., None, :]
        for _ in range(self.cuts.cuts):
            z = project(z)
            if self.constraint is None:
                normal = state.latest_normal[..., None, :]
                excess = xp.maximum(state.latest_value[..., None] + dot(z, normal), 0.0)
                cut = cut_within(self.enclosing_set, normal, excess)
            else:
                square, normal = self.constraint.squared_excess(z)
                cut = cut_together(self.enclosing_set, normal, square)
            z = project(cut.project(z))
        every = xp.concat([experts, z], axis=-2)
        return state._replace(x=(weights[..., None, :] @ every)[..., 0, :], experts=every)

    def report(self, state: HintedCutsState) -> dict[str, Array]:
        weights = self.cuts.meta.weights(state.memory)
        return {f"weight_{k}": weights[..., k] for k in range(weights.shape[-1])}
