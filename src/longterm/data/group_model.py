"""A model for each group of a table, as a function of a pandas frame that Spark, Dask, Ray Data and pandas call."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm._base.extras import import_optional
from longterm.errors import InputError


@dataclass(frozen=True)
class GroupFit:
    """A function that fits a model to the rows of one group and returns a frame of one row.

    Its columns are the key, `rows` (their number), `model` (the bytes of `to_bytes`) and `error`. If the rows cannot be
    learned, for example because they have one class only, `model` is empty and `error` says why. So one group does not
    stop the others.

    Parameters
    ----------
    model : estimator
        An estimator of `longterm.linear_model`, not fitted. Give it a random_state, so that the result is reproducible.
    key, label : str
        The columns of the group and of the label. All other columns are features: numbers, of NumPy's or Arrow's types.
    order : str, optional
        A column by which the rows are sorted, and that is no feature. Engines shuffle rows, and a model that is learned
        row after row depends on their order. Without it the rows are learned as they come.

    Examples
    --------
    >>> import pandas as pd
    >>> from longterm.data import GroupFit
    >>> from longterm.linear_model import BudgetLinearClassifier
    >>> frame = pd.DataFrame({"shop": ["A", "B"] * 20, "row": range(40), "price": range(40)})
    >>> frame["sold"] = frame["price"] < 20
    >>> fit = GroupFit(BudgetLinearClassifier(random_state=0), key="shop", label="sold", order="row")
    >>> models = frame.groupby("shop").apply(fit).set_index("shop")
    >>> BudgetLinearClassifier.from_bytes(models.loc["A", "model"]).predict(pd.DataFrame({"price": [1, 38]}))
    array([ True, False])
    """

    model: Any
    key: str
    label: str
    order: str | None = None

    def __post_init__(self) -> None:
        if not (hasattr(self.model, "fit") and hasattr(self.model, "to_bytes")):
            what = f"is a {type(self.model).__name__}, which has no fit or no to_bytes"
            raise InputError("model", what, "Give an estimator of longterm.linear_model")

    def __call__(self, frame: Any) -> Any:
        """Fit a copy of the model to one group. pandas 3 and Dask leave the key out, and name the frame by it."""
        pandas: Any = import_optional("pandas", "groups need pandas", "experiments")
        for column in (self.label, *(() if self.order is None else (self.order,))):
            if column not in frame.columns:
                raise InputError("frame", f"has no column {column!r}", f"Choose from {list(frame.columns)}")
        key = frame[self.key].iloc[0] if self.key in frame.columns else frame.name
        rows = frame if self.order is None else frame.sort_values(self.order, kind="stable")
        features = rows.drop(columns=[self.key, self.label, self.order], errors="ignore")
        stored, error = None, None
        try:
            stored = deepcopy(self.model).fit(features, np.asarray(rows[self.label])).to_bytes()
        except ValueError as refused:  # errors of bad rows, ours and scikit-learn's
            error = str(refused)
        return pandas.DataFrame({self.key: [key], "rows": [len(rows)], "model": [stored], "error": [error]})
