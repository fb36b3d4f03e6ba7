"""The best fixed decision for losses ½‖x − y_t‖²: the feasible point nearest to the mean target.

Σ_{s≤t} ½‖x − y_s‖² = (t/2) ‖x − ȳ_t‖² + ½ (Σ‖y_s‖² − t ‖ȳ_t‖²), so x*_t = Π_X(ȳ_t). Where the mean is
itself feasible, as for permutation matrices, that is the mean, and no solver is needed: the gap is 0. That of a
projection is certified, so that a wrong one shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.errors import InputError, StreamEndedError
from longterm.hindsight.base import Hindsight, increasing_rounds
from longterm.hindsight.certificates import certified_gap
from longterm.losses import SquaredDistance
from longterm.problems import Problem
from longterm.streams import Seeds, Stream
from longterm.streams.base import checked_seeds

FEASIBLE = 1e-9
"""A mean that breaks no constraint by more than this share of D counts as feasible: it is made of rounded numbers."""


def nearest_to_mean(
    problem: Problem,
    stream: Stream,
    rounds: Sequence[int] | NDArray[np.int64],
    *,
    seeds: Seeds = 0,
    project: Callable[[FloatArray], FloatArray] | None = None,
) -> Hindsight:
    """x*_t for each t in `rounds` (increasing), in one pass over the stream.

    `project` is Π_X, batched. Without it the means are taken as they are where they are feasible, which is checked, and
    the problem's own projection where they are not.

    >>> import numpy as np
    >>> from longterm.problems import two_dimensional
    >>> from longterm.hindsight import nearest_to_mean
    >>> from longterm.streams import Replay
    >>> stream = Replay([np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])])
    >>> best = nearest_to_mean(two_dimensional(), stream, [3])
    >>> best.x, best.loss.round(4)
    (array([[0.25      , 0.33333333]]), array([0.9271]))
    """
    if not isinstance(problem.loss, SquaredDistance):
        raise InputError("problem", f"{problem.name!r} has another loss", "This comparator is for SquaredDistance only")
    wanted = increasing_rounds(rounds)
    means, squares, done = [], [], 0
    total = square = np.zeros(())
    for block in stream.blocks(seeds, 0, int(wanted[-1])):
        targets = np.asarray(block.loss[0], dtype=np.float64)
        sums = total + np.cumsum(targets, axis=0)
        lengths = square + np.cumsum(np.vecdot(targets, targets), axis=0)
        inside = wanted[(wanted > done) & (wanted <= done + block.rounds)]
        means.append(sums[inside - done - 1] / inside.reshape(-1, *(1,) * (sums.ndim - 1)))
        squares.append(lengths[inside - done - 1])
        total, square, done = sums[-1], lengths[-1], done + block.rounds
    if done < wanted[-1]:
        what = f"ended after round {done}, the best decision of round {wanted[-1]} was asked for"
        raise StreamEndedError("stream", what, "Give a longer stream or fewer rounds", round=done + 1)
    mean, lengths = np.concatenate(means), np.concatenate(squares)
    if project is None and problem.projection is not None and not _feasible(problem, mean)[0]:
        project = problem.projection
    x = mean if project is None else project(mean)
    _require_feasible(problem, x, "the mean target" if project is None else "what project returned")
    t = wanted.reshape(-1, *(1,) * (lengths.ndim - 1))
    loss = t / 2 * (np.vecdot(x - mean, x - mean) - np.vecdot(mean, mean)) + lengths / 2
    gap = certified_gap(problem, x, t[..., None] * (x - mean))
    return Hindsight(wanted, x, loss, gap, checked_seeds(seeds))


def _require_feasible(problem: Problem, x: FloatArray, what: str) -> None:
    feasible, worst, outside = _feasible(problem, x)
    if not feasible:
        raise InputError(
            "project",
            f"{what} is not feasible (largest constraint {worst:.3g}, outside B: {outside})",
            "Give the Euclidean projection onto {g ≤ 0} as project=",
        )


def _feasible(problem: Problem, x: FloatArray) -> tuple[bool, float, bool]:
    """Whether every x is in X, the largest constraint, and whether an x is outside B."""
    if problem.constraint.parameters:
        raise InputError("problem", "its constraint changes from round to round", "Use a fixed constraint")
    worst = float(problem.constraint.values(x).max())
    outside = not bool(np.all(problem.enclosing_set.contains(x)))
    return worst <= FEASIBLE * problem.constants.constraint_bound and not outside, worst, outside
