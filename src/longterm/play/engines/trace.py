"""The trace of a run: running totals at the recorded rounds, bounded in memory for every length of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._base.arrays import Array, FloatArray
from longterm._base.display import TextTable, format_number
from longterm.errors import InputError, SnapshotError
from longterm.play.engines.sums import Sums
from longterm.problems import Problem
from longterm.problems.streams import FromIterable, Stream
from longterm.storage.packing import restored_state, state_arrays
from longterm.storage.snapshot import Snapshot, read_snapshot, write_snapshot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from longterm.learners.interface.learner import Learner
    from longterm.play.engines.figure import Band


SeedsPlayed = int | tuple[int, ...]
"""One seed, or the seeds of a batch in order."""


class StateUnknown(NamedTuple):
    """The state of a trace that was loaded without its learner: only its round is known."""

    round: Array


@runtime_checkable
class Comparator(Protocol):
    """The best fixed decision in hindsight at given rounds (`longterm.hindsight`)."""

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The rounds t, increasing."""

    @property
    def loss(self) -> FloatArray:
        """Σ_{s≤t} f_s(x*_t), rounds first, then the seeds."""

    @property
    def seeds(self) -> SeedsPlayed:
        """The seeds of its streams."""


MEASURES = ("cumulative_loss", "signed_violation", "hard_violation", "squared_violation", "largest_violation")
"""The measures that are one number for each recorded round and learner."""
KIND, VERSION = "trace", 1
SUM_OF_COLUMN = {
    "cumulative_loss": "loss",
    "signed_violation": "signed",
    "hard_violation": "hard",
    "squared_violation": "squared",
    "largest_violation": "largest",
    "per_constraint_violation": "per_constraint",
}
"""The running total that each column of a trace records."""


@dataclass(frozen=True, repr=False)
class Trace:
    """The recorded rounds of a run. Arrays have the rounds on the first axis, then the batch axes.

    Parameters
    ----------
    rounds : array of int
        The recorded rounds t.
    cumulative_loss : array
        Σ_{s≤t} f_s(x_s).
    signed_violation : array
        Σ_{s≤t} max_j g_j(x_s), which the paper bounds.
    hard_violation : array
        Σ_{s≤t} [max_j g_j(x_s)]₊: slack in one round does not offset violation in another.
    squared_violation : array
        Σ_{s≤t} [max_j g_j(x_s)]₊².
    largest_violation : array
        max_{s≤t} max_j g_j(x_s).
    per_constraint_violation : array
        Σ_{s≤t} g_j(x_s), j on the last axis.
    reports : dict of str to array
        The learner's reports in those rounds: multiplier, theta, eta, mu, …
    state, sums : Any
        The learner's state and the totals after the last round, for ``run(..., resume=trace)``.
    seeds : int or sequence of int
        The seed of the run, or the seeds on the last batch axis.
    warnings : mapping of str to str
        With ``on_broken_bound="warn"``, the first violation of each declared bound, by name.
    problem, stream : Problem and Stream, optional
        The problem and the stream, to draw the rounds again in `regret`; left out of a pickle.
    """

    rounds: NDArray[np.int64]
    cumulative_loss: FloatArray
    signed_violation: FloatArray
    hard_violation: FloatArray
    squared_violation: FloatArray
    largest_violation: FloatArray
    per_constraint_violation: FloatArray
    reports: dict[str, NDArray[Any]]
    state: Any = field(repr=False)
    sums: Sums = field(repr=False)
    seeds: SeedsPlayed = 0
    warnings: Mapping[str, str] = field(default_factory=dict)
    problem: Problem | None = field(default=None, repr=False, compare=False)
    stream: Stream | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "problem": None, "stream": None}

    def __repr__(self) -> str:
        batch = self.cumulative_loss.shape[1:]
        many = f", batch={batch}" if batch else ""
        sums = ", ".join(f"{name}={format_spread(getattr(self, name)[-1:])}" for name in MEASURES[:3])
        warned = f", warnings={list(self.warnings)}" if self.warnings else ""
        return f"Trace(rounds=1…{self.last_round}, {len(self.rounds)} recorded{many}, {sums}{warned})"

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), format_spread(getattr(self, name)[-1:])) for name in MEASURES]
        return TextTable(("", "at the last round"), rows, title=f"Trace of {self.last_round} rounds").to_html()

    def plot(
        self,
        comparator: Comparator | ArrayLike | None = None,
        *,
        band: Band | None = None,
        size: tuple[float, float] | None = None,
        axes: Sequence[Axes] | None = None,
        label: str = "",
    ) -> Figure:
        """Draw the run with Matplotlib: regret (or loss) and violation against the round.

        Parameters
        ----------
        comparator : Hindsight or array_like, optional
            As for `regret`. Without one the cumulative loss is drawn.
        band : {"quantiles", "range", "ends", "none"}, optional
            How several seeds are drawn: from the 10 % to the 90 % quantile, from the smallest to the largest value,
            as one standard deviation at the last round, or not at all. Default: quantiles for up to four curves,
            otherwise ends.
        size : pair of float, optional
            Width and height of a new figure in inches.
        axes : pair of matplotlib axes, optional
            The axes to draw into. Default: those of a new figure.
        label : str
            The name of the curve.

        Returns
        -------
        matplotlib.figure.Figure
            With several seeds the line is their mean.
        """
        from longterm.play.engines.figure import draw

        return draw({label: self}, comparator, axes, None, band, size)

    def to_frame(self, comparator: Comparator | ArrayLike | None = None) -> DataFrame:
        """Return a pandas data frame with one row for each recorded round and member of the batch.

        Parameters
        ----------
        comparator : Hindsight or array_like, optional
            As for `regret`, which becomes a column.

        Returns
        -------
        pandas.DataFrame
            Columns: the round, the index in a grid of hyper-parameters, the seed, the measures.
        """
        from longterm.play.engines.comparison import frame

        return frame({"": self}, comparator).drop(columns="learner")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trace to a file of arrays with a checksum, for `load`.

        Parameters
        ----------
        path : str or path
        """
        names = ("rounds", *SUM_OF_COLUMN)
        arrays = {name: getattr(self, name) for name in names}
        arrays |= {f"report.{name}": values for name, values in self.reports.items()}
        arrays |= {f"sums.{name}": np.asarray(value) for name, value in self.sums._asdict().items()}
        arrays |= {  # NumPy scalars stay scalars: their powers may differ from an array's in the last bit
            name: value if isinstance(value, np.generic) else np.asarray(value)
            for name, value in state_arrays(self.state).items()
        }
        seeds = self.seeds if isinstance(self.seeds, int) else list(self.seeds)
        metadata = {"seeds": seeds, "warnings": dict(self.warnings)}
        write_snapshot(Path(path), Snapshot(KIND, VERSION, metadata, arrays))

    @classmethod
    def load(cls, path: str | PathLike[str], learner: Learner[Any] | None = None) -> Trace:
        """Read a saved trace.

        Parameters
        ----------
        path : str or path
        learner : Learner, optional
            The learner of the run. It is needed to continue the trace with ``run(..., resume=trace)``.

        Returns
        -------
        Trace
            Without its problem and stream: `regret` needs the result of `longterm.hindsight.best`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from longterm import AOGD, Trace, run
        >>> from longterm.problems import doubly_stochastic
        >>> from longterm.problems.streams import RandomPermutations
        >>> problem = doubly_stochastic(2)
        >>> learner = AOGD.for_problem(problem)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run(problem, learner, RandomPermutations(2), 10).save(Path(folder) / "ten.trace")
        ...     trace = Trace.load(Path(folder) / "ten.trace", learner)
        >>> run(problem, learner, RandomPermutations(2), 20, resume=trace).last_round
        20
        """
        stored = read_snapshot(Path(path), KIND, VERSION)
        arrays = stored.arrays
        if learner is None:
            state: Any = StateUnknown(arrays["state.round"])
        else:
            state = _restore_state(learner, arrays, path)
        seeds = stored.metadata["seeds"]
        return cls(
            **{name: arrays[name] for name in ("rounds", *SUM_OF_COLUMN)},
            reports={name.removeprefix("report."): a for name, a in arrays.items() if name.startswith("report.")},
            state=state,
            sums=Sums(**{name: arrays[f"sums.{name}"] for name in Sums._fields}),
            seeds=seeds if isinstance(seeds, int) else tuple(seeds),
            warnings=dict(stored.metadata["warnings"]),
        )

    @property
    def last_round(self) -> int:
        """The number of rounds done."""
        return int(np.max(np.asarray(self.state.round))) - 1

    @property
    def long_term_violation(self) -> FloatArray:
        """max_j Σ_{s≤t} g_j(x_s), the paper's long-term constraint."""
        return np.asarray(self.per_constraint_violation.max(axis=-1))

    @property
    def multiplier(self) -> NDArray[Any]:
        """λ_t in the recorded rounds."""
        return self.reports["multiplier"]

    @property
    def theta(self) -> NDArray[Any]:
        """θ_t in the recorded rounds."""
        return self.reports["theta"]

    @property
    def eta(self) -> NDArray[Any]:
        """η_t in the recorded rounds."""
        return self.reports["eta"]

    @property
    def mu(self) -> NDArray[Any]:
        """μ_t in the recorded rounds."""
        return self.reports["mu"]

    def regret(self, comparator: Comparator | ArrayLike) -> FloatArray:
        """Return Σ_{s≤t} f_s(x_s) − Σ_{s≤t} f_s(x*) at the recorded rounds.

        Parameters
        ----------
        comparator : Hindsight or array_like
            The result of `longterm.hindsight.best`, x*_t; or one decision x* of shape (d,), feasible or not. The losses
            of a decision are computed by drawing the rounds again.

        Returns
        -------
        FloatArray
            The recorded rounds first, then the batch axes.

        Examples
        --------
        >>> from longterm import AOGD, run
        >>> from longterm.problems import doubly_stochastic
        >>> from longterm.problems.streams import RandomPermutations
        >>> problem = doubly_stochastic(2)
        >>> trace = run(problem, AOGD.for_problem(problem), RandomPermutations(2), 10, record=[1, 10])
        >>> trace.regret([0.5, 0.5, 0.5, 0.5]).round(3)  # x_1 = 0 has loss ½ · 2, the mean matrix ½ · 1
        array([0.5  , 1.812])
        """
        if isinstance(comparator, Comparator):
            best = self._loss_of_comparator(comparator)
        else:
            best = self._loss_of_decision(np.asarray(comparator, dtype=np.float64))
        grid = (1,) * (self.cumulative_loss.ndim - best.ndim)  # axes of the hyper-parameter grid, before the seeds
        return self.cumulative_loss - best.reshape(len(best), *grid, *best.shape[1:])

    def _loss_of_comparator(self, comparator: Comparator) -> FloatArray:
        """Return the comparator's losses; raise if it belongs to other rounds or seeds."""
        if not np.array_equal(self.rounds, comparator.rounds):
            raise InputError(
                "comparator",
                "was found for other rounds than the trace records",
                "Ask for it at trace.rounds",
            )
        if comparator.seeds != self.seeds:
            what = f"was found for seeds {comparator.seeds}, but the run had {self.seeds}"
            raise InputError("comparator", what, "Ask for it with the seeds of the run")
        return np.asarray(comparator.loss)

    def _loss_of_decision(self, x: FloatArray) -> FloatArray:
        """Return Σ_{s≤t} f_s(x) at the recorded rounds, for every seed."""
        if self.problem is None or self.stream is None:
            what = "the trace has no problem and stream, so the losses of a decision cannot be computed"
            raise InputError("comparator", what, "Give what longterm.hindsight.best finds for the problem and stream")
        if isinstance(self.stream, FromIterable):
            what = "the rounds came from an iterable and cannot be drawn again"
            raise InputError("comparator", what, "Play the rounds from arrays with streams.Replay")
        if x.shape != (self.problem.dimension,):
            what = f"has shape {x.shape}, but a decision has {(self.problem.dimension,)}"
            raise InputError("comparator", what, "Give one decision, or what longterm.hindsight.best found")
        parts, done = [], 0
        total: FloatArray = np.zeros(() if isinstance(self.seeds, int) else len(self.seeds))
        for block in self.stream.blocks(self.seeds, 0, int(self.rounds[-1])):
            points = np.broadcast_to(x, (block.rounds, *total.shape, len(x)))
            losses = np.asarray(self.problem.loss.value(points, *block.loss), dtype=np.float64)
            sums = total + np.cumsum(losses, axis=0)
            inside = self.rounds[(self.rounds > done) & (self.rounds <= done + block.rounds)]
            parts.append(sums[inside - done - 1])
            total, done = sums[-1], done + block.rounds
        return np.concatenate(parts)


def _restore_state(learner: Learner[Any], arrays: Mapping[str, Any], path: str | PathLike[str]) -> Any:
    """Rebuild the learner's state from saved arrays; raise if they belong to another learner."""
    batch = arrays["cumulative_loss"].shape[1:]
    template = learner.with_trailing_axes(len(batch) - len(learner.batch_shape))
    reason = ""
    for dtype in (np.float64, np.float32):
        try:
            return restored_state(template.init(batch, dtype=dtype), arrays)
        except ValueError as error:
            reason = reason or str(error)
    raise SnapshotError(path, "another learner", reason, "Load it with the learner of the run")


def format_spread(values: FloatArray) -> str:
    """Format one number, or the mean and the range of several."""
    if values.size == 0:
        return "–"
    mean, low, high = (format_number(float(value)) for value in (values.mean(), values.min(), values.max()))
    return mean if values.size == 1 else f"{mean} ({low} to {high})"
