"""A fitted linear model together with the encoder of its table, in one file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import NDArray

from longterm._base.extras import import_optional
from longterm.data.encoder import Missing, TableEncoder
from longterm.errors import InputError, SnapshotError
from longterm.storage.saved import Saved
from longterm.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from longterm.data.labelled import Labelled

ESTIMATORS = (
    "BudgetLinearClassifier",
    "BudgetLinearRegressor",
    "BudgetPathClassifier",
    "BudgetPathRegressor",
    "FairLinearClassifier",
)
"""The names of the classes in `longterm.linear_model` whose models can be stored."""


@dataclass(frozen=True, eq=False)
class TableModel(Saved):
    """A fitted model that takes raw data frames. `Labelled.fit` makes one.

    Parameters
    ----------
    encoder : TableEncoder
        Turns a data frame into features.
    model : estimator
        A fitted estimator of `longterm.linear_model`.

    Examples
    --------
    >>> import pandas as pd
    >>> from longterm.data import TableModel, from_frame
    >>> from longterm.linear_model import BudgetLinearClassifier
    >>> frame = pd.DataFrame({"age": [30, 50] * 20, "city": ["Bern", "Rome"] * 20, "left": ["no", "yes"] * 20})
    >>> model = from_frame(frame, "left").fit(BudgetLinearClassifier(random_state=0))
    >>> stored = model.to_bytes()  # or save(path)
    >>> TableModel.from_bytes(stored).predict(pd.DataFrame({"city": ["Rome"], "age": [60]})).tolist()
    ['yes']
    """

    file_kind: ClassVar[str] = "table model"
    encoder: TableEncoder
    model: Any

    @classmethod
    def fitted(cls, rows: Labelled, model: Any, **options: Any) -> Self:
        """Fit a model to the rows of a table, with the names of their features. Options are those of its `fit`."""
        if rows.encoder is None:
            raise InputError("rows", "are not those of a table", "Fit the model to their features and labels")
        return cls(rows.encoder, model.fit(_named(rows.encoder, rows.features), rows.labels, **options))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a data frame needs."""
        return (*self.encoder.numbers, *self.encoder.values)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes as the table has them."""
        return np.asarray(self.model.classes_)

    def predict(self, frame: Any) -> NDArray[Any]:
        """Return the class or target that the model predicts for each row of a data frame."""
        return np.asarray(self.model.predict(self._features(frame)))

    def predict_proba(self, frame: Any) -> NDArray[Any]:
        """Return the probability of each class for each row of a data frame."""
        return np.asarray(self.model.predict_proba(self._features(frame)))

    def partial_fit(self, frame: Any, labels: Any, **options: Any) -> Self:
        """Learn the rows of a data frame once, in their order. Options are those of the model's `partial_fit`."""
        self.model.partial_fit(self._features(frame), labels, **options)
        return self

    def summary(self, top: int = 20) -> Any:
        """Return the table of the model's largest weights."""
        return self.model.summary(top)

    def _features(self, frame: Any) -> Any:
        return _named(self.encoder, self.encoder.transform(frame))

    # --- files ------------------------------------------------------------------------------------------------

    def _snapshot(self) -> Snapshot:
        name, encoder = type(self.model).__name__, self.encoder
        if name not in ESTIMATORS:
            raise InputError("model", f"a {name} cannot be stored", f"Use one of {', '.join(ESTIMATORS)}")
        metadata = {
            "estimator": name,
            "numbers": list(encoder.numbers),
            "values": [[column, list(values)] for column, values in encoder.values.items()],
            "fills": [encoder.fills[column] for column in encoder.numbers],
            "missing": encoder.missing,
        }
        arrays = {"model": np.frombuffer(self.model.to_bytes(), dtype=np.uint8), "scale": encoder.scale}
        return Snapshot(self.file_kind, self.file_version, metadata, arrays)

    @classmethod
    def _from_snapshot(cls, stored: Snapshot, path: Path) -> Self:
        try:
            encoder = _checked_encoder(dict(stored.metadata), np.asarray(stored.arrays["scale"]))
            name, data = stored.metadata["estimator"], np.asarray(stored.arrays["model"])
            if name not in ESTIMATORS or data.dtype != np.uint8 or data.ndim != 1:
                raise ValueError("it holds no model of this library")
            model = getattr(import_module("longterm.linear_model"), name).from_bytes(data.tobytes())
            if model.n_features_in_ != len(encoder.columns):
                raise ValueError("its model has other features than its encoder")
        except (KeyError, TypeError, ValueError) as error:
            reason = f"it does not describe a table model ({error})"
            raise SnapshotError(
                path, "damaged", reason, "Give a file or bytes that save() or to_bytes() wrote"
            ) from None
        return cls(encoder, model)


def _named(encoder: TableEncoder, features: Any) -> Any:
    """Return features as a data frame with the names of the encoder."""
    pandas: Any = import_optional("pandas", "tables need pandas", "experiments")
    return pandas.DataFrame(features, columns=list(encoder.columns))


def _checked_encoder(metadata: dict[str, Any], scale: NDArray[Any]) -> TableEncoder:
    """Return the encoder of a file. Raise ValueError, TypeError or KeyError if it is not valid."""
    numbers, fills, missing = tuple(metadata["numbers"]), metadata["fills"], metadata["missing"]
    values = {column: tuple(texts) for column, texts in metadata["values"]}
    words = [*numbers, *values, *(text for texts in values.values() for text in texts)]
    if not all(isinstance(word, str) for word in words) or len({*numbers, *values}) != len(numbers) + len(values):
        raise ValueError("its columns have no names")
    known = {column: float(fill) for column, fill in zip(numbers, fills, strict=True)}
    if missing not in get_args(Missing) or not np.isfinite(list(known.values())).all():
        raise ValueError("its treatment of empty cells is not known")
    encoder = TableEncoder(numbers, values, known, scale, missing)
    if scale.dtype != np.float64 or scale.shape != (len(encoder.columns),) or not (scale > 0).all():
        raise ValueError("its features have no divisors")
    return encoder
