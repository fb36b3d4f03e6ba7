"""Rows with labels: what every reader of data gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with labels.

    Parameters
    ----------
    name : str
        Of the data set.
    features : array of shape (n, d)
        Dense, or a SciPy sparse matrix for the sets whose form is "sparse" (a9a, sector).
    labels : array of shape (n,)
        Of two classes ±1; of more, the numbers of the classes.
    columns : tuple of str
        The names of the features, where the source has names.
    classes : tuple of str
        What the source calls −1 and +1, where it has names for them.
    """

    name: str
    features: Any
    labels: FloatArray
    columns: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        rows, features = self.features.shape
        called = " = −1, ".join(self.classes) + " = +1" if self.classes else f"{len(np.unique(self.labels))} classes"
        return f"Labelled({self.name!r}, {rows} rows, {features} features, {called})"
