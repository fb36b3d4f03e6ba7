"""Batches of a Parquet file in little memory, however large its row groups are.

A reader keeps a page and a dictionary of every column that it reads, about 2 MB with the default settings of most
writers. If all columns of a group would take more than `READ_TOGETHER`, slices of the group are put together from
bundles of columns, which are read one after the other. Each slice reads its group from the beginning, since pages
cannot be skipped. This takes less time than learning from the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

COLUMN_BYTES = 2**21
"""A decoded page and a dictionary of a column."""
READ_TOGETHER = 2**25
"""The bytes that columns which are read together may take."""
SLICE_BYTES = 2**26
"""The bytes of a slice of all columns, with 8 for each number."""
BUFFER_BYTES = 2**16
"""The bytes that are read from the disk at once, for each column."""


def open_parquet(parquet: Any, path: Any) -> Any:
    """Open a file with `pyarrow.parquet` so that columns are read page by page, and not a whole group at once."""
    return parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES, page_checksum_verification=True)


def parquet_batches(
    file: Any, columns: Sequence[str], skip: int, batch_rows: int, release: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of an open file after the first `skip`: columns of Arrow by name, at most `batch_rows` long.

    `release` returns unused memory of Arrow to the system.
    """
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if skip < rows:
            yield from _of_group(file, group, columns, skip, batch_rows, release)
        skip = max(skip - rows, 0)


def _of_group(
    file: Any, group: int, columns: Sequence[str], skip: int, batch_rows: int, release: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a group after the first `skip`."""
    metadata = file.metadata.row_group(group)
    bundles, rows = _bundles(metadata, columns), metadata.num_rows
    if len(bundles) == 1:
        yield from _read(file, group, bundles[0], skip, rows, batch_rows)
        return
    step = max(SLICE_BYTES // (8 * len(columns) * batch_rows), 1) * batch_rows
    for begin in range(skip // step * step, rows, step):
        begin, end = max(begin, skip), min(begin + step, rows)
        release()
        parts = [list(_read(file, group, bundle, begin, end, batch_rows)) for bundle in bundles]
        for part in parts:
            part.reverse()
        while parts[0]:
            yield {name: column for part in parts for name, column in part.pop().items()}


def _bundles(metadata: Any, columns: Sequence[str]) -> list[list[str]]:
    """Return the columns of a group in bundles, each small enough to be read at once."""
    sizes = dict.fromkeys(columns, 0)
    for number in range(metadata.num_columns):
        chunk = metadata.column(number)
        if chunk.path_in_schema in sizes:
            sizes[chunk.path_in_schema] = min(chunk.total_uncompressed_size, COLUMN_BYTES)
    bundles: list[list[str]] = [[]]
    together = 0
    for name, size in sizes.items():
        if bundles[-1] and together + size > READ_TOGETHER:
            bundles.append([])
            together = 0
        bundles[-1].append(name)
        together += size
    return bundles


def _read(
    file: Any, group: int, columns: Sequence[str], begin: int, end: int, batch_rows: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a group from `begin` to `end` of some columns."""
    row = 0
    for batch in file.iter_batches(batch_rows, row_groups=[group], columns=columns, use_threads=False):
        first, last = max(begin - row, 0), min(end - row, batch.num_rows)
        row += batch.num_rows
        if first < last:
            part = batch.slice(first, last - first)
            yield {name: part.column(name) for name in columns}
        if row >= end:
            return
