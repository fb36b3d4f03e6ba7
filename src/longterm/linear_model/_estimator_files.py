"""Estimators in files without pickle: parameters, classes, names of features, and the state of every learner.

A checksum shows only that a file is as it was written. So everything read is validated: JSON values have one of few
types, parts must fit together, and no size is trusted without the bytes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from longterm.errors import InputError, SnapshotError
from longterm.storage.one_thread import exclusive
from longterm.storage.snapshot import Snapshot, read_snapshot, write_snapshot

KIND = "budget linear estimator"
VERSION = 1
CLASS_KINDS = "biufUO"
"""The dtype kinds of labels: booleans, numbers, texts."""
LONGEST_LABEL = 2**16
"""The largest item size of a label, in bytes."""


class StoredModel:
    """Mixin: `save` and `load` of an estimator that defines `_stored_parts` and `_take_parts`."""

    @exclusive
    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file without pickle, atomically.

        Parameters
        ----------
        path : str or path
            In an existing folder. A crash leaves the old file or the new one.
        """
        check_is_fitted(self)
        metadata, arrays = self._stored_parts()
        names = inspect.signature(type(self)).parameters
        parameters = {name: _to_json(name, getattr(self, name)) for name in names}
        metadata = {"class": type(self).__name__, "parameters": parameters, **metadata}
        write_snapshot(Path(path), Snapshot(KIND, VERSION, metadata, arrays))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the estimator that was saved: it predicts the same, and continues to learn bit for bit.

        Parameters
        ----------
        path : str or path
            A file that `save` wrote. Any other file raises a SnapshotError; nothing in it is executed.

        Returns
        -------
        model : estimator
            An estimator of this class.
        """
        stored = read_snapshot(Path(path), KIND, VERSION)
        metadata = dict(stored.metadata)
        found = metadata.pop("class", None)
        if found != cls.__name__:
            what = f"it holds a {found!r:.60}, not a {cls.__name__}"
            raise SnapshotError(Path(path), "foreign", what, "Load it with the class that it is of")
        try:
            model = cls(**_stored_parameters(cls, metadata.pop("parameters", None)))
            with np.errstate(all="ignore"):
                cls._take_parts(model, metadata, dict(stored.arrays))
        except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
            reason = f"it does not describe a {cls.__name__} ({error})"
            raise SnapshotError(Path(path), "damaged", reason, "Give a file that save() made") from None
        return model

    def _stored_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the metadata (JSON) and the arrays of a file."""
        raise NotImplementedError

    def _take_parts(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Set the state from the parts of a file; raise ValueError or KeyError if they do not fit."""
        raise NotImplementedError


# --- parameters -----------------------------------------------------------------------------------------------


def _stored_parameters(cls: type, stored: Any) -> dict[str, Any]:
    names = set(inspect.signature(cls).parameters)
    require(isinstance(stored, dict) and set(stored) <= names, "it has parameters that the class does not have")
    return {name: _from_json(value) for name, value in stored.items()}


def _to_json(name: str, value: Any) -> Any:
    """Return a parameter as JSON: numbers, texts, and mappings or sequences of them."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Mapping):
        return {"pairs": [[_to_json(name, key), _to_json(name, item)] for key, item in value.items()]}
    if isinstance(value, Sequence | np.ndarray):
        return {"list": [_to_json(name, item) for item in value]}
    what = f"{type(value).__name__} cannot be stored"
    raise InputError(name, what, "Use set_params to give a number, a text, or a mapping or sequence of them first")


def _from_json(value: Any) -> Any:
    """Return the parameter that `_to_json` stored."""
    if _is_scalar(value):
        return value
    require(isinstance(value, dict) and len(value) == 1, "a parameter is of no known kind")
    ((kind, items),) = value.items()
    require(kind in ("pairs", "list") and isinstance(items, list), "a parameter is of no known kind")
    if kind == "list":
        require(all(_is_scalar(item) for item in items), "a parameter holds more than numbers and texts")
        return items
    require(all(_is_pair(pair) for pair in items), "a parameter holds more than numbers and texts")
    return {key: item for key, item in items}  # noqa: C416 - pairs are lists of two


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_scalar(item) for item in value)


# --- names and classes ----------------------------------------------------------------------------------------


def stored_names(model: Any) -> list[str] | None:
    """Return the names of the features, or None if no data frame gave them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def take_names(model: Any, names: Any, dimension: int) -> None:
    """Set `n_features_in_` and, where there are names, `feature_names_in_`."""
    model.n_features_in_ = dimension
    if names is not None:
        fits = isinstance(names, list) and len(names) == dimension and all(isinstance(name, str) for name in names)
        require(fits, f"there are not {dimension} names of features")
        model.feature_names_in_ = np.array(names, dtype=object)


def stored_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Return labels as JSON; labels that are objects must be texts."""
    if classes.dtype.kind == "O" and not all(isinstance(one, str) for one in classes):
        raise InputError("y", "has labels that are objects other than texts", "Learn with numbers or texts as labels")
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def taken_classes(stored: Any) -> NDArray[Any]:
    """Return the labels of a file: at least two, increasing."""
    require(isinstance(stored, dict) and set(stored) == {"dtype", "values"}, "there are no classes")
    dtype, values = np.dtype(str(stored["dtype"])), stored["values"]
    require(dtype.kind in CLASS_KINDS and dtype.fields is None, f"labels are of the kind {dtype.kind!r}")
    require(dtype.itemsize <= LONGEST_LABEL, "labels are too long")
    require(isinstance(values, list) and len(values) >= 2, "there are fewer than two classes")
    wanted: Any = str if dtype.kind in "UO" else bool if dtype.kind == "b" else (int, float)
    require(all(isinstance(one, wanted) for one in values), "a label is not of its kind")
    classes = np.array(values, dtype=dtype)
    require(bool((classes[1:] > classes[:-1]).all()), "the classes are not increasing")
    return classes


def require(holds: bool, otherwise: str) -> None:
    """Raise a ValueError with this message unless the condition holds."""
    if not holds:
        raise ValueError(otherwise)
