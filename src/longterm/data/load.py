"""Data sets as arrays: parsed once, cached, and checked every time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.data.adult import COLUMNS, parse_adult
from longterm.data.cache import cached
from longterm.data.files import fetch
from longterm.data.libsvm import Rows, parse_libsvm
from longterm.data.registry import Arrays, data_set
from longterm.errors import InputError


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with labels.

    `features` is an array (n, d), or a SciPy sparse matrix for the sets whose form is "sparse" (a9a, sector). Of two
    classes, `labels` are ±1; of more, the numbers of the classes.
    """

    name: str
    features: Any
    labels: FloatArray


@dataclass(frozen=True, eq=False)
class Adult:
    """UCI Adult: columns by the publisher's names, numbers as integers and words as strings; labels +1 above 50K."""

    columns: dict[str, NDArray[Any]]
    labels: FloatArray


def load(name: str) -> Labelled:
    """The data set of this name, downloaded where it is not here.

    ijcnn1 and covtype come as dense arrays of float64 (covtype: 251 MB), a9a and sector as sparse matrices.
    """
    data = data_set(name)
    if data.form == "columns":
        raise InputError("name", f"{name!r} is a table of named columns", "Use load_adult or load_elec2")

    def check(path: Path, arrays: Arrays) -> None:
        data.check(path, arrays, len(arrays["values"]))

    arrays = cached(name, fetch(name), lambda path: parse_libsvm(path, data.features)._asdict(), check)
    matrix = Rows(**arrays).matrix(data.features)
    labels = arrays["labels"]
    signs = np.where(labels == data.positive, 1.0, -1.0) if data.classes == 2 else labels
    return Labelled(name, matrix.toarray() if data.form == "dense" else matrix, signs)


def load_adult(part: Literal["train", "test"] = "train") -> Adult:
    """UCI Adult, the training or the test part, downloaded where it is not here."""
    if part not in ("train", "test"):
        raise InputError("part", f"{part!r} is not a part", "Choose 'train' or 'test'")
    data = data_set("adult" if part == "train" else "adult.test")

    def check(path: Path, arrays: Arrays) -> None:
        data.check(path, arrays, sum(arrays[name].size for name in COLUMNS))

    arrays = cached(data.name, fetch(data.name), parse_adult, check)
    words = {name: arrays[name].astype(np.str_) if arrays[name].dtype.kind == "S" else arrays[name] for name in COLUMNS}
    return Adult(words, arrays["labels"])
