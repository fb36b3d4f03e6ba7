"""Polyak feasibility steps (Hutchinson, Alizadeh 2025): feasible in every round without projecting onto X.

A gradient step, then the nearest point of the half-space in which the tangent of g at x_t says g + ϱ ≤ 0, then Π_B:

    y       = x_t − η ∇f_t(x_t)
    x_{t+1} = Π_B( y − ( [g(x_t) + ⟨s_t, y − x_t⟩ + ϱ]₊ / ‖s_t‖² ) s_t ),      s_t ∈ ∂g(x_t),      x_1 = x̂

with g = max_j g_j and a Slater point x̂ in B, g(x̂) ≤ −ε.

Steps: a margin 0 < ϱ < ε, the slope s_0 = (ε − ϱ)/Δ, at most G_g, and η = (1 − √(1 − s_0²/G_g²)) ϱ/(G_g G_f).
`for_problem` takes the ϱ that minimises the bound. The authors take 1/√T, which has no unit. We know the article by its
abstract and its authors' code. The proof is ours (`docs/proofs/after_the_paper.md`).
Needs: a fixed constraint, the Slater point itself, a horizon (for ϱ), one value and subgradient of f_t and g at x_t.
Guarantees: **g(x_t) ≤ 0 in every round**, up to rounding, and O(√T) regret, against adversarial losses.
Proof: `docs/proofs/after_the_paper.md`.
Not promised: small constants. η has (ε/(ΔG_g))² in it: a thin X means small steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, FloatArray, as_column, dot, like, namespace
from longterm._base.validate import Hyper
from longterm.errors import InputError
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need, require_needs
from longterm.learners.interface.slater_for import slater_point_for
from longterm.learners.interface.states import PointState
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.problems.sets import Set
from longterm.problems.slater import SlaterPoint, require_slack
from longterm.theory.assumptions import Assumption
from longterm.theory.bounds import HARD, REGRET, BoundValues, NoTheoremError, Rounds, horizons_of


@dataclass(frozen=True, eq=False)
class PolyakFeasibility(Learner[PointState]):
    """Never violate a fixed limit, without a projection onto the feasible points.

    A gradient step, then a Polyak step towards {g ≤ −ϱ}.

    Parameters
    ----------
    enclosing_set : Set
        The ball, box or other set that every decision stays in (B in the formulas).
    slater : SlaterPoint
        A strictly feasible point, which is the first decision, and its slack ε.
    eta, margin : float or array
        The step size η, and the margin ϱ that decisions keep from the limit.
    made_for : Constants, optional
        The problem's constants that η was made for.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import streams
    >>> problem = lt.problems.two_dimensional()  # g = x₁ − ¼
    >>> learner = lt.learners.PolyakFeasibility.for_problem(problem, horizon=2000)
    >>> trace = lt.run(problem, learner, streams.Replay([np.tile([0.8, 0.6], (2000, 1))]))
    >>> bool(trace.largest_violation[-1] <= 0), trace.state.x.round(2)
    (True, array([0.18, 0.6 ]))
    """

    enclosing_set: Set
    slater: SlaterPoint
    eta: Hyper
    margin: Hyper
    made_for: Constants | None = None

    name = "polyak_feasibility"
    title = "Polyak feasibility"
    promises = {REGRET: "O(T^1/2)", HARD: "0"}
    needs = frozenset({Need.FIXED_CONSTRAINT, Need.SLATER_POINT, Need.HORIZON})

    def __post_init__(self) -> None:
        eta, margin = validate.positive("eta", self.eta), validate.positive("margin", self.margin)
        if self.slater.x is None:
            raise InputError(
                "slater", "has no point x, which is the first decision", "Give what find_slater_point returns"
            )
        if np.any(np.asarray(margin) >= self.slater.epsilon):
            what = f"{self.margin!r} is not below ε = {self.slater.epsilon:.6g}: no point is known with g ≤ −ϱ"
            raise InputError("margin", what, "Give a smaller ϱ, or a Slater point with more slack")
        validate.set_frozen(self, eta=eta, margin=margin)

    @classmethod
    def for_problem(
        cls, problem: Problem, *, horizon: int, margin: Hyper | None = None, slater: SlaterPoint | None = None
    ) -> PolyakFeasibility:
        """Stay feasible in every round without projecting, for a set with an interior.

        Parameters
        ----------
        margin : float or array, optional
            ϱ. Default: the one with the smallest bound on the regret.
        slater : SlaterPoint, optional
            A Slater point with its x. Default: one is searched for.
        """
        require_needs(cls.__name__, cls.needs, problem)
        T, c, point = validate.count("horizon", horizon), problem.constants, slater_point_for(problem, slater)
        validate.positive_scalar("loss_gradient_bound", c.loss_gradient_bound)
        rho = best_margin(c, point.epsilon, T) if margin is None else validate.positive("margin", margin)
        return cls(problem.enclosing_set, point, safe_step(c, point.epsilon, np.asarray(rho)), rho, c)

    def require_playable(self, problem: Problem) -> None:
        super().require_playable(problem)
        require_slack(self.slater, problem.constraint, problem.enclosing_set)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        """Return Σ f_t(x_t) − f_t(x*) ≤ Δ²/(2η) + ηG_f²T/2 + (ϱ/ε)FT, and no violation in any round."""
        c, epsilon = problem.constants, self.slater.epsilon
        if np.any(np.asarray(self.eta) > np.asarray(safe_step(c, epsilon, np.asarray(self.margin))) * (1 + 1e-9)):
            what = f"its η = {self.eta} is too large for rounds that are all feasible"
            raise NoTheoremError(what, "Use PolyakFeasibility.for_problem, or a smaller η")
        T = horizons_of(rounds, self.batch_shape)
        regret = feasible_regret(c, epsilon, self.eta, self.margin, T)
        return {REGRET: regret, HARD: np.zeros_like(regret)}

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        if self.made_for is None:
            return ()
        safe = safe_step(self.made_for, self.slater.epsilon, np.asarray(self.margin))
        return (Assumption.worst("η ≤ (1 − √(1 − s_0²/G_g²)) ϱ/(G_g G_f)", self.eta, safe, "Take a smaller η"),)

    def initial_x(self, batch_shape: tuple[int, ...], xp: Any, dtype: Any) -> Array:
        assert self.slater.x is not None  # checked when it was made
        return self.broadcast(self.slater.x, batch_shape, xp, dtype)

    def update(self, state: PointState, feedback: Feedback) -> PointState:
        xp, slope = namespace(state.x), feedback.constraint_gradient
        step = -as_column(like(np.asarray(self.eta), state.x)) * feedback.loss_gradient
        excess = xp.maximum(feedback.constraint + dot(slope, step) + like(self.margin, state.x), 0.0)
        square = dot(slope, slope)  # 0 only at a minimum of g, where the excess is 0 too
        back = excess / xp.where(square > 0, square, 1.0)
        return PointState(state.round + 1, self.enclosing_set.project(state.x + step - as_column(back) * slope))

    def report(self, state: PointState) -> dict[str, Array]:
        return {"eta": like(self.eta, state.x), "margin": like(self.margin, state.x)}


def safe_step(c: Constants, epsilon: float, margin: FloatArray) -> Hyper:
    """Return the largest η for which every round is proved feasible."""
    share = np.minimum((epsilon - margin) / (c.diameter * c.constraint_gradient_bound), 1.0)
    contraction = share**2 / (1 + np.sqrt(1 - share**2))  # 1 − √(1 − s²) without the loss of digits for small s
    return validate.positive("eta", contraction * margin / (c.constraint_gradient_bound * c.loss_gradient_bound))


def feasible_regret(c: Constants, epsilon: float, eta: Hyper, margin: Hyper, T: FloatArray) -> FloatArray:
    """Return Δ²/(2η) + ηG_f²T/2 + (ϱ/ε)FT."""
    step = np.asarray(eta)
    drift = c.diameter**2 / (2 * step) + step * c.loss_gradient_bound**2 * T / 2
    return np.asarray(drift + np.asarray(margin) / epsilon * c.loss_range * T)


def best_margin(c: Constants, epsilon: float, rounds: int) -> float:
    """Return the ϱ in (0, ε) with the smallest bound after `rounds` rounds."""
    from scipy.optimize import minimize_scalar  # imported here to keep `import longterm` fast

    def bound(log_share: float) -> float:
        margin = np.asarray(epsilon * np.exp(log_share))
        return float(feasible_regret(c, epsilon, safe_step(c, epsilon, margin), margin, np.asarray(float(rounds))))

    best = minimize_scalar(bound, bounds=(np.log(1e-9), np.log(0.9)), method="bounded")
    return float(epsilon * np.exp(best.x))
