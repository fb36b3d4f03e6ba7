"""Several learners on the same rounds: their traces by name, and what one wants to see of them.

Traces as a Matplotlib figure: two panels, regret or loss on the left, violation on the right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from longterm._arrays import FloatArray
from longterm._display import TextTable
from longterm.engines.trace import MEASURES, Comparator, Trace, _spread
from longterm.errors import InputError


class Comparison(Mapping[str, Trace]):
    """What `compare` returns: a mapping from learner's name to `Trace` that prints, plots and tabulates itself.

    Parameters
    ----------
    traces : mapping of str to Trace
        By the learner's name.

    Examples
    --------
    >>> from longterm import AOGD, compare, hindsight
    >>> from longterm.learners import ProjectedOGD
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.streams import RandomPermutations
    >>> problem = doubly_stochastic(2)
    >>> learners = {"A-OGD": AOGD.for_problem(problem), "projected": ProjectedOGD.for_problem(problem)}
    >>> played = compare(problem, learners, RandomPermutations(2), 1000)
    >>> played.summary(hindsight.best(played))
    after 1000 rounds  regret    Σ g  Σ [g]₊  largest g
    A-OGD               5.424  3.399   3.399          1
    projected           18.16      0       0          0
    >>> played["A-OGD"].last_round
    1000
    """

    def __init__(self, traces: Mapping[str, Trace]) -> None:
        self._traces = dict(traces)

    def __getitem__(self, name: str) -> Trace:
        if name not in self._traces:
            raise KeyError(f"{name!r} did not play; there are {list(self._traces)}")
        return self._traces[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._traces)

    def __len__(self) -> int:
        return len(self._traces)

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary().to_html()

    def summary(self, comparator: Comparator | ArrayLike | None = None) -> TextTable:
        """Regret (or loss) and violations after the last round; the mean and the range where there are several seeds.

        Parameters
        ----------
        comparator : Hindsight or array_like, optional
            As for `Trace.regret`.

        Returns
        -------
        TextTable
            It prints itself, in a notebook too.
        """
        rounds = {trace.last_round for trace in self.values()}
        corner = f"after {min(rounds)} rounds" if len(rounds) == 1 else "learner"
        headings = (corner, "loss" if comparator is None else "regret", "Σ g", "Σ [g]₊", "largest g")
        rows = []
        for name, trace in self.items():
            first = trace.cumulative_loss if comparator is None else trace.regret(comparator)
            scale = max(float(np.abs(sums).max()) for sums in (trace.cumulative_loss, trace.per_constraint_violation))
            sums = (trace.signed_violation, trace.hard_violation, trace.largest_violation)
            rows.append((name, *(_spread(_without_rounding(values[-1:], scale)) for values in (first, *sums))))
        return TextTable(headings, rows)

    def plot(self, comparator: Comparator | ArrayLike | None = None, *, axes: Any = None) -> Any:
        """Draw all learners with Matplotlib: regret (or loss) and violation against the round.

        Parameters
        ----------
        comparator : Hindsight or array_like, optional
            As for `Trace.regret`. Without one the cumulative loss is drawn.
        axes : pair of matplotlib axes, optional
            Where to draw. Left out, a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return draw(self, comparator, axes)

    def to_frame(self, comparator: Comparator | ArrayLike | None = None) -> Any:
        """One row for each learner, kept round and member of the batch, as a pandas data frame.

        Parameters
        ----------
        comparator : Hindsight or array_like, optional
            As for `Trace.regret`, which becomes a column.

        Returns
        -------
        pandas.DataFrame
        """
        return frame(self, comparator)


def _without_rounding(values: FloatArray, scale: float) -> FloatArray:
    """Zero where a number is rounding, beside the size of what was added up."""
    return np.where(np.abs(values) < 1e-9 * scale, 0.0, values)


def frame(traces: Mapping[str, Trace], comparator: Comparator | ArrayLike | None) -> Any:
    """The long table of several traces."""
    try:
        pd: Any = import_module("pandas")
    except ImportError as error:
        raise ImportError("a data frame needs pandas: pip install 'longterm[experiments]'") from error
    parts = []
    for name, trace in traces.items():
        shape = trace.cumulative_loss.shape
        index = np.indices(shape).reshape(len(shape), -1)
        columns: dict[str, Any] = {"learner": name, "round": trace.rounds[index[0]]}
        seeded = not isinstance(trace.seeds, int)
        for axis in range(1, len(shape) - seeded):
            columns["grid" if len(shape) - seeded == 2 else f"grid_{axis}"] = index[axis]
        columns["seed"] = np.asarray(trace.seeds)[index[-1]] if seeded else trace.seeds
        if comparator is not None:
            columns["regret"] = trace.regret(comparator).ravel()
        columns |= {measure: getattr(trace, measure).ravel() for measure in MEASURES}
        columns["long_term_violation"] = trace.long_term_violation.ravel()
        scalars = {key: values for key, values in trace.reports.items() if values.shape == shape}
        columns |= {key: values.ravel() for key, values in scalars.items()}
        parts.append(pd.DataFrame(columns, index=range(index.shape[1])))
    if not parts:
        raise InputError("traces", "there are none", "Compare at least one learner")
    return pd.concat(parts, ignore_index=True)


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's, which colour-blind readers tell apart."""
DASHES = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)), (0, (3, 3)))
"""A colour that comes again has another."""
FEW, SHORT = 8, 26
"""So many curves, with names of so many letters, are named inside of a panel; others below both."""


def draw(traces: Mapping[str, Trace], comparator: Comparator | ArrayLike | None, axes: Any = None) -> Any:
    """The figure; `axes` is the pair of panels to draw into, a new one where it is None."""
    try:
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("a figure needs Matplotlib: pip install 'longterm[experiments]'") from error
    curves = [curve for name, trace in traces.items() for curve in _curves(name, trace, comparator)]
    longest = max(len(name) for name, *_ in curves)
    below = axes is None and (len(curves) > FEW or longest > SHORT)
    columns = 4 if longest <= SHORT else 2 if longest <= 2 * SHORT else 1
    if axes is None:
        height = 3.2 + (0.18 * -(-len(curves) // columns) if below else 0.0)
        axes = pyplot.figure(figsize=(8, height), layout="constrained").subplots(1, 2)
    left, right = axes
    for number, (name, rounds, first, violation) in enumerate(curves):
        look = {
            "color": COLOURS[number % len(COLOURS)],
            "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
            "label": name or None,
        }
        _line(left, rounds, first, look)
        _line(right, rounds, violation, look)
    left.set_ylabel("loss so far, Σ f_t(x_t)" if comparator is None else "regret")
    right.set_ylabel("violation, Σ g(x_t)")
    for panel in (left, right):
        panel.set_xlabel("round t")
        panel.axhline(0, color="#888888", linewidth=0.6, zorder=0)
        panel.spines[["top", "right"]].set_visible(False)
    handles, names = left.get_legend_handles_labels()
    names = [shorten(name, 4 * SHORT, placeholder="…") for name in names]
    if below and names:
        left.figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
    elif names:
        left.legend(handles, names, frameon=False, fontsize="small")
    return left.figure


def _curves(
    name: str, trace: Trace, comparator: Comparator | ArrayLike | None
) -> Iterator[tuple[str, Any, FloatArray, FloatArray]]:
    """One curve for each member of a grid of hyper-parameters: its values at the rounds, seeds on the last axis."""
    first = trace.cumulative_loss if comparator is None else trace.regret(comparator)
    rounds = len(trace.rounds)
    seeds = 1 if isinstance(trace.seeds, int) else len(trace.seeds)
    first, violation = (values.reshape(rounds, -1, seeds) for values in (first, trace.signed_violation))
    for member in range(first.shape[1]):
        label = name if first.shape[1] == 1 else f"{name} [{member}]".strip()
        yield label, trace.rounds, first[:, member], violation[:, member]


def _line(panel: Any, rounds: Any, values: FloatArray, look: Mapping[str, Any]) -> None:
    panel.plot(rounds, values.mean(axis=-1), **look)
    if values.shape[-1] > 1:
        panel.fill_between(
            rounds, values.min(axis=-1), values.max(axis=-1), color=look["color"], alpha=0.18, linewidth=0
        )
