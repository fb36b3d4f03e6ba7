"""A-OGD without violation (Jenatton, Huang, Archambeau 2016, Corollary 1, made explicit): A-OGD on g + γ.

The margin γ is chosen so that all the violation that Lemma 5 allows A-OGD on g + γ is at most γT; then Σ g(x_t) ≤ 0.
`longterm.theory.slater` has the formulas. `NoViolationAOGD` knows the horizon, and has three ways to a γ:

    margin="exact sums"    the γ with γT = √(2 W (𝓡_γ + F T)), about three times smaller than
    margin="theorem"       γ = c_1 T^{−β/2}, from T ≥ c_0 on
    a number               a γ of your own: the theory is cautious, and on most streams far less will do

and there are two ways without a horizon: `DecayingMarginAOGD` plays γ_t = min(ε, c t^{−β/2}), and
`DoublingRestarts` starts `NoViolationAOGD` again in epochs of L_k = N 2^k rounds, with γ_k = min(ε, c L_k^{−β/2}).
Over every epoch with L_k ≥ c_0, Σ g(x_t) ≤ 0; so with N ≥ c_0 the whole sum is ≤ 0 whenever an epoch ends. (With
N = 1, as the trick is usually told, the sum over the first epochs is not made up for by any theorem.)
Needs: value and one subgradient of f_t and g_t at x_t, and a Slater point: x̂ in B with g(x̂) ≤ −ε, ε > γ (of every
g_t, where constraints change: the proof uses nothing else of them).
Guarantees: Lemma 5 on g + γ. The comparator (1 − γ/ε) x* + (γ/ε) x̂, which has g ≤ −γ by convexity, costs at most
(γ/ε) F T more than x* itself.

`Tightened` is any learner that is told g + γ_t instead of g, so that the margin uses up the violation it is allowed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, like, namespace
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.aogd import AOGD, AOGDState
from longterm.learners.base import Learner, MadeForHorizon
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need, StepKind
from longterm.problems import Problem
from longterm.theory.bounds import REGRET, SIGNED, NoTheoremError, horizons_of
from longterm.theory.conditions import step_sums, tabulate
from longterm.theory.facts import Assumption, Constants
from longterm.theory.paper import lemma_5
from longterm.theory.schedules import Schedule
from longterm.theory.slater import (
    SlaterPoint,
    allowed_violation,
    beta_of,
    coefficient,
    exact_margin,
    find_slater_point,
    needed_horizon,
    require_slack,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tightened(Learner[AOGDState]):
    """`learner`, one with a single multiplier for g = max_j g_j, is told g + γ_t; nothing else about it changes."""

    learner: Learner[AOGDState]
    slater: SlaterPoint
    checked: tuple[Assumption, ...] = ()
    """What was checked when the margin was chosen."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.SLATER_POINT})

    def __post_init__(self) -> None:
        validate.set_frozen(self, enclosing_set=self.learner.enclosing_set)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        self.learner.require_playable(problem)
        require_slack(self.slater, problem.constraint, problem.enclosing_set)

    @abstractmethod
    def margin(self, t: Array, x: Array) -> Array:
        """γ_t, in the library and dtype of x."""

    @property
    def gradient_bound(self) -> Hyper | None:
        return self.learner.gradient_bound

    @property
    def strong_convexity(self) -> Hyper:
        return self.learner.strong_convexity

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return self.learner.assumptions + self.checked

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> AOGDState:
        return self.learner.init(np.broadcast_shapes(batch_shape, self.batch_shape), xp=xp, dtype=dtype)

    def ask(self, state: AOGDState) -> Array:
        return self.learner.ask(state)

    def update(self, state: AOGDState, feedback: Feedback) -> AOGDState:
        tightened = feedback._replace(constraint=feedback.constraint + self.margin(state.round, state.x))
        return self.learner.update(state, tightened)

    def report(self, state: AOGDState) -> dict[str, Array]:
        return {**self.learner.report(state), "margin": self.margin(state.round, state.x)}


def slater_of(problem: Problem, given: SlaterPoint | None) -> SlaterPoint:
    """The user's Slater point, or the problem's; refused, in words, where there is none."""
    if given is None:
        return problem.slater_point or find_slater_point(problem.constraint, problem.enclosing_set)
    validate.require_at_most("slater", given.epsilon, problem.constants.constraint_bound, "|g| is never above D")
    require_slack(given, problem.constraint, problem.enclosing_set)
    return given


Margin = Literal["exact sums", "theorem"]


@dataclass(frozen=True, eq=False, kw_only=True)
class NoViolationAOGD(Tightened, MadeForHorizon[AOGDState]):
    """A-OGD on g + γ for a known horizon.

    Where the γ asked for is above ε it is ε, so that {g + γ ≤ 0} is not empty, and `assumptions` says so.

    Parameters
    ----------
    learner : AOGD
        What is told g + γ.
    slater : SlaterPoint
        ε, and where known x̂.
    gamma : float or array
        γ.
    horizon : float or array
        T, which γ was made for.
    coefficient : float or array, optional
        The c of γ = min(ε, c T^{−β/2}), where γ was made by it: then it can be made for another T.
    needed_horizon : float or array, optional
        c_0 of the theorem: from this horizon on c_1 T^{−β/2} ≤ ε. None where the schedule is not of Table 1.
    checked : tuple of Assumption
        What was checked when γ was chosen.

    Examples
    --------
    >>> from longterm.learners import NoViolationAOGD
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = NoViolationAOGD.for_problem(problem, horizon=50_000, margin="theorem")
    >>> round(learner.gamma, 3), round(learner.needed_horizon), learner.assumptions[0].holds
    (1.165, 40427, True)
    >>> learner = NoViolationAOGD.for_problem(problem, horizon=50_000)
    >>> round(learner.gamma, 3), bool(learner.bound(problem, 50_000)["signed_violation"] <= 1e-9)
    (0.325, True)
    """

    learner: AOGD
    gamma: Hyper
    horizon: Hyper = 1.0
    coefficient: Hyper | None = None
    needed_horizon: Hyper | None = None

    name: ClassVar[str] = "no_violation_aogd"
    title: ClassVar[str] = "No-violation A-OGD"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(T^max(β, 1−β/2))", SIGNED: "≤ 0 at T ≥ c_0"}
    needs: ClassVar[frozenset[Need]] = Tightened.needs | {Need.HORIZON}

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        horizon: int,
        margin: Margin | Hyper = "exact sums",
        steps: StepKind = "convex",
        beta: Hyper = 2 / 3,
        scale: Hyper = 1.0,
        slater: SlaterPoint | None = None,
        learner: AOGD | None = None,
    ) -> NoViolationAOGD:
        """A-OGD on g + γ: no violation in the long run, for a known horizon and a set with an interior.

        Parameters
        ----------
        problem : Problem
            What is to be played.
        horizon : int
            T, the number of rounds.
        margin : {"exact sums", "theorem"} or float
            How γ is found: from exact sums, for any schedule that passes C1–C3 and T² > A; as c_1 T^{−β/2}; or a γ
            of your own below ε, of which `assumptions` says whether it makes up for all that Lemma 5 allows.
        steps : {"convex", "strongly convex"}
            The column of Table 1.
        beta : float or array
            β in (0, 1).
        scale : float or array
            The share of γ that is taken; below 1 it is a hope, not a theorem.
        slater : SlaterPoint, optional
            Left out, one is looked for.
        learner : AOGD, optional
            An A-OGD of your own in the place of `steps` and `beta`.
        """
        rule, point = _rule(problem, learner, steps, beta), slater_of(problem, slater)
        T, constants, schedule = validate.dimension("horizon", horizon), problem.constants, rule.schedule
        try:
            least: Hyper | None = needed_horizon(schedule, constants, point.epsilon)
        except InputError:  # not of Table 1
            if isinstance(margin, str) and margin == "theorem":
                raise
            least = None
        common: dict[str, Any] = {"learner": rule, "slater": point, "horizon": float(T), "needed_horizon": least}
        if not isinstance(margin, str):
            gamma = _below_slack(margin, point)
            allowed = allowed_violation(schedule, constants, T, gamma)
            enough = Assumption.worst("what Lemma 5 allows ≤ γT", allowed, gamma * T, "Give a larger γ")
            return cls(**common, gamma=gamma, checked=(enough,))
        factor, full = validate.positive("scale", scale), _full_scale(scale)
        if margin == "exact sums":
            exact = exact_margin(schedule, constants, T)
            small = Assumption.worst("γ by exact sums ≤ ε", exact, point.epsilon, "Give a longer horizon")
            return cls(**common, gamma=np.minimum(factor * exact, point.epsilon), checked=(small, full))
        if margin != "theorem":
            raise InputError("margin", f"{margin!r} is not known", "Choose 'exact sums', 'theorem', or give a number")
        c = factor * coefficient(schedule, constants)
        gamma = np.minimum(c * T ** (-beta_of(schedule) / 2), point.epsilon)
        return cls(**common, gamma=gamma, coefficient=c, checked=(full,))

    @classmethod
    def for_epochs(cls, problem: Problem, **options: Any) -> NoViolationAOGD:
        return cls.for_problem(problem, horizon=1, **{"margin": "theorem", **options})

    def __post_init__(self) -> None:
        super().__post_init__()
        made = validate.positive("gamma", self.gamma), validate.positive("horizon", self.horizon)
        validate.set_frozen(self, gamma=made[0], horizon=made[1])

    @property
    def shortest_horizon(self) -> int | None:
        """⌈c_0⌉: the shortest horizon that the theorem covers."""
        return None if self.needed_horizon is None else int(np.ceil(np.max(self.needed_horizon)))

    def for_horizon(self, rounds: Array) -> NoViolationAOGD:
        if self.coefficient is None:
            what = "its γ was made for one horizon and cannot be made for another"
            raise InputError("learner", what, "Use NoViolationAOGD.for_problem(…, margin='theorem')")
        power = like(-beta_of(self.learner.schedule) / 2, rounds)
        gamma = namespace(rounds).minimum(like(self.coefficient, rounds) * rounds**power, self.slater.epsilon)
        return self.with_steps(horizon=rounds, gamma=gamma)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        assumptions = self.learner.assumptions
        if self.coefficient is not None and self.needed_horizon is not None:
            remedy = f"Give a horizon, or a first epoch, of at least {self.shortest_horizon}"
            assumptions = (*assumptions, Assumption.worst("c_0 ≤ T", self.needed_horizon, self.horizon, remedy))
        return assumptions + self.checked

    def margin(self, t: Array, x: Array) -> Array:
        return like(self.gamma, x) + 0 * namespace(x).astype(t, x.dtype)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Corollary 1, explicit, with exact sums, in every round of a run; `tightened_lemma_5`.

        The bound on Σ g(x_t) is at most 0 at the horizon if γ suffices.
        """
        _require_the_papers_penalty(self.learner)
        return tightened_lemma_5(self, self.learner.schedule, self.gamma, problem, rounds)


@dataclass(frozen=True, eq=False, kw_only=True)
class DecayingMarginAOGD(Tightened):
    """A-OGD on g + γ_t with γ_t = min(ε, c t^{−β/2}): no horizon, no restarts.

    c = c_1 is enough in the end, because Σ γ_t grows as c T^{1−β/2}/(1 − β/2); `bound` says from when on.

    Parameters
    ----------
    learner : AOGD
        What is told g + γ_t.
    slater : SlaterPoint
        ε, and where known x̂.
    coefficient : float or array
        c.
    checked : tuple of Assumption
        What was checked when c was chosen.

    Examples
    --------
    >>> from longterm.learners import DecayingMarginAOGD
    >>> from longterm.problems import two_dimensional
    >>> problem = two_dimensional()
    >>> learner = DecayingMarginAOGD.for_problem(problem, scale=0.1)
    >>> round(learner.coefficient, 3), round(learner.needed_horizon)
    (4.29, 40)
    """

    learner: AOGD
    coefficient: Hyper

    name: ClassVar[str] = "decaying_margin_aogd"
    title: ClassVar[str] = "Decaying-margin A-OGD"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(T^max(β, 1−β/2))", SIGNED: "≤ 0 from some T on"}

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        steps: StepKind = "convex",
        beta: Hyper = 2 / 3,
        scale: Hyper = 1.0,
        slater: SlaterPoint | None = None,
        learner: AOGD | None = None,
    ) -> DecayingMarginAOGD:
        """A-OGD on g + γ_t with a margin that falls: no violation in the long run, without a horizon.

        Parameters
        ----------
        problem : Problem
            What is to be played.
        steps : {"convex", "strongly convex"}
            The column of Table 1.
        beta : float or array
            β in (0, 1).
        scale : float or array
            c = scale · c_1; below 1 it is a hope, not a theorem.
        slater : SlaterPoint, optional
            Left out, one is looked for.
        learner : AOGD, optional
            An A-OGD of your own in the place of `steps` and `beta`.
        """
        rule = _rule(problem, learner, steps, beta)
        c = validate.positive("scale", scale) * coefficient(rule.schedule, problem.constants)
        return cls(learner=rule, slater=slater_of(problem, slater), coefficient=c, checked=(_full_scale(scale),))

    @property
    def needed_horizon(self) -> Hyper:
        """(c/ε)^{2/β}: until then γ_t is as large as ε allows."""
        return validate.number("c_0", (self.coefficient / self.slater.epsilon) ** (2 / beta_of(self.learner.schedule)))

    def margin(self, t: Array, x: Array) -> Array:
        xp, power = namespace(x), like(-beta_of(self.learner.schedule) / 2, x)
        decayed = like(self.coefficient, x) * xp.astype(t, x.dtype) ** power
        return xp.minimum(decayed, self.slater.epsilon)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Lemma 5 against a comparator that moves. The bound on Σ g falls below 0 as T grows: there it begins.

        u_t = (1 − γ_t/ε) x* + (γ_t/ε) x̂. With a_t = ‖x_t − u_t‖² the x-steps add up as before, plus

            Σ (‖x_{t+1} − u_{t+1}‖² − ‖x_{t+1} − u_t‖²)/(2η_t)
                ≤ Σ (Δ/η_t) ‖u_{t+1} − u_t‖ ≤ (Δ²/ε) Σ (γ_t − γ_{t+1})/η_t,

        because both u's and x_{t+1} are in B; and u_t costs (F/ε) Σ γ_t more than x*. D² S_μ becomes Σ μ_t (D + γ_t)².
        """
        _require_the_papers_penalty(self.learner)
        schedule, epsilon, c, axes = self.learner.schedule, self.slater.epsilon, problem.constants, self.batch_shape
        extra, gammas = [], []
        for steps in tabulate(schedule, int(rounds.max())):
            new = slice(0 if steps.rounds[0] == 1 else 1, None)
            t = steps.rounds[new].reshape(-1, *(1 for _ in axes))
            eta, mu = (_behind(step[new], 1, axes) for step in (steps.eta, steps.mu))
            gamma = self.margin(t, np.zeros(1))
            moved = gamma - self.margin(t + 1, np.zeros(1))
            wider = mu * ((c.constraint_bound + gamma) ** 2 - c.constraint_bound**2)
            extra.append(wider + c.diameter**2 / epsilon * moved / eta)
            gammas.append(gamma)
        sums, before = [np.cumsum(np.concatenate(parts), axis=0) for parts in (gammas, extra)], rounds - 1
        margins, more = sums[0][before], sums[1][before]
        regret = _behind(lemma_5(schedule, c, rounds).regret, rounds.ndim, axes) + more
        root = _allowed(schedule, c, rounds, regret, axes)
        return {REGRET: regret + c.loss_range / epsilon * margins, SIGNED: root - margins}


def tightened_lemma_5(
    learner: Tightened, schedule: Schedule, gamma: Hyper, problem: Problem, rounds: NDArray[np.int64]
) -> Mapping[str, FloatArray]:
    """Lemma 5 on g + γ with D + γ for D, against u = (1 − γ/ε) x* + (γ/ε) x̂.

    By convexity g(u) ≤ −γ, and Σ f_t(u) − f_t(x*) ≤ (γ/ε) F T. So, with 𝓡_γ and W of `theory.slater`,

        Σ f_t(x_t) − f_t(x*) ≤ 𝓡_γ + (γ/ε) F T,         Σ g(x_t) ≤ √(2 W (𝓡_γ + F T)) − γT.
    """
    c, axes = problem.constants, learner.batch_shape
    T, D, margin = horizons_of(rounds, axes), c.constraint_bound, np.asarray(gamma)
    sums, plain = step_sums(schedule, rounds, c.strong_convexity), lemma_5(schedule, c, rounds).regret
    lead = rounds.ndim
    regret = _behind(plain, lead, axes) + ((D + margin) ** 2 - D**2) * _behind(sums.mu, lead, axes)
    root = _allowed(schedule, c, rounds, regret, axes)
    return {REGRET: regret + margin / learner.slater.epsilon * c.loss_range * T, SIGNED: root - margin * T}


def _allowed(
    schedule: Schedule, c: Constants, rounds: NDArray[np.int64], regret: FloatArray, axes: tuple[int, ...]
) -> FloatArray:
    """√(2 W (𝓡 + F T))."""
    sums = step_sums(schedule, rounds, c.strong_convexity)
    weight = _behind(sums.theta + sums.delta_mu, rounds.ndim, axes)
    return np.asarray(np.sqrt(2 * weight * (regret + c.loss_range * horizons_of(rounds, axes))))


def _behind(values: FloatArray, lead: int, axes: tuple[int, ...]) -> FloatArray:
    """`values`, whose first `lead` axes are rounds, with the axes of a grid of learners behind them."""
    missing = len(axes) - (values.ndim - lead)
    return values.reshape(values.shape[:lead] + (1,) * missing + values.shape[lead:])


def _rule(problem: Problem, given: AOGD | None, steps: StepKind, beta: Hyper) -> AOGD:
    """The A-OGD to be told g + γ: the user's, or one of Table 1."""
    if given is not None and not given.penalty.is_the_papers:
        raise InputError("learner", "its penalty is not the paper's λ²/2", "No margin is known for another φ")
    return AOGD.for_problem(problem, steps=steps, beta=beta) if given is None else given


def _require_the_papers_penalty(learner: AOGD) -> None:
    if not learner.penalty.is_the_papers:
        raise NoTheoremError("the margins are those of the paper's penalty λ²/2")


def _below_slack(gamma: Hyper, point: SlaterPoint) -> Hyper:
    checked = validate.positive("margin", gamma)
    if np.any(np.asarray(checked) >= point.epsilon):
        raise InputError(
            "margin",
            f"{gamma!r} is not below ε = {point.epsilon:.6g}: no point is known with g ≤ −γ",
            "Give a smaller γ, or a Slater point with more slack",
        )
    return checked


def _full_scale(scale: Hyper) -> Assumption:
    return Assumption.worst("1 ≤ scale", 1.0, scale, "A smaller margin is a choice of yours; judge it by its runs")
