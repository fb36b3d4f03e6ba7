"""Requests for the best fixed decision, and their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.display import TextTable, format_number
from longterm.errors import InputError, StreamEndedError
from longterm.play.engines.trace import SeedsPlayed
from longterm.problems import Problem
from longterm.problems.benchmarks import Benchmark
from longterm.problems.streams import Stream
from longterm.problems.streams.base import Block

MAX_SHOWN_ROUNDS = 10
"""Recorded rounds that a notebook shows."""

FEASIBILITY = 1e-9
"""A point counts as feasible if it violates no constraint by more than this share of D."""
ROUNDS_PER_BLOCK = 16_384
"""The number of rounds whose losses are evaluated in one call."""


@dataclass(frozen=True)
class Hindsight:
    """Compare a run with the best decisions that were possible in hindsight, with a certificate.

    It has the best decisions x*_t and their cumulative losses at chosen rounds. Axes are rounds, then seeds.

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
        The certificate: no admissible decision has a cumulative loss below ``loss − gap``.
    seeds : int or tuple of int
        The seeds of the stream.
    solver : str
        The name of the solver.
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
        rounds = f"{len(self.rounds)} rounds to {self.rounds[-1]}"
        return f"Hindsight({rounds}, loss {loss}, certified to {self.gap.max():.2g}, solver={self.solver!r})"

    def _repr_html_(self) -> str:
        rows = [
            (f"{t:,}", format_number(float(loss.mean())), f"{gap.max():.2g}")
            for t, loss, gap in zip(self.rounds, self.loss, self.gap, strict=True)
        ]
        shown = rows if len(rows) <= MAX_SHOWN_ROUNDS else [*rows[: MAX_SHOWN_ROUNDS - 2], ("…", "", ""), rows[-1]]
        return TextTable(("round", "loss", "certified gap"), shown, title=f"Hindsight: {self.solver}").to_html()

    @property
    def relative_gap(self) -> FloatArray:
        """The gap as a share of |loss|: 0 if both are 0, infinite if only the loss is 0."""
        size = np.abs(self.loss)
        unknown = np.where(self.gap > 0, np.inf, 0.0)
        return np.asarray(np.divide(self.gap, size, out=unknown, where=size > 0))


class Solution(NamedTuple):
    """The best decision of one seed after some rounds, its loss and the certified gap."""

    x: FloatArray
    loss: float
    gap: float

    def certified_to(self, relative_gap: float) -> bool:
        """Return True if the gap is at most this share of the loss."""
        return bool(self.gap <= relative_gap * abs(self.loss))


@dataclass(frozen=True, eq=False)
class HindsightRequest:
    """The validated arguments of `best`."""

    problem: Problem
    stream: Stream
    rounds: NDArray[np.int64]
    seeds: SeedsPlayed
    benchmark: Benchmark
    relative_gap: float
    report: Callable[[int, int | None], None]

    @property
    def seed_list(self) -> Sequence[int]:
        """The seeds as a list."""
        return [self.seeds] if isinstance(self.seeds, int) else self.seeds

    def to_hindsight(self, columns: Sequence[Sequence[Solution]], solver: str) -> Hindsight:
        """Return the result from one list of solutions per seed, in the order of the rounds."""

        def collect(part: int) -> FloatArray:
            table = np.array([[one[part] for one in column] for column in columns])
            return np.asarray(table[0] if isinstance(self.seeds, int) else np.moveaxis(table, 0, 1))

        return Hindsight(self.rounds, collect(0), collect(1), collect(2), self.seeds, solver)

    def solve_each(self, solve: Callable[[Block, Solution | None], Solution | None], solver: str) -> Hindsight | None:
        """Call `solve` on the first t rounds of each seed with the previous solution. Stop if it returns None."""
        columns: list[list[Solution]] = []
        for seed in self.seed_list:
            block = rounds_of(self.stream, seed, int(self.rounds[-1]))
            column: list[Solution] = []
            for t in self.rounds:
                solution = solve(block.part(0, int(t)), column[-1] if column else None)
                if solution is None:
                    return None
                column.append(solution)
                self.report(len(columns) * len(self.rounds) + len(column), len(self.seed_list) * len(self.rounds))
            columns.append(column)
        return self.to_hindsight(columns, solver)


def increasing_rounds(rounds: int | Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rounds as an array. Raise InputError if they do not increase."""
    wanted = np.atleast_1d(validate.horizons("rounds", rounds))
    if np.any(np.diff(wanted) <= 0):
        raise InputError("rounds", f"{rounds!r} does not increase", "Give each round once, in order")
    return wanted


def rounds_of(stream: Stream, seed: int, stop: int) -> Block:
    """Return the rounds 1 … stop of one seed as a single block of float64 arrays."""
    blocks = list(stream.blocks(seed, 0, stop))
    done = sum(block.rounds for block in blocks)
    require_rounds(done, stop)
    loss, constraint = (_concatenate([getattr(b, role) for b in blocks]) for role in ("loss", "constraint"))
    return Block(loss, constraint, done)


def require_rounds(done: int, wanted: int) -> None:
    """Raise StreamEndedError if the stream has fewer rounds than requested."""
    if done < wanted:
        what = f"ended after round {done}, but the best decision of round {wanted} was requested"
        raise StreamEndedError("stream", what, "Give a longer stream or fewer rounds", round=done + 1)


def is_feasible(problem: Problem, x: FloatArray) -> bool:
    """Return True if every x, shape (..., d), is in {g ≤ 0} ∩ B up to rounding."""
    worst = float(np.max(problem.constraint.values(x)))
    inside = bool(np.all(problem.enclosing_set.contains(x)))
    return inside and worst <= FEASIBILITY * problem.constants.constraint_bound


def total_loss(problem: Problem, x: FloatArray, block: Block) -> tuple[float, FloatArray]:
    """Return Σ_s f_s(x) and its gradient."""
    if not block.loss:  # the same f in every round
        value, gradient = problem.loss.value_and_gradient(x)
        return block.rounds * float(value), block.rounds * np.asarray(gradient, dtype=np.float64)
    total, slope = 0.0, np.zeros(len(x))
    for first in range(0, block.rounds, ROUNDS_PER_BLOCK):
        part = block.part(first, first + ROUNDS_PER_BLOCK)
        points = np.broadcast_to(x, (part.rounds, len(x)))
        values, gradients = problem.loss.value_and_gradient(points, *part.loss)
        total, slope = total + float(np.sum(values)), slope + np.sum(gradients, axis=0)
    return total, np.asarray(slope, dtype=np.float64)


def _concatenate(arrays: list[tuple[NDArray[Any], ...]]) -> tuple[FloatArray, ...]:
    return tuple(np.concatenate(parts).astype(np.float64) for parts in zip(*arrays, strict=True))
