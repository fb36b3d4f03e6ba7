"""The known data sets: names, publishers' addresses and checks of their content.

Files may differ from the publisher's in white space or compression. The checks therefore cover the content: the shape,
the number of rows with each label, the number of stored entries, and a hash of the parsed arrays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm._base.messages import did_you_mean
from longterm.errors import DataError, InputError

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
MULTIFLOW = "https://raw.githubusercontent.com/scikit-multiflow/streaming-datasets/master"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

Arrays = Mapping[str, NDArray[Any]]
"""The arrays of a file, by name."""


@dataclass(frozen=True)
class DataSet:
    """A published file and the expected facts of its content.

    Parameters
    ----------
    name, address, about : str
        The name, the publisher's address, and a description.
    rows, features : int
        The shape.
    entries : int
        The number of stored numbers: entries of a sparse file, rows × columns of a table.
    label_counts : mapping of float to int
        The number of rows with each label, for two classes.
    sha256 : str
        The `content_hash` of the parsed arrays.
    form : {"dense", "sparse", "columns"}
        The form of the features that `load` returns. "columns" is for `load_adult` and `load_elec2`.
    positive : float
        The label that becomes +1. The other becomes −1.
    classes : int
        The number of classes.
    """

    name: str
    address: str
    about: str
    rows: int
    features: int
    entries: int
    label_counts: Mapping[float, int]
    sha256: str = field(repr=False)
    form: Literal["dense", "sparse", "columns"] = "dense"
    positive: float = 1.0
    classes: int = 2

    @property
    def file(self) -> str:
        """The publisher's name of the file."""
        return self.address.rpartition("/")[2]

    def check(self, path: Path, arrays: Arrays, entries: int) -> None:
        """Raise DataError if the content is not that of this data set."""
        labels, counts = np.unique(arrays["labels"], return_counts=True)
        label_counts = dict(zip(labels.tolist(), counts.tolist(), strict=True))
        for what, actual, expected in (
            ("rows", len(arrays["labels"]), self.rows),
            ("stored entries", entries, self.entries),
            ("classes", len(label_counts), self.classes),
            ("label counts", label_counts if self.label_counts else {}, dict(self.label_counts)),
            ("content hash", content_hash(arrays), self.sha256),
        ):
            if actual != expected:
                reason = f"is not {self.name}: its {what} should be {expected}, found {actual}"
                raise DataError(path, reason, f"Delete it and get it again from {self.address}")


def content_hash(arrays: Arrays) -> str:
    """Return the SHA-256 of names, dtypes, shapes and numbers, sorted by name."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name} {little.dtype.str} {little.shape};".encode())
        digest.update(little.tobytes())
    return digest.hexdigest()


DATA_SETS: Mapping[str, DataSet] = {
    data.name: data
    for data in (
        DataSet(
            "ijcnn1", f"{LIBSVM}/binary/ijcnn1.bz2",
            "IJCNN 2001 challenge: a time series in order, so draw rows at random",
            rows=49_990, features=22, entries=649_870, label_counts={-1.0: 45_137, 1.0: 4_853},
            sha256="93d31a39dc6c4a965c0e37e7a9d11e01de0ca12ac22be6a55875225df029676e",
        ),
        DataSet(
            "ijcnn1.t", f"{LIBSVM}/binary/ijcnn1.t.bz2",
            "the test part of ijcnn1",
            rows=91_701, features=22, entries=1_192_113, label_counts={-1.0: 82_989, 1.0: 8_712},
            sha256="5151de08d97b53010db7778999b1186a86c8d81b3684199327cc22da19f79343",
        ),
        DataSet(
            "covtype", f"{LIBSVM}/binary/covtype.libsvm.binary.scale.bz2",
            "forest cover type 2 (+1) against the others, features in [0, 1]",
            rows=581_012, features=54, entries=6_940_438, label_counts={1.0: 297_711, 2.0: 283_301},
            sha256="ef181c9acf207dbbc8bd5fc8b3000f645c2942955aa69db290aeddb027cc8a37", positive=2.0,
        ),
        DataSet(
            "a9a", f"{LIBSVM}/binary/a9a",
            "Adult in 0-1 features: row i is row i of adult, feature 72 is Female, 73 is Male",
            rows=32_561, features=123, entries=451_592, label_counts={-1.0: 24_720, 1.0: 7_841},
            sha256="472c27f871d227b94056264d56203e222d436ae837b540cfed7ad7870c947303", form="sparse",
        ),
        DataSet(
            "a9a.t", f"{LIBSVM}/binary/a9a.t",
            "the test part of a9a",
            rows=16_281, features=123, entries=225_731, label_counts={-1.0: 12_435, 1.0: 3_846},
            sha256="bf7f4944cccd17e67df3539a0116bfecd4bdb4053b287193beff307af0bb0d6f", form="sparse",
        ),
        DataSet(
            "sector", f"{LIBSVM}/multiclass/sector/sector.scale.bz2",
            "web pages of companies in 105 sectors of industry, unit rows",
            rows=6_412, features=55_197, entries=1_045_412, label_counts={},
            sha256="c38eb846a552293aa53f8a86bd086fbb17f40359b0181bbad660c3add9f88d28", form="sparse", classes=105,
        ),
        DataSet(
            "sector.t", f"{LIBSVM}/multiclass/sector/sector.t.scale.bz2",
            "the test part of sector",
            rows=3_207, features=55_197, entries=524_492, label_counts={},
            sha256="a7ef3a0a2aa9c160dc3bbbe7824480999103af4a3d7dfbefa1000b59aca2296c", form="sparse", classes=105,
        ),
        DataSet(
            "adult", f"{UCI}/adult/adult.data",
            "incomes above 50K (+1) in the US census of 1994, as a table",
            rows=32_561, features=15, entries=488_415, label_counts={-1.0: 24_720, 1.0: 7_841},
            sha256="4d1c0851832f8998d522bfce280161b56b4ee5708d24a452bec49193f7a07b81", form="columns",
        ),
        DataSet(
            "adult.test", f"{UCI}/adult/adult.test",
            "the test part of adult",
            rows=16_281, features=15, entries=244_215, label_counts={-1.0: 12_435, 1.0: 3_846},
            sha256="f9d867e73e37dbb834c83b72d4d7973a8499bbd451745b37210b7830ec75c83b", form="columns",
        ),
        DataSet(
            "elec2", f"{MULTIFLOW}/elec.csv",
            "half-hourly prices and demands of electricity in New South Wales and Victoria, in order",
            rows=45_312, features=6, entries=271_872, label_counts={0.0: 26_075, 1.0: 19_237},
            sha256="d23039e77a581489ec7fa00d5b2271131534f08023b82cf0281b2ece1e3fadd0", form="columns",
        ),
    )
}  # fmt: skip
"""All data sets by name."""


def data_set(name: str) -> DataSet:
    """Return the data set with a name.

    Parameters
    ----------
    name : str
        A key of `DATA_SETS`.
    """
    if name not in DATA_SETS:
        what = f"{name!r} is not a known data set{did_you_mean(name, DATA_SETS)}"
        raise InputError("name", what, f"Choose from {sorted(DATA_SETS)}")
    return DATA_SETS[name]
