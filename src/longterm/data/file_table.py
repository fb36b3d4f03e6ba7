"""Parquet and CSV files with the same columns, read in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm._base.extras import import_optional
from longterm._base.messages import did_you_mean
from longterm.data.row_groups import open_parquet, parquet_batches
from longterm.errors import DataError, InputError

Files = str | PathLike[str] | Sequence[str | PathLike[str]]
BATCH_ROWS = 8192
BATCH_BYTES = 2**25
"""The bytes of a batch of features. Rows of very wide tables come in smaller batches."""
CSV_BLOCK = 2**22
"""The bytes of a CSV file that are parsed at once."""
MOST_CLASSES = 100
"""More different labels are taken for targets."""
PARQUET, COMPRESSED = (".parquet", ".parq", ".pq"), (".gz", ".bz2", ".lz4", ".zst")
PANDAS_INDEX = "__index_level_"
"""The beginning of the columns in which pandas stores an index without a name."""


class Batch(NamedTuple):
    """Rows of one file: the number of rows before them in all files, their features, and their labels as written."""

    before: int
    features: FloatArray
    labels: NDArray[Any]


class FileTable:
    """Files with the same columns."""

    def __init__(self, files: Files, label: str, drop: str | Sequence[str]) -> None:
        names = ("pyarrow", "pyarrow.csv", "pyarrow.parquet")
        self._arrow, self._csv, self._parquet = (
            import_optional(one, "batches need pyarrow", "parquet") for one in names
        )
        given = [files] if isinstance(files, (str, PathLike)) else list(files)
        self.files = [file for one in given for file in _expanded(Path(one))]
        if not self.files:
            raise InputError("files", "is empty", "Give Parquet or CSV files")
        self.label, dropped = label, {drop} if isinstance(drop, str) else set(drop)
        if label in dropped:
            raise InputError("drop", f"names the label {label!r}", "Leave it out of drop")
        columns = list(self._columns(self.files[0]))
        for name in (label, *sorted(dropped)):
            if name not in columns:
                what = f"has no column {name!r}{did_you_mean(name, columns)}"
                raise DataError(self.files[0], what, f"Choose from {columns[:12]}")
        self.features = [name for name in columns if name != label and name not in dropped]
        if not self.features:
            raise DataError(self.files[0], f"has no column beside {label!r}", "Give files with features")
        for file in self.files:
            kinds = self._columns(file)
            different = (set(kinds) ^ set(columns)) - dropped
            if different:
                what = f"differs from {self.files[0].name} in the columns {sorted(different)[:12]}"
                raise DataError(file, what, "Give files of one table")
            for name in self.features:
                if not (self._is_number(kinds[name]) or (_is_csv(file) and self._arrow.types.is_null(kinds[name]))):
                    what = f"column {name!r} holds {kinds[name]}, not numbers"
                    raise DataError(file, what, "Leave it out (drop), or replace it by numbers")

    def use_order(self, features: Sequence[str]) -> None:
        """Return the features in this order from now on. Raise if they are others."""
        different = set(features) ^ set(self.features)
        if different:
            what = f"has other features than the model: {sorted(different)[:12]}"
            raise DataError(self.files[0], what, "Give the features that the model has learned (drop the others)")
        self.features = list(features)

    def rows(self) -> int | None:
        """Return the number of rows, or None if it is not known without reading a CSV file."""
        counts = [self._rows(file) for file in self.files]
        return None if None in counts else sum(filter(None, counts))

    def classes(self) -> NDArray[Any]:
        """Return the different labels, sorted, from a pass over their column."""
        found: set[Any] = set()
        for file in self.files:
            for row, part in self._parts(file, [], 0, BATCH_ROWS):
                labels = self._labels(part[self.label], file, row + 1 + _is_csv(file))
                is_text = labels.dtype.kind == "U"
                if found and is_text != isinstance(next(iter(found)), str):
                    here, elsewhere = ("text", "numbers") if is_text else ("numbers", "text")
                    what = f"column {self.label!r} holds {here}, but {elsewhere} in other files"
                    raise DataError(file, what, "Write the labels of all files in the same way")
                found |= set(labels.tolist())
                if len(found) > MOST_CLASSES:
                    what = f"column {self.label!r} has more than {MOST_CLASSES} different labels"
                    raise DataError(file, what, "Use a regressor, or name another column")
        if len(found) < 2:
            what = f"column {self.label!r} has the labels {sorted(found)} only"
            raise DataError(self.files[-1], what, "Give rows of two classes or more")
        return np.array(sorted(found))

    def batches(self, skip: int, batch_rows: int) -> Iterator[Batch]:
        """Yield all rows after the first `skip`."""
        batch_rows, before = max(min(batch_rows, BATCH_BYTES // (8 * len(self.features))), 1), 0
        for file in self.files:
            rows = self._rows(file)
            if rows is not None and before + rows <= skip:
                before += rows
                continue
            of_others = before
            for row, part in self._parts(file, self.features, skip - before, batch_rows):
                before, line = of_others + row, row + 1 + _is_csv(file)
                labels = self._labels(part[self.label], file, line)
                features = np.empty((len(labels), len(self.features)))
                for place, name in enumerate(self.features):
                    features[:, place] = self._numbers(part[name], name, file, line)
                if len(labels):
                    yield Batch(before, features, labels)
                before += len(labels)
        if before < skip:
            what = f"ends after {before} rows in all, but {skip} rows have to be skipped"
            raise DataError(self.files[-1], what, "Give the files that the model has learned, in the same order")

    # --- files ------------------------------------------------------------------------------------------------

    @contextmanager
    def _readable(self, file: Path) -> Iterator[None]:
        """Raise errors of Arrow as a DataError that names the file."""
        try:
            yield
        except (self._arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise DataError(file, f"cannot be read ({error})", "Give a Parquet file, or a CSV with a header") from error

    def _columns(self, file: Path) -> dict[str, Any]:
        """Return the columns of a file and their types."""
        with self._readable(file):
            schema = self._open_csv(file).schema if _is_csv(file) else self._parquet.read_schema(file)
            names = list(schema.names)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(file, f"has the column {twice[0]!r} twice", "Give each column a name of its own")
        return {name: schema.field(name).type for name in names if not name.startswith(PANDAS_INDEX)}

    def _open_csv(self, file: Path, types: dict[str, Any] | None = None, chosen: list[str] | None = None) -> Any:
        convert = self._csv.ConvertOptions(column_types=types, include_columns=chosen, strings_can_be_null=True)
        return self._csv.open_csv(file, self._csv.ReadOptions(block_size=CSV_BLOCK), convert_options=convert)

    def _number_types(self, file: Path) -> dict[str, Any]:
        """Return the features of a CSV file whose first rows are whole numbers or empty: they may be floats later."""
        types, floats = self._arrow.types, self._arrow.float64()
        found = self._columns(file)
        return {name: floats for name in self.features if types.is_integer(found[name]) or types.is_null(found[name])}

    def _rows(self, file: Path) -> int | None:
        """Return the number of rows of a Parquet file."""
        with self._readable(file):
            return None if _is_csv(file) else int(self._parquet.read_metadata(file).num_rows)

    def _parts(
        self, file: Path, features: list[str], skip: int, batch_rows: int
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield columns of Arrow with the rows after the first `skip`, and the number of rows before them."""
        chosen, row = [*features, self.label], 0
        with self._readable(file):
            if not _is_csv(file):
                opened, row = open_parquet(self._parquet, file), max(skip, 0)
                release = self._arrow.default_memory_pool().release_unused
                for part in parquet_batches(opened, chosen, row, batch_rows, release):
                    yield row, part
                    row += len(part[self.label])
                return
            for batch in self._open_csv(file, self._number_types(file), chosen):
                first = min(max(skip - row, 0), batch.num_rows)
                yield row + first, {name: batch.column(name).slice(first) for name in chosen}
                row += batch.num_rows

    # --- columns ----------------------------------------------------------------------------------------------

    def _numbers(self, column: Any, name: str, file: Path, line: int) -> NDArray[Any]:
        """Return a column of features as floats."""
        try:
            values: NDArray[Any] = self._decoded(column).cast(self._arrow.float64()).to_numpy(zero_copy_only=False)
        except self._arrow.ArrowInvalid as error:
            what = f"column {name!r} holds numbers that a float cannot hold ({error})"
            raise DataError(file, what, "Leave it out (drop), or divide the numbers") from error
        finite = np.isfinite(values)
        if not finite.all():
            row = int(np.argmin(finite))
            what = f"column {name!r} is {values[row] if column[row].is_valid else 'empty'}"
            raise DataError(file, what, "Give finite numbers in every row", line=line + row)
        return values

    def _labels(self, column: Any, file: Path, line: int) -> NDArray[Any]:
        """Return a column of labels as numbers, booleans or text."""
        types, column = self._arrow.types, self._decoded(column)
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise DataError(file, f"column {self.label!r} is empty", "Leave such rows out", line=line + row)
        if types.is_string(column.type) or types.is_large_string(column.type) or types.is_string_view(column.type):
            return np.asarray(column.to_numpy(zero_copy_only=False).astype(str))
        if types.is_decimal(column.type):
            column = column.cast(self._arrow.float64())
        if not self._is_number(column.type):
            what = f"column {self.label!r} holds {column.type}"
            raise DataError(file, what, "Give labels that are numbers, booleans or text")
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise DataError(file, f"column {self.label!r} is {values[row]}", "Leave such rows out", line=line + row)
        return values

    def _decoded(self, column: Any) -> Any:
        return column.dictionary_decode() if self._arrow.types.is_dictionary(column.type) else column

    def _is_number(self, kind: Any) -> bool:
        """Return whether a type of Arrow is one of numbers or booleans, plain or as a dictionary."""
        types = self._arrow.types
        kind = kind.value_type if types.is_dictionary(kind) else kind
        kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        return any(is_kind(kind) for is_kind in kinds)


def _expanded(path: Path) -> list[Path]:
    """Return the files of a folder, or the file."""
    if path.is_dir():
        names = sorted(file for file in path.iterdir() if file.name[0] not in "._")
        files = [file for file in names if file.is_file() and (_is_csv(file) or _is_parquet(file))]
        if not files:
            raise DataError(path, "has no .parquet or .csv file", "Give a folder with such files, without subfolders")
        return files
    if not path.is_file():
        what = "matches no file" if set("*?[") & set(path.name) else "does not exist"
        raise DataError(path, what, "Give Parquet or CSV files, or their folder")
    if not _is_csv(path) and not _is_parquet(path):
        raise DataError(path, "does not end in .csv or .parquet", "Rename it, or convert it")
    return [path]


def _is_csv(path: Path) -> bool:
    suffixes = [one.lower() for one in path.suffixes]
    return suffixes[-1:] == [".csv"] or (suffixes[-2:-1] == [".csv"] and suffixes[-1] in COMPRESSED)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET
