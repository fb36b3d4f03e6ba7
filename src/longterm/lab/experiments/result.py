"""The result of an experiment: one curve for each learner on the same sequences, and the comparator's certificate.

Experiments write these objects to a folder. Figures, tables and reports only read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base.arrays import FloatArray
from longterm._base.extras import import_optional
from longterm.play.engines.sums import ROUNDING_SHARE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from longterm.play.engines.figure import Band

MEASURES = ("regret", "signed_violation", "hard_violation", "squared_violation", "long_term_violation")
"""The measures of every curve. `long_term_violation`, max_j Σ_t g_j(x_t), is the paper's own constraint."""
LOGGED = "logged_violation"
"""Σ g(x_t) over the rounds t = 8, 16, 32, … and T only, where the specification asks for it (`logged`)."""
MAX_NAMES = 4
"""Curves that the repr of a result names."""
WHOLE_FROM = 1000.0
"""Numbers from here on are shown without decimals."""

Role = Literal["paper", "fair", "own"]
"""A curve of the paper's figures, the same method with fair constants, or the user's."""


@dataclass(frozen=True)
class Curve:
    """One learner on all sequences. Arrays have the recorded rounds first, then the sequences.

    Parameters
    ----------
    name : str
        As in the paper's legends for the paper's curves.
    role : {"paper", "fair", "own"}
        A curve of the paper's figures, the same method with fair constants, or the user's.
    measures : mapping of str to array
        Each of `MEASURES`, and `LOGGED` where it was asked for, shape (rounds, sequences).
    bounds : mapping of str to array
        The theorem's bounds with the exact constants, by measure, shape (rounds,).
    printed_bounds : mapping of str to array
        The bounds as printed in the paper, where they differ.
    read_off : mapping of str to float
        Values at the last round, read off the paper's figure by eye.
    learner : str
        The learner and its parameters.
    """

    name: str
    role: Role
    measures: Mapping[str, FloatArray]
    bounds: Mapping[str, FloatArray] = field(default_factory=dict)
    printed_bounds: Mapping[str, FloatArray] = field(default_factory=dict)
    read_off: Mapping[str, float] = field(default_factory=dict)
    learner: str = ""

    def __repr__(self) -> str:
        return f"Curve({self.name!r}, regret {self.last('regret')}, hard violation {self.last('hard_violation')})"

    def mean(self, measure: str) -> FloatArray:
        """Return the mean over the sequences, shape (rounds,)."""
        return np.asarray(self.measures[measure].mean(axis=1))

    def std(self, measure: str) -> FloatArray:
        """Return the standard deviation over the sequences, shape (rounds,)."""
        return np.asarray(self.measures[measure].std(axis=1))

    def last(self, measure: str) -> str:
        """Format the last round: mean ± standard deviation, or the value of a single sequence."""
        mean, std = float(self.mean(measure)[-1]), float(self.std(measure)[-1])
        digits = f"{mean:,.0f}" if abs(mean) >= WHOLE_FROM else f"{mean:.4g}"
        if self.measures[measure].shape[1] == 1:
            return digits
        spread = 0.0 if std <= ROUNDING_SHARE * abs(mean) else std
        return f"{digits} ± {spread:.2g}" if spread < WHOLE_FROM / 10 else f"{digits} ± {spread:,.0f}"


@dataclass(frozen=True)
class Remark:
    """A finding about a result.

    Parameters
    ----------
    verdict : {"matches", "differs", "alarm", "note"}
        Agreement with the paper, disagreement, a violated theorem, or none of these.
    text : str
        The finding.
    """

    verdict: Literal["matches", "differs", "alarm", "note"]
    text: str


@dataclass(frozen=True)
class Result:
    """One experiment: its curves, the comparator's certificate, and the command that runs it again.

    Parameters
    ----------
    name : str
        The short name on the command line: dsm, ijcnn1, covtype.
    title : str
        The title of pages and figures.
    problem : mapping
        Facts about the problem: name, dimension, constraints, constants R, G, D, F, budget, data set.
    rounds : array of int
        The recorded rounds.
    seeds : tuple of int
        One seed for each sequence.
    curves : tuple of Curve
        One curve for each learner.
    certified_gap : array
        An upper bound on the comparator's suboptimality relative to its loss, shape (rounds, sequences).
    spec : mapping
        The full specification, as in the manifest.
    versions : mapping of str to str
        Versions of Python and of the packages.
    command : str
        The command that runs the experiment again.
    remarks : tuple of Remark
        Findings, with their reasons.
    """

    name: str
    title: str
    problem: Mapping[str, Any]
    rounds: NDArray[np.int64]
    seeds: tuple[int, ...]
    curves: tuple[Curve, ...]
    certified_gap: FloatArray
    spec: Mapping[str, Any]
    versions: Mapping[str, str]
    command: str
    remarks: tuple[Remark, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join([curve.name for curve in self.curves[:MAX_NAMES]] + ["…"] * (len(self.curves) > MAX_NAMES))
        size = f"{int(self.rounds[-1])} rounds, {len(self.seeds)} sequences, {len(self.curves)} curves"
        return f"Result({self.name!r}, {size}: {names})"

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures of all curves: `MEASURES`, and `LOGGED` where it was asked for."""
        return tuple(name for name in (*MEASURES, LOGGED) if all(name in curve.measures for curve in self.curves))

    def plot(
        self,
        measures: Sequence[str] = ("regret", "signed_violation"),
        *,
        band: Band | None = None,
        size: tuple[float, float] | None = None,
        axes: Sequence[Axes] | None = None,
    ) -> Figure:
        """Draw the curves with Matplotlib, one panel for each measure.

        Parameters
        ----------
        measures : sequence of str
            Some of `Result.measures`.
        band : {"quantiles", "range", "ends", "none"}, optional
            How the sequences are drawn: from the 10 % to the 90 % quantile, from the smallest to the largest value,
            as one standard deviation at the last round, or not at all. Default: quantiles for up to four curves,
            otherwise ends.
        size : pair of float, optional
            Width and height of a new figure in inches.
        axes : sequence of matplotlib axes, optional
            The axes to draw into, one for each measure. Default: those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from longterm.lab.experiments.result_figure import draw_result

        return draw_result(self, measures, band, size, axes)

    def to_frame(self) -> DataFrame:
        """Return all curves as one tidy table.

        Returns
        -------
        pandas.DataFrame
            Columns: curve, sequence (its seed), round, the measures, certified_gap.
        """
        pandas: Any = import_optional("pandas", "a data frame needs pandas", "experiments")
        rounds, sequences = len(self.rounds), len(self.seeds)
        parts = [
            pandas.DataFrame(
                {
                    "curve": curve.name,
                    "sequence": np.tile(self.seeds, rounds),
                    "round": np.repeat(self.rounds, sequences),
                    **{name: curve.measures[name].ravel() for name in self.measures},
                    "certified_gap": self.certified_gap.ravel(),
                }
            )
            for curve in self.curves
        ]
        return pandas.concat(parts, ignore_index=True)


def growth(rounds: ArrayLike, values: FloatArray) -> float | None:
    """Fit the exponent of T by least squares in logarithms; return None if a value is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.lab.experiments.result import growth
    >>> round(growth([16, 64, 256], np.array([4.0, 8.0, 16.0])), 12), growth([1, 2, 4], np.array([0.0, 1.0, 2.0]))
    (0.5, None)
    """
    if np.any(values <= 0):
        return None
    return float(np.polyfit(np.log(np.asarray(rounds, dtype=np.float64)), np.log(values), 1)[0])
