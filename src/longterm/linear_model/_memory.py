"""What a streaming learner remembers, shows and stores, its average too: everything about it but how it learns."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.errors import SnapshotError
from longterm.linear_model._feature_scale import MOST_FACTOR, FeatureScale
from longterm.linear_model._settings import Settings
from longterm.linear_model._stored import checked_settings, stretch_length
from longterm.linear_model.kernels.layout import ORDINARY, Parameters
from longterm.linear_model.kernels.rule import CompiledRule, compiled_rule
from longterm.projections import project_onto_elastic_net
from longterm.storage.one_thread import OneThread, exclusive
from longterm.storage.snapshot import Snapshot, read_snapshot, write_snapshot

KIND = "budget linear learner"
VERSION = 1
"""The version of the file layout."""
FAR = 1e20
"""Decisions farther from 0 make more numbers large."""
_MASK = 2**64 - 1


class LearnerMemory:
    """The state of a `BudgetLinearLearner`."""

    kind: ClassVar[str] = KIND
    """What its files are of."""
    _guard: OneThread
    _rule: CompiledRule
    _average: Average
    _sparse: bool
    _widens: bool
    """Whether the intercept's interval grows with the targets."""
    _has_level: bool
    _level: float
    """The first target, which that interval is about; 0 where there is none."""
    _ordinary: float
    """What is smaller, row, target or weight, needs no look before it is learned; −1: everything does."""
    _scale: FeatureScale | None = None
    """What rows are multiplied by before they are learned."""

    def _use(self, settings: Settings) -> None:
        self._settings = settings
        parameters = self._parameters(settings)
        self._rule.use(parameters)
        self._radius = math.hypot(parameters.radius, settings.reach)
        self._ordinary = ORDINARY if self._radius <= FAR else -1.0
        self._classifies = settings.classifies
        self._shape = (settings.dimension,)

    def _parameters(self, settings: Settings) -> Parameters:
        """The rule's constants: those of the settings, and what scaled features add to them."""
        parameters = settings.parameters()
        capped = self._scale is not None and settings.loss == "squared"
        return replace(parameters, most_factor=MOST_FACTOR) if capped else parameters

    def __repr__(self) -> str:
        s = self._settings
        return (
            f"{type(self).__name__}(dimension={s.dimension}, budget={s.budget:g}, loss={s.loss!r}, rule={s.rule!r}, "
            f"rounds={self.rounds}, nonzeros={self.nonzeros})"
        )

    # --- what is known ----------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The constants in force; the intercept's bound may have been widened."""
        return self._settings

    @property
    def scale(self) -> FeatureScale | None:
        """How features are centred and scaled, if they are."""
        return self._scale

    @property
    def rounds(self) -> int:
        """How many rows were learned."""
        return self._rule.rounds

    @property
    def weights(self) -> FloatArray:
        """x_{T+1}, the decision in force: what the next row would be scored with. O(d)."""
        x = self._rule.x()
        return x if self._scale is None else x * self._scale.factors

    @property
    def intercept(self) -> float:
        """b_{T+1}."""
        b = self._rule.number("intercept") + self._level
        return b if self._scale is None or not self._scale.centred else b - float(self.weights @ self._scale.means)

    def average(self) -> tuple[FloatArray, float]:
        """x̄ and its intercept: the mean decision, one round drawn for each stretch of max(1024, d) rounds."""
        return self._average.value(self.rounds, self.weights, self.intercept)

    def within_budget(self) -> tuple[FloatArray, float]:
        """The nearest model to x̄ within the budget: g ≤ 0 exactly, in floating-point numbers too."""
        return self.nearest_within_budget(*self.average())

    def nearest_within_budget(self, x: FloatArray, intercept: float | FloatArray) -> tuple[FloatArray, float]:
        """The nearest weights with g ≤ 0, in floating-point numbers too; where features are scaled, g is of those.

        And the intercept with which a row of the features' means is scored as before.
        """
        nearest, intercept = self._within_budget(x), float(np.sum(intercept))
        if self._scale is not None and self._scale.centred:
            intercept += float((x - nearest) @ self._scale.means)
        return nearest, intercept

    def size(self, x: FloatArray) -> float:
        """How much of the budget these weights take: l1‖x‖₁ + ½ l2‖x‖², of scaled features where they are."""
        own = x if self._scale is None else x / self._scale.factors
        return float(self._settings.constraint.values(own)[0]) + self._settings.budget

    def _within_budget(self, x: FloatArray) -> FloatArray:
        s, g = self._settings, self._settings.constraint
        factors = 1.0 if self._scale is None else self._scale.factors
        own = x / factors
        if g.values(own)[0] <= 0:
            return x
        own = project_onto_elastic_net(own, s.budget, s.l1, s.l2)
        while g.values(own)[0] > 0:  # by a rounding
            own = own * (1 - 1e-15)
        made: FloatArray = own * factors
        return made

    @property
    def binds(self) -> bool:
        """Whether the budget was ever priced: Λ > 0, or ν > 0 in penalised FTRL."""
        name = "multiplier" if self._settings.rule == "penalised-ftrl" else "multiplier_sum"
        return self._rule.number(name) > 0 or self.hard_violation > 0

    @property
    def nonzeros(self) -> int:
        """How many weights of x_{T+1} are not 0."""
        return self._rule.nonzeros()

    @property
    def multiplier(self) -> float:
        """λ_{T+1}, the price of the budget; for penalised FTRL ν, the weight in force."""
        return self._rule.number("multiplier")

    @property
    def cumulative_loss(self) -> float:
        """Σ f_t(x_t), each row scored before it was learned."""
        return self._rule.number("loss_sum")

    @property
    def signed_violation(self) -> float:
        """Σ g(x_t), what the theorems of A-FTRL and A-OGD bound."""
        return self._rule.number("signed_violation")

    @property
    def hard_violation(self) -> float:
        """Σ [g(x_t)]₊, what penalised FTRL's theorem bounds."""
        return self._rule.number("hard_violation")

    @property
    def squared_violation(self) -> float:
        """Σ [g(x_t)]₊²."""
        return self._rule.number("squared_violation")

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

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        return {"specification": self._specification(), "arrays": self._arrays()}

    def __setstate__(self, stored: dict[str, Any]) -> None:
        self._restore(stored["specification"], stored["arrays"])

    @exclusive
    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to `path`, atomically: a crash leaves the old file or the new one."""
        write_snapshot(Path(path), Snapshot(self.kind, VERSION, self._specification(), self._arrays()))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """The learner that was saved; it goes on bit for bit. A SnapshotError says what is wrong with a bad file."""
        stored = read_snapshot(Path(path), cls.kind, VERSION)
        made = cls.__new__(cls)
        try:
            made._restore(dict(stored.metadata), dict(stored.arrays))
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            reason = f"it does not describe a learner ({error})"
            raise SnapshotError(Path(path), "damaged", reason, "Give a file that save() made") from None
        return made

    def _specification(self) -> dict[str, Any]:
        return {
            "settings": asdict(self._settings),
            "widens": self._widens,
            "sparse": self._sparse,
            "level": self._level if self._has_level else None,
            "seed": self._average.seed,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return (
            {f"game.{name}": array for name, array in self._rule.arrays().items()}
            | {f"average.{name}": array for name, array in self._average.sampled._asdict().items()}
            | ({f"scale.{name}": a for name, a in self._scale.arrays().items()} if self._scale is not None else {})
        )

    def _restore(self, specification: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._guard = OneThread(type(self).__name__)
        settings = checked_settings(specification, arrays)
        self._widens, self._sparse = bool(specification["widens"]), bool(specification["sparse"])
        level = specification["level"]
        self._has_level, self._level = level is not None, 0.0 if level is None else float(level)
        self._rule = compiled_rule(settings.rule, settings.dimension, self._sparse)
        self._use(settings)  # the state is of a layout that depends on them
        self._rule.restore({name.removeprefix("game."): a for name, a in arrays.items() if name.startswith("game.")})
        scale = {name.removeprefix("scale."): array for name, array in arrays.items() if name.startswith("scale.")}
        self._scale = FeatureScale.restored(settings.dimension, scale) if scale else None
        self._use(settings)
        if self._scale is not None:
            self._rule.require_room()
            self._scale.require_room(self._rule.vector[:: self._rule.numbers_per_coordinate])
        self._average = Average(settings.dimension, int(specification["seed"]))
        self._average.sampled = Sampled(arrays["average.stretches"], arrays["average.total"])
        self._plan_average()
        if self._until_sample < 0:
            raise ValueError("the average's next round is over")


class Sampled(NamedTuple):
    """What was drawn so far."""

    stretches: NDArray[np.int64]
    """[n], how many stretches have had their round."""
    total: FloatArray
    """The sum of the n decisions, with the intercept last; empty while n = 0, so that it takes no memory."""


class Average:
    """The average of all decisions, without a pass over the coordinates in every round.

    Rounds are divided into stretches of L = max(1024, d). In each stretch one round, drawn from a seed and the
    stretch's number, stands for all of it: its decision is added L times. The expected value of that sum over the draw
    is the sum over all rounds, so by Jensen's inequality the average x̄ has, in expectation over the draw, F(x̄) ≤
    (1/T) Σ F(x_t) for every convex F, just as the average of all rounds would. A pass over d coordinates every L ≥ d
    rounds is less than one coordinate a round.

    The rounds since the last whole stretch, fewer than L, are represented by the decision in force now.
    """

    def __init__(self, dimension: int, seed: int) -> None:
        self.length = stretch_length(dimension)
        self.seed = seed
        self.sampled = Sampled(np.zeros(1, dtype=np.int64), np.empty(0))
        self._before: tuple[int, Sampled] | None = None

    def next_round(self) -> int:
        """The round, counted from 1, whose decision is wanted next."""
        return self.round_of(int(self.sampled.stretches[0]))

    def round_of(self, stretch: int) -> int:
        """The round that stands for this stretch."""
        return stretch * self.length + 1 + _drawn(self.seed, stretch, self.length)

    def add(self, x: FloatArray, intercept: float) -> None:
        """The decision of that round."""
        stretches, total = self.sampled
        added = np.empty(len(x) + 1)  # `append` and `concatenate` take as long as all the rest
        added[:-1], added[-1] = x, intercept
        if total.size:
            added += total
        self._before = self.next_round(), self.sampled
        self.sampled = Sampled(stretches + 1, added)

    def take_back(self, round: int) -> None:
        """Forget the decision of this round if it was added: the round was refused, and may not come again."""
        if self._before is not None and self._before[0] == round:
            self.sampled = self._before[1]

    def value(self, rounds: int, x: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """x̄ after so many rounds, where the decision is now x."""
        stretches, total = int(self.sampled.stretches[0]), self.sampled.total
        rest = max(rounds - stretches * self.length, 0)
        if stretches == 0:
            return x, intercept
        mean = (self.length * total + rest * np.append(x, intercept)) / (stretches * self.length + rest)
        return mean[:-1], float(mean[-1])


@lru_cache(maxsize=1024)  # asked for when it is planned, and when it comes
def _drawn(seed: int, stretch: int, length: int) -> int:
    """A number below `length` that looks random: splitmix64."""
    z = (seed * 0x9E3779B97F4A7C15 + stretch + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) % length
