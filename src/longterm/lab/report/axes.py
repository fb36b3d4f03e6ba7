"""Axes and panels of figures, and the growth of curves."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.lab.experiments.result import Result, growth

MAX_DECADES = 4
"""Powers of ten on either side of a signed axis; more would hide the curves."""
MIN_ROUNDS = 3
"""Recorded rounds in the last decade that a fit needs."""


class AxisScale(NamedTuple):
    """A vertical axis."""

    kind: Literal["log", "symlog"]
    """Logarithmic, or logarithmic on both sides of zero."""
    threshold: float
    """A signed axis is linear between ± this."""


def logarithmic_scale(values: FloatArray) -> AxisScale:
    """Return a logarithmic axis for positive values, else a signed one.

    Examples
    --------
    >>> import numpy as np
    >>> logarithmic_scale(np.array([1.0, 30.0])), logarithmic_scale(np.array([-1.0, 300.0]))
    (AxisScale(kind='log', threshold=0.0), AxisScale(kind='symlog', threshold=1.0))
    """
    finite = values[np.isfinite(values)]
    if np.all(finite > 0):
        return AxisScale("log", 0.0)
    size = np.abs(finite[finite != 0])
    if not size.size:
        return AxisScale("symlog", 1.0)
    lowest, highest = np.floor(np.log10(np.quantile(size, 0.05, method="lower"))), np.ceil(np.log10(size.max()))
    return AxisScale("symlog", float(10.0 ** max(lowest, highest - MAX_DECADES)))


def scale_of(result: Result, measure: str) -> AxisScale:
    """Return the axis for the means of all curves; a band may leave it at its lower end."""
    return logarithmic_scale(np.concatenate([curve.mean(measure) for curve in result.curves]))


def panels(result: Result) -> list[tuple[str, ...]]:
    """Return the measures of each panel: regret, then the violations, equal ones in one panel.

    Where g ≥ 0 everywhere, the signed and the hard violation are equal. With one constraint, the signed and the
    long-term violation are equal.
    """
    regret, *violations = result.measures
    groups: list[tuple[str, ...]] = [(regret,)]
    for measure in violations:
        for k, group in enumerate(groups[1:], start=1):
            if all(np.allclose(c.measures[group[0]], c.measures[measure], rtol=1e-9, atol=1e-9) for c in result.curves):
                groups[k] = (*group, measure)
                break
        else:
            groups.append((measure,))
    return groups


def last_decade_slope(rounds: NDArray[np.int64], values: FloatArray) -> float | None:
    """Fit the a of |values| ≈ c·t^a by least squares in logarithms over the rounds t ≥ T/10.

    Return None if a value is zero, missing or of another sign, or if there are fewer than three rounds.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.array([1, 10, 20, 50, 100])
    >>> round(last_decade_slope(t, -3 * t**0.75), 6), last_decade_slope(t, t - 50.0)
    (0.75, None)
    """
    last = 10 * rounds >= rounds[-1]
    t, decade = rounds[last].astype(np.float64), np.asarray(values, dtype=np.float64)[last]
    if len(t) < MIN_ROUNDS or not np.all(np.isfinite(decade)) or not (np.all(decade > 0) or np.all(decade < 0)):
        return None
    return growth(t, np.abs(decade))
