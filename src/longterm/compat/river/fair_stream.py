"""A linear classifier with parity between groups, with River's interface."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from river import base
from scipy.special import expit

from longterm.compat.river.dictionaries import DictionaryModel
from longterm.linear_model._parity import GroupPrices


class FairClassifierStream(DictionaryModel, base.Classifier):  # type: ignore[misc]
    """Classify River's rows so that groups are accepted equally often, up to a tolerance.

    `longterm.linear_model.fair` has the constraint and what is promised. Here the decision in force
    predicts, not an average. Labels are True and False.

    Parameters
    ----------
    sensitive : str
        The name under which a row has its group, a text or a number. It is no feature, and only learning reads it.
        Rows without it are a group of their own.
    constraint : {"demographic_parity", "equal_opportunity"}
        Rates of positive predictions among all rows, or among those with the label True.
    tolerance : float
        The largest difference between the rate of a group and that of all rows.
    window : int
        The number of rows for `violation` and `group_rates`.
    budget, half_life : optional
        As in `BudgetLinearClassifier`.

    Examples
    --------
    >>> import random
    >>> from longterm.compat.river import FairClassifierStream
    >>> random.seed(0)
    >>> model = FairClassifierStream("group", tolerance=0.05)
    >>> for _ in range(4000):
    ...     group = random.choice("ab")
    ...     x = {"group": group} | {name: random.gauss(0.5 * (group == "a"), 1) for name in "uvw"}
    ...     model.learn_one(x, x["u"] + random.gauss(0, 0.5) > 0)
    >>> model.violation < 0.05
    True
    """

    loss = "logistic"

    def __init__(
        self,
        sensitive: str = "group",
        constraint: str = "demographic_parity",
        tolerance: float = 0.02,
        window: int = 1000,
        budget: float | None = None,
        half_life: float | None = None,
    ) -> None:
        super().__init__(budget, half_life=half_life)
        self.sensitive, self.constraint, self.tolerance, self.window = sensitive, constraint, tolerance, window
        self._prices = GroupPrices(constraint, tolerance, window)

    @property
    def violation(self) -> float:
        """The largest difference beyond the tolerance over the last `window` rows, of groups with 30 rows there."""
        return self._prices.violation

    @property
    def group_rates(self) -> dict[Any, tuple[int, float]]:
        """For each group its rows among the last `window`, and the share of them that was predicted True."""
        return self._prices.rates()

    def learn_one(self, x: Mapping[Hashable, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row, and count the prediction that the model makes for it now."""
        features, label = self._features(x), np.array([1.0 if y else -1.0])
        prediction = np.array([self._margin(features) > 0])
        number = self._prices.numbers_of([x.get(self.sensitive)])
        signed = float(self._prices.signed_weights(number, label)[0])
        self._learn(features, 1.0 if signed > 0 else -1.0, abs(signed) * w)
        self._prices.observe(number, label, prediction)

    def predict_proba_one(self, x: Mapping[Hashable, Any], **kwargs: Any) -> dict[bool, float]:
        """Return the probabilities of both labels; the prices of the groups are part of them."""
        p = float(expit(self._margin(self._features(x))))
        return {False: 1.0 - p, True: p}

    def _features(self, x: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        return {name: value for name, value in x.items() if name != self.sensitive}
