"""Hedged cuts: experts with several step sizes share one gradient and one cut (ours; see `docs/proofs/hedged_cuts.md`).

Experts k = 0 … K−1 have steps c_kΔ/√S_t, c_k = ½·4^{−k}, and one start; x_t = Σ_k p_{t,k} x^k_t is played. n_t is the
part of ∇f_t(x_t) that is parallel to B. With S_t = Σ_{s≤t} ‖n_s‖² and ĝ_j(z) = g_{t,j}(x_t) + ⟨∇g_{t,j}(x_t), z − x_t⟩,

    y = x^k_t − (c_kΔ/√S_t) n_t                                                       (no step while S_t = 0)
    `cuts` times:  y ← Π_B( y cut by ĝ )  (`learners.cuts.cuts`);                                x^k_{t+1} = y
    L_k ← L_k + ⟨n_t, x^k_t − x_t⟩,   p_{t+1} from L by AdaHedge (`learners.cuts.meta`)

A fixed g is known before round 1 (`query=False`: it is not). Then the start is the centre of B, cut until it satisfies
g. After the first cut, ĝ is taken at the mixture Σ_k p_{t+1,k} y^k (for affine g at each y), each y is projected onto
its half-space and the one of the cut before (or of the face of B that it was put back to) together, and cuts go on
until Σ_k p_{t+1,k} d_k ≤ Δ/(200√t), where d_k is the distance of y^k from its half-space; at most `cuts` times.
If the losses are declared σ-strongly convex, one more expert has y = x^k_t − (n_t + σ(x^k_t − x_t))/(σt), and the meta
rule is Adapt-ML-Prod. `bank` β > 0 relaxes the cut of constraint j by β[−Σ_{s≤t} g_{s,j}(x_s)]₊, so that slack in some
rounds offsets others. `remembered` M keeps half-spaces {z : ĝ_j(z) ≤ 0} of M violated rounds, j the worst constraint,
where g changes, and cuts by them together too; the least recently used is replaced (`learners.cuts.modes`).

Needs: value and one subgradient of f_t and of each g_{t,j} at x_t, and of a fixed g at other points. No horizon, no
bound on gradients, no multiplier, no projection onto {g ≤ 0}. Of the constants it uses Δ, and σ where one is declared.
Guarantees, against x* with g_t(x*) ≤ 0 in every round: regret O(√T), O(log T) for σ > 0. Hard violation Õ(T^{3/4}) and
squared violation Õ(√T) if ln(S_T/S_1) = O(log T); for a fixed g a hard violation of O(√T) where the cuts suffice. With
`remembered` the hard violation is at most G_gΔ(n + E + √(MT)/25), where n half-spaces are in memory and E were lost.
With `bank` the bounds are of the **long-term** violation, and the hard violation has none. Against moving x* with a
path P (`path`): regret O(√(T(1 + P))). Not promised: anything against x* that is feasible on average only (a test shows
linear regret), and the O(√T) hard violation of nested projections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, as_float, dots, least_divisor, like, namespace
from longterm._base.selection import clamp_min
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.cuts import hedged_cuts_bounds as bounds
from longterm.learners.cuts.cuts import cut_point
from longterm.learners.cuts.meta import AdaHedge, AdaptMLProd, Meta, MetaName, rule_called
from longterm.learners.cuts.modes import (
    EMPTY,
    MOST_CUTS,
    Relaxation,
    count_rows,
    cut_by_known,
    cut_by_latest,
    cut_by_memory,
    relaxed,
    totals_after,
)
from longterm.learners.interface.experts import experts_first, experts_last, mixture
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.feedback_check import OnBrokenBound
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need, StepKind, require_strong_convexity
from longterm.learners.interface.states import as_numbers
from longterm.problems import Problem
from longterm.problems.constraints import Constraint
from longterm.problems.sets import Set
from longterm.theory.bounds import HARD, REGRET, SQUARED, horizons_of

TOLERANCE = 0.005
"""Cuts by a fixed constraint stop at a distance of this share of Δ/√t."""
START_CUTS = 200
"""The most cuts of the start by a fixed constraint."""


class HedgedCutsState(NamedTuple):
    """(t, x_t), the experts, the memory of the meta rule, and sums."""

    round: Array
    x: Array
    experts: Array
    """x^k_t, shape (..., K, d)."""
    memory: Array
    """The memory of the meta rule, shape (..., n)."""
    square_sum: Array
    """S_{t−1} of the steps."""
    log_sum: Array
    """Σ ‖n_s‖²/S_s so far."""
    totals: Array
    """Σ g_j so far, shape (..., m) with `bank`, else (..., 0)."""
    limited: Array
    """The number of rounds whose cuts by a fixed g did not suffice. With `remembered`, of rows that were lost."""
    half_spaces: Array
    """The remembered (a, b) of {z : ⟨a, z⟩ ≤ b}, the next to be replaced first, shape (..., M, d + 1)."""


@dataclass(frozen=True, eq=False)
class HedgedCuts(Learner[HedgedCutsState]):
    """Keep hard limits, fixed or different in each round, at a small loss, without any tuning.

    Several experts take gradient steps of different sizes. They share one gradient, and one cut by the violated limits.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    factors : tuple of float
        The step sizes of the experts as shares of Δ/√S_t, one expert for each (c_k).
    constraints : int
        The number of constraints in a round (m). A single one is cut by its subgradient, several all at once.
    cuts : int
        The number of cuts in a round, at least 1. With `known` it is the largest number.
    bank : float or array
        The share of the slack so far that may be spent in one round (β). 0 never spends any, which keeps the hard
        violation small. Above 1 the sum of a fixed g may reach D(1 − 1/β), as `bound` says.
    meta : Meta
        The rule that weighs the experts.
    sigma : float or array
        The declared strong convexity of the losses (σ). Above 0 it adds an expert with steps 1/(σt), the last one.
    path : float
        An upper limit, used by `bound` alone, on how far the best decision moves in all rounds together (P in the
        formulas). 0 is one best decision for all rounds. The rule does not read it.
    known : Constraint, optional
        The constraint, if it is fixed and may be evaluated at points that are not played.
    remembered : int
        The number of half-spaces of violated rounds that are kept (M), for limits that change. 0 keeps none.

    Examples
    --------
    >>> from longterm import run
    >>> from longterm.learners.cuts.hedged_cuts import HedgedCuts
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.problems.streams import RandomPermutations
    >>> problem = doubly_stochastic(4)
    >>> trace = run(problem, HedgedCuts.for_problem(problem), RandomPermutations(4), 1000)
    >>> bool(trace.hard_violation[-1] < 0.5)  # the sum over 1000 rounds
    True
    """

    enclosing_set: Set
    factors: tuple[float, ...] = (0.5, 0.125, 0.03125, 0.0078125)
    constraints: int = 1
    cuts: int = 3
    bank: Hyper = 0.0
    meta: Meta = AdaHedge()  # noqa: RUF009 - frozen
    sigma: Hyper = 0.0
    path: float = 0.0
    known: Constraint | None = None
    remembered: int = 0

    name: ClassVar[str] = "hedged_cuts"
    title: ClassVar[str] = "Hedged cuts"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), O(log T)",
        HARD: "Õ(T^(3/4)), Õ(√T) for a fixed affine g",
        SQUARED: "Õ(√T); O(log T) with steps='strongly convex'",
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"bank": 0.1}, {"steps": "strongly convex"})
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"path": 5.0})

    def __post_init__(self) -> None:
        factors = tuple(float(validate.positive_scalar("factors", factor)) for factor in self.factors)
        if not factors and not self.curved:
            raise InputError("factors", "is empty", "Give at least one step factor")
        validate.validate_fields(self, validate.count, "constraints", "cuts")
        validate.validate_fields(self, validate.non_negative, "bank", "sigma")
        validate.validate_fields(self, validate.non_negative_scalar, "path")
        remembered = validate.count("remembered", self.remembered) if self.remembered else 0
        if remembered and (self.known is not None or self.totals_kept):
            what = "needs a constraint that changes, and bank=0"
            raise InputError(
                "remembered",
                what,
                "Leave it out. A fixed constraint needs no memory, because the learner uses it directly",
            )
        validate.set_frozen(self, factors=factors)

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        steps: StepKind | Literal["universal"] = "universal",
        experts: int = 4,
        cuts: int | None = None,
        bank: Hyper = 0.0,
        meta: MetaName | None = None,
        path: float = 0.0,
        query: bool = True,
        remembered: int = 0,
    ) -> HedgedCuts:
        """Start with this learner: it needs no constants, no horizon and no projection.

        Parameters
        ----------
        problem : Problem
            Gives B, the number of constraints and, for strongly convex steps, σ.
        steps : {"universal", "convex", "strongly convex"}
            c_kΔ/√S_t, and 1/(σt) besides if σ > 0; only the first; only the second.
        experts : int
            K, with step factors ½, ⅛, 1/32, …
        cuts : int, optional
            Cuts a round. The theorem needs one. Default: 3, and at most 30 by a fixed constraint.
        bank : float or array
            The share of the slack so far that may be spent in one round, for the long-term violation. 0.1 is a good
            value. Above 1 the bound on a fixed g has the term D(1 − 1/bank), because slack that was counted twice is
            spent at once.
        meta : {"adahedge", "adapt-ml-prod"}, optional
            The weights of the experts. Default: the second if one of them has steps 1/(σt).
        path : float
            The path Σ‖u_t − u_{t−1}‖ of moving comparators to be ready for. It adds experts with longer steps.
        query : bool
            Whether a fixed g may be evaluated at points that are not played.
        remembered : int
            M, for a g that changes: the experts are also cut by M half-spaces of violated rounds. Use 64 for limits
            that return or keep arriving, where every violated round costs. The loss is higher than with 0, because the
            decisions stay in all limits at once. Do not use it where x* is feasible on average only.
        """
        c, count, P = problem.constants, problem.constraint.count, validate.non_negative_scalar("path", path)
        known = problem.constraint if query and not problem.constraint.parameters else None
        cuts = (3 if known is None else MOST_CUTS) if cuts is None else cuts
        if steps not in ("convex", "universal"):
            sigma = require_strong_convexity(problem, steps)
            return cls(problem.enclosing_set, (), count, cuts, bank, sigma=sigma, known=known, remembered=remembered)
        sigma = c.strong_convexity if steps == "universal" else 0.0
        longest = 0
        while P > 0 and 0.5 * 4.0**longest < np.sqrt(0.5 + P / c.diameter):
            longest += 1
        factors = tuple(0.5 * 4.0**k for k in range(longest, -validate.count("experts", experts), -1))
        rule = rule_called(meta or ("adapt-ml-prod" if sigma > 0 else "adahedge"))
        return cls(problem.enclosing_set, factors, count, cuts, bank, rule, sigma, P, known, remembered)

    @cached_property
    def curved(self) -> bool:
        """True if one expert has steps 1/(σt)."""
        return bool(np.any(np.asarray(self.sigma) > 0))

    @cached_property
    def experts(self) -> int:
        """The number K of experts, that one included."""
        return len(self.factors) + self.curved

    @cached_property  # not a field: an array field holds one value per learner
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """The c_k, 0 for steps 1/(σt), and a mask of the experts with steps 1/(σt)."""
        factors = np.asarray([*self.factors, *([0.0] if self.curved else [])])
        return factors, (np.arange(len(factors)) == len(self.factors)).astype(np.float64)

    @property
    def effective_needs(self) -> frozenset[Need]:
        return self.needs if self.known is None else self.needs | {Need.KNOWN_CONSTRAINT}

    @property
    def strong_convexity(self) -> Hyper:
        return self.sigma

    @property
    def reads_pullback(self) -> bool:
        return self.constraints > 1

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        if problem.constraint.count != self.constraints:
            what = f"was made for {self.constraints} constraints, but {problem.name!r} has {problem.constraint.count}"
            raise InputError("learner", what, "Build it from the problem: HedgedCuts.for_problem(problem)")
        if self.known is not None and not self._is_known(problem.constraint):
            what = f"was made for another constraint than that of {problem.name!r}"
            raise InputError("learner", what, "Build it from the problem: HedgedCuts.for_problem(problem)")

    def _is_known(self, constraint: Constraint) -> bool:
        """Return whether that is the known g, judged by its values at the start and at the centre of B."""
        if constraint is self.known or constraint.parameters:
            return constraint is self.known
        points = np.stack([self._start[0], np.asarray(self.enclosing_set.centre, dtype=np.float64)])
        ours, theirs = (np.asarray(g.values(points)) for g in (self.known, constraint))  # type: ignore[union-attr]
        return bool(np.allclose(ours, theirs, rtol=1e-9, atol=0.0))

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        if self.constraints == 1:
            return
        for name in ("constraint_values", "pullback", "pushforward"):
            if getattr(feedback, name) is None:
                what = f"is missing, and the learner cuts {self.constraints} constraints at once"
                raise InputError(name, what, "Give it, or give the parameters of the round to tell()", round=t)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        if not self.factors:
            return self._strongly_convex(problem, T)
        # S_T ≤ G²T, and by the hypothesis S_1 ≥ G²/T: Σ‖n_t‖²/S_t ≤ 1 + ln(S_T/S_1).
        violation = self._violation(problem, self._travel(problem, T, 1 + 2 * np.log(T)), T)
        if not isinstance(self.meta, AdaHedge):  # the regret of Adapt-ML-Prod depends on what happened
            return violation
        log, scale = np.log(self.experts), c.diameter * c.loss_gradient_bound
        spread = self.expert_regret(c.diameter).min() + np.sqrt(log)
        return {REGRET: spread * scale * np.sqrt(T) + (4 / 3 * log + 2) * scale, **violation}

    @property
    def hypotheses(self) -> tuple[str, ...]:
        words = "that the first gradient other than 0 is at least G_f/√T long (for the bounds of the violation only)"
        return (words,) if self.factors else ()

    def expert_regret(self, diameter: float) -> FloatArray:
        """Return (½ + P/Δ)/c_k + c_k, the regret of experts with steps c_kΔ/√S_t in units of Δ√S_T."""
        factors = np.asarray(self.factors)
        return np.asarray((0.5 + self.path / diameter) / factors + factors)

    def theorem_after(self, problem: Problem, state: HedgedCutsState) -> Mapping[str, FloatArray]:
        T = as_numbers(state.round) - 1
        found = self._mixed_experts(problem, T, state) if self.factors else self._strongly_convex(problem, T)
        L, limited = bounds.joint_bound(problem, self.constraints), as_numbers(state.limited)
        others: Mapping[str, FloatArray] = {}
        if self.known is not None:
            first = max(float(np.max(problem.constraint.values(self._start[0]))), 0.0)
            others = bounds.fixed_bounds(problem, L, first, np.asarray(self.bank), TOLERANCE, T, limited)
        elif self.remembered:
            rows, slack = as_numbers(count_rows(state.half_spaces)) + limited, EMPTY * TOLERANCE
            others = bounds.memory_bounds(problem, self.remembered, rows, slack, T)
        return {measure: np.minimum(bound, others.get(measure, bound)) for measure, bound in found.items()}

    def _mixed_experts(self, problem: Problem, T: FloatArray, state: HedgedCutsState) -> Mapping[str, FloatArray]:
        """Return the bounds (a) and (b)."""
        c, memory = problem.constants, as_numbers(state.memory)
        S, log, sigma = as_numbers(state.square_sum), as_numbers(state.log_sum), np.asarray(self.sigma)
        # For every k the regret is the loss to expert k plus the regret of expert k.
        own = self.expert_regret(c.diameter) * c.diameter * np.sqrt(S)[..., None]
        meta = np.broadcast_to(self.meta.regret(memory), (*S.shape, self.experts)) if self.experts > 1 else 0 * own
        regret = np.min(own + meta[..., : len(self.factors)], axis=-1)
        if self.curved and self.path == 0 and isinstance(self.meta, AdaptMLProd):
            # −(σ/2)‖x_t − x^k_t‖² ≤ −(σ/(2G²))⟨n_t, x_t − x^k_t⟩² offsets the root in the loss to it.
            offset = sigma / (2 * c.loss_gradient_bound**2) * self.meta.squares(memory)[..., -1]
            alone = self._decay_regret(c.loss_gradient_bound + sigma * c.diameter, T)
            regret = np.minimum(regret, alone + meta[..., -1] - offset)
        return {REGRET: regret, **self._violation(problem, self._travel(problem, T, log), T)}

    def _travel(self, problem: Problem, T: FloatArray, log_sum: FloatArray) -> bounds.Travel:
        """Return the travel of all experts, where Σ ‖n_t‖²/S_t is at most `log_sum`."""
        travel = bounds.travel_of_factors(np.asarray(self.factors), problem.constants.diameter, T, log_sum)
        return travel + bounds.travel_of_decay(problem.constants, np.asarray(self.sigma), T) if self.curved else travel

    def _strongly_convex(self, problem: Problem, T: FloatArray) -> Mapping[str, FloatArray]:
        """Return the bounds of the expert with steps 1/(σt) alone."""
        travel = bounds.travel_of_decay(problem.constants, np.asarray(self.sigma), T)
        regret = self._decay_regret(problem.constants.loss_gradient_bound, T)
        return {REGRET: regret, **self._violation(problem, travel, T)}

    def _decay_regret(self, gradient_bound: Hyper, T: FloatArray) -> FloatArray:
        """Return the regret of steps 1/(σt) on σ-strongly convex losses."""
        return np.asarray(
            np.asarray(gradient_bound) ** 2 / (2 * np.asarray(self.sigma)) * (1 + np.log(np.maximum(T, 1)))
        )

    def _violation(self, problem: Problem, travel: bounds.Travel, T: FloatArray) -> Mapping[str, FloatArray]:
        L, shared = bounds.joint_bound(problem, self.constraints), self.curved and len(self.factors) > 0
        bank = self.totals_kept > 0
        return bounds.violation_bounds(problem, L, self.experts, travel, T, path=self.path, shared=shared, bank=bank)

    @cached_property
    def _start(self) -> tuple[FloatArray, ...]:
        """The centre of B, cut until it satisfies a known g. In a tuple, as an array field is one value per learner."""
        x = np.asarray(self.enclosing_set.centre, dtype=np.float64)
        return (x if self.known is None else cut_point(self.known, self.enclosing_set, x, START_CUTS),)

    @cached_property
    def _cuts_each_point(self) -> bool:
        """True if several known g_j are affine and not relaxed, so that each expert is cut by their values there."""
        return self.known is not None and self.known.is_affine and self.constraints > 1 and not self.totals_kept

    @cached_property
    def totals_kept(self) -> int:
        """The number of sums Σ g_j in the state: those that `bank` needs."""
        return self.constraints if np.any(np.asarray(self.bank) > 0) else 0

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> HedgedCutsState:
        x = self.broadcast(self._start[0], batch_shape, xp, dtype)
        shape, K = tuple(x.shape[:-1]), self.experts
        experts = xp.broadcast_to(x[..., None, :], (*shape, K, x.shape[-1]))
        zero = xp.zeros(shape, dtype=x.dtype)
        memory = self.meta.start(xp.zeros((*shape, K), dtype=x.dtype))
        totals = xp.zeros((*shape, self.totals_kept), dtype=x.dtype)
        rows = xp.zeros((*shape, self.remembered, x.shape[-1] + 1), dtype=x.dtype)
        return HedgedCutsState(xp.asarray(1, dtype=xp.int64), x, experts, memory, zero, zero, totals, zero, rows)

    def update(self, state: HedgedCutsState, feedback: Feedback) -> HedgedCutsState:
        x, over = state.x, self.enclosing_set
        gradient = over.tangent(feedback.loss_gradient)
        square = dots(gradient, gradient)
        square_sum = state.square_sum + square
        divisor = clamp_min(square_sum, least_divisor(square_sum) ** 2)  # while S is 0, so is the gradient: any step
        totals = totals_after(state.totals, feedback)
        away, memory, weights = experts_first(state.experts) - x, state.memory, None
        if self.experts > 1:
            losses = dots(away, gradient)
            memory = self.meta.update(memory, losses if losses.ndim == 1 else namespace(x).moveaxis(losses, 0, -1))
            weights = self.meta.weights(memory)
        y = x + self._stepped(away, state.round, divisor, gradient)
        y, limited, rows = self._cut(y, weights, totals, state, feedback)
        experts = experts_last(y)
        return HedgedCutsState(
            round=state.round + 1,
            x=mixture(weights, experts),
            experts=experts,
            memory=memory,
            square_sum=square_sum,
            log_sum=state.log_sum + square / divisor,
            totals=totals,
            limited=limited,
            half_spaces=rows,
        )

    def _cut(
        self, y: Array, weights: Array | None, totals: Array, state: HedgedCutsState, feedback: Feedback
    ) -> tuple[Array, Array, Array]:
        """Return the experts after the cuts of the round, and the fields `limited` and `half_spaces` of the state."""
        x, over, rows, relax = state.x, self.enclosing_set, state.half_spaces, self.relaxation(totals)
        tolerance = TOLERANCE * over.diameter / as_float(state.round, x) ** 0.5
        if self.known is not None:
            y, unfinished = cut_by_known(
                y, x, feedback, self.known, weights, relax, tolerance, over, self.cuts, each_point=self._cuts_each_point
            )
            return y, state.limited + as_float(unfinished, y), rows
        y = cut_by_latest(y, x, feedback, self.constraints, relax, over, self.cuts)
        if not self.remembered:
            return y, state.limited, rows
        y, rows, lost = cut_by_memory(y, rows, x, feedback, weights, tolerance, over)
        return y, state.limited + lost, rows

    def relaxation(self, totals: Array) -> Relaxation:
        """Return the map from g_j to g_j − β[−Σ g_j]₊ with these sums."""
        return partial(relaxed, totals=totals, bank=self.bank)

    def move(self, experts: Array, t: Array, square_sum: Array, x: Array, totals: Array, feedback: Feedback) -> Array:
        """Return the experts (..., K, d) after round t, for learners that mix them with others."""
        gradient = self.enclosing_set.tangent(feedback.loss_gradient)
        away = self._stepped(experts_first(experts) - x, t, square_sum, gradient)
        relax, over = self.relaxation(totals), self.enclosing_set
        return experts_last(cut_by_latest(x + away, x, feedback, self.constraints, relax, over, self.cuts))

    def _stepped(self, away: Array, t: Array, square_sum: Array, gradient: Array) -> Array:
        """Return the experts' positions relative to x after a step of each, from those before it, experts first."""
        xp = namespace(gradient)
        factors, curved = (like(row, gradient) for row in self._rows)
        if axes := square_sum.ndim:
            factors, curved = (xp.reshape(row, (-1, *(1,) * axes)) for row in (factors, curved))
        steps = factors * (self.enclosing_set.diameter / xp.sqrt(square_sum))
        if self.curved:
            share = curved / as_float(t, gradient)  # the learners of a fleet may be in different rounds
            steps = steps + share / like(self.sigma, gradient)
            away = away * as_column(1 - share) if self.factors else away  # its gradient is n + σ(x^k − x)
        return away - as_column(steps) * gradient

    def report(self, state: HedgedCutsState) -> dict[str, Array]:
        weights = self.meta.weights(state.memory)
        return {f"weight_{k}": weights[..., k] for k in range(self.experts)}
