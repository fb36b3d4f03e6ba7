"""Hedged cuts: several step sizes share one gradient and one cut (ours; relatives are named in `docs/hedged_cuts.md`).

Experts k = 0 … K−1 with steps c_kΔ/√S_t, c_k = ½·4^{−k}, all at one start; x_t = Σ_k p_{t,k} x^k_t is played. With
n_t = ∇f_t(x_t), S_t = Σ_{s≤t} ‖n_s‖² and the linearised constraints ĝ_j(z) = g_{t,j}(x_t) + ⟨∇g_{t,j}(x_t), z − x_t⟩,

    y = x^k_t − (c_kΔ/√S_t) n_t                                                       (no step while S_t = 0)
    `cuts` times:  v_j = [ĝ_j(y)]₊,  u = Σ_j v_j ∇ĝ_j,  y ← Π_B( y − (‖v‖²/‖u‖²) u );             x^k_{t+1} = y
    L_k ← L_k + ⟨n_t, x^k_t − x_t⟩,   p_{t+1} from L by AdaHedge (`learners.meta`)

A g that is fixed is known before round 1, and is looked at: the start is the centre of B cut until it keeps g, and
before every second cut ĝ is taken at the experts' mixture Σ_k p_{t+1,k} y^k instead of x_t (for affine g the same).
Each cut projects onto a half-space that holds every x* with g_t(x*) ≤ 0, because a linearisation lies below g and
v ≥ 0: the squared distance to x* falls by d² ≥ ‖v‖²/L². ĝ is affine, so the experts' mixture inherits the cut.

Needs: value and one subgradient of f_t and of each g_{t,j} at x_t, and of a fixed g at the mixture (`look=False`:
not); no horizon, no bound on gradients, no multiplier, no projection onto {g ≤ 0}. Of the constants it uses Δ alone.
Guarantees, against x* with g_t(x*) ≤ 0 in every round, g_t fixed or not (proof: `docs/hedged_cuts.md`), with
ℓ_T = Σ_t ‖n_t‖²/S_t ≤ 1 + ln(S_T/S_1), ‖Σ_j v_j ∇g_j‖ ≤ L‖v‖, Γ_T AdaHedge's sum of mixability gaps:

    Σ f_t(x_t) − f_t(x*)  ≤ 1.5 Δ√S_T + 2Γ_T ≤ (1.5 + √ln K) Δ√S_T + (4/3 ln K + 2) Δ max‖n_t‖
    Σ [g_t(x_t)]₊         ≤ LΔ √( T (K + 2Σc √(Tℓ_T) + Σc² ℓ_T) ) + max c G_gΔ √(Tℓ_T)           = Õ(T^{3/4})
    Σ [g_t(x_t)]₊²        ≤ 2L²Δ² (K + 2Σc √(Tℓ_T) + Σc² ℓ_T) + 2 max c² G_g²Δ² ℓ_T              = Õ(√T)

Against u_t that move, each feasible in its round, with a path Σ‖u_t − u_{t−1}‖ ≤ P: 1.5 becomes the least of
(½ + P/Δ)/c_k + c_k and K becomes K(1 + 2P/Δ); `path` adds experts with longer steps: regret of order √(T(1 + P)).

`bank` β > 0 relaxes the cut of constraint j by β[−Σ_{s≤t} g_{s,j}(x_s)]₊, so that slack rounds pay for others: the
regret line stays, the second line holds for the **long-term** violation, and the hard violation has no bound.
Where the losses are declared σ-strongly convex one expert more has y = x^k_t − (n_t + σ(x^k_t − x_t))/(σt), and the
meta rule is Adapt-ML-Prod, which loses C√V + C' to that expert, V = Σ⟨n_t, x^k_t − x_t⟩². Besides the first line (with
another meta term) the regret is at most ((G_f + σΔ)²/(2σ))(1 + ln T) + C√V + C' − σV/(2G_f²) = O(log T), where C and C'
grow as ln ln T; its moves are added to the lines of the violation, which stay those of the other experts. That expert
alone: regret (G_f²/(2σ))(1 + ln T), Σ [g]₊² = O(ln T).
Not promised: anything against x* that is feasible on average only (a test shows linear regret); for `bank` a regret
against such an x* is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import (
    ROUNDING,
    Array,
    FloatArray,
    all_below_if_concrete,
    as_column,
    as_float,
    clamp_to_divisor,
    dot,
    dots,
    expand_last,
    least_divisor,
    like,
    namespace,
    times_table,
    to_numpy,
)
from longterm._validate import Hyper
from longterm.constraints import Constraint
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.feedback_check import OnBrokenBound
from longterm.learners.meta import AdaHedge, AdaptMLProd, Meta, MetaName, rule_called
from longterm.learners.needs import Need, StepKind, require_strong_convexity
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import HARD, LONG_TERM, REGRET, SQUARED, NoTheoremError, horizons_of

ONE = validate.frozen(np.ones(1))
"""The weight of a single constraint."""
AT_FIRST = 200
"""Cuts of the start by a g that is known, at most."""


_Onto = Callable[[Array, int], Array | None]
"""From points (K, ..., d) and the number of the cut to where it takes them; None where it would move none of them."""


class HedgedCutsState(NamedTuple):
    """(t, x_t, x^k_t, what the meta rule remembers, S_{t−1}, Σ‖n_s‖²/S_s, Σ g_j for `bank`)."""

    round: Array
    x: Array
    experts: Array
    """(..., K, d)."""
    memory: Array
    """(..., n)."""
    square_sum: Array
    log_sum: Array
    totals: Array
    """(..., m) with `bank`, else (..., 0)."""


@dataclass(frozen=True, eq=False)
class HedgedCuts(Learner[HedgedCutsState]):
    """Experts with steps `factors` · Δ/√S_t that share one gradient and one cut.

    Parameters
    ----------
    enclosing_set : Set
        B.
    factors : tuple of float
        c_k, one expert each.
    constraints : int
        m: 1 cuts with the maximum's subgradient, more with all of them at once.
    cuts : int
        How often an expert is cut and put back into B each round, at least once.
    bank : float or array
        β: how much of the slack so far may be spent; 0 for the hard violation.
    meta : Meta
        How the experts are weighed.
    sigma : float or array
        σ > 0 adds an expert with steps 1/(σt), the last one.
    path : float
        P: `bound` speaks of the regret against points u_1, u_2, … with Σ‖u_t − u_{t−1}‖ ≤ P, each feasible in its
        round; 0 is the best fixed decision. The rule does not read it.
    known : Constraint, optional
        The fixed g, where it may be looked at before it is played: for the start, and for each cut after the first.

    Examples
    --------
    >>> from longterm import run
    >>> from longterm.learners import HedgedCuts
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.streams import RandomPermutations
    >>> problem = doubly_stochastic(4)
    >>> trace = run(problem, HedgedCuts.for_problem(problem), RandomPermutations(4), 1000)
    >>> round(float(trace.hard_violation[-1]), 2)
    0.16
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

    name: ClassVar[str] = "hedged_cuts"
    title: ClassVar[str] = "Hedged cuts"
    promises: ClassVar[Mapping[str, str]] = {
        REGRET: "O(√T), O(log T)",
        HARD: "O(T^(3/4)), O(√(T log T))",
        SQUARED: "O(√T), O(log T)",
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
        look: bool = True,
    ) -> HedgedCuts:
        """Hedged cuts: no constants, no horizon, no projection; the learner to start with.

        Parameters
        ----------
        problem : Problem
            Gives B, the number of constraints and, for strongly convex steps, σ.
        steps : {"universal", "convex", "strongly convex"}
            c_kΔ/√S_t, and 1/(σt) besides where σ > 0; only the first; only the second.
        experts : int
            K, with step factors ½, ⅛, 1/32, …
        cuts : int, optional
            Cuts a round; the theorem needs one. Left out, 5 for one fixed constraint, whose cuts are cheap, else 3.
        bank : float or array
            Let slack rounds pay for others: for the long-term violation. 0.1 is a good value.
        meta : {"adahedge", "adapt-ml-prod"}, optional
            How the experts are weighed; left out, by the second where one of them has steps 1/(σt).
        path : float
            The path Σ‖u_t − u_{t−1}‖ of moving comparators to be ready for: adds experts with longer steps.
        look : bool
            Whether a g that is fixed may be looked at where nobody has played yet; without, what is told is all that
            is known of it.
        """
        c, count, P = problem.constants, problem.constraint.count, validate.non_negative_scalar("path", path)
        fixed = not problem.constraint.parameters
        known = problem.constraint if look and fixed else None
        cuts = (5 if count == 1 and fixed else 3) if cuts is None else cuts
        if steps not in ("convex", "universal"):
            sigma = require_strong_convexity(problem, steps)
            return cls(problem.enclosing_set, (), count, cuts, bank, sigma=sigma, known=known)
        sigma = c.strong_convexity if steps == "universal" else 0.0
        longest = 0
        while P > 0 and 0.5 * 4.0**longest < np.sqrt(0.5 + P / c.diameter):
            longest += 1
        factors = tuple(0.5 * 4.0**k for k in range(longest, -validate.count("experts", experts), -1))
        rule = rule_called(meta or ("adapt-ml-prod" if sigma > 0 else "adahedge"))
        return cls(problem.enclosing_set, factors, count, cuts, bank, rule, sigma, P, known)

    @cached_property
    def curved(self) -> bool:
        """Whether one expert has steps 1/(σt)."""
        return bool(np.any(np.asarray(self.sigma) > 0))

    @cached_property
    def experts(self) -> int:
        """K, that one included."""
        return len(self.factors) + self.curved

    @cached_property  # not a field: those are one value per learner
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """c_k, 0 for steps 1/(σt); and 1 for those, else 0."""
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
            what = f"was made for {self.constraints} constraints, {problem.name!r} has {problem.constraint.count}"
            raise InputError("learner", what, "Build it from the problem: HedgedCuts.for_problem(problem)")
        if self.known is not None and not self._looks_at(problem.constraint):
            what = f"looks at another constraint than that of {problem.name!r}"
            raise InputError("learner", what, "Build it from the problem: HedgedCuts.for_problem(problem)")

    def _looks_at(self, constraint: Constraint) -> bool:
        """Whether that is the g that is known, as far as can be seen from the start and the centre of B."""
        if constraint is self.known or constraint.parameters:
            return constraint is self.known
        places = np.stack([self._start[0], np.asarray(self.enclosing_set.centre, dtype=np.float64)])
        ours, theirs = (np.asarray(g.values(places)) for g in (self.known, constraint))  # type: ignore[union-attr]
        return bool(np.allclose(ours, theirs, rtol=1e-9, atol=0.0))

    def require(self, feedback: Feedback, x: Array, t: int | None, on_broken_bound: OnBrokenBound) -> None:
        if self.constraints == 1:
            return
        for name in ("constraint_values", "pullback", "pushforward"):
            if getattr(feedback, name) is None:
                what = f"is missing, and {self.constraints} constraints are cut at once"
                raise InputError(name, what, "Give it, or tell the parameters of the round", round=t)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        T, c = horizons_of(rounds, self.batch_shape), problem.constants
        G = c.loss_gradient_bound
        if not self.factors:
            return self._strongly_convex(problem, T)
        if not isinstance(self.meta, AdaHedge):
            why = "Adapt-ML-Prod's theorem is about what happened"
            raise NoTheoremError(why, "Ask after the run: bound(problem, rounds, state=trace.state)")
        # Before the run S_T ≤ G²T is all that is known; the violation depends on Σ‖n‖²/S, so it is bounded afterwards.
        log = np.log(self.experts)
        spread = self.of_experts(c.diameter).min() + np.sqrt(log)
        return {REGRET: spread * c.diameter * G * np.sqrt(T) + (4 / 3 * log + 2) * c.diameter * G}

    def of_experts(self, diameter: float) -> FloatArray:
        """(½ + P/Δ)/c_k + c_k: what an expert with steps c_kΔ/√S_t loses to the comparator, in Δ√S_T."""
        factors = np.asarray(self.factors)
        return np.asarray((0.5 + self.path / diameter) / factors + factors)

    def theorem_after(self, problem: Problem, state: HedgedCutsState) -> Mapping[str, FloatArray]:
        c, T = problem.constants, _numbers(state.round) - 1
        if not self.factors:
            return self._strongly_convex(problem, T)
        S, log, memory = _numbers(state.square_sum), _numbers(state.log_sum), _numbers(state.memory)
        factors, wide = np.asarray(self.factors), c.diameter
        # Whatever k: the regret is what was lost to expert k, and what expert k lost.
        lost = self.of_experts(wide) * wide * np.sqrt(S)[..., None]
        to_them = np.broadcast_to(self.meta.regret(memory), (*S.shape, self.experts)) if self.experts > 1 else 0 * lost
        regret = np.min(lost + to_them[..., : len(factors)], axis=-1)
        L, reach = self._joint(problem), factors.max() * c.constraint_gradient_bound * wide
        cut = len(factors) + 2 * factors.sum() * np.sqrt(T * log) + (factors**2).sum() * log
        cut = cut + 2 * self.experts * self.path / wide
        moves, squares = reach * np.sqrt(T * log), reach**2 * log
        if self.curved:
            alone, away, away_squared = self._of_curved(problem, T, shared=True)
            if self.path == 0 and isinstance(self.meta, AdaptMLProd):
                # −(σ/2)‖x_t − x^k_t‖² ≤ −(σ/(2G²))⟨n_t, x_t − x^k_t⟩² pays for the root in what was lost to it.
                paid = np.asarray(self.sigma) / (2 * c.loss_gradient_bound**2) * self.meta.squares(memory)[..., -1]
                regret = np.minimum(regret, alone + to_them[..., -1] - paid)
            cut = cut + 1 + (2 * away + away_squared / wide) / wide
            moves = moves + c.constraint_gradient_bound * away
            squares = squares + c.constraint_gradient_bound**2 * away_squared
        violation = L * wide * np.sqrt(T * cut) + moves
        if np.any(np.asarray(self.bank) > 0):
            return {REGRET: regret, LONG_TERM: violation}
        return {REGRET: regret, HARD: violation, SQUARED: 2 * (L * wide) ** 2 * cut + 2 * squares}

    def _of_curved(self, problem: Problem, T: FloatArray, *, shared: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of steps 1/(σt): the regret on f_t, or on its quadratic lower bound at x_t; Σ η‖·‖ and Σ η²‖·‖² at most."""
        c, sigma = problem.constants, np.asarray(self.sigma)
        G = c.loss_gradient_bound + (sigma * c.diameter if shared else 0.0)
        harmonic = 1 + np.log(np.maximum(T, 1))
        return G**2 / (2 * sigma) * harmonic, G / sigma * harmonic, 2 * (G / sigma) ** 2 + 0 * harmonic

    def _strongly_convex(self, problem: Problem, T: FloatArray) -> Mapping[str, FloatArray]:
        c, L = problem.constants, self._joint(problem)
        regret, away, away_squared = self._of_curved(problem, T, shared=False)
        moved = c.diameter**2 + 2 * c.diameter * away + away_squared
        squared = 2 * L**2 * moved + 2 * c.constraint_gradient_bound**2 * away_squared
        if np.any(np.asarray(self.bank) > 0):
            return {REGRET: regret, LONG_TERM: np.sqrt(T * squared)}
        return {REGRET: regret, HARD: np.sqrt(T * squared), SQUARED: squared}

    def _joint(self, problem: Problem) -> float:
        """L with ‖Σ_j v_j ∇g_j‖ ≤ L‖v‖."""
        return problem.constants.constraint_gradient_bound if self.constraints == 1 else problem.joint_gradient_bound

    @cached_property
    def _looks(self) -> bool:
        """Whether g, known, has other linearisations elsewhere."""
        return self.known is not None and not self.known.is_affine

    @cached_property
    def _seen_everywhere(self) -> bool:
        """Whether g, known, is its own linearisation, and cut as it is."""
        return self.known is not None and self.known.is_affine and not self.totals_kept

    @cached_property
    def _start(self) -> tuple[FloatArray, ...]:
        """The centre of B, cut where it stands until it keeps g; in a tuple, as an array is one value per learner."""
        B, g = self.enclosing_set, self.known
        x = np.asarray(B.centre, dtype=np.float64)
        for _ in range(0 if g is None else AT_FIRST):
            excess, normal = g.squared_excess(x)  # type: ignore[union-attr]
            square = max(float(normal @ normal), np.finfo(np.float64).tiny)
            if excess**2 <= square * (ROUNDING * B.diameter) ** 2:
                break
            x = B.project(x - excess / square * normal)
        return (x,)

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> HedgedCutsState:
        x = self.initial_x(batch_shape, xp, dtype)
        x = xp.broadcast_to(xp.asarray(self._start[0], dtype=x.dtype), x.shape)
        shape, K = tuple(x.shape[:-1]), self.experts
        experts = xp.broadcast_to(x[..., None, :], (*shape, K, x.shape[-1]))
        zero = xp.zeros(shape, dtype=x.dtype)
        memory = self.meta.start(xp.zeros((*shape, K), dtype=x.dtype))
        totals = xp.zeros((*shape, self.totals_kept), dtype=x.dtype)
        return HedgedCutsState(xp.asarray(1, dtype=xp.int64), x, experts, memory, zero, zero, totals)

    @property
    def totals_kept(self) -> int:
        """How many sums Σ g_j the state keeps: those that `bank` needs."""
        return self.constraints if np.any(np.asarray(self.bank) > 0) else 0

    def ask(self, state: HedgedCutsState) -> Array:
        return state.x

    def update(self, state: HedgedCutsState, feedback: Feedback) -> HedgedCutsState:
        x, gradient = state.x, feedback.loss_gradient
        square = dots(gradient, gradient)
        square_sum = state.square_sum + square
        divisor = clamp_to_divisor(square_sum)  # while S is 0 so is the gradient, and any step will do
        totals = self.with_round(state.totals, feedback)
        ahead, memory, weights = _front(state.experts) - x, state.memory, None
        if self.experts > 1:
            losses = dots(ahead, gradient)
            memory = self.meta.update(memory, losses if losses.ndim == 1 else namespace(x).moveaxis(losses, 0, -1))
            weights = self.meta.weights(memory)
        ahead = self._stepped(ahead, state.round, divisor, gradient)
        y = self._cut(ahead, x, totals, feedback, weights, look=self._looks)
        return HedgedCutsState(
            round=state.round + 1,
            x=_mixed(weights, y),
            experts=y,
            memory=memory,
            square_sum=square_sum,
            log_sum=state.log_sum + square / divisor,
            totals=totals,
        )

    def moved(self, experts: Array, t: Array, square_sum: Array, x: Array, totals: Array, feedback: Feedback) -> Array:
        """The experts (..., K, d) after round t, whoever else had a part in x: for learners with other experts, too."""
        ahead = self._stepped(_front(experts) - x, t, square_sum, feedback.loss_gradient)
        return self._cut(ahead, x, totals, feedback)

    def _stepped(self, ahead: Array, t: Array, square_sum: Array, gradient: Array) -> Array:
        """From x + `ahead`, experts first, a step of each; again as seen from x."""
        xp = namespace(gradient)
        factors, curved = self._rows
        factors = like(factors, gradient)
        if axes := square_sum.ndim:
            factors = xp.reshape(factors, (-1, *(1,) * axes))
        steps = factors * (self.enclosing_set.diameter / xp.sqrt(square_sum))
        if self.curved:
            curved = like(curved, gradient)
            curved = xp.reshape(curved, (-1, *(1,) * axes)) if axes else curved
            share = curved / as_float(t, gradient)  # learners of a fleet have rounds of their own
            steps = steps + share / like(self.sigma, gradient)
            ahead = ahead * as_column(1 - share) if self.factors else ahead  # its gradient is n + σ(x^k − x)
        return ahead - as_column(steps) * gradient

    def with_round(self, totals: Array, feedback: Feedback) -> Array:
        """Σ g_j with this round, where they are kept."""
        if not totals.shape[-1]:
            return totals
        return totals + (feedback.constraint[..., None] if self.constraints == 1 else feedback.constraint_values)

    def relaxed(self, values: Array, totals: Array) -> Array:
        """g_j − β[−Σ g_j]₊, which is what is cut, from g_j of shape (..., m)."""
        if not totals.shape[-1]:
            return values
        saved = namespace(values).maximum(-totals, 0.0)
        return values - as_column(like(self.bank, values) + 0 * values[..., 0]) * saved

    def _cut(
        self, ahead: Array, x: Array, totals: Array, told: Feedback, weights: Array = None, *, look: bool = False
    ) -> Array:
        """From x + `ahead`, `cuts` times onto the half-space that the linearised constraints leave, and back into B.

        They are linearised at x; where they may be looked at, before every second cut at the experts' mixture.
        """
        project, half_space = self.enclosing_set.project, self._half_space if self.constraints == 1 else self._joint_cut
        y, onto = x + ahead, half_space(x, totals, told)
        for cut in range(self.cuts):
            again = look and cut % 2 == 1
            if again:
                x = _mixed(weights, _back(y))
                onto = half_space(x, totals, self._seen(x))
            there = onto(y, cut if look == again else 0)
            if there is None:
                break  # as far as it would move them is rounding, and as far as any after it
            y = project(there)
        return _back(y)

    def _half_space(self, x: Array, totals: Array, told: Feedback) -> _Onto:
        """{z : g + ⟨∇g, z − x⟩ ≤ 0} of one constraint: a point's way to it is its excess times ∇g/‖∇g‖²."""
        xp, normal, value = namespace(x), told.constraint_gradient, told.constraint
        if totals.shape[-1]:
            value = self.relaxed(value[..., None], totals)[..., 0]
        offset = value - dots(normal, x)
        square = clamp_to_divisor(dots(normal, normal))
        way, nothing = normal / expand_last(square), ROUNDING * self.enclosing_set.diameter * xp.sqrt(square)

        def onto(y: Array, cut: int) -> Array | None:
            excess = offset + dots(y, normal)
            if cut and all_below_if_concrete(excess, nothing):
                return None
            return y - as_column(xp.maximum(excess, 0.0)) * way

        return onto

    def _joint_cut(self, x: Array, totals: Array, told: Feedback) -> _Onto:
        """{z : ⟨v, ĝ(z)⟩ ≤ 0} with v = [ĝ(y)]₊, of several constraints: a half-space for each point y."""
        xp, least = namespace(x), least_divisor(x)
        values, pull, push = self.relaxed(told.constraint_values, totals), told.pullback, told.pushforward

        def excess_along(y: Array) -> tuple[Array, Array]:
            if self._seen_everywhere:
                return self.known.squared_excess(y)  # type: ignore[union-attr]
            broken = xp.maximum(values + push(y - x), 0.0)  # type: ignore[misc]
            return dot(broken, broken), pull(broken)  # type: ignore[misc]

        def onto(y: Array, cut: int) -> Array | None:
            excess, normal = excess_along(y)
            share = excess / xp.maximum(dot(normal, normal), least)
            if cut == 1 and all_below_if_concrete(share * excess, (ROUNDING * self.enclosing_set.diameter) ** 2):
                return None
            return y - as_column(share) * normal

        return onto

    def _seen(self, x: Array) -> Feedback:
        """What `_cut` reads of a feedback, at a point that is not played."""
        g: Any = self.known
        values, pullback, pushforward = g.linearised(x)
        if self.constraints == 1:
            return Feedback(None, values[..., 0], pullback(like(ONE, x)))
        return Feedback(None, None, None, None, values, pullback, pushforward)

    def report(self, state: HedgedCutsState) -> dict[str, Array]:
        weights = self.meta.weights(state.memory)
        return {f"weight_{k}": weights[..., k] for k in range(self.experts)}


def _front(experts: Array) -> Array:
    """(..., K, d) as (K, ..., d): in front, where a constraint's maps broadcast over them."""
    return experts if experts.ndim == 2 else namespace(experts).moveaxis(experts, -2, 0)


def _back(experts: Array) -> Array:
    return experts if experts.ndim == 2 else namespace(experts).moveaxis(experts, 0, -2)


def _mixed(weights: Array | None, experts: Array) -> Array:
    """Σ_k p_k x^k of (..., K, d); one expert is its own mixture."""
    if weights is None:
        return experts[..., 0, :]
    return times_table(weights, experts) if weights.ndim == 1 else (weights[..., None, :] @ experts)[..., 0, :]


def _numbers(value: Array) -> FloatArray:
    return np.asarray(to_numpy(value), dtype=np.float64)
