"""Movement that is limited, or that costs: gradient descent with one constant step, on the losses alone (ours).

    x_{t+1} = Π_B( x_t − η ∇f_t(x_t) ),     η = min( Δ/√(T(G_f² + 2βG_f)), S/(G_fT) )

A step moves by at most ηG_f, so Σ ‖x_{t+1} − x_t‖ ≤ S whatever happens, and with a price β of movement and u_t in B
with path P, which pays for its own movement:

    Σ f_t(x_t) − f_t(u_t) + β Σ ‖x_{t+1} − x_t‖ ≤ (Δ²/2 + ΔP)/η + ηG_f²T/2 + βηG_fT

which for P = 0 is Δ√(T(G_f² + 2βG_f)) where the budget S does not bind. `bound` gives the right side. A dead zone ν
moves by (1 − ν/‖∇f_t‖)₊ of the step only; it has no theorem here. The constraint plays no part: for constraints and
few changes, `PathBudget` with `block`.

A path budget: gradient descent on loss plus a price of the violation so far, for comparators that move (ours).

With T and P known, κ = √(Δ²/2 + ΔP), A = 2G_f √T κ and s = G_f/G_g, which brings the constraint to the loss's scale:

    Q_t = Q_{t−1} + s [g_t(x_t)]₊,     d_t = ∇f_t(x_t) + ½ e^{Q_t/(2A)} s ∇[g_t]₊(x_t),     S_t = S_{t−1} + ‖d_t‖²
    x_{t+1} = Π_B( x_t − κ d_t/√S_t )                                              x_1 = centre of B, Q_0 = S_0 = 0

Guarantees, against every u_1, u_2, … in B with g_t(u_t) ≤ 0 in its own round and a path Σ ‖u_t − u_{t−1}‖ ≤ P (no
common feasible point is asked for, and no Slater point), in any round t ≤ T:

    Σ f_s(x_s) − f_s(u_s) ≤ 1.5 A,         Σ [g_s(x_s)]₊ ≤ (2A/s) ln(4 + 2F t/A), if there is such a u

Proof. Steps that do not grow have Σ ⟨d_t, x_t − u_t⟩ ≤ (Δ²/2 + ΔP)/η_T + ½ Σ η_t‖d_t‖² ≤ 2κ√S_T, by
‖x − u'‖² − ‖x − u‖² ≤ 2Δ‖u − u'‖. Φ(Q) = A(e^{Q/(2A)} − 1) is convex, so Φ(Q_t) − Φ(Q_{t−1}) ≤ Φ'(Q_t) s[g_t(x_t)]₊,
and [g_t(u_t)]₊ = 0: Φ(Q_T) + Reg ≤ Σ ⟨d_t, x_t − u_t⟩. Q does not fall, so √S_T ≤ G_f√T (1 + Φ'(Q_T)), and with q =
Q_T/(2A): A(e^q − 1) + Reg ≤ A + ½A e^q, that is ½A e^q + Reg ≤ 2A. First e^q ≥ 1, then Reg ≥ −FT. ∎ P = 0 is the best
fixed decision.

**Few changes.** With `block` n the decision changes every n rounds only, at most ⌈T/n⌉ − 1 times: the sums of a block
are fed as one round, so T becomes ⌈T/n⌉ and G, F become nG, nF; u is constant within a block, and P is its path.
Movement costs: Σ ‖x_{t+1} − x_t‖ ≤ κ √(T(1 + ln(S_T/S_1))) whatever Q does, as the step is normalised.
If in some round nothing is feasible, there is no u, and the guarantees are void.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, as_column, clamp_to_divisor, dot, like, namespace, norm
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.learners.base import Learner
from longterm.learners.feedback import Feedback
from longterm.learners.needs import Need
from longterm.problems import Problem
from longterm.sets import Set
from longterm.theory.bounds import HARD, REGRET, NoTheoremError, horizons_of


class MovementBudgetState(NamedTuple):
    """(t, x_t, Σ ‖x_{s+1} − x_s‖ so far)."""

    round: Array
    x: Array
    moved: Array


@dataclass(frozen=True, eq=False)
class MovementBudget(Learner[MovementBudgetState]):
    """Gradient descent with the constant step `eta`, which never moves by more than its budget.

    Parameters
    ----------
    enclosing_set : Set
        B.
    eta : float or array
        The step.
    price : float
        β, of a unit of movement, for `bound`.
    path : float
        P, of the comparator, for `bound`.
    dead_zone : float or array
        ν: gradients no longer than this do not move it, longer ones count that much less.

    Examples
    --------
    >>> from longterm import run
    >>> from longterm.learners import MovementBudget
    >>> from longterm.problems import two_dimensional
    >>> from longterm.streams import NoisyTargets
    >>> problem = two_dimensional()
    >>> learner = MovementBudget.for_problem(problem, horizon=500, movement=2.0)
    >>> bool(run(problem, learner, NoisyTargets([0.3, 0.2], 0.2), 500).state.moved <= 2.0)
    True
    """

    enclosing_set: Set
    eta: Hyper
    price: float = 0.0
    path: float = 0.0
    dead_zone: Hyper = 0.0

    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON})
    name: ClassVar[str] = "movement_budget"
    title: ClassVar[str] = "Movement budget"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√T + T/S), movement within S"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "eta")
        validate.validate_fields(self, validate.non_negative_scalar, "price", "path")
        validate.validate_fields(self, validate.non_negative, "dead_zone")

    @classmethod
    def for_problem(
        cls,
        problem: Problem,
        *,
        horizon: int,
        movement: float | None = None,
        price: float = 0.0,
        path: float = 0.0,
        dead_zone: Hyper = 0.0,
    ) -> MovementBudget:
        """Gradient descent on the losses alone that moves by no more than a budget, or at a price.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ and G_f.
        horizon : int
            T.
        movement : float, optional
            S: Σ ‖x_{t+1} − x_t‖ stays within it; left out, there is no budget.
        price : float
            β, what a unit of movement costs.
        path : float
            P, how far the comparator moves.
        dead_zone : float or array
            ν, in units of the gradient.
        """
        c, T, beta = problem.constants, validate.count("horizon", horizon), validate.non_negative_scalar("price", price)
        G = c.loss_gradient_bound
        far = np.sqrt(c.diameter**2 + 2 * c.diameter * validate.non_negative_scalar("path", path))
        eta = far / np.sqrt(T * (G**2 + 2 * beta * G))
        if movement is not None:
            eta = min(eta, validate.positive_scalar("movement", movement) / (G * T))
        return cls(problem.enclosing_set, float(eta), beta, path, dead_zone)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        """Regret and β times the movement together."""
        if np.any(np.asarray(self.dead_zone) > 0):
            raise NoTheoremError("a dead zone has none here", "Leave it at 0")
        T, c, eta = horizons_of(rounds, self.batch_shape), problem.constants, np.asarray(self.eta)
        G = c.loss_gradient_bound
        start = c.diameter**2 / 2 + c.diameter * self.path
        return {REGRET: start / eta + eta * G**2 * T / 2 + self.price * eta * G * T}

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> MovementBudgetState:
        x = self.initial_x(batch_shape, xp, dtype)
        return MovementBudgetState(xp.asarray(1, dtype=xp.int64), x, xp.zeros(x.shape[:-1], dtype=x.dtype))

    def ask(self, state: MovementBudgetState) -> Array:
        return state.x

    def update(self, state: MovementBudgetState, feedback: Feedback) -> MovementBudgetState:
        x, xp, gradient = state.x, namespace(state.x), feedback.loss_gradient
        kept = xp.maximum(1 - like(self.dead_zone, x) / clamp_to_divisor(norm(gradient)), 0.0)
        following = self.enclosing_set.project(x - as_column(like(self.eta, x) * kept) * gradient)
        return MovementBudgetState(state.round + 1, following, state.moved + norm(following - x))

    def report(self, state: MovementBudgetState) -> dict[str, Array]:
        return {"moved": state.moved}


LARGEST_EXPONENT = 40.0
"""A run that no theorem covers must not overflow."""


class PathBudgetState(NamedTuple):
    """(t, x_t, Q, S, and of the block so far Σ ∇f, Σ [g]₊, Σ ∇[g]₊)."""

    round: Array
    x: Array
    violation: Array
    square_sum: Array
    loss_gradient: Array
    hard: Array
    hard_gradient: Array


@dataclass(frozen=True, eq=False)
class PathBudget(Learner[PathBudgetState]):
    """Gradient descent with an exponential price, made for comparators that move by `path` in all.

    Parameters
    ----------
    enclosing_set : Set
        B.
    reach : float or array
        κ = √(Δ²/2 + ΔP).
    threshold : float or array
        A; smaller ones make violations dear sooner.
    ratio : float or array
        s = G_f/G_g.
    horizon : int
        T.
    block : int
        The decision changes every so many rounds.
    path : float
        P, for `bound`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm import Problem, run
    >>> from longterm.constraints import Affine
    >>> from longterm.learners import PathBudget
    >>> from longterm.losses import Linear
    >>> from longterm.sets import Ball
    >>> from longterm.streams import Replay
    >>> problem = Problem(Ball(2), Linear(2), Affine([[0.0, 1.0]], [0.5]))
    >>> turning = Replay([np.repeat([[1.0, 0.0], [-1.0, 0.0]], 500, axis=0)])
    >>> for path in (0.0, 2.0):
    ...     learner = PathBudget.for_problem(problem, horizon=1000, path=path)
    ...     print(float(run(problem, learner, turning).cumulative_loss[-1].round(1)))
    -966.0
    -979.6
    """

    enclosing_set: Set
    reach: Hyper
    threshold: Hyper
    ratio: Hyper
    horizon: int
    block: int = 1
    path: float = 0.0

    needs: ClassVar[frozenset[Need]] = frozenset({Need.HORIZON})
    name: ClassVar[str] = "path_budget"
    title: ClassVar[str] = "Path budget"
    promises: ClassVar[Mapping[str, str]] = {REGRET: "O(√(T(1 + P))), moving", HARD: "O(√(T(1 + P)) log T)"}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    drifting: ClassVar[tuple[Mapping[str, Any], ...]] = ({"path": 5.0},)

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "reach", "threshold", "ratio")
        validate.validate_fields(self, validate.count, "horizon", "block")
        validate.validate_fields(self, validate.non_negative_scalar, "path")

    @classmethod
    def for_problem(
        cls, problem: Problem, *, horizon: int, path: float = 0.0, scale: Hyper = 1.0, block: int = 1
    ) -> PathBudget:
        """Gradient descent with a price of the violation so far, for decisions that may move by `path` in all.

        Parameters
        ----------
        problem : Problem
            Gives B, Δ, G_f, G_g and F.
        horizon : int
            T.
        path : float
            P: how far the comparator may move, Σ ‖u_t − u_{t−1}‖.
        scale : float or array
            Multiplies A: below 1 feasibility comes sooner. The theorem holds at 1 only.
        block : int
            The decision changes every so many rounds: a budget of ⌈T/block⌉ − 1 changes.
        """
        c, T, n = problem.constants, validate.count("horizon", horizon), validate.count("block", block)
        P = validate.non_negative_scalar("path", path)
        reach = float(np.sqrt(c.diameter**2 / 2 + c.diameter * P))
        A = 2 * n * c.loss_gradient_bound * np.sqrt(-(-T // n)) * reach * validate.positive("scale", scale)
        ratio = c.loss_gradient_bound / c.constraint_gradient_bound
        return cls(problem.enclosing_set, reach, A, ratio, T, n, P)

    def theorem(self, problem: Problem, rounds: NDArray[np.int64]) -> Mapping[str, FloatArray]:
        t, c = horizons_of(rounds, self.batch_shape), problem.constants
        if np.any(t > self.horizon):
            what = f"{np.max(t):g} is beyond the horizon {self.horizon} that the learner was made for"
            raise InputError("rounds", what, "Give at most as many")
        made = PathBudget.for_problem(problem, horizon=self.horizon, path=self.path, block=self.block)
        if not all(np.allclose(getattr(self, n), getattr(made, n)) for n in ("reach", "threshold", "ratio")):
            raise NoTheoremError("it is made for other constants, or A was scaled", "Make it with scale=1")
        A, ratio = np.asarray(self.threshold), np.asarray(self.ratio)
        # A block that is not full counts as one whose other losses are 0.
        regret, hard = 1.5 * A + 0 * t, 2 * A / ratio * np.log(4 + 2 * c.loss_range * (t + self.block - 1) / A)
        if self.block > 1:
            hard = hard + self.block * c.constraint_bound  # of the block that is being played
            regret = regret + self.block * c.loss_range
        return dict(zip((REGRET, HARD), np.broadcast_arrays(regret, hard), strict=True))

    def init(self, batch_shape: tuple[int, ...] = (), *, xp: Any = np, dtype: Any = None) -> PathBudgetState:
        x = self.initial_x(batch_shape, xp, dtype)
        zero, nothing = xp.zeros(x.shape[:-1], dtype=x.dtype), xp.zeros_like(x)
        return PathBudgetState(xp.asarray(1, dtype=xp.int64), x, zero, zero, nothing, zero, nothing)

    def ask(self, state: PathBudgetState) -> Array:
        return state.x

    def update(self, state: PathBudgetState, feedback: Feedback) -> PathBudgetState:
        x, xp = state.x, namespace(state.x)
        worst = feedback.constraint
        broken = as_column(xp.astype(worst > 0, x.dtype))
        gradient = state.loss_gradient + feedback.loss_gradient
        hard = state.hard + xp.maximum(worst, 0.0)
        hard_gradient = state.hard_gradient + broken * feedback.constraint_gradient
        over = xp.astype(state.round % self.block == 0, x.dtype)  # 1 in the last round of a block, else 0
        ratio, threshold = like(self.ratio, x), like(self.threshold, x)
        violation = state.violation + over * ratio * hard
        price = 0.5 * ratio * xp.exp(xp.minimum(violation / (2 * threshold), LARGEST_EXPONENT))
        descent = over * (gradient + as_column(price) * hard_gradient)
        square_sum = state.square_sum + dot(descent, descent)
        step = like(self.reach, x) / xp.sqrt(clamp_to_divisor(square_sum))
        return PathBudgetState(
            round=state.round + 1,
            x=self.enclosing_set.project(x - as_column(step) * descent),
            violation=violation,
            square_sum=square_sum,
            loss_gradient=(1 - over) * gradient,
            hard=(1 - over) * hard,
            hard_gradient=(1 - over) * hard_gradient,
        )

    def report(self, state: PathBudgetState) -> dict[str, Array]:
        return {"violation": state.violation}
