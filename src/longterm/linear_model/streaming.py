"""One learner for a linear model under a budget, fed a row at a time or a block at a time: what services hold.

It has no knowledge of scikit-learn. `step` and `step_dense` take one row and return the margin ⟨u, x_t⟩ + b_t from
before it was learned, the honest prediction; `learn` takes a block. Splitting rows into blocks changes nothing, bit for
bit.

The interval of the intercept. For two classes it is ±intercept_bound, unless given the larger of R and 2. For
regression neither level nor scale of the targets is known beforehand. With intercept_bound None the interval begins
as the first target alone, which sets the level and costs nothing, and is widened to twice the distance of any target
that lies outside: `docs/linear_model.md` says what the theorem becomes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longterm._arrays import FloatArray
from longterm.errors import InputError, NonFiniteError, SnapshotError
from longterm.linear_model import _layout as at
from longterm.linear_model._average import Average, Sampled
from longterm.linear_model._blocks import (
    IN_ORDER,
    NOTHING,
    Block,
    block_of,
    labels_of,
    require_moderate,
    weights_of,
)
from longterm.linear_model._games import Game, game_for, increasing
from longterm.linear_model._settings import Settings
from longterm.live.snapshot import Snapshot, read_snapshot, write_snapshot
from longterm.projections import project_onto_elastic_net

KIND = "budget linear learner"
VERSION = 1
HEAVIEST = 1e30
"""Labels and weights beyond this are refused one by one; blocks are checked as a whole."""
NO_RECORD = np.empty(0, dtype=np.int64)
NO_TRACE = np.empty((0, len(at.COLUMNS)))


class BudgetLinearLearner:
    """A linear model of `dimension` weights with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    Parameters
    ----------
    loss : "logistic", "hinge", "squared_hinge" (labels ±1), "squared", "huber", "quantile" (`loss_parameter`: the
        threshold of Huber's loss, the level of the quantile).
    rule : "a-ftrl", "a-ogd", "penalised-ftrl" or "mahdavi".
    fit_intercept, intercept_bound : an intercept that costs no budget, within ±intercept_bound.
    constants : "online", or {"feature_norm": …, "label_bound": …, "rounds": …} for steps made for known bounds.
    sparse : whether the memory is laid out for sparse rows (A-FTRL only: rounds then cost what they touch). Rows of the
        other kind are converted.
    seed : which rounds are drawn for the average.

    >>> import numpy as np
    >>> from longterm.linear_model import BudgetLinearLearner
    >>> learner = BudgetLinearLearner(3, budget=1.0, fit_intercept=False)
    >>> learner.step(np.array([0, 2]), np.array([3.0, 4.0]), 1.0)
    0.0
    >>> round(learner.step_dense(np.array([0.0, 1.0, 1.0]), -1.0), 6)
    0.585641
    >>> learner.rounds, learner.weights.round(3)
    (2, array([0., 0., 0.]))
    """

    def __init__(
        self,
        dimension: int,
        budget: float,
        *,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "logistic",
        loss_parameter: float | None = None,
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        constants: str | Mapping[str, float] = "online",
        beta: float = 2 / 3,
        growth: float = 0.5,
        sparse: bool = False,
        seed: int = 0,
    ) -> None:
        if isinstance(constants, str) and constants != "online":
            raise InputError("constants", f"{constants!r} is not a way to find them", 'Use "online", or give a mapping')
        given = None if isinstance(constants, str) else dict(constants)
        settings = Settings(dimension, budget, l1, l2, loss, loss_parameter, rule, 0.0, beta, growth, given)
        self._widens, self._level = False, np.zeros(0)
        if fit_intercept:
            if intercept_bound is None and not settings.classifies:
                self._widens = given is None
                intercept_bound = 0.0 if given is None else given["label_bound"]
            elif intercept_bound is None:
                intercept_bound = max(settings.constraint.enclosing_ball().radius, 2.0)
            settings = replace(settings, intercept_bound=intercept_bound)
        self._sparse = sparse
        self._game: Game = game_for(settings, sparse)
        self._average = Average(settings.dimension, seed)
        self._use(settings)
        self._plan_average()

    def _use(self, settings: Settings) -> None:
        self._settings = settings
        self._parameters = settings.parameters()
        self._p = self._parameters.as_array()
        self._radius = math.hypot(self._parameters.radius, settings.intercept_bound)
        self._classifies = settings.classifies
        self._shape = (settings.dimension,)

    # --- learning ---------------------------------------------------------------------------------------------

    def step_dense(self, row: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Learn one row of `dimension` numbers; the margin before it was learned."""
        u = np.ascontiguousarray(row, dtype=np.float64)
        if u.shape != self._shape:
            remedy = f"Give {self._settings.dimension} numbers"
            raise InputError("row", f"has shape {u.shape}", remedy, round=self.rounds + 1)
        level = self._level_or_zero
        label = self._ready_for(u, y, weight)
        return self._learned(self._game.step_dense(u, label, weight, self._p), u) + level

    def step(self, indices: ArrayLike, values: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Learn one sparse row, its column numbers increasing; the margin before it was learned."""
        u, where = np.ascontiguousarray(values, dtype=np.float64), np.ascontiguousarray(indices, dtype=np.int64)
        if u.ndim != 1 or u.shape != where.shape:
            what = f"has shape {where.shape}, the values {u.shape}"
            raise InputError("indices", what, "Give an index for each value", round=self.rounds + 1)
        level = self._level_or_zero
        label = self._ready_for(u, y, weight, where)
        return self._learned(self._game.step(where, u, label, weight, self._p), u, where) + level

    def _ready_for(self, u: FloatArray, y: float, weight: float, where: NDArray[np.int64] | None = None) -> float:
        """The label as the kernel is to see it, once it and the weight are known to be sound."""
        if not (0.0 <= weight <= HEAVIEST and (y in (-1, 1) if self._classifies else -HEAVIEST <= y <= HEAVIEST)):
            what = f"the label is {y!r}, the weight {weight!r}"
            remedy = "Use labels −1 and +1 for two classes, finite targets for regression, weights of at least 0"
            raise InputError("y", what, remedy, round=self.rounds + 1)
        if self._until_sample == 0:
            self._sample()
        label = float(y)
        if self._widens and not abs(label - self._level_or_zero) <= (
            self._settings.intercept_bound if self._level.size else -1.0
        ):
            self._require_row(u, where)  # before the interval changes, and not only in the kernel
            label -= self._level_from(label)
            if abs(label) > self._settings.intercept_bound:
                self._widen(abs(label))
            return label
        return label - self._level_or_zero

    def _learned(self, margin: float, u: FloatArray, where: NDArray[np.int64] | None = None) -> float:
        if margin != margin:  # NaN: the kernel refused the row
            self._require_row(u, where)
        self._until_sample -= 1
        return margin

    def _require_row(self, u: FloatArray, where: NDArray[np.int64] | None) -> None:
        if not np.all(np.abs(u) <= HEAVIEST):
            what = f"holds NaN, infinity or a number beyond {HEAVIEST:g}"
            raise NonFiniteError("row", what, "Check this row; nothing was learned from it", round=self.rounds + 1)
        if where is not None and not increasing(where, self._settings.dimension):
            what = f"are not increasing within 0 … {self._settings.dimension - 1}"
            raise InputError("indices", what, "Sort them, and give each once", round=self.rounds + 1)

    def learn(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        order: ArrayLike | None = None,
        record: Sequence[int] | None = None,
    ) -> FloatArray:
        """Learn a block of rows (an array or a SciPy sparse matrix), in the order given by row numbers, or as they are.

        Returns the margins from before each row was learned. With `record`, round numbers, it returns a trace instead:
        a line of `COLUMNS` for each of these rounds that lies in the block.
        """
        block = block_of(X, self._settings.dimension)
        labels = labels_of(y, block.count, self._classifies)
        rows_in_order = IN_ORDER
        if order is not None:
            rows_in_order = np.ascontiguousarray(order, dtype=np.int64)
            if rows_in_order.ndim != 1 or np.any((rows_in_order < 0) | (rows_in_order >= block.count)):
                raise InputError("order", "has other numbers than those of rows", f"Use 0 … {block.count - 1}")
        weights = weights_of(sample_weight, block.count)
        count = block.count if order is None else len(rows_in_order)
        if record is None:
            margins = np.empty(count)
            self.learn_checked(block, labels, weights, rows_in_order, margins=margins)
            return margins
        first = self.rounds + 1
        wanted = np.asarray([t for t in sorted(set(record)) if first <= t < first + count], dtype=np.int64)
        trace = np.empty((len(wanted), len(at.COLUMNS)))
        self.learn_checked(block, labels, weights, rows_in_order, record=wanted, trace=trace)
        return trace

    def learn_checked(
        self,
        block: Block,
        labels: FloatArray,
        weights: FloatArray = NOTHING,
        order: NDArray[np.int64] = IN_ORDER,
        *,
        margins: FloatArray = NOTHING,
        record: NDArray[np.int64] = NO_RECORD,
        trace: FloatArray = NO_TRACE,
    ) -> None:
        """`learn` for what `block_of`, `labels_of` and `weights_of` made."""
        if block.count == 0:
            return
        self.require(block, labels, weights)
        if self._game.is_sparse and not block.is_sparse:
            block = block.sparse()
        shuffled = order is not IN_ORDER
        count = len(order) if shuffled else block.count
        before = self._level_or_zero
        if self._widens and count:
            labels = labels - self._level_from(float(labels[order[0] if shuffled else 0]))
        start = 0
        while start < count:
            if self._until_sample == 0:
                self._sample()
            stop = min(count, start + self._until_sample)
            if self._widens:
                stop = self._widened_for(labels[order[start:stop]] if shuffled else labels[start:stop], start)
            some = margins[start:stop] if len(margins) else NOTHING
            if shuffled:
                played = self._game.play(block.rows, order[start:stop], labels, weights, self._p, record, trace, some)
            else:
                part, own = block.part(start, stop), weights[start:stop] if len(weights) else weights
                played = self._game.play(part, IN_ORDER, labels[start:stop], own, self._p, record, trace, some)
            if played != stop - start:  # blocks are checked, so that this never happens
                raise InputError("X", f"row {start + played} was refused", "Scale the features", round=self.rounds + 1)
            self._until_sample -= stop - start
            start = stop
        if self._widens and len(margins):
            margins[0] += before  # the first target of all was not known before it came
            margins[1:] += self._level_or_zero

    def require(self, block: Block, labels: FloatArray, weights: FloatArray) -> None:
        """Raise if a number of the block is too large to be learned from."""
        if block.count:
            largest = max(float(labels.max()), -float(labels.min()))
            heaviest = float(weights.max()) if len(weights) else 1.0
            require_moderate(block.largest, largest, heaviest, self._radius + 2 * largest)

    # --- the intercept's interval -----------------------------------------------------------------------------

    def _level_from(self, y: float) -> float:
        """The first target, which the interval is about."""
        if self._level.size == 0:
            self._level = np.array([y])
        return float(self._level[0])

    @property
    def _level_or_zero(self) -> float:
        return float(self._level[0]) if self._level.size else 0.0

    def _widened_for(self, labels: FloatArray, start: int) -> int:
        """Widen the interval if the first of these targets asks for it; where the next one does, to stop before it."""
        sizes = np.abs(labels)
        if sizes[0] > self._settings.intercept_bound:
            self._widen(float(sizes[0]))
        beyond = sizes > self._settings.intercept_bound
        return start + (int(beyond.argmax()) if beyond.any() else len(labels))

    def _widen(self, size: float) -> None:
        """The interval becomes ±2 size; the decision and its curvature stay as they are (`docs/linear_model.md`)."""
        before = self._radius
        curvature = math.sqrt(self._game.numbers[at.SQUARES]) / before
        slope = self._game.numbers[at.INTERCEPT_SLOPE]
        limit = curvature * self._settings.intercept_bound
        self._game.numbers[at.INTERCEPT_SLOPE] = min(max(slope, -limit), limit)
        self._use(replace(self._settings, intercept_bound=2 * size))
        self._game.numbers[at.SQUARES] *= (self._radius / before) ** 2

    # --- what is known ----------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The constants in force; the intercept's bound may have been widened."""
        return self._settings

    @property
    def rounds(self) -> int:
        """How many rows were learned."""
        return self._game.rounds

    @property
    def weights(self) -> FloatArray:
        """x_{T+1}, the decision in force: what the next row would be scored with. O(d)."""
        return self._game.x(self._p)

    @property
    def intercept(self) -> float:
        """b_{T+1}."""
        return float(self._game.numbers[at.INTERCEPT]) + self._level_or_zero

    def average(self) -> tuple[FloatArray, float]:
        """x̄ and its intercept: the mean decision, one round drawn for each stretch of max(1024, d) rounds."""
        return self._average.value(self.rounds, self.weights, self.intercept)

    def within_budget(self) -> tuple[FloatArray, float]:
        """The nearest model to x̄ within the budget: g ≤ 0 exactly, in floating-point numbers too."""
        x, intercept = self.average()
        s, g = self._settings, self._settings.constraint
        x = project_onto_elastic_net(x, s.budget, s.l1, s.l2)
        while g.values(x)[0] > 0:  # by a rounding
            x = x * (1 - 1e-15)
        return x, intercept

    @property
    def nonzeros(self) -> int:
        """How many weights of x_{T+1} are not 0."""
        return self._game.nonzeros(self._p)

    @property
    def multiplier(self) -> float:
        """λ_{T+1}, the price of the budget; for penalised FTRL ν, the weight in force."""
        return float(self._game.numbers[at.MULTIPLIER])

    @property
    def cumulative_loss(self) -> float:
        """Σ f_t(x_t), each row scored before it was learned."""
        return float(self._game.numbers[at.LOSS_SUM])

    @property
    def signed_violation(self) -> float:
        """Σ g(x_t), what the theorems of A-FTRL and A-OGD bound."""
        return float(self._game.numbers[at.SIGNED])

    @property
    def hard_violation(self) -> float:
        """Σ [g(x_t)]₊, what penalised FTRL's theorem bounds."""
        return float(self._game.numbers[at.HARD])

    @property
    def squared_violation(self) -> float:
        """Σ [g(x_t)]₊²."""
        return float(self._game.numbers[at.SQUARED])

    def margins(self, X: Any) -> FloatArray:
        """⟨u, x⟩ + b for rows u, with the decision in force; nothing is learned."""
        made = X @ self.weights + self.intercept
        return np.asarray(made)

    # --- the average ------------------------------------------------------------------------------------------

    def _sample(self) -> None:
        self._average.add(self.weights, self.intercept)
        self._plan_average()

    def _plan_average(self) -> None:
        self._until_sample = self._average.next_round() - 1 - self.rounds

    # --- snapshots --------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {"specification": self._specification(), "arrays": self._arrays()}

    def __setstate__(self, stored: dict[str, Any]) -> None:
        self._restore(stored["specification"], stored["arrays"])

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to `path`, atomically: a crash leaves the old file or the new one."""
        write_snapshot(Path(path), Snapshot(KIND, VERSION, self._specification(), self._arrays()))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The learner that was saved; it goes on bit for bit. A SnapshotError says what is wrong with a bad file."""
        stored, _ = read_snapshot(Path(path), KIND, VERSION)
        made = cls.__new__(cls)
        try:
            made._restore(dict(stored.metadata), dict(stored.arrays))
        except (KeyError, TypeError, ValueError) as error:
            reason = f"it does not describe a learner ({error})"
            raise SnapshotError(Path(path), "damaged", reason, "Give a file that save() made") from None
        return made

    def _specification(self) -> dict[str, Any]:
        return {
            "settings": asdict(self._settings),
            "widens": self._widens,
            "sparse": self._sparse,
            "seed": self._average.seed,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return (
            {f"game.{name}": array.copy() for name, array in self._game.arrays().items()}
            | {f"average.{name}": array for name, array in self._average.sampled._asdict().items()}
            | {"level": self._level}
        )

    def _restore(self, specification: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        settings = Settings(**specification["settings"])
        self._widens, self._sparse = bool(specification["widens"]), bool(specification["sparse"])
        self._game = game_for(settings, self._sparse)
        self._game.restore({name.removeprefix("game."): a for name, a in arrays.items() if name.startswith("game.")})
        self._average = Average(settings.dimension, int(specification["seed"]))
        self._average.sampled = Sampled(arrays["average.stretches"], arrays["average.total"])
        self._level = arrays["level"]
        self._use(settings)
        self._plan_average()
