"""Traces of several learners on the same rounds, with their summary, figure and data frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from longterm._base.display import TextTable
from longterm._base.extras import import_optional
from longterm.errors import InputError
from longterm.learners.interface.learner import Learner
from longterm.play.engines.figure import Band, draw
from longterm.play.engines.sums import zero_rounding
from longterm.play.engines.trace import MEASURES, Comparator, Trace, format_spread
from longterm.theory.bounds import Bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Comparison(Mapping[str, Trace]):
    """The result of `compare`: a mapping from learner's name to `Trace`.

    Parameters
    ----------
    traces : mapping of str to Trace
        By the learner's name.
    learners : mapping of str to Learner, optional
        The learners by name, for their bounds in `plot`.

    Examples
    --------
    >>> from longterm import AOGD, compare, hindsight
    >>> from longterm.learners import ProjectedOGD
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.problems.streams import RandomPermutations
    >>> problem = doubly_stochastic(2)
    >>> learners = {"A-OGD": AOGD.for_problem(problem), "projected": ProjectedOGD.for_problem(problem)}
    >>> traces = compare(problem, learners, RandomPermutations(2), 1000)
    >>> traces.summary(hindsight.best(traces))
    after 1000 rounds  regret    Σ g  Σ [g]₊  largest g
    A-OGD               5.424  3.399   3.399          1
    projected           18.16      0       0          0
    >>> traces["A-OGD"].last_round
    1000
    """

    def __init__(self, traces: Mapping[str, Trace], learners: Mapping[str, Learner[Any]] | None = None) -> None:
        self._traces = dict(traces)
        self._learners = dict(learners or {})

    def __getitem__(self, name: str) -> Trace:
        if name not in self._traces:
            raise KeyError(f"{name!r} is not a learner of this comparison; there are {list(self._traces)}")
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
        """Return a table of regret (or loss) and violations after the last round.

        Parameters
        ----------
        comparator : Hindsight or array_like, optional
            As for `Trace.regret`.

        Returns
        -------
        TextTable
            With several seeds, the mean and the range.
        """
        rounds = {trace.last_round for trace in self.values()}
        corner = f"after {min(rounds)} rounds" if len(rounds) == 1 else "learner"
        headings = (corner, "loss" if comparator is None else "regret", "Σ g", "Σ [g]₊", "largest g")
        rows = []
        for name, trace in self.items():
            first = trace.cumulative_loss if comparator is None else trace.regret(comparator)
            scale = max(float(np.abs(sums).max()) for sums in (trace.cumulative_loss, trace.per_constraint_violation))
            sums = (trace.signed_violation, trace.hard_violation, trace.largest_violation)
            rows.append((name, *(format_spread(zero_rounding(values[-1:], scale)) for values in (first, *sums))))
        return TextTable(headings, rows)

    def plot(
        self,
        comparator: Comparator | ArrayLike | None = None,
        *,
        bounds: bool = False,
        band: Band | None = None,
        size: tuple[float, float] | None = None,
        axes: Sequence[Axes] | None = None,
    ) -> Figure:
        """Draw all learners with Matplotlib: regret (or loss) and violation against the round.

        Parameters
        ----------
        comparator : Hindsight or array_like, optional
            As for `Trace.regret`. Without one the cumulative loss is drawn.
        bounds : bool
            Add the proved bound of each learner that has one, dotted, on logarithmic axes.
        band : {"quantiles", "range", "ends", "none"}, optional
            How several seeds are drawn: from the 10 % to the 90 % quantile, from the smallest to the largest value,
            as one standard deviation at the last round, or not at all. Default: quantiles for up to four curves,
            otherwise ends.
        size : pair of float, optional
            Width and height of a new figure in inches.
        axes : pair of matplotlib axes, optional
            The axes to draw into. Default: those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        found = self._bounds() if bounds else {}
        if bounds and not found:
            what = "no learner of this comparison has a theorem here, or the comparison was loaded without its problem"
            raise InputError("bounds", what, "Leave bounds out, or see learner.bound(problem, rounds).reason")
        return draw(self, comparator, axes, found, band, size)

    def _bounds(self) -> dict[str, Bounds]:
        """Return the bounds at the recorded rounds of the learners that have a theorem."""
        found = {
            name: learner.bound(trace.problem, trace.rounds)
            for name, learner in self._learners.items()
            if (trace := self[name]).problem is not None
        }
        return {name: bounds for name, bounds in found.items() if bounds}

    def to_frame(self, comparator: Comparator | ArrayLike | None = None) -> DataFrame:
        """Return a pandas data frame with one row for each learner, recorded round and member of the batch.

        Parameters
        ----------
        comparator : Hindsight or array_like, optional
            As for `Trace.regret`, which becomes a column.

        Returns
        -------
        pandas.DataFrame
        """
        return frame(self, comparator)


def frame(traces: Mapping[str, Trace], comparator: Comparator | ArrayLike | None) -> DataFrame:
    """Return the long table of several traces."""
    pd: Any = import_optional("pandas", "a data frame needs pandas", "experiments")
    parts = []
    for name, trace in traces.items():
        shape = trace.cumulative_loss.shape
        index = np.indices(shape).reshape(len(shape), -1)
        columns: dict[str, Any] = {"learner": name, "round": trace.rounds[index[0]]}
        has_seed_axis = not isinstance(trace.seeds, int)
        for axis in range(1, len(shape) - has_seed_axis):
            columns["grid" if len(shape) - has_seed_axis == 2 else f"grid_{axis}"] = index[axis]
        columns["seed"] = np.asarray(trace.seeds)[index[-1]] if has_seed_axis else trace.seeds
        if comparator is not None:
            columns["regret"] = trace.regret(comparator).ravel()
        columns |= {measure: getattr(trace, measure).ravel() for measure in MEASURES}
        columns["long_term_violation"] = trace.long_term_violation.ravel()
        scalars = {key: values for key, values in trace.reports.items() if values.shape == shape}
        columns |= {key: values.ravel() for key, values in scalars.items()}
        parts.append(pd.DataFrame(columns, index=range(index.shape[1])))
    if not parts:
        raise InputError("traces", "is empty", "Compare at least one learner")
    return pd.concat(parts, ignore_index=True)
