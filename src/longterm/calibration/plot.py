"""The figure of `Intervals`: rolling coverage, width, and the sum of errors with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from longterm._base import validate
from longterm._base.extras import missing_extra
from longterm.calibration.certificates import Bound
from longterm.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_coverage(
    history: Sequence[tuple[bool, float, tuple[str, ...]]], level: float, bound: Bound, window: int, axes: Any
) -> Figure:
    """Draw rolling coverage, widths, and the sum of errors with its certificate; return the figure."""
    validate.count("window", window)
    if len(history) < 2:
        raise InputError("history", "has fewer than two settled intervals", "Tell some outcomes first")
    if axes is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise missing_extra("figures need Matplotlib", "experiments") from error
        _, axes = plt.subplots(3, 1, figsize=(7, 7), sharex=True, layout="constrained")
    covered, widths = np.array([one[:2] for one in history], dtype=np.float64).T
    groups = [one[2] for one in history]
    rounds = np.arange(1, len(history) + 1)
    for name in sorted({name for names in groups for name in names})[:6]:
        inside = np.array([name in names for names in groups])
        axes[0].plot(rounds[inside], 100 * _rolling(covered[inside], window), linewidth=1, label=name)
    axes[0].plot(rounds, 100 * _rolling(covered, window), color="black", linewidth=2, label="all rounds")
    axes[0].axhline(100 * level, color="grey", linestyle="--", linewidth=1)
    axes[0].set_ylabel(f"coverage, %\n(last {window} rounds)")
    axes[0].legend(loc="lower right", fontsize="small", ncols=2)
    finite = np.isfinite(widths)
    axes[1].plot(rounds[finite], widths[finite], linewidth=1)
    axes[1].set_ylabel("width")
    axes[2].plot(rounds, np.cumsum(1.0 - covered - (1.0 - level)), color="black", label="misses above nominal")
    axes[2].axhspan(bound.lower[0], bound.upper[0], alpha=0.15, label=f"certificate ({bound.theorem})")
    axes[2].set(xlabel="round", ylabel="sum of errors")
    axes[2].legend(loc="best", fontsize="small")
    return cast("Figure", axes[0].figure)


def _rolling(values: Any, window: int) -> Any:
    """Return the mean over the last `window` values, fewer at the beginning."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    start = np.maximum(np.arange(1, len(sums)) - window, 0)
    return (sums[1:] - sums[start]) / (np.arange(1, len(sums)) - start)
