"""Rows of Parquet and CSV files in batches, so that a model learns from more rows than fit into the memory."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm._base.extras import import_optional
from longterm._base.progress import Progress, reporter
from longterm.data.file_table import BATCH_ROWS, Batch, Files, FileTable
from longterm.errors import DataError, InputError, LongtermError

M = TypeVar("M")
WIDENED = ("intercept_bound", "residual_radius")
"""The settings that a learner changes by itself."""


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
    return FileTable(files, label, drop).batches(skip, validate.count("batch_rows", batch_rows))


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
    saved, and more files at the end of the list are learned on top. The count is all that the model knows of the files:
    do not change, remove or reorder those that it has learned.

    Parameters
    ----------
    model : estimator or learner
        An object of `longterm.linear_model` with `partial_fit` or `learn`. The rows that it has learned already are
        taken for the first rows of the files.
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
        If `out` holds a model with other parameters, or cannot be written.
    DataError
        If a file cannot be read, or the files have no rows, or fewer than the model has learned.
    """
    table, save_every = FileTable(files, label, drop), validate.count("save_every", save_every)
    path = None if out is None else Path(out)
    if path is not None and path.exists():
        model = _continued(model, path)
    elif path is not None and not os.access(path.parent, os.W_OK):
        raise InputError("out", f"{path.parent} is not a writable folder", "Create it, or give another file")
    learn, saved = _learning(model, table), _rounds(model)
    total, done = table.rows(), saved
    with reporter(progress, "learn", unit="rows", before=saved) as report:
        for batch in table.batches(saved, validate.count("batch_rows", batch_rows)):
            try:
                learn(batch.features, batch.labels)
            except ValueError as error:
                if isinstance(error, LongtermError):
                    raise
                what = f"cannot be learned from row {batch.before + 1} on: {error}"
                raise InputError("files", what, "Give rows of the table that the model has learned") from error
            done = batch.before + len(batch.labels)
            report(done, total)
            if path is not None and done - saved >= save_every:
                model.save(path)  # type: ignore[attr-defined]
                saved = done
    if not done:
        raise DataError(table.files[-1], "has no rows, and neither has any file before it", "Give files with rows")
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


def _learning(model: Any, table: FileTable) -> Callable[[FloatArray, NDArray[Any]], object]:
    """Return the function that learns a batch: with the names of features and with all classes, for an estimator."""
    if hasattr(model, "learn"):
        learn: Callable[[FloatArray, NDArray[Any]], object] = model.learn
        return learn
    if not hasattr(model, "partial_fit"):
        raise InputError("model", f"is a {type(model).__name__}, which cannot learn in batches", "Use partial_fit")
    pandas: Any = import_optional("pandas", "estimators of files need pandas", "parquet")
    if hasattr(model, "feature_names_in_"):
        table.use_order(model.feature_names_in_.tolist())
    first: dict[str, Any] = {}
    if "classes" in inspect.signature(model.partial_fit).parameters and not hasattr(model, "classes_"):
        first["classes"] = table.classes()

    def learn_named(features: FloatArray, labels: NDArray[Any]) -> None:
        if labels.dtype.kind == "U" and not hasattr(model, "classes_") and not first:
            raise InputError("label", f"column {table.label!r} holds text", "Use a loss of classes, or give numbers")
        model.partial_fit(pandas.DataFrame(features, columns=table.features, copy=False), labels, **first)
        first.clear()

    return learn_named
