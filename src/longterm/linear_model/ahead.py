"""All kernels ahead of the first request, or into an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from longterm.linear_model.kernels.layout import AFTRL, AOGD, PENALISED_FTRL, SPARSE_AFTRL
from longterm.linear_model.kernels.play import block_kernel, row_kernel, sparse_row_kernel
from longterm.linear_model.kernels.rule import CODES
from longterm.linear_model.kernels.score import (
    dense_squares,
    losses_kernel,
    margin_kernel,
    slopes_kernel,
    sparse_squares,
    unsorted_row_kernel,
)

VALUES, INDICES = ("float64", "float32"), (None, "int32", "int64")


def compile_all(*rules: str) -> int:
    """Compile every kernel of linear models, or find it on disk, so that no request waits for one.

    The first call on a machine takes a minute or two, the next ones a second or two. Call it where a service starts,
    or while an image is built: `docs/linear_model.md` says how.

    Parameters
    ----------
    *rules : str
        Those that are wanted: "a-ftrl", "a-ogd", "penalised-ftrl", "mahdavi"; all of them by default.

    Returns
    -------
    int
        How many kernels are ready.
    """
    ready = 0
    codes = {CODES[rule] for rule in rules} if rules else {AFTRL, AOGD, PENALISED_FTRL}
    for code in sorted(codes | ({SPARSE_AFTRL} if AFTRL in codes else set())):
        for values in VALUES:
            for indices in INDICES:
                if indices is not None or code != SPARSE_AFTRL:
                    kind = (values,) if indices is None else (values, indices)  # as `CompiledRule` asks for it
                    block_kernel(code, *kind)
                    ready += 1
        if code == SPARSE_AFTRL:
            others: list[Callable[[], Any]] = [sparse_row_kernel, margin_kernel, unsorted_row_kernel]
        else:
            others = [partial(row_kernel, code)]
        ready += _made(others)
    if codes & {AFTRL, PENALISED_FTRL}:  # features may be scaled, and the past may fade
        ready += _made([dense_squares, sparse_squares, losses_kernel, slopes_kernel])
    return ready


def _made(kernels: Sequence[Callable[[], Any]]) -> int:
    for kernel in kernels:
        kernel()
    return len(kernels)
