"""A path budget: descent on the loss plus a price of the violation so far, for comparators that move (ours).

With T and P known, κ = √(Δ²/2 + ΔP), A = 2G_f √T κ and s = G_f/G_g, which brings the constraint to the loss's scale:

    Q_t = Q_{t−1} + s [g_t(x_t)]₊,     d_t = ∇f_t(x_t) + ½ e^{Q_t/(2A)} s ∇[g_t]₊(x_t),     S_t = S_{t−1} + ‖d_t‖²
    x_{t+1} = Π_B( x_t − κ d_t/√S_t )                                              x_1 = centre of B, Q_0 = S_0 = 0

Guarantees, against all u_t in B with g_t(u_t) ≤ 0 in its own round and Σ ‖u_t − u_{t−1}‖ ≤ P (without a Slater point),
in any round t ≤ T:

    Σ f_s(x_s) − f_s(u_s) ≤ 1.5 A,         Σ [g_s(x_s)]₊ ≤ (2A/s) ln(4 + 2F t/A), if there is such a u

Proof: `docs/proofs/drift.md`. Not promised: anything if no point is feasible in some round.
With `block` n the decision changes every n rounds, at most ⌈T/n⌉ − 1 times. The sums of
a block count as one round, so T becomes ⌈T/n⌉ and G, F become nG, nF; u is constant within a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longterm._base import validate
from longterm._base.arrays import Array, as_column, clamp_to_divisor, dot, like, namespace
from longterm._base.validate import Hyper
from longterm.learners.interface.feedback import Feedback
from longterm.learners.interface.horizons import require_within_horizon
from longterm.learners.interface.learner import Learner
from longterm.learners.interface.needs import Need
from longterm.learners.surrogates.sinha_vaze import LARGEST_EXPONENT
from longterm.problems import Problem
from longterm.problems.sets import Set
from longterm.theory.bounds import HARD, REGRET, BoundValues, NoTheoremError, Rounds, horizons_of


class PathBudgetState(NamedTuple):
    """The state (t, x_t, Q, S), then Σ ∇f, Σ [g]₊ and Σ ∇[g]₊ of the current block."""

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
        A. Smaller ones make violations expensive sooner.
    ratio : float or array
        s = G_f/G_g.
    horizon : int
        T.
    block : int
        The number of rounds between changes of the decision.
    path : float
        P, for `bound`.

    Examples
    --------
    >>> import numpy as np
    >>> import longterm as lt
    >>> from longterm.problems import constraints, losses, sets, streams
    >>> problem = lt.Problem(sets.Ball(2), losses.Linear(2), constraints.Affine([[0.0, 1.0]], [0.5]))
    >>> turning = streams.Replay([np.repeat([[1.0, 0.0], [-1.0, 0.0]], 500, axis=0)])
    >>> for path in (0.0, 2.0):
    ...     learner = lt.learners.PathBudget.for_problem(problem, horizon=1000, path=path)
    ...     print(float(lt.run(problem, learner, turning).cumulative_loss[-1].round(1)))
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

    needs = frozenset({Need.HORIZON})
    name = "path_budget"
    title = "Path budget"
    promises = {REGRET: "O(√(T(1 + P))), moving", HARD: "O(√(T(1 + P)) log T)"}
    variants = ()
    drifting = ({"path": 5.0},)

    def __post_init__(self) -> None:
        validate.validate_fields(self, validate.positive, "reach", "threshold", "ratio")
        validate.validate_fields(self, validate.count, "horizon", "block")
        validate.validate_fields(self, validate.non_negative_scalar, "path")

    @classmethod
    def for_problem(
        cls, problem: Problem, *, horizon: int, path: float = 0.0, scale: Hyper = 1.0, block: int = 1
    ) -> PathBudget:
        """Descend on the loss plus a price of the violation so far, against comparators that move by `path`.

        Parameters
        ----------
        path : float
            P: how far the comparator may move, Σ ‖u_t − u_{t−1}‖.
        scale : float or array
            Multiplies A: below 1 feasibility comes sooner. The theorem holds at 1 only.
        block : int
            The number of rounds between changes: a budget of ⌈T/block⌉ − 1 changes.
        """
        c, T, n = problem.constants, validate.count("horizon", horizon), validate.count("block", block)
        P = validate.non_negative_scalar("path", path)
        reach = float(np.sqrt(c.diameter**2 / 2 + c.diameter * P))
        A = 2 * n * c.loss_gradient_bound * np.sqrt(-(-T // n)) * reach * validate.positive("scale", scale)
        ratio = c.loss_gradient_bound / c.constraint_gradient_bound
        return cls(problem.enclosing_set, reach, A, ratio, T, n, P)

    def theorem(self, problem: Problem, rounds: Rounds) -> BoundValues:
        t, c = horizons_of(rounds, self.batch_shape), problem.constants
        require_within_horizon(t, self.horizon)
        made = PathBudget.for_problem(problem, horizon=self.horizon, path=self.path, block=self.block)
        if not all(np.allclose(getattr(self, n), getattr(made, n)) for n in ("reach", "threshold", "ratio")):
            raise NoTheoremError("it is made for other constants, or A was scaled", "Make it with scale=1")
        A, ratio = np.asarray(self.threshold), np.asarray(self.ratio)
        # A block that is not full counts as one whose other losses are 0.
        regret, hard = 1.5 * A + 0 * t, 2 * A / ratio * np.log(4 + 2 * c.loss_range * (t + self.block - 1) / A)
        if self.block > 1:  # the violation and the regret of the current block are added
            hard = hard + self.block * c.constraint_bound
            regret = regret + self.block * c.loss_range
        return dict(zip((REGRET, HARD), np.broadcast_arrays(regret, hard), strict=True))

    def first_state(self, t: Array, x: Array) -> PathBudgetState:
        zero, zeros = namespace(x).zeros(x.shape[:-1], dtype=x.dtype), namespace(x).zeros_like(x)
        return PathBudgetState(t, x, zero, zero, zeros, zero, zeros)

    def update(self, state: PathBudgetState, feedback: Feedback) -> PathBudgetState:
        x, xp = state.x, namespace(state.x)
        broken = as_column(xp.astype(feedback.constraint > 0, x.dtype))
        gradient = state.loss_gradient + feedback.loss_gradient
        hard = state.hard + xp.maximum(feedback.constraint, 0.0)
        hard_gradient = state.hard_gradient + broken * feedback.constraint_gradient
        over = xp.astype(state.round % self.block == 0, x.dtype)  # 1 in the last round of a block, else 0
        ends = as_column(over)
        ratio, threshold = like(self.ratio, x), like(self.threshold, x)
        violation = state.violation + over * ratio * hard
        price = 0.5 * ratio * xp.exp(xp.minimum(violation / (2 * threshold), LARGEST_EXPONENT))
        descent = ends * (gradient + as_column(price) * hard_gradient)
        square_sum = state.square_sum + dot(descent, descent)
        step = like(self.reach, x) / xp.sqrt(clamp_to_divisor(square_sum))
        return PathBudgetState(
            round=state.round + 1,
            x=self.enclosing_set.project(x - as_column(step) * descent),
            violation=violation,
            square_sum=square_sum,
            loss_gradient=(1 - ends) * gradient,
            hard=(1 - over) * hard,
            hard_gradient=(1 - ends) * hard_gradient,
        )

    def report(self, state: PathBudgetState) -> dict[str, Array]:
        return {"violation": state.violation}
