"""Compilation of all kernels ahead of the first request, or into an image."""

from __future__ import annotations

from longterm.linear_model.kernels.kernel_state import CODES, dense_kernel, sparse_kernel
from longterm.linear_model.kernels.layout import AFTRL, PENALISED_FTRL
from longterm.linear_model.kernels.losses import evaluation_kernel
from longterm.linear_model.kernels.moments import dense_moments, scale_entries

VALUES, INDICES = ("float64", "float32"), ("int32", "int64")


def compile_all(*rules: str) -> int:
    """Compile every kernel of linear models, or load it from the cache, so that no request waits for it.

    The first call takes up to a minute, later ones about a second. `docs/guides/linear_model.md` has an example.

    Parameters
    ----------
    *rules : str
        The rules to compile: "a-ftrl", "penalised-ftrl"; all of them by default.

    Returns
    -------
    int
        The number of kernels that are ready.
    """
    codes = {CODES[rule] for rule in rules} if rules else {AFTRL, PENALISED_FTRL}
    kernels = [dense_kernel(code, values) for code in sorted(codes) for values in VALUES]
    if AFTRL in codes:
        kernels += [
            sparse_kernel(values, indices, binds) for values in VALUES for indices in INDICES for binds in (False, True)
        ]
    return len([*kernels, evaluation_kernel(), dense_moments(), scale_entries()])
