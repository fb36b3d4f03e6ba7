"""Rows of Parquet and CSV files in batches, so that a model learns from more rows than fit into the memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.extras import import_optional
from longterm._base.messages import did_you_mean
from longterm._base.progress import Progress, reporter
from longterm.errors import DataError, InputError

Files = str | PathLike[str] | Sequence[str | PathLike[str]]
M = TypeVar("M")
BATCH_ROWS = 8192
CSV_BLOCK = 2**22
"""The bytes of a CSV file that are parsed at once."""
MOST_CLASSES = 100
"""More different labels are taken for targets."""
WIDENED = ("intercept_bound", "residual_radius")
"""The settings that a learner changes by itself."""


class Batch(NamedTuple):
    """Rows of one file: the number of rows before them in all files, their features, and their labels as written."""

    before: int
    features: FloatArray
    labels: NDArray[Any]


def read_batches(
    files: Files, label: str, *, drop: str | Sequence[str] = (), skip: int = 0, batch_rows: int = BATCH_ROWS
) -> Iterator[Batch]:
    r"""Return the rows of files in batches, in the order of the files (extra `parquet`: pyarrow).

    Parameters
    ----------
    files : path, or sequence of paths
        Parquet or CSV files with the same columns. A folder stands for its Parquet and CSV files, sorted by name.
    label : str
        The column of the labels. All other columns are features and must hold numbers or booleans.
    drop : str or sequence of str
        Columns to leave out.
    skip : int
        The number of rows to leave out at the beginning.
    batch_rows : int
        The largest number of rows in a batch of a Parquet file. Batches of a CSV file have about 4 MB of text.

    Returns
    -------
    iterator of Batch
        Batches of at least one row, with the number of rows before them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longterm.data import read_batches
    >>> file = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> size = file.write_text("age,y\n30,0\n50,1\n70,1\n")
    >>> [(batch.before, batch.features.tolist(), batch.labels.tolist()) for batch in read_batches(file, "y", skip=1)]
    [(1, [[50.0], [70.0]], [1, 1])]
    """
    if skip < 0:
        raise InputError("skip", f"is {skip}", "Give a number of rows, 0 for none")
    return _Table(files, label, drop).batches(skip, validate.count("batch_rows", batch_rows))


def learn_files(
    model: M,
    files: Files,
    label: str,
    *,
    drop: str | Sequence[str] = (),
    out: str | PathLike[str] | None = None,
    save_every: int = 100_000,
    batch_rows: int = BATCH_ROWS,
    progress: Progress = "auto",
) -> M:
    """Learn the rows of files once, in their order, and return the model.

    The weights are those of one pass in the memory, bit for bit, whatever the size of the batches. With `out` the model
    is saved on the way. The model counts its rows, so a call after a crash continues behind the last row that was
    saved, and more files at the end of the list are learned on top.

    Parameters
    ----------
    model : estimator or learner
        An object of `longterm.linear_model` with `partial_fit` or `learn`.
    files, label, drop, batch_rows : optional
        As for `read_batches`. Give the same files in the same order to continue.
    out : path, optional
        The file of the model. If it exists, learning continues with the model in it.
    save_every : int
        The number of rows after which the model is saved. It is always saved at the end.
    progress : callable, "auto" or None
        A function of the rows learned and their total, if it is known. "auto": a bar on a terminal.

    Returns
    -------
    estimator or learner
        The model: that of `out`, if the file exists, otherwise the one that was given.

    Raises
    ------
    InputError
        If `out` holds a model with other parameters.
    DataError
        If a file cannot be read, or the files have fewer rows than the model has learned.
    """
    table, save_every = _Table(files, label, drop), validate.count("save_every", save_every)
    path = None if out is None else Path(out)
    if path is not None and path.exists():
        model = _continued(model, path)
    learn, saved = _learning(model, table), _rounds(model)
    total, done = table.rows(), saved
    with reporter(progress, "learn", unit="rows") as report:
        for batch in table.batches(saved, validate.count("batch_rows", batch_rows)):
            learn(batch.features, batch.labels)
            done = batch.before + len(batch.labels)
            report(done, total)
            if path is not None and done - saved >= save_every:
                model.save(path)  # type: ignore[attr-defined]
                saved = done
    if path is not None and (done > saved or not path.exists()):
        model.save(path)  # type: ignore[attr-defined]
    return model


def _rounds(model: Any) -> int:
    """Return the number of rows that a model has learned."""
    return int(model.rounds if hasattr(model, "rounds") else getattr(model, "n_rounds_", 0))


def _continued(model: M, path: Path) -> M:
    """Return the model of a file. Raise if its parameters are not those of `model`."""
    found = type(model).load(path)  # type: ignore[attr-defined]
    theirs, ours = _parameters(found), _parameters(model)
    different = [name for name in ours if theirs.get(name) != ours[name]]
    if different:
        name = different[0]
        what = f"{path} holds a model with {name} = {theirs.get(name)!r}, not {ours[name]!r}"
        raise InputError("out", what, "Give the same parameters to continue, or another file")
    return found  # type: ignore[no-any-return]


def _parameters(model: Any) -> dict[str, Any]:
    if hasattr(model, "get_params"):
        return dict(model.get_params())
    return {name: value for name, value in asdict(model.settings).items() if name not in WIDENED}


def _learning(model: Any, table: _Table) -> Callable[[FloatArray, NDArray[Any]], object]:
    """Return the function that learns a batch: with the names of features and with all classes, for an estimator."""
    if hasattr(model, "learn"):
        learn: Callable[[FloatArray, NDArray[Any]], object] = model.learn
        return learn
    if not hasattr(model, "partial_fit"):
        raise InputError("model", f"is a {type(model).__name__}, which cannot learn in batches", "Use partial_fit")
    pandas: Any = import_optional("pandas", "estimators of files need pandas", "parquet")
    first: dict[str, Any] = {}
    if "classes" in inspect.signature(model.partial_fit).parameters and not hasattr(model, "classes_"):
        first["classes"] = table.classes()

    def learn_named(features: FloatArray, labels: NDArray[Any]) -> None:
        if labels.dtype.kind == "U" and not hasattr(model, "classes_") and not first:
            raise InputError("label", f"column {table.label!r} holds text", "Use a loss of classes, or give numbers")
        model.partial_fit(pandas.DataFrame(features, columns=table.features, copy=False), labels, **first)
        first.clear()

    return learn_named


class _Table:
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
        columns = self._columns(self.files[0])
        for name in (label, *sorted(dropped)):
            if name not in columns:
                what = f"has no column {name!r}{did_you_mean(name, columns)}"
                raise DataError(self.files[0], what, f"Choose from {columns[:12]}")
        self.features = [name for name in columns if name != label and name not in dropped]
        for file in self.files[1:]:
            different = (set(self._columns(file)) ^ set(columns)) - dropped
            if different:
                what = f"differs from {self.files[0].name} in the columns {sorted(different)[:12]}"
                raise DataError(file, what, "Give files of one table")

    def rows(self) -> int | None:
        """Return the number of rows, or None if it is not known without reading a CSV file."""
        if any(map(_is_csv, self.files)):
            return None
        return sum(int(self._parquet.read_metadata(file).num_rows) for file in self.files)

    def classes(self) -> NDArray[Any]:
        """Return the different labels, sorted, from a pass over their column."""
        found: set[Any] = set()
        for file in self.files:
            for batch in self._parts(file, [], 0, BATCH_ROWS)[1]:
                found |= set(self._labels(batch, file, 1).tolist())
                if len(found) > MOST_CLASSES:
                    what = f"column {self.label!r} has more than {MOST_CLASSES} different labels"
                    raise DataError(file, what, "Use a regressor, or name another column")
        if len(found) < 2:
            what = f"column {self.label!r} has the labels {sorted(found)} only"
            raise DataError(self.files[-1], what, "Give rows of two classes or more")
        return np.array(sorted(found))

    def batches(self, skip: int, batch_rows: int) -> Iterator[Batch]:
        """Yield all rows after the first `skip`."""
        before = 0
        for file in self.files:
            skipped, parts = self._parts(file, self.features, skip - before, batch_rows)
            row, before = skipped, before + skipped
            for whole in parts:
                part = whole.slice(max(skip - before, 0))
                row, before = row + whole.num_rows - part.num_rows, before + whole.num_rows - part.num_rows
                if part.num_rows:
                    line = row + 1 + _is_csv(file)
                    features = np.empty((part.num_rows, len(self.features)))
                    for place, name in enumerate(self.features):
                        features[:, place] = self._numbers(part.column(name), name, file, line)
                    yield Batch(before, features, self._labels(part, file, line))
                    row, before = row + part.num_rows, before + part.num_rows
        if before < skip:
            what = f"ends after {before} rows in all, and {skip} are to be skipped"
            raise DataError(self.files[-1], what, "Give the files that the model has learned, in the same order")

    # --- files ------------------------------------------------------------------------------------------------

    @contextmanager
    def _readable(self, file: Path) -> Iterator[None]:
        """Raise errors of Arrow as a DataError that names the file."""
        try:
            yield
        except (self._arrow.ArrowException, OSError) as error:
            raise DataError(file, f"cannot be read ({error})", "Give a Parquet file, or a CSV with a header") from error

    def _columns(self, file: Path) -> list[str]:
        with self._readable(file):
            return list(self._open_csv(file).schema.names if _is_csv(file) else self._parquet.read_schema(file).names)

    def _open_csv(self, file: Path, types: dict[str, Any] | None = None, chosen: list[str] | None = None) -> Any:
        convert = self._csv.ConvertOptions(column_types=types, include_columns=chosen)
        return self._csv.open_csv(file, self._csv.ReadOptions(block_size=CSV_BLOCK), convert_options=convert)

    def _number_types(self, file: Path) -> dict[str, Any]:
        """Return the features of a CSV file whose first rows are whole numbers or empty: they may be floats later."""
        types, floats = self._arrow.types, self._arrow.float64()
        found = {field.name: field.type for field in self._open_csv(file).schema}
        return {name: floats for name in self.features if types.is_integer(found[name]) or types.is_null(found[name])}

    def _parts(self, file: Path, features: list[str], skip: int, batch_rows: int) -> tuple[int, Iterator[Any]]:
        """Return the number of rows that are skipped without being read, and the Arrow batches after them."""
        chosen = [*features, self.label]
        with self._readable(file):
            if _is_csv(file):
                return 0, self._guarded(file, self._open_csv(file, self._number_types(file), chosen))
            opened = self._parquet.ParquetFile(file)
            sizes = [opened.metadata.row_group(number).num_rows for number in range(opened.num_row_groups)]
            first = int(np.searchsorted(np.cumsum(sizes), skip, side="right"))
            options = {"columns": chosen, "use_threads": False}
            each = (  # one group at a time, which takes half the memory of one call for all
                part
                for group in range(first, len(sizes))
                for part in opened.iter_batches(batch_rows, row_groups=[group], **options)
            )
            return sum(sizes[:first]), self._guarded(file, each)

    def _guarded(self, file: Path, parts: Any) -> Iterator[Any]:
        with self._readable(file):
            yield from parts

    # --- columns ----------------------------------------------------------------------------------------------

    def _numbers(self, column: Any, name: str, file: Path, line: int) -> NDArray[Any]:
        types = self._arrow.types
        column = column.dictionary_decode() if types.is_dictionary(column.type) else column
        kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        if not any(is_kind(column.type) for is_kind in kinds):
            remedy = "Leave it out (drop), or replace it by numbers"
            raise DataError(file, f"column {name!r} holds {column.type}, not numbers", remedy)
        values: NDArray[Any] = column.cast(self._arrow.float64()).to_numpy(zero_copy_only=False)
        finite = np.isfinite(values)
        if not finite.all():
            row = int(np.argmin(finite))
            what = f"column {name!r} is {values[row] if column[row].is_valid else 'empty'}"
            raise DataError(file, what, "Give finite numbers in every row", line=line + row)
        return values

    def _labels(self, batch: Any, file: Path, line: int) -> NDArray[Any]:
        column = batch.column(self.label)
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise DataError(file, f"column {self.label!r} is empty", "Leave such rows out", line=line + row)
        column = column.dictionary_decode() if self._arrow.types.is_dictionary(column.type) else column
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise DataError(file, f"column {self.label!r} is {values[row]}", "Leave such rows out", line=line + row)
        return values.astype(str) if values.dtype == object else values


def _expanded(path: Path) -> list[Path]:
    """Return the files of a folder, or the file."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if _is_csv(file) or file.suffix == ".parquet")
    if not path.is_file():
        raise DataError(path, "does not exist", "Give Parquet or CSV files, or their folder")
    if not _is_csv(path) and path.suffix != ".parquet":
        raise DataError(path, "does not end in .csv or .parquet", "Rename it, or convert it")
    return [path]


def _is_csv(path: Path) -> bool:
    return ".csv" in path.suffixes
