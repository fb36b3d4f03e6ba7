"""The state of a streaming learner: its attributes, its average and its files."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.errors import SnapshotError
from longterm.linear_model._average import Average, DrawnRounds
from longterm.linear_model._feature_scale import FACTOR_BOUND, LONGEST_ROW, FeatureScale
from longterm.linear_model._settings import NO_BUDGET, Settings
from longterm.linear_model._stored import checked_settings
from longterm.linear_model.kernels.kernel_state import KernelState
from longterm.linear_model.kernels.layout import Parameters
from longterm.problems.projections.elastic_net import project_onto_elastic_net
from longterm.storage.one_thread import OneThread, exclusive
from longterm.storage.saved import Saved
from longterm.storage.snapshot import Snapshot


class LearnerMemory(Saved):
    """The whole state of a `BudgetLinearLearner`. `_begin` sets every attribute, and a file holds every one."""

    file_kind: ClassVar[str] = "budget linear learner"

    def _begin(
        self,
        settings: Settings,
        scale: FeatureScale | None,
        *,
        sparse: bool,
        level: float | None,
        seed: int,
    ) -> None:
        """Set the state before the first row."""
        self._scale = scale
        """Means and factors of the features, or None."""
        self._sparse = sparse
        """True if sparse rows were asked for. Only A-FTRL has a layout for them."""
        self._widens = not settings.classifies and (settings.offset == "mean" or scale is not None)
        """True if the scale of the targets is followed."""
        self._has_level, self._level = level is not None or settings.offset != "mean", float(level or 0.0)
        """True after the first target, and that target, about which the intercept lies; 0 without an offset."""
        self._state = KernelState(settings.rule, settings.dimension, sparse)
        """The vector of the rule and its numbers."""
        self._average = Average(settings.dimension, seed)
        """The sum of the decisions that were drawn for the average."""
        self._use(settings)
        self._plan_average()

    def _use(self, settings: Settings) -> None:
        """Continue with these settings."""
        self._settings = settings
        self._state.use(self._parameters(settings))
        self._radius = self._state.parameter("radius") + settings.reach
        self._classifies = settings.classifies

    def _parameters(self, settings: Settings) -> Parameters:
        """Return the constants of the settings, with the bounds that scaled features add to them."""
        if self._scale is None:
            return settings.parameters()
        parameters = settings.parameters(self._scale.units.tolist())
        if self._scale.centred:
            parameters = replace(parameters, longest_row=LONGEST_ROW**2)
        return replace(parameters, factor_bound=FACTOR_BOUND) if settings.loss == "squared" else parameters

    def __repr__(self) -> str:
        s = self._settings
        return (
            f"{type(self).__name__}(dimension={s.dimension}, budget={self.budget:g}, loss={s.loss!r}, rule={s.rule!r}, "
            f"rounds={self.rounds}, nonzeros={self.nonzeros})"
        )

    # --- attributes -------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The settings in force. The intercept's bound may have been widened."""
        return self._settings

    @property
    def budget(self) -> float:
        """ρ; infinity without a budget."""
        return math.inf if self._settings.budget == NO_BUDGET else self._settings.budget

    @property
    def scale(self) -> FeatureScale | None:
        """Centres and scales of the features, or None."""
        return self._scale

    @property
    def sizes(self) -> FloatArray:
        """The size of each feature: the budget counts l1 |x_j| size_j + ½ l2 (x_j size_j)². 1 without scaling."""
        scale = self._scale
        return np.ones(self._settings.dimension) if scale is None else 1 / (scale.factors * scale.units[0])

    @property
    def rounds(self) -> int:
        """Number of rows learned."""
        return self._state.rounds

    @property
    def weights(self) -> FloatArray:
        """x_{T+1}, the decision in force, with which the next row would be scored."""
        x = self._state.x()
        return x if self._scale is None else x * self._scale.factors

    @property
    def intercept(self) -> float:
        """b_{T+1}."""
        return self._decision()[1]

    def _decision(self) -> tuple[FloatArray, float]:
        """Return the weights and the intercept in force."""
        x, b = self.weights, self._state.number("intercept") + self._level
        return x, b if self._scale is None or not self._scale.centred else b - float(x @ self._scale.means)

    def average(self) -> tuple[FloatArray, float]:
        """Return x̄ and its intercept, the mean decision: one round is drawn for each stretch of max(1024, d) rounds."""
        return self._average.value(self.rounds, *self._decision())

    def within_budget(self) -> tuple[FloatArray, float]:
        """Return the nearest model to x̄ within the budget: g ≤ 0 exactly, in floating-point numbers too."""
        return self.nearest_within_budget(*self.average())

    def nearest_within_budget(self, x: FloatArray, intercept: float | FloatArray) -> tuple[FloatArray, float]:
        """Return the nearest weights with g ≤ 0, and an intercept for which the mean row has the same score.

        Where features are scaled, g is that of the weights times `sizes`.
        """
        nearest, intercept = self._within_budget(x), float(np.sum(intercept))
        if self._scale is not None and self._scale.centred:
            intercept += float((x - nearest) @ self._scale.means)
        return nearest, intercept

    def size(self, x: FloatArray) -> float:
        """Return how much of the budget these weights use: l1‖x‖₁ + ½ l2‖x‖² of the weights times `sizes`."""
        own = x * self.sizes
        return float(self._settings.l1 * np.abs(own).sum() + 0.5 * self._settings.l2 * (own @ own))

    def _within_budget(self, x: FloatArray) -> FloatArray:
        s, g, sizes = self._settings, self._settings.constraint, self.sizes
        own = x * sizes
        if g.values(own)[0] <= 0:
            return x
        own = project_onto_elastic_net(own, s.budget, s.l1, s.l2)
        while g.values(own)[0] > 0:  # by a rounding error
            own = own * (1 - 1e-15)
        made: FloatArray = own / sizes
        return made

    @property
    def binds(self) -> bool:
        """True if the budget was ever reached: a decision would have passed it."""
        return self._state.number("reached") > 0

    @property
    def nonzeros(self) -> int:
        """Number of non-zero weights of x_{T+1}."""
        return self._state.nonzeros()

    @property
    def multiplier(self) -> float:
        """λ_{T+1}, the dual variable; for penalised FTRL ν, the weight in force."""
        return self._state.number("multiplier")

    @property
    def cumulative_loss(self) -> float:
        """Σ f_t(x_t), each row scored before it was learned."""
        return self._state.number("loss_sum")

    @property
    def signed_violation(self) -> float:
        """Σ g(x_t), which the theorem of A-FTRL bounds; minus infinity without a budget."""
        return self._state.number("signed_violation") if self.budget < math.inf else -math.inf

    @property
    def hard_violation(self) -> float:
        """Σ [g(x_t)]₊, which the theorem of penalised FTRL bounds."""
        return self._state.number("hard_violation")

    @property
    def squared_violation(self) -> float:
        """Σ [g(x_t)]₊²."""
        return self._state.number("squared_violation")

    def margins(self, X: Any) -> FloatArray:
        """Return ⟨u, x⟩ + b for the rows u of X, with the decision in force."""
        return np.asarray(X @ self.weights + self.intercept)

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted labels, −1 or +1, or targets of rows, with the decision in force."""
        margins = self.margins(X if hasattr(X, "shape") else np.asarray(X, dtype=np.float64))
        return np.where(margins > 0, 1.0, -1.0) if self._classifies else margins

    # --- the average ------------------------------------------------------------------------------------------

    def _draw_decision(self) -> None:
        """Add the decision in force to the average."""
        self._average.add(*self._decision())
        self._plan_average()

    def _plan_average(self) -> None:
        self._until_drawn = self._average.next_round() - 1 - self.rounds

    # --- files ------------------------------------------------------------------------------------------------

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        return {"specification": self._specification(), "arrays": self._arrays()}

    def __setstate__(self, stored: dict[str, Any]) -> None:
        self._guard = OneThread(type(self).__name__)
        self._restore(stored["specification"], stored["arrays"])

    def _snapshot(self) -> Snapshot:
        return Snapshot(self.file_kind, self.file_version, self._specification(), self._arrays())

    @classmethod
    def _from_snapshot(cls, stored: Snapshot, path: Path) -> Self:
        made = cls.__new__(cls)
        try:
            made.__setstate__({"specification": dict(stored.metadata), "arrays": dict(stored.arrays)})
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            reason = f"it does not describe a learner ({error})"
            raise SnapshotError(
                path, "damaged", reason, "Give a file or bytes that save() or to_bytes() wrote"
            ) from None
        return made

    def _specification(self) -> dict[str, Any]:
        return {
            "settings": asdict(self._settings),
            "sparse": self._sparse,
            "level": self._level if self._has_level and self._settings.offset == "mean" else None,
            "seed": self._average.seed,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return (
            {f"state.{name}": array for name, array in self._state.arrays().items()}
            | {f"average.{name}": array for name, array in self._average.drawn._asdict().items()}
            | ({f"scale.{name}": a for name, a in self._scale.arrays().items()} if self._scale is not None else {})
        )

    def _restore(self, specification: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        settings = checked_settings(specification, arrays)
        scale = {name.removeprefix("scale."): array for name, array in arrays.items() if name.startswith("scale.")}
        options = {name: specification[name] for name in ("sparse", "level", "seed")}
        self._begin(settings, FeatureScale.restored(settings.dimension, scale) if scale else None, **options)
        self._state.restore({name.removeprefix("state."): a for name, a in arrays.items() if name.startswith("state.")})
        if self._scale is not None:
            self._state.require_update_in_range()
            self._scale.require_update_in_range(self._state.z)
        self._average.drawn = DrawnRounds(arrays["average.stretches"], arrays["average.total"])
        self._plan_average()
        if self._until_drawn < 0:
            raise ValueError("the round to be drawn next for the average is over")
