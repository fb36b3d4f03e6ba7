"""Which kind of axis shows all of the data: logarithmic only where nothing is zero or negative."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from longterm._arrays import FloatArray
from longterm.experiments.result import Result

DECADES = 4
"""At most so many powers of ten on either side of a signed axis: more would bury the curves in what is next to zero."""


class Scale(NamedTuple):
    """A vertical axis."""

    kind: Literal["log", "symlog"]
    """Logarithmic; or logarithmic on both sides of zero."""
    threshold: float
    """A signed axis is linear between ± this."""


def logarithmic_scale(values: FloatArray) -> Scale:
    """For all the values of a panel, as logarithmic as their signs allow.

    >>> import numpy as np
    >>> logarithmic_scale(np.array([1.0, 30.0])), logarithmic_scale(np.array([-1.0, 300.0]))
    (Scale(kind='log', threshold=0.0), Scale(kind='symlog', threshold=1.0))
    """
    finite = np.abs(values[np.isfinite(values)])
    if np.all(values[np.isfinite(values)] > 0):
        return Scale("log", 0.0)
    positive = finite[finite > 0]
    if not positive.size:
        return Scale("symlog", 1.0)
    lowest, highest = np.floor(np.log10(np.quantile(positive, 0.05, method="lower"))), np.ceil(np.log10(positive.max()))
    return Scale("symlog", float(10.0 ** max(lowest, highest - DECADES)))


def scale_of(result: Result, measure: str) -> Scale:
    """For the means of all curves; a band may leave a logarithmic axis at its lower edge."""
    return logarithmic_scale(np.concatenate([curve.mean(measure) for curve in result.curves]))
