"""Rows of features with labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longterm._base.arrays import FloatArray

if TYPE_CHECKING:
    from longterm.data.encoder import TableEncoder


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows of features with labels.

    Parameters
    ----------
    name : str
        The name of the data set.
    features : array of shape (n, d)
        A dense array, or a SciPy sparse array for sets of the form "sparse" (a9a, sector).
    labels : array of shape (n,)
        ±1 for two classes, otherwise the class numbers.
    columns : tuple of str
        The names of the features, if known.
    classes : tuple of str
        The names of the classes −1 and +1, if known.
    encoder : TableEncoder, optional
        For tables: the encoder that turns new rows into the same features.
    """

    name: str
    features: Any
    labels: FloatArray
    columns: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    encoder: TableEncoder | None = None

    def __repr__(self) -> str:
        rows, features = self.features.shape
        names = " = −1, ".join(self.classes) + " = +1" if self.classes else f"{len(np.unique(self.labels))} classes"
        return f"Labelled({self.name!r}, {rows} rows, {features} features, {names})"
