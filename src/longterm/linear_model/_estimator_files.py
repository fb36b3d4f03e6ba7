"""Estimators in files without pickle: parameters, classes, names of features, and the state of every learner.

A checksum shows only that a file is as it was written. So everything that is read is validated.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from longterm.errors import InputError, SnapshotError
from longterm.linear_model._attributes import MODELS, FittedAttributes
from longterm.linear_model._passes import RecentAverage
from longterm.linear_model._stored import require
from longterm.linear_model.evolving import EvolvingLinearLearner
from longterm.linear_model.streaming import BudgetLinearLearner
from longterm.storage.saved import Saved
from longterm.storage.snapshot import Snapshot

CLASS_KINDS = "biufUO"
"""The dtype kinds of labels: booleans, numbers, texts."""
LONGEST_LABEL = 2**16
"""The largest item size of a label, in bytes."""


class StoredModel(FittedAttributes, Saved):
    """Mixin: an estimator in one file."""

    file_kind = "budget linear estimator"
    loss: str
    n_features_in_: int

    def _snapshot(self) -> Snapshot:
        check_is_fitted(self)
        metadata, arrays = self._stored_parts()
        names = inspect.signature(type(self)).parameters
        parameters = {name: _to_json(name, getattr(self, name)) for name in names}
        metadata = {"class": type(self).__name__, "parameters": parameters, **metadata}
        return Snapshot(self.file_kind, self.file_version, metadata, arrays)

    @classmethod
    def _from_snapshot(cls, stored: Snapshot, path: Path) -> Self:
        metadata = dict(stored.metadata)
        found = metadata.pop("class", None)
        if found != cls.__name__:
            what = f"it holds a {found!r:.60}, not a {cls.__name__}"
            raise SnapshotError(path, "foreign", what, "Load it with the class that wrote it")
        try:
            model = cls(**_stored_parameters(cls, metadata.pop("parameters", None)))
            with np.errstate(all="ignore"):
                cls._take_parts(model, metadata, dict(stored.arrays))
        except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
            reason = f"it does not describe a {cls.__name__} ({error})"
            raise SnapshotError(
                path, "damaged", reason, "Give a file or bytes that save() or to_bytes() wrote"
            ) from None
        return model

    def _stored_learners(self) -> list[BudgetLinearLearner]:
        return self._learners

    def _count_models(self) -> int:
        """Return how many learners one model has."""
        return 1

    def _stored_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {}
        specifications = []
        for number, learner in enumerate(self._stored_learners()):
            state = learner.__getstate__()
            specifications.append(state["specification"])
            arrays |= {f"learner.{number}.{name}": array for name, array in state["arrays"].items()}
        for number, average in enumerate(self._averages):
            arrays |= {f"average.{number}.mean": average.mean, f"average.{number}.nonzero": average.nonzero}
        metadata = {
            "feature_names": [str(name) for name in getattr(self, "feature_names_in_", ())],
            "fitted": self._fitted,
            "averaged": [average.count for average in self._averages],
            "multipliers": self._multipliers,
            "learner_version": BudgetLinearLearner.file_version,
            "learners": specifications,
        }
        return metadata, arrays

    def _take_parts(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        wanted = {"feature_names", "fitted", "averaged", "multipliers", "learner_version", "learners"}
        require(set(metadata) == wanted, f"it has {sorted(map(str, metadata))}, not {sorted(wanted)}")
        version, specifications = metadata["learner_version"], metadata["learners"]
        known = BudgetLinearLearner.file_version
        require(version == known, f"its learners are version {version!r:.20}, not {known}")
        require(isinstance(specifications, list) and len(specifications) > 0, "there are no learners")
        learners = [_stored_learner(number, one, arrays) for number, one in enumerate(specifications)]
        first = learners[0].settings
        for learner in learners:
            own = learner.settings
            fits = (own.dimension, own.loss, own.loss_parameter) == (first.dimension, first.loss, first.loss_parameter)
            require(fits, "its learners do not belong together")
        require(first.classifies == hasattr(self, "classes_"), "its loss is not one of this estimator")
        require(type(self.loss) is str, "its loss has no name")
        take_names(self, metadata["feature_names"], first.dimension)
        require(type(metadata["fitted"]) is bool, "fitted is neither true nor false")
        require(self.predict_with in MODELS, f"{self.predict_with!r:.40} is not known")
        self._fitted, self._models_cache = metadata["fitted"], {}
        self._take_learners(learners, arrays)
        self._take_averages(metadata["averaged"], arrays)
        multipliers = metadata["multipliers"]
        sound = isinstance(multipliers, list) and all(type(one) is float and 0 <= one < math.inf for one in multipliers)
        require(sound and len(multipliers) in (0, self._count_models()), "the multipliers are not those of its models")
        self._multipliers = multipliers
        require(not arrays, "it has arrays that no estimator has")

    def _take_learners(self, learners: list[BudgetLinearLearner], arrays: dict[str, NDArray[Any]]) -> None:
        count = self._count_models()
        require(len(learners) == count, f"{len(learners)} learners are not {count}")
        require(len({learner.rounds for learner in learners}) == 1, "its learners have different numbers of rounds")
        self._learners = learners

    def _take_averages(self, counts: Any, arrays: dict[str, NDArray[Any]]) -> None:
        sound = isinstance(counts, list) and all(type(count) is int and count >= 1 for count in counts)
        require(sound and len(counts) in (0, self._count_models()), "the averages are those of no learner")
        self._averages = []
        for number, count in enumerate(counts):
            mean, nonzero = arrays.pop(f"average.{number}.mean"), arrays.pop(f"average.{number}.nonzero")
            for array, length in ((mean, self.n_features_in_ + 1), (nonzero, self.n_features_in_)):
                fits = array.dtype == np.float64 and array.shape == (length,) and bool(np.isfinite(array).all())
                require(fits, "an average is not one of these features")
            self._averages.append(RecentAverage(count, mean, nonzero))


# --- parameters -----------------------------------------------------------------------------------------------


def _stored_parameters(cls: type, stored: Any) -> dict[str, Any]:
    names = set(inspect.signature(cls).parameters)
    require(isinstance(stored, dict) and set(stored) <= names, "it has parameters that the class does not have")
    return {name: _from_json(value) for name, value in stored.items()}


def _to_json(name: str, value: Any) -> Any:
    """Return a parameter as JSON: a number, a text, a list of them, or a mapping as its pairs."""
    if isinstance(value, Mapping):
        return {"pairs": [[_to_json(name, key), _to_json(name, item)] for key, item in value.items()]}
    plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    plain = list(plain) if isinstance(plain, Sequence) and not isinstance(plain, str) else plain
    if not all(_is_scalar(item) for item in (plain if isinstance(plain, list) else [plain])):
        what = f"{type(value).__name__} cannot be stored"
        raise InputError(name, what, "Replace it with set_params by a number, a text, or a mapping or sequence of them")
    return plain


def _from_json(value: Any) -> Any:
    """Return the parameter that `_to_json` stored."""
    if isinstance(value, dict):
        require(set(value) == {"pairs"}, "a parameter is of no known kind")
        value = dict(value["pairs"])
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
    require(all(_is_scalar(item) for item in items), "a parameter holds more than numbers and texts")
    return value


def _is_scalar(value: Any) -> bool:
    finite = not isinstance(value, float) or math.isfinite(value)
    return value is None or (isinstance(value, bool | int | float | str) and finite)


# --- names and classes ----------------------------------------------------------------------------------------


def take_names(model: Any, names: Any, dimension: int) -> None:
    """Set `n_features_in_` and, where there are names, `feature_names_in_`."""
    model.n_features_in_ = dimension
    if names != []:
        fits = isinstance(names, list) and len(names) == dimension and all(isinstance(name, str) for name in names)
        require(fits, f"there are not {dimension} names of features")
        model.feature_names_in_ = np.array(names, dtype=object)


def stored_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Return labels as JSON; labels that are objects must be texts."""
    if classes.dtype.kind == "O" and not all(isinstance(one, str) for one in classes):
        raise InputError("y", "has labels that are neither numbers nor texts", "Use numbers or texts as labels")
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


def _stored_learner(number: int, specification: Any, arrays: dict[str, NDArray[Any]]) -> BudgetLinearLearner:
    """Return a learner from its specification, and take its arrays out of `arrays`."""
    require(isinstance(specification, dict), f"learner {number} has no specification")
    kind = EvolvingLinearLearner if "half_life" in specification else BudgetLinearLearner
    prefix = f"learner.{number}."
    own = {name.removeprefix(prefix): arrays.pop(name) for name in list(arrays) if name.startswith(prefix)}
    learner = kind.__new__(kind)
    learner.__setstate__({"specification": specification, "arrays": own})
    return learner
