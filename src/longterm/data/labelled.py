"""Rows of features with labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.errors import InputError

if TYPE_CHECKING:
    from longterm.data.encoder import TableEncoder
    from longterm.data.table_model import TableModel


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
        For a table the labels as they are written; otherwise ±1 for two classes, or the class numbers.
    columns : tuple of str
        The names of the features, if known.
    classes : tuple of str
        The names of the classes −1 and +1, if known.
    encoder : TableEncoder, optional
        For tables: the encoder that turns new rows into the same features.
    """

    name: str
    features: Any
    labels: NDArray[Any]
    columns: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    encoder: TableEncoder | None = None

    @property
    def signs(self) -> FloatArray:
        """The labels of two classes as −1 and +1, as learners of one row at a time want them."""
        values = np.unique(self.labels)
        if len(values) != 2:
            raise InputError("labels", f"have {len(values)} different values", "Give rows of two classes")
        return np.where(self.labels == values[1], 1.0, -1.0)

    def fit(self, model: Any, **options: Any) -> TableModel:
        """Fit a linear model to the rows of a table. Options are those of the model's `fit`.

        The result predicts from raw data frames and is saved whole: `TableModel`.
        """
        from longterm.data.table_model import TableModel

        return TableModel.fitted(self, model, **options)

    def __repr__(self) -> str:
        rows, features = self.features.shape
        names = " = −1, ".join(self.classes) + " = +1" if self.classes else f"{len(np.unique(self.labels))} classes"
        return f"Labelled({self.name!r}, {rows} rows, {features} features, {names})"
