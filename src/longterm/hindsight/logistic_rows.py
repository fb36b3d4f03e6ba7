"""The best fixed decision of logistic regression under an elastic-net budget, at many rounds of many sequences.

x*_t minimises Σ_{s≤t} log(1 + exp(−y_s ⟨u_s, x⟩)) over {l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ ρ}, or over the part of it between two
planes ⟨v, x⟩ = ±c (`longterm.problems.fair_logistic`). Rows drawn with replacement enter as weights w_ij, the number
of draws of row i in sequence j:

    F_j(x_j) = Σ_i w_ij log(1 + exp(−y_i ⟨u_i, x_j⟩)).

Rows are read in chunks that fit in the processor's cache, and one matrix product serves all sequences. Each solve
starts from x* of the previous round (`proximal_newton`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.hindsight.base import Hindsight, HindsightRequest, Solution
from longterm.hindsight.proximal_newton import ElasticNetBall, ElasticNetSlab, Evaluation, Minimum, minimise
from longterm.problems import Problem
from longterm.problems.constraints import Affine, Constraint, ElasticNetBudget, Stack
from longterm.problems.losses import Logistic
from longterm.problems.sets import Ball
from longterm.problems.streams import ResampledRows

SEQUENCES_PER_SOLVE = 16
"""The number of sequences solved together."""
CHUNK = 8192
"""The number of rows per chunk: 3.5 MB for 54 columns."""
SAMPLE = 16_384
"""The number of rows in the first approximate Hessian. Each level has eight times as many."""


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Features (n, d), dense or SciPy sparse, and labels ±1."""

    features: Any
    labels: FloatArray

    @classmethod
    def checked(cls, features: Any, labels: Any) -> LabelledRows:
        """Return validated rows. Raise InputError if they cannot be used."""
        table = features.tocsr() if hasattr(features, "tocsr") else np.asarray(features)
        if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiub":
            what = f"has shape {table.shape} and dtype {table.dtype}"
            raise InputError("features", what, "Give one row of numbers per example, shape (n, d)")
        if not np.isfinite(table.sum(dtype=np.float64)):  # needs no copy
            raise InputError("features", "holds NaN or infinite values", "Clean the rows first")
        signs = np.asarray(labels, dtype=np.float64)
        if signs.shape != table.shape[:1] or np.any(np.abs(signs) != 1):
            raise InputError("labels", "are not one label ±1 per row", "Map 0 and 1 by 2 * labels − 1, for example")
        return cls(table, signs)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return int(self.features.shape[1])

    def chunks(self, used: NDArray[np.bool_]) -> Iterator[tuple[FloatArray, Any]]:
        """Yield the used rows times their labels, with their places. Some unused rows may be included."""
        n = len(self.labels)
        (index,) = np.nonzero(used)
        places: list[Any] = (
            [slice(i, i + CHUNK) for i in range(0, n, CHUNK)]  # slices are faster if most rows are used
            if 2 * len(index) > n
            else [index[i : i + CHUNK] for i in range(0, len(index), CHUNK)]
        )
        for place in places:
            part = self.features[place]
            dense = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
            yield dense * self.labels[place, None], place

    def evaluate(self, weights: FloatArray, x: FloatArray) -> Evaluation:
        """Return F and ∇F for weights (n, k) at points (k, d)."""
        value, gradient = np.zeros(len(x)), np.zeros(x.shape)
        loss = Logistic(self.dimension, feature_norm=1.0)
        for signed, place in self.chunks(np.any(weights != 0, axis=1)):
            values, pull = loss.phi(signed @ x.T)
            value += np.sum(weights[place] * values, axis=0)
            gradient -= (weights[place] * pull).T @ signed
        return Evaluation(value, gradient)

    def curvature(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        """Return ∇²F for weights (n,) at a point (d,)."""
        hessian = np.zeros((self.dimension, self.dimension))
        for signed, place in self.chunks(weights != 0):
            share = 1 / (1 + np.exp(-np.abs(signed @ x)))
            hessian += (signed * (weights[place] * share * (1 - share))[:, None]).T @ signed
        return hessian


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Σ_{s≤t} f_s of several sequences, each given by its drawn rows. Approximate Hessians use the first draws."""

    rows: LabelledRows
    draws: Sequence[NDArray[np.intp]]
    weights: FloatArray

    @classmethod
    def of(cls, rows: LabelledRows, draws: Sequence[NDArray[np.intp]]) -> DrawnRows:
        """Return the functions of these draws, with the draws counted as weights."""
        n = len(rows.labels)
        return cls(rows, draws, np.stack([np.bincount(drawn, minlength=n) for drawn in draws], axis=1).astype(float))

    def evaluate(self, which: NDArray[np.intp], x: FloatArray) -> Evaluation:
        """Return values and gradients of these sequences."""
        is_all = len(which) == len(self.draws)
        return self.rows.evaluate(self.weights if is_all else self.weights[:, which], x)

    def curvature(self, which: int, x: FloatArray, level: int) -> FloatArray:
        """Return ∇²F of the first draws, scaled to all draws."""
        drawn = self.draws[which]
        first = drawn[: SAMPLE * 8**level]
        weights: FloatArray = self.weights[:, which]
        if len(first) < len(drawn):
            weights = np.bincount(first, minlength=len(weights)) * np.float64(len(drawn) / len(first))
        return self.rows.curvature(weights, x)


def region_of(problem: Problem) -> ElasticNetBall | None:
    """Return {g ≤ 0} if the problem is logistic regression on an elastic-net ball or slab inside B, otherwise None."""
    region = _region_of_constraint(problem.constraint)
    if not isinstance(problem.loss, Logistic) or region is None:
        return None
    B, reach = problem.enclosing_set, region.budget.enclosing_ball().radius * (1 - 1e-12)
    return region if isinstance(B, Ball) and np.linalg.norm(B.centre) + reach <= B.radius else None


def solve_by_newton(request: HindsightRequest) -> Hindsight | None:
    """Solve budgeted and fair logistic regression on rows drawn with replacement. Return None for other problems."""
    region, stream = region_of(request.problem), request.stream
    if region is None or not isinstance(stream, ResampledRows) or len(stream.arrays) != 2:
        return None
    rows = LabelledRows.checked(*stream.arrays)
    if rows.dimension != request.problem.dimension:
        what = f"has {rows.dimension} features, but the problem has {request.problem.dimension}"
        raise InputError("stream", what, "Build the problem from the features of the stream")
    wanted, seeds = request.rounds, request.seed_list
    columns: list[list[Solution]] = []
    for first in range(0, len(seeds), SEQUENCES_PER_SOLVE):
        drawn = [stream.drawn(seed, 0, int(wanted[-1])) for seed in seeds[first : first + SEQUENCES_PER_SOLVE]]
        minima: list[Minimum] = []
        x = np.zeros((len(drawn), request.problem.dimension))
        for t in wanted:
            minima.append(minimise(DrawnRows.of(rows, [d[:t] for d in drawn]), region, x, request.relative_gap))
            x = minima[-1].x
            done = first // SEQUENCES_PER_SOLVE * len(wanted) + len(minima)
            request.report(done, -(-len(seeds) // SEQUENCES_PER_SOLVE) * len(wanted))
        columns += [[Solution(m.x[k], m.value[k], m.gap[k]) for m in minima] for k in range(len(drawn))]
    return request.to_hindsight(columns, "Newton's method on weighted rows")


def _region_of_constraint(constraint: Constraint) -> ElasticNetBall | None:
    if isinstance(constraint, ElasticNetBudget):
        return ElasticNetBall(constraint)
    if not isinstance(constraint, Stack) or len(constraint.parts) != 2:
        return None
    budget, planes = constraint.parts
    if not isinstance(budget, ElasticNetBudget) or not isinstance(planes, Affine) or planes.count != 2:
        return None
    (normal, opposite), (limit, other) = planes.matrix, planes.limit
    if not np.array_equal(normal, -opposite) or limit != other or limit <= 0 or budget.l2 == 0:
        return None
    return ElasticNetSlab(budget, normal, float(limit))
