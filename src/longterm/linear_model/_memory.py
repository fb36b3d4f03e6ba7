"""What a streaming learner remembers, shows and stores: everything about it but how it learns."""

from __future__ import annotations

import math
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.errors import SnapshotError
from longterm.linear_model._average import Average, Sampled
from longterm.linear_model._settings import Settings
from longterm.linear_model.kernels.rule import CompiledRule, compiled_rule
from longterm.projections import project_onto_elastic_net
from longterm.storage.snapshot import Snapshot, read_snapshot, write_snapshot

KIND = "budget linear learner"
VERSION = 1


class LearnerMemory:
    """The state of a `BudgetLinearLearner`."""

    _rule: CompiledRule
    _average: Average
    _sparse: bool
    _widens: bool
    """Whether the intercept's interval grows with the targets."""
    _has_level: bool
    _level: float
    """The first target, which that interval is about; 0 where there is none."""

    def _use(self, settings: Settings) -> None:
        self._settings = settings
        parameters = settings.parameters()
        self._rule.use(parameters)
        self._radius = math.hypot(parameters.radius, settings.intercept_bound)
        self._classifies = settings.classifies
        self._shape = (settings.dimension,)

    # --- what is known ----------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The constants in force; the intercept's bound may have been widened."""
        return self._settings

    @property
    def rounds(self) -> int:
        """How many rows were learned."""
        return self._rule.rounds

    @property
    def weights(self) -> FloatArray:
        """x_{T+1}, the decision in force: what the next row would be scored with. O(d)."""
        return self._rule.x()

    @property
    def intercept(self) -> float:
        """b_{T+1}."""
        return self._rule.number("intercept") + self._level

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
            "level": self._level if self._has_level else None,
            "seed": self._average.seed,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        # "game" is what snapshots of version 1 call the rule's state
        return {f"game.{name}": array for name, array in self._rule.arrays().items()} | {
            f"average.{name}": array for name, array in self._average.sampled._asdict().items()
        }

    def _restore(self, specification: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        settings = Settings(**specification["settings"])
        self._widens, self._sparse = bool(specification["widens"]), bool(specification["sparse"])
        self._has_level, self._level = specification["level"] is not None, float(specification["level"] or 0.0)
        self._rule = compiled_rule(settings.rule, settings.dimension, self._sparse)
        self._rule.restore({name.removeprefix("game."): a for name, a in arrays.items() if name.startswith("game.")})
        self._average = Average(settings.dimension, int(specification["seed"]))
        self._average.sampled = Sampled(arrays["average.stretches"], arrays["average.total"])
        self._use(settings)
        self._plan_average()
