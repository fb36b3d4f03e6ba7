"""Estimators in files without pickle: their parameters, their classes and names, and every learner's own snapshot.

A file is looked at as the files of learners are (`_stored`): a checksum only says that it is as somebody wrote it. What
is JSON in it has one of few types, what belongs together fits together, no size is believed without the bytes.
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
"""Raise it with every change of what is stored."""
CLASS_KINDS = "biufUO"
"""What labels may be: truth values, numbers, texts."""


class StoredModel:
    """Mixin: `save` and `load` of an estimator. What it is made of, it says by `_stored_parts` and `_take_parts`."""

    @exclusive
    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file of numbers and texts, atomically; there is no pickle in it.

        Parameters
        ----------
        path : str or path
            In a folder that exists. A crash leaves the old file or the new one.
        """
        check_is_fitted(self)
        metadata, arrays = self._stored_parts()
        parameters = {name: _plain(name, value) for name, value in self._own_parameters().items()}
        metadata = {"class": type(self).__name__, "parameters": parameters, **metadata}
        write_snapshot(Path(path), Snapshot(KIND, VERSION, metadata, arrays))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The estimator that was saved: it predicts the same, and learns on bit for bit.

        Parameters
        ----------
        path : str or path
            What `save` wrote. A SnapshotError says what is wrong with any other file; nothing in it is ever run.

        Returns
        -------
        model : estimator
            Of this class.
        """
        stored = read_snapshot(Path(path), KIND, VERSION)
        metadata = dict(stored.metadata)
        found = metadata.pop("class", None)
        if found != cls.__name__:
            what = f"it holds a {found!r:.60}, not a {cls.__name__}"
            raise SnapshotError(Path(path), "foreign", what, "Load it with the class that it is of")
        try:
            made = cls(**_parameters_of(cls, metadata.pop("parameters", None)))
            with np.errstate(all="ignore"):
                made._take_parts(metadata, dict(stored.arrays))
        except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
            reason = f"it does not describe a {cls.__name__} ({error})"
            raise SnapshotError(Path(path), "damaged", reason, "Give a file that save() made") from None
        return made

    def _own_parameters(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def _stored_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        raise NotImplementedError

    def _take_parts(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        raise NotImplementedError


def _parameters_of(cls: type, stored: Any) -> dict[str, Any]:
    names = set(inspect.signature(cls).parameters)
    require(isinstance(stored, dict) and set(stored) <= names, "it has parameters that the class does not have")
    return {name: _given(value) for name, value in stored.items()}


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON: numbers, texts, and mappings or sequences of them."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(name, key), _plain(name, item)] for key, item in value.items()]}
    if isinstance(value, Sequence | np.ndarray):
        return {"list": [_plain(name, item) for item in value]}
    what = f"{type(value).__name__} cannot be stored"
    raise InputError(name, what, "Use set_params to give a number, a text, or a mapping or sequence of them first")


def _given(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    require(isinstance(value, dict) and len(value) == 1, "a parameter is of no known kind")
    ((kind, inside),) = value.items()
    require(kind in ("pairs", "list") and isinstance(inside, list), "a parameter is of no known kind")
    if kind == "list":
        require(all(_is_scalar(item) for item in inside), "a parameter holds more than numbers and texts")
        return inside
    require(all(_is_pair(pair) for pair in inside), "a parameter holds more than numbers and texts")
    return {key: item for key, item in inside}  # noqa: C416 - pairs are lists of two


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_scalar(item) for item in value)


# --- parts that all estimators have ---------------------------------------------------------------------------


def stored_names(model: Any) -> list[str] | None:
    """The names of the columns, where a data frame gave them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def take_names(model: Any, names: Any, dimension: int) -> None:
    """`n_features_in_` and, where there are names, `feature_names_in_`."""
    model.n_features_in_ = dimension
    if names is not None:
        fits = isinstance(names, list) and len(names) == dimension and all(isinstance(name, str) for name in names)
        require(fits, f"there are not {dimension} names of features")
        model.feature_names_in_ = np.array(names, dtype=object)


def stored_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Labels as JSON. Objects must be texts."""
    if classes.dtype.kind == "O" and not all(isinstance(one, str) for one in classes):
        raise InputError("y", "has labels that are objects other than texts", "Learn with numbers or texts as labels")
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def taken_classes(stored: Any) -> NDArray[Any]:
    """The labels of a file: at least two, in order, each once."""
    require(isinstance(stored, dict) and set(stored) == {"dtype", "values"}, "there are no classes")
    dtype, values = np.dtype(str(stored["dtype"])), stored["values"]
    require(dtype.kind in CLASS_KINDS and dtype.fields is None, f"labels are of the kind {dtype.kind!r}")
    require(dtype.itemsize <= 2**16, "labels are longer than any text that was learned")
    require(isinstance(values, list) and len(values) >= 2, "there are fewer than two classes")
    wanted: Any = str if dtype.kind in "UO" else bool if dtype.kind == "b" else (int, float)
    require(all(isinstance(one, wanted) for one in values), "a label is not of its kind")
    made = np.array(values, dtype=dtype)
    require(bool((made[1:] > made[:-1]).all()), "the classes are not in order, each once")
    return made


def with_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """These arrays under longer names."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Those that have this prefix, without it; they are taken out of `arrays`."""
    names = [name for name in arrays if name.startswith(f"{prefix}.")]
    return {name[len(prefix) + 1 :]: arrays.pop(name) for name in names}


def require(holds: bool, otherwise: str) -> None:
    """ValueError, in these words, unless it holds."""
    if not holds:
        raise ValueError(otherwise)
