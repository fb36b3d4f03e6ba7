"""What is asked, and what is answered: the best fixed decision, its loss, and how far from the best it can be.

The certificate, how far from the best a point can be at most, has three forms that need no solver and trust none.

Let F be convex, x any point, c = ∇F(x). For every s in X: F(x) − F(s) ≤ ⟨c, x − s⟩.

**Frank–Wolfe gap.** Where the maximum of ⟨−c, s⟩ over X is known, the gap is ⟨c, x⟩ + max_X ⟨−c, s⟩. For the
elastic-net ball X = {l1 ‖s‖₁ + ½ l2 ‖s‖² ≤ ρ} it is known: by Lagrange, with a_1 ≥ a_2 ≥ … the |c_i| in order,

    max_X ⟨c, s⟩ = min_{ν>0} νρ + Σ_i (a_i − l1 ν)₊² / (2 l2 ν)

The derivative vanishes where Σ_{i≤k} (a_i² − l1² ν²) = 2ρ l2 ν², with k the number of a_i > l1 ν. The brackets are
positive exactly for these i, so the sum is its own maximum over k, and solving for ν needs no search:

    ν² = max_k  Σ_{i≤k} a_i² / (k l1² + 2ρ l2)

*Any* ν > 0 gives an upper bound: rounding ν cannot make the certificate false. With l2 = 0 this is ρ a_1/l1.

**Lagrangian gap.** For any μ ≥ 0 and s in X also 0 ≥ Σ_j μ_j g_j(s) ≥ Σ_j μ_j (g_j(x) + ⟨∇g_j(x), s − x⟩). With
r = c + Σ_j μ_j ∇g_j(x),

    F(x) − F(s) ≤ ⟨r, x⟩ + max_B ⟨−r, s⟩ − Σ_j μ_j g_j(x)

for any problem with a fixed g. The right side is convex in μ. The search starts at the non-negative least squares of
‖r‖, which is all that is needed where x is inside B, and goes on by cutting planes (Kelley 1960): each maximiser s over
B gives a cut, a linear program the next μ, until no μ is better. Again any μ ≥ 0 is valid. The gap is tight where the
g_j are smooth at x, and loose at kinks, where one subgradient has to stand for many.

**Semidefinite gap.** λ_min has such a kink wherever it is repeated. For X = {S ⪰ floor·I} any matrix Z ⪰ 0 takes the
place of μ∇g: ⟨Z, S − floor·I⟩ ≥ 0 on X, so

    F(x) − F(s) ≤ ⟨c, x⟩ − floor · tr Z + max_B ⟨Z − c, s⟩.

At the best x, Z = c + diag(y) where B fixes the diagonal (Z = c inside a ball), and Z v = 0 for every eigenvector v of
x above the floor: that gives y by least squares, and what rounding makes negative in Z is cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, dot, namespace
from longterm.constraints import ElasticNetBudget, PositiveSemidefinite
from longterm.engines.trace import SeedsPlayed
from longterm.errors import InputError, StreamEndedError
from longterm.problems import Benchmark, Problem
from longterm.projections.psd import as_symmetric
from longterm.streams import Block, Stream

FEASIBLE = 1e-9
"""A point that breaks no constraint by more than this share of D counts as feasible: it is made of rounded numbers."""

AT_A_TIME = 16_384
"""Rounds whose losses are added up at once."""


@dataclass(frozen=True)
class Hindsight:
    """x*_t and its cumulative loss at chosen rounds; these first, then the seeds.

    The true regret lies between ``trace.regret(best)`` and ``trace.regret(best) + best.gap``.

    Parameters
    ----------
    rounds : NDArray[np.int64]
        The rounds t, increasing.
    x : FloatArray
        x*_t, shape (rounds, [seeds,] d).
    loss : FloatArray
        Σ_{s≤t} f_s(x*_t).
    gap : FloatArray
        The certificate: no decision that counts has a cumulative loss below ``loss − gap``.
    seeds : int or tuple of int
        Those of the rounds that were played.
    solver : str
        How it was found, in words.
    """

    rounds: NDArray[np.int64]
    x: FloatArray
    loss: FloatArray
    gap: FloatArray
    seeds: SeedsPlayed = 0
    solver: str = ""

    def __repr__(self) -> str:
        losses = np.atleast_1d(self.loss[-1])
        loss = f"{losses.mean():.6g}" + (f" on average of {losses.size} sequences" if losses.size > 1 else "")
        at = f"{len(self.rounds)} kept rounds to {self.rounds[-1]}"
        return f"Hindsight({at}, loss {loss}, certified to {self.gap[-1].max():.2g}, solver={self.solver!r})"

    @property
    def relative_gap(self) -> FloatArray:
        """The gap as a share of |loss|; 0 where both are 0, infinite where only the loss is."""
        size = np.abs(self.loss)
        unknown = np.where(self.gap > 0, np.inf, 0.0)
        return np.asarray(np.divide(self.gap, size, out=unknown, where=size > 0))


class Solution(NamedTuple):
    """The best decision of one seed after some rounds, its loss and the certified gap."""

    x: FloatArray
    loss: float
    gap: float

    def certified_to(self, relative_gap: float) -> bool:
        """Whether the gap is no larger a share of the loss."""
        return bool(self.gap <= relative_gap * abs(self.loss))


@dataclass(frozen=True, eq=False)
class Question:
    """What `best` was asked, checked."""

    problem: Problem
    stream: Stream
    rounds: NDArray[np.int64]
    seeds: SeedsPlayed
    benchmark: Benchmark
    relative_gap: float
    report: Callable[[int, int | None], None]

    @property
    def every_seed(self) -> Sequence[int]:
        """The seeds as a list."""
        return [self.seeds] if isinstance(self.seeds, int) else self.seeds

    def answer(self, columns: Sequence[Sequence[Solution]], solver: str) -> Hindsight:
        """From one list of solutions, round after round, for each seed."""

        def collect(part: int) -> FloatArray:
            table = np.array([[one[part] for one in column] for column in columns])
            return np.asarray(table[0] if isinstance(self.seeds, int) else np.moveaxis(table, 0, 1))

        return Hindsight(self.rounds, collect(0), collect(1), collect(2), self.seeds, solver)

    def answer_each(self, solve: Callable[[Block, Solution | None], Solution | None], solver: str) -> Hindsight | None:
        """`solve` for the first t rounds of each seed, given the solution before; None as soon as it gives up."""
        columns: list[list[Solution]] = []
        for seed in self.every_seed:
            every = rounds_of(self.stream, seed, int(self.rounds[-1]))
            column: list[Solution] = []
            for t in self.rounds:
                solution = solve(every.part(0, int(t)), column[-1] if column else None)
                if solution is None:
                    return None
                column.append(solution)
                self.report(len(columns) * len(self.rounds) + len(column), len(self.every_seed) * len(self.rounds))
            columns.append(column)
        return self.answer(columns, solver)


def increasing_rounds(rounds: int | Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The rounds that are asked for, as an array; refused where they do not increase."""
    wanted = np.atleast_1d(validate.horizons("rounds", rounds))
    if np.any(np.diff(wanted) <= 0):
        raise InputError("rounds", f"{rounds!r} does not increase", "Give each round once, in order")
    return wanted


def rounds_of(stream: Stream, seed: int, stop: int) -> Block:
    """The rounds 1 … stop of one seed as a single block of float64 arrays."""
    blocks = list(stream.blocks(seed, 0, stop))
    done = sum(block.rounds for block in blocks)
    require_rounds(done, stop)
    loss, constraint = (_joined([getattr(b, role) for b in blocks]) for role in ("loss", "constraint"))
    return Block(loss, constraint, done)


def require_rounds(done: int, wanted: int) -> None:
    """Raise if the stream ended too early."""
    if done < wanted:
        what = f"ended after round {done}, the best decision of round {wanted} was asked for"
        raise StreamEndedError("stream", what, "Give a longer stream or fewer rounds", round=done + 1)


def feasible(problem: Problem, x: FloatArray) -> bool:
    """Whether every x, shape (..., d), is in {g ≤ 0} ∩ B, up to rounding."""
    worst = float(np.max(problem.constraint.values(x)))
    inside = bool(np.all(problem.enclosing_set.contains(x)))
    return inside and worst <= FEASIBLE * problem.constants.constraint_bound


def total_loss(problem: Problem, x: FloatArray, played: Block) -> tuple[float, FloatArray]:
    """Σ_s f_s(x) and its gradient."""
    if not played.loss:  # the same f in every round
        value, gradient = problem.loss.value_and_gradient(x)
        return played.rounds * float(value), played.rounds * np.asarray(gradient, dtype=np.float64)
    total, slope = 0.0, np.zeros(len(x))
    for first in range(0, played.rounds, AT_A_TIME):
        part = played.part(first, first + AT_A_TIME)
        points = np.broadcast_to(x, (part.rounds, len(x)))
        values, gradients = problem.loss.value_and_gradient(points, *part.loss)
        total, slope = total + float(np.sum(values)), slope + np.sum(gradients, axis=0)
    return total, np.asarray(slope, dtype=np.float64)


def _joined(arrays: list[tuple[NDArray[Any], ...]]) -> tuple[FloatArray, ...]:
    return tuple(np.concatenate(parts).astype(np.float64) for parts in zip(*arrays, strict=True))


MOST_CUTS = 100
AT_THE_FLOOR = 1e-7
"""Eigenvalues within this share of the largest count as being at the floor."""
EXACT = 1e-11
"""A Lagrangian gap within this share of ‖∇F‖ Δ of the best one will do."""

ROWS_PER_COORDINATE = 4
"""Of many constraints, so many for each coordinate take part in a Lagrangian gap."""


def support_of_elastic_net(direction: Array, budget: float, l1: float = 1.0, l2: float = 1.0) -> Array:
    """The largest ⟨direction, s⟩ over {l1 ‖s‖₁ + ½ l2 ‖s‖² ≤ budget}, along the last axis.

    Parameters
    ----------
    direction : Array
        Shape (..., d).
    budget : float
        ρ.
    l1 : float
        The weight of ‖s‖₁.
    l2 : float
        The weight of ½‖s‖².

    Returns
    -------
    Array
        Shape (...,).

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.hindsight import support_of_elastic_net
    >>> float(support_of_elastic_net(np.array([3.0, -1.0, 0.5]), budget=1.5))  # attained at (1, 0, 0)
    3.0
    >>> float(support_of_elastic_net(np.array([3.0, -4.0]), budget=2.0, l1=0.0))  # the disc of radius 2
    10.0
    """
    xp = namespace(direction)
    size = xp.abs(direction)
    if l2 == 0:
        return xp.max(size, axis=-1) * (budget / l1)
    nu = multiplier(size, budget, l1, l2)
    above = xp.maximum(size - l1 * nu[..., None], 0.0)
    return nu * budget + dot(above, above) / (2 * l2 * xp.where(nu > 0, nu, 1.0))


def multiplier(size: Array, budget: float, l1: float, l2: float) -> Array:
    """The ν of a direction whose coordinates have these sizes; l2 > 0."""
    xp = namespace(size)
    largest_first = xp.sort(size, axis=-1, descending=True)
    squares = xp.cumulative_sum(largest_first * largest_first, axis=-1)
    counts = xp.arange(1, size.shape[-1] + 1, dtype=size.dtype)
    return xp.sqrt(xp.max(squares / (counts * l1**2 + 2 * budget * l2), axis=-1))


def elastic_net_gap(x: Array, gradient: Array, budget: float, l1: float = 1.0, l2: float = 1.0) -> Array:
    """The largest ⟨gradient, x − s⟩ over the elastic-net ball: the Frank–Wolfe gap, at least 0 for x in the ball.

    Parameters
    ----------
    x : Array
        Shape (..., d).
    gradient : Array
        ∇F(x).
    budget : float
        ρ.
    l1 : float
        The weight of ‖s‖₁.
    l2 : float
        The weight of ½‖s‖².

    Returns
    -------
    Array
        Shape (...,).
    """
    gap = dot(gradient, x) + support_of_elastic_net(-gradient, budget, l1, l2)
    return namespace(x).maximum(gap, 0.0)


def certified_gap(problem: Problem, x: FloatArray, gradient: FloatArray) -> FloatArray:
    """F(x) − min_X F is at most this, F convex with this gradient at x; shapes (..., d) to (...,).

    The Frank–Wolfe gap for an elastic-net budget (B, which holds it, does not matter), the semidefinite gap for
    positive semi-definite matrices, the Lagrangian gap for others.

    Parameters
    ----------
    problem : Problem
        B and a fixed g; the losses do not matter.
    x : FloatArray
        Shape (..., d).
    gradient : FloatArray
        ∇F(x).

    Returns
    -------
    FloatArray
        Shape (...,).
    """
    g = problem.constraint
    if isinstance(g, ElasticNetBudget):
        return np.asarray(elastic_net_gap(x, gradient, g.budget, g.l1, g.l2))
    one = _semidefinite_gap if isinstance(g, PositiveSemidefinite) else _lagrangian_gap
    points, slopes = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, x.shape[-1])
    gaps = [one(problem, point, slope) for point, slope in zip(points, slopes, strict=True)]
    return np.asarray(gaps, dtype=np.float64).reshape(x.shape[:-1])


def _semidefinite_gap(problem: Problem, x: FloatArray, gradient: FloatArray) -> float:
    g, B = problem.constraint, problem.enclosing_set
    assert isinstance(g, PositiveSemidefinite)
    c = np.asarray(as_symmetric(gradient, g.size))
    values, vectors = np.linalg.eigh(as_symmetric(x, g.size))
    above = vectors[:, values > g.floor + AT_THE_FLOOR * max(abs(values[-1]), 1.0)]
    lengths = np.vecdot(above, above)
    y = np.divide(-np.vecdot(c @ above, above), lengths, out=np.zeros(g.size), where=lengths > 0)
    gap = _lagrangian_gap(problem, x, gradient)
    for Z in (c, c + np.diag(y)):
        sizes, directions = np.linalg.eigh(Z)
        Z = (directions * np.maximum(sizes, 0.0)) @ directions.T
        reach = B.support(Z.ravel() - gradient)
        gap = min(gap, float(gradient @ x - g.floor * np.trace(Z) + reach))
    return max(gap, 0.0)


def _lagrangian_gap(problem: Problem, x: FloatArray, gradient: FloatArray) -> float:
    from scipy.optimize import linprog, nnls  # loaded when asked for

    size = float(np.linalg.norm(gradient))
    if size == 0:
        return 0.0
    g, B, c = problem.constraint, problem.enclosing_set, gradient / size
    # Constraints far from being active can be left out: X is larger without them, and the bound still true.
    every = np.asarray(g.values(x))
    nearest = np.argsort(-every, kind="stable")[: ROWS_PER_COORDINATE * g.dimension]
    values = every[nearest]
    slopes = np.asarray(g.gradient_of(np.broadcast_to(x, (len(nearest), g.dimension)), nearest))
    # Slack counts as distance, in diameters: the two parts of the gap are then in the same units.
    system = np.concatenate([slopes.T, np.diag(np.maximum(-values, 0.0) / B.diameter)])
    multipliers, _ = nnls(system, np.concatenate([-c, np.zeros(len(nearest))]))
    gap, lower = np.inf, 0.0
    cuts: list[FloatArray] = []
    while True:
        rest = c + multipliers @ slopes
        away = x - B.extreme_point(-rest)
        gap = min(gap, float(rest @ away - multipliers @ values))
        if gap <= lower + EXACT * B.diameter or len(cuts) == MOST_CUTS:
            return size * max(0.0, gap)
        cuts.append(np.array([c @ away, *(slopes @ away - values)]))
        table = np.array(cuts)
        # The least τ ≥ 0 with τ ≥ ⟨c, away⟩ + ⟨μ, …⟩ for every cut; the unknowns are (τ, μ).
        cost = np.concatenate([[1.0], np.zeros(len(nearest))])
        left = np.column_stack([-np.ones(len(table)), table[:, 1:]])
        solved = linprog(cost, A_ub=left, b_ub=-table[:, 0], bounds=(0, None))
        if solved.fun is None or solved.x is None:
            return size * max(0.0, gap)
        lower, multipliers = float(solved.fun), np.maximum(solved.x[1:], 0.0)
