"""Prediction intervals around a River regressor."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from river import base
from river.conf.interval import Interval

from longterm._base import validate
from longterm.calibration import Intervals


class OnlineConformal(base.Wrapper, base.Regressor):  # type: ignore[misc]
    """Prediction intervals around a River regressor that keep their coverage on every sequence.

    Parameters
    ----------
    regressor : base.Regressor
        It predicts a row before it learns the row.
    confidence_level : float
        Nominal coverage, overall and in every group.
    groups : callable, optional
        A function of a row that returns the names of its groups. Names may be new.
    symmetric : bool
        One threshold for |y − prediction|, or one for each side.

    Examples
    --------
    >>> from river import datasets, linear_model, preprocessing
    >>> from longterm.compat.river import OnlineConformal
    >>> regressor = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    >>> model, inside = OnlineConformal(regressor, confidence_level=0.9), []
    >>> for x, y in datasets.TrumpApproval():
    ...     inside.append(y in model.predict_one(x, with_interval=True))
    ...     model.learn_one(x, y)
    >>> f"{sum(inside) / len(inside):.2f}"
    '0.90'
    """

    def __init__(
        self,
        regressor: Any,
        confidence_level: float = 0.9,
        groups: Callable[[Mapping[Hashable, Any]], Iterable[str]] | None = None,
        symmetric: bool = True,
    ) -> None:
        self.regressor, self.confidence_level = regressor, confidence_level
        self.groups, self.symmetric = groups, symmetric
        self.intervals = Intervals(confidence_level, symmetric=symmetric)

    @property
    def _wrapped_model(self) -> Any:
        return self.regressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"regressor": preprocessing.StandardScaler() | linear_model.LinearRegression()}

    def predict_one(self, x: Mapping[Hashable, Any], with_interval: bool = False, **kwargs: Any) -> Any:
        """Return the prediction for one row, or its interval."""
        prediction = self.regressor.predict_one(x, **kwargs)
        if not with_interval:
            return prediction
        interval = self.intervals.ask(prediction, self._names(x))
        self.intervals.skip(interval)
        return Interval(interval.lower, interval.upper)

    def learn_one(self, x: Mapping[Hashable, Any], y: float, **kwargs: Any) -> None:
        """Learn one row. It counts with the interval that `predict_one` gives it now."""
        outcome = validate.scalar("y", validate.number("y", y))
        self.intervals.tell(self.intervals.ask(self.regressor.predict_one(x), self._names(x)), outcome)
        self.regressor.learn_one(x, y, **kwargs)

    def _names(self, x: Mapping[Hashable, Any]) -> Iterable[str]:
        return () if self.groups is None else self.groups(x)
