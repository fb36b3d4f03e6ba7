"""A model for each group of a table, as a function of a pandas frame that Spark, Dask, Ray Data and pandas call."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np

from longterm._base.extras import import_optional
from longterm.errors import InputError


def group_fit(model: Any, *, key: str, label: str, order: str | None = None) -> Callable[[Any], Any]:
    """Return a function that fits a model to the rows of one group, a pandas frame, and returns a frame of one row.

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

    Returns
    -------
    callable
        The function, which can be sent to other processes.

    Examples
    --------
    >>> import pandas as pd
    >>> from longterm.data import group_fit
    >>> from longterm.linear_model import BudgetLinearClassifier
    >>> frame = pd.DataFrame({"shop": ["A", "B"] * 20, "row": range(40), "price": range(40)})
    >>> frame["sold"] = frame["price"] < 20
    >>> fit = group_fit(BudgetLinearClassifier(random_state=0), key="shop", label="sold", order="row")
    >>> models = frame.groupby("shop").apply(fit).set_index("shop")
    >>> BudgetLinearClassifier.from_bytes(models.loc["A", "model"]).predict(pd.DataFrame({"price": [1, 38]}))
    array([ True, False])
    """
    if not (hasattr(model, "fit") and hasattr(model, "to_bytes")):
        what = f"is a {type(model).__name__}, which has no fit or no to_bytes"
        raise InputError("model", what, "Give an estimator of longterm.linear_model")
    return partial(_fit_group, model=model, key=key, label=label, order=order)  # Spark counts positional arguments


def _fit_group(frame: Any, *, model: Any, key: str, label: str, order: str | None) -> Any:
    """Fit a copy of the model. pandas 3 and Dask leave the key out of the frame, and name the frame by it."""
    pandas: Any = import_optional("pandas", "groups need pandas", "experiments")
    for column in (label, *(() if order is None else (order,))):
        if column not in frame.columns:
            raise InputError("frame", f"has no column {column!r}", f"Choose from {list(frame.columns)}")
    group = frame[key].iloc[0] if key in frame.columns else frame.name
    stored, error = None, None
    try:
        rows = frame if order is None else frame.sort_values(order, kind="stable")
        features = rows.drop(columns=[key, label, order], errors="ignore")
        stored = deepcopy(model).fit(features, np.asarray(rows[label])).to_bytes()
    except (ValueError, TypeError) as refused:  # errors of bad rows: ours, NumPy's and scikit-learn's
        error = str(refused)
    return pandas.DataFrame({key: [group], "rows": [len(frame)], "model": [stored], "error": [error]})
