"""Log-loss summed over weighted rows, for several weightings at once.

F_j(x_j) = Σ_i w_ij log(1 + exp(−y_i ⟨u_i, x_j⟩)). The rows are read in chunks that stay in the cache; one product
serves all weightings, so ten sequences cost little more than one. Rows drawn with replacement are weights
here, not copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.losses import Logistic

CHUNK = 8192
"""LabelledRows read at a time: 54 columns of them take 3.5 MB."""
SAMPLE = 16_384
"""LabelledRows that the first H is made of; eight times as many with every level."""


class Evaluation(NamedTuple):
    """F and ∇F of every weighting, each at its own point."""

    value: FloatArray
    gradient: FloatArray


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Features (n, d), dense or in a SciPy sparse matrix, and labels ±1."""

    features: Any
    labels: FloatArray

    @classmethod
    def checked(cls, features: Any, labels: Any) -> LabelledRows:
        """LabelledRows that can be used, refused with the reason where they cannot."""
        table = features.tocsr() if hasattr(features, "tocsr") else np.asarray(features)
        if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiub":
            what = f"has shape {table.shape} and dtype {table.dtype}"
            raise InputError("features", what, "Give one row of numbers per example, shape (n, d)")
        if not np.isfinite(table.sum(dtype=np.float64)):  # one pass, and no copy
            raise InputError("features", "holds NaN or infinite values", "Clean the rows first")
        signs = np.asarray(labels, dtype=np.float64)
        if signs.shape != table.shape[:1] or np.any(np.abs(signs) != 1):
            raise InputError("labels", "are not one label ±1 per row", "Map 0 and 1 by 2 * labels − 1, for example")
        return cls(table, signs)

    @property
    def dimension(self) -> int:
        """How many features there are."""
        return int(self.features.shape[1])

    def chunks(self, used: NDArray[np.bool_]) -> Iterator[tuple[FloatArray, Any]]:
        """The used rows times their labels, and where they stand; a few unused ones may come along."""
        n = len(self.labels)
        (index,) = np.nonzero(used)
        places: list[Any] = (
            [slice(i, i + CHUNK) for i in range(0, n, CHUNK)]  # nearly all: reading on is faster than picking
            if 2 * len(index) > n
            else [index[i : i + CHUNK] for i in range(0, len(index), CHUNK)]
        )
        for place in places:
            part = self.features[place]
            dense = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
            yield dense * self.labels[place, None], place

    def evaluate(self, weights: FloatArray, x: FloatArray) -> Evaluation:
        """F and ∇F for weights (n, k) at points (k, d)."""
        value, gradient = np.zeros(len(x)), np.zeros(x.shape)
        loss = Logistic(self.dimension, feature_norm=1.0)
        for signed, place in self.chunks(np.any(weights != 0, axis=1)):
            values, pull = loss.phi(signed @ x.T)
            value += np.sum(weights[place] * values, axis=0)
            gradient -= (weights[place] * pull).T @ signed
        return Evaluation(value, gradient)

    def curvature(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        """∇²F for one weighting (n,) at one point (d,)."""
        hessian = np.zeros((self.dimension, self.dimension))
        for signed, place in self.chunks(weights != 0):
            share = 1 / (1 + np.exp(-np.abs(signed @ x)))
            hessian += (signed * (weights[place] * share * (1 - share))[:, None]).T @ signed
        return hessian


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Σ_{s≤t} f_s of several sequences, each given by the rows it drew.

    H, where it is not exact, comes from the first draws of a sequence: they are as random as any.
    """

    rows: LabelledRows
    draws: Sequence[NDArray[np.intp]]
    weights: FloatArray

    @classmethod
    def of(cls, rows: LabelledRows, draws: Sequence[NDArray[np.intp]]) -> DrawnRows:
        """Count the draws."""
        n = len(rows.labels)
        return cls(rows, draws, np.stack([np.bincount(drawn, minlength=n) for drawn in draws], axis=1).astype(float))

    def evaluate(self, which: NDArray[np.intp], x: FloatArray) -> Evaluation:
        """Values and gradients of these sequences."""
        every = len(which) == len(self.draws)
        return self.rows.evaluate(self.weights if every else self.weights[:, which], x)

    def curvature(self, which: int, x: FloatArray, level: int) -> FloatArray:
        """∇² of the first draws, scaled to all."""
        drawn = self.draws[which]
        first = drawn[: SAMPLE * 8**level]
        weights: FloatArray = self.weights[:, which]
        if len(first) < len(drawn):
            weights = np.bincount(first, minlength=len(weights)) * np.float64(len(drawn) / len(first))
        return self.rows.curvature(weights, x)
