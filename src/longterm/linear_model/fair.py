"""A linear classifier with parity between groups, learned in one pass."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from longterm.errors import InputError
from longterm.linear_model._parity import LARGEST_PRICE, GroupPrices
from longterm.linear_model._passes import RecentAverage, TrainingRows, possible_passes
from longterm.linear_model._rows import RowBlock
from longterm.linear_model.classifier import BudgetLinearClassifier
from longterm.storage.one_thread import exclusive


class FairLinearClassifier(BudgetLinearClassifier):
    """Classify rows so that groups are accepted equally often, up to a tolerance.

    The model is a logistic regression of two classes.

    With r_a the share of rows of group a that are predicted positive and r that of all rows, |r_a − r| ≤ tolerance in
    the long run. Groups are needed to learn, and not to predict. They may be new at any time. Memory is constant.

    Parameters
    ----------
    constraint : {"demographic_parity", "equal_opportunity"}
        Rates among all rows, or among those of the second class of `classes_` (rates of true positives).
    tolerance : float
        The largest |r_a − r|. A group of n rows may be 1/√n further away after one pass, as its price rises slowly.
        More `passes` meet the tolerance on the rows that are fitted. On new rows a rate of n rows varies by 1/√n.
    window : int
        The number of rows for `violation_` and `group_rates_`.
    budget : float, optional
        As in `BudgetLinearClassifier`, with l1 = l2 = 1.
    passes, random_state, predict_with : optional
        As in `BudgetLinearClassifier`, but "auto" is "recent" after `partial_fit` too: single decisions vary.

    Notes
    -----
    Each group has a price for positive predictions, a multiplier that ascends by the gap of the predictions so far
    (`docs/tutorials/fair_stream.md`). Nothing is proved about the rates, which are no convex functions of the weights.
    Probabilities include the prices.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model.fair import FairLinearClassifier
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 4000)
    >>> X = rng.standard_normal((4000, 3)) + np.where(group == "a", 0.5, 0.0)[:, None]
    >>> y = X[:, 0] + 0.5 * rng.standard_normal(4000) > 0
    >>> model = FairLinearClassifier(random_state=0).fit(X, y, sensitive_features=group)
    >>> rates = [model.predict(X)[group == name].mean() for name in "ab"]
    >>> bool(abs(rates[0] - rates[1]) < 0.06), bool(model.score(X, y) > 0.75)
    (True, True)
    """

    loss, rule, l1, l2, fit_intercept = "logistic", "a-ftrl", 1.0, 1.0, True
    max_features, class_weight = None, None

    def __init__(
        self,
        constraint: str = "demographic_parity",
        *,
        tolerance: float = 0.02,
        window: int = 1000,
        budget: float | None = None,
        passes: int | None = None,
        random_state: Any = None,
        predict_with: str = "auto",
    ) -> None:
        self._keep(locals())

    @exclusive
    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Self:  # type: ignore[override]
        """Learn the rows in `passes` passes; `sensitive_features` has the group of each row."""
        with self._unchanged_on_errors():
            random = check_random_state(self.random_state)
            X, rows = self._training_rows(X, y, None, reset=True)
            groups = _group_names(sensitive_features, rows.block.count)
            self._begin(X, rows, random, stream=False)
            for _ in range(self._given_passes(possible_passes(len(groups))[-1])):
                self._learn_groups(rows, groups, random.permutation(len(groups)))
        return self

    @exclusive
    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, sensitive_features: Any) -> Self:  # type: ignore[override]
        """Learn the rows once, in their order. Without `classes` the first call must have rows of both."""
        with self._unchanged_on_errors():
            first = not hasattr(self, "_learners")
            if not first and classes is not None and not np.array_equal(classes, self.classes_):
                raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit")
            X, rows = self._training_rows(X, y, None, reset=first, classes=classes)
            groups = _group_names(sensitive_features, rows.block.count)
            if first:
                self._begin(X, rows, check_random_state(self.random_state), stream=True)
            self._learn_groups(rows, groups, np.arange(rows.block.count))
        return self

    def _begin(self, X: Any, rows: TrainingRows, random: Any, *, stream: bool) -> None:
        if len(rows.targets) > 1:
            raise ValueError(f"Only two classes can be learned; got {len(self.classes_)} classes")
        self._start(X, rows, random, stream=stream)
        self._prices = GroupPrices(self.constraint, self.tolerance, self.window)

    def _learn_groups(self, rows: TrainingRows, groups: list[Any], order: NDArray[np.int64]) -> None:
        """Learn the rows in this order, in parts that end where prices change."""
        self._prices, self._averages = deepcopy((self._prices, self._averages))  # the old ones stay for an error
        learner, prices, labels = self._learners[0], self._prices, rows.targets[0]
        numbers, block = prices.numbers_of(groups), rows.block
        heaviest = np.full(block.count, 1 + 2 * LARGEST_PRICE)
        learner.require(block, labels, heaviest)
        counted, start = np.cumsum(prices.counts(labels[order])), 0
        with learner.rollback_on_error(block, labels, heaviest):
            while start < len(order):
                before = counted[start - 1] if start else 0
                stop = min(int(np.searchsorted(counted, before + prices.rows_left)) + 1, len(order))
                chosen, margins = order[start:stop], np.empty(stop - start)
                signed = prices.signed_weights(numbers[chosen], labels[chosen])
                part = RowBlock(block.take(chosen), stop - start, block.longest)
                learner.learn_checked(part, np.where(signed > 0, 1.0, -1.0), np.abs(signed), margins=margins)
                if prices.observe(numbers[chosen], labels[chosen], margins > 0):
                    self._averages = self._averages or [RecentAverage()]
                    self._averages[0].add(learner.weights, learner.intercept)
                start = stop
        self._reset_models(fitted=True)

    # --- attributes -------------------------------------------------------------------------------------------

    @property
    def violation_(self) -> float:
        """The largest |r_a − r| − tolerance over the last `window` rows, of groups with 30 of them."""
        return self._fitted_prices().violation

    @property
    def group_rates_(self) -> dict[Any, tuple[int, float]]:
        """For each group its rows among the last `window`, and the share of them that was predicted positive."""
        return self._fitted_prices().rates()

    @property
    def group_prices_(self) -> dict[Any, float]:
        """κ_a, what a positive prediction costs in each group; a wrong prediction costs 1."""
        prices = self._fitted_prices()
        return dict(zip(prices.names, prices.prices.tolist(), strict=True))

    def _fitted_prices(self) -> GroupPrices:
        self._for_each("rounds")  # raises if nothing was learned
        return self._prices

    # --- files ------------------------------------------------------------------------------------------------

    def _stored_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata, arrays = super()._stored_parts()
        arrays |= {f"prices.{name}": array for name, array in self._prices.arrays().items()}
        return {"groups": list(self._prices.names), **metadata}, arrays

    def _take_parts(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        own = {name.removeprefix("prices."): arrays.pop(name) for name in list(arrays) if name.startswith("prices.")}
        prices = GroupPrices(self.constraint, self.tolerance, self.window)
        self._prices = prices.restore(metadata.pop("groups", None), own)
        super()._take_parts(metadata, arrays)


def _group_names(sensitive_features: Any, count: int) -> list[Any]:
    """Return the groups of the rows as plain Python values. Raise InputError if one is missing."""
    given = np.asarray(sensitive_features)
    if given.shape != (count,):
        remedy = f"Give the group of each of the {count} rows; join several columns into one"
        raise InputError("sensitive_features", f"has shape {given.shape}", remedy)
    groups: list[Any] = given.tolist()
    for row, group in enumerate(groups):
        if group is None or group != group:
            raise InputError("sensitive_features", f"row {row} has no group", "Give unknown groups a name of their own")
    return groups
