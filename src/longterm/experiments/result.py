"""What an experiment found: one curve for each learner, over the same sequences, beside the best in hindsight.

The runs are made and kept by the experiments; figures, tables and the report only read this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray

MEASURES = ("regret", "signed_violation", "hard_violation", "squared_violation", "long_term_violation")
"""What every curve has. `long_term_violation` is the largest of the Σ_t g_j(x_t): the paper's own constraint."""
LOGGED = "logged_violation"
"""Σ g(x_t) over the logged rounds t = 8, 16, 32, … and T alone, where the specification asks for it (`logged`)."""

OLDER_NAMES = {"per_constraint_violation": "long_term_violation"}
"""What folders of older versions call a measure, and what it is called now."""

FEW = 4
"""Curves that are named where a result is printed."""
ROUNDED_FROM = 1000.0
"""From here on, no digits after the point are shown."""

Role = Literal["paper", "fair", "own"]
"""A curve of the paper's figures; the same method set up fairly, under a name of its own; the user's."""


ROUNDING = 1e-9
"""What is smaller than this share of the scale of its summands is rounding, and shown as 0."""


def without_rounding(values: FloatArray, scale: FloatArray | float) -> FloatArray:
    """The values, with 0 for what is no more than rounding beside the scale of what was added up.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.experiments.result import without_rounding
    >>> without_rounding(np.array([9.9e-14, 0.5]), 1.0)
    array([0. , 0.5])
    """
    return np.where(np.abs(values) < ROUNDING * np.asarray(scale), 0.0, values)


def by_measure(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a record by their measure, whichever version wrote it."""
    return {OLDER_NAMES.get(name, name): value for name, value in values.items()}


@dataclass(frozen=True)
class Curve:
    """One learner over all sequences. Arrays have the kept rounds first, then the sequences.

    Parameters
    ----------
    name : str
        As in the paper's legends, where it is one of the paper's.
    role : {"paper", "fair", "own"}
        Whether it is a curve of the paper's figures, the same method set up fairly, or the user's.
    measures : mapping of str to array
        Each of `MEASURES`, and `LOGGED` where it was asked for, shape (rounds, sequences).
    bounds : mapping of str to array
        The theorem's bound on some of the measures, shape (rounds,), with the exact constants.
    printed_bounds : mapping of str to array
        The same as printed in the paper, where that differs.
    read_off : mapping of str to float
        What the paper's figure shows at the last round, read off by eye.
    learner : str
        The learner and its parameters, in words.
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
        """Over the sequences, shape (rounds,)."""
        return np.asarray(self.measures[measure].mean(axis=1))

    def std(self, measure: str) -> FloatArray:
        """The deviation over the sequences, shape (rounds,)."""
        return np.asarray(self.measures[measure].std(axis=1))

    def last(self, measure: str) -> str:
        """The last round in words: mean ± deviation, where there is more of it than rounding."""
        mean, std = float(self.mean(measure)[-1]), float(self.std(measure)[-1])
        digits = f"{mean:,.0f}" if abs(mean) >= ROUNDED_FROM else f"{mean:.4g}"
        spread = 0.0 if std <= 1e-9 * abs(mean) else std  # rounding
        return f"{digits} ± {spread:.2g}" if spread < ROUNDED_FROM / 10 else f"{digits} ± {spread:,.0f}"


@dataclass(frozen=True)
class Remark:
    """Something that the reader of the report should know, with its verdict.

    Parameters
    ----------
    verdict : {"matches", "differs", "note"}
        Whether it agrees with the paper; a note does neither.
    text : str
        What the reader should know.
    """

    verdict: Literal["matches", "differs", "alarm", "note"]
    text: str


@dataclass(frozen=True)
class Result:
    """One experiment: its curves, the comparator's certificate, and what it takes to run it again.

    Parameters
    ----------
    name : str
        Short, as on the command line: dsm, ijcnn1, covtype.
    title : str
        Of pages and figures.
    problem : mapping
        What was played: name, dimension, constraints, constants R, G, D, F, budget, data set.
    rounds : array of int
        The kept rounds.
    seeds : tuple of int
        One for each sequence.
    curves : tuple of Curve
        One for each learner.
    certified_gap : array
        How far the comparator's loss may be above the least, as a share of it, shape (rounds, sequences).
    spec : mapping
        The full specification, as in the manifest.
    versions : mapping of str to str
        Of the packages that were used.
    command : str
        The command that runs it again.
    remarks : tuple of Remark
        What matches the paper, what does not, and why.
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
        names = ", ".join(curve.name for curve in self.curves[:FEW]) + (", …" if len(self.curves) > FEW else "")
        size = f"{int(self.rounds[-1])} rounds, {len(self.seeds)} sequences, {len(self.curves)} curves"
        return f"Result({self.name!r}, {size}: {names})"

    @property
    def measures(self) -> tuple[str, ...]:
        """What every curve has here: `MEASURES`, and `LOGGED` where it was asked for."""
        return tuple(name for name in (*MEASURES, LOGGED) if all(name in curve.measures for curve in self.curves))

    def frame(self) -> Any:
        """All curves as one tidy table.

        Returns
        -------
        pandas.DataFrame
            Columns curve, sequence (its seed), round, the measures, certified_gap.
        """
        try:
            pandas: Any = import_module("pandas")
        except ImportError as error:
            raise ImportError("frames need pandas: pip install 'longterm[experiments]'") from error
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
