"""Linear regression whose size is a budget, not a penalty to tune."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from longterm.errors import InputError
from longterm.linear_model._estimator import BudgetLinearModel
from longterm.linear_model._rows import labels_for
from longterm.linear_model.kernels.losses import CODES, OF_TWO_CLASSES
from longterm.storage.one_thread import exclusive


class BudgetLinearRegressor(RegressorMixin, BudgetLinearModel):  # type: ignore[misc]
    """Least squares, Huber or quantile regression with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    Rows are learned one after another by A-FTRL (or another `rule`), each after it was scored.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint g(x) = l1‖x‖₁ + ½ l2‖x‖² − ρ ≤ 0. The intercept costs nothing. None: one that will not bind,
        from the length of the rows that come first (`budget_`); 10 where there is one scale only.
    l1, l2 : float
        The weights of the two norms in g.
    loss : {"squared", "huber", "quantile"}
        The loss of a row.
    loss_parameter : float, optional
        The threshold of Huber's loss (1 unless given), the level of the quantile (½ unless given).
    rule : {"a-ftrl", "a-ogd", "penalised-ftrl", "mahdavi"}
        "a-ftrl" has sparse weights and rounds that cost what a sparse row touches; "penalised-ftrl" rounds of a few
        passes over d and almost no violation; "mahdavi" constant steps (it needs `constants` with "rounds").
    fit_intercept : bool
        Whether there is an intercept.
    intercept_bound : float, optional
        The intercept stays within ±intercept_bound. None lets the interval grow with the targets: it is widened to
        ±2|y| whenever a target y lies outside.
    constants : "online" or dict
        Where the steps come from: gradients seen so far, or bounds known beforehand, {"feature_norm": the length of
        the longest row, "label_bound": …, "rounds": …}, for the steps of the theorems.
    scales : {"mixed", "priced", "one"}, optional
        A mixture of eight radii in one leader, so that a generous budget does no harm; the same where radii pay for the
        multiplier, too; or the budget's own radius alone. None: "mixed" where the rule has it.
    max_features : int, optional
        At most so many weights other than 0, in every round. Penalised FTRL holds it, and is taken for "a-ftrl".
    scale_features : bool, optional
        Whether features are centred and scaled, by means and factors found on the stream; the budget is then one of
        weights of scaled features, while `coef_` and `intercept_` are for rows as they come. None: where there is no
        budget, in `fit` by means and factors of all of its rows. (Not centred are sparse matrices of more than 512
        columns, unless a fourth of their entries are stored, and streams of targets.)
    half_life : float, optional
        After so many rows a row counts half: for streams that drift, `rule` "a-ftrl" and "penalised-ftrl". `fit` then
        takes its rows once, in their order, and predicts with the last decision. On every interval I the regret is
        O(|I|/√h + h) with "penalised-ftrl", O(|I|h^(β−1) + |I|/√h + h) with "a-ftrl": `docs/linear_model.md`.
    beta : float
        β of the multiplier's regularisation θ_t ∝ t^−β, in (0, 1). Larger values have less violation and more regret.
    growth : float
        Penalised FTRL: how fast its weights w_t ∝ t^(1 + growth) grow.
    passes : int, optional
        How often `fit` goes through its rows. None: once; small data sets up to 10 times, until 20,000 rounds were
        played. Without a budget these are chosen by the loss of rows held out, a fifth at a time, and the answer is the
        mean of several runs, each with orders of its own, mixed with leaders of all rows, whose strengths and share
        are chosen so, too; `n_rounds_` and the sums are those of the last run.
        `partial_fit` takes its rows once, in their order.
    shuffle : bool
        Whether every pass of `fit` has an order of its own.
    random_state : int, RandomState instance or None
        Draws these orders, and the rounds that stand for others in the average.
    warm_start : bool
        Whether `fit` goes on from where the last one ended.
    predict_with : {"auto", "recent", "last", "average", "within_budget"}
        Which model predicts: "recent", an average of `fit`'s decisions that forgets the first ones, is 0 where the last
        one is, and lies within the budget; "last", the decision in force; "average", the mean of all; "within_budget",
        the point nearest to that mean within the budget. "auto": "recent" after `fit`, "last" after `partial_fit`.

    Notes
    -----
    What every attribute is promised to be: `docs/linear_model.md`.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model import BudgetLinearRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 10))
    >>> y = 3 * X[:, 0] + 100 + 0.1 * rng.standard_normal(2000)
    >>> model = BudgetLinearRegressor(random_state=0).fit(X, y)
    >>> model.coef_[:1].round(), round(model.intercept_)
    (array([3.]), 100)
    """

    def __init__(
        self,
        budget: float | None = None,
        *,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "squared",
        loss_parameter: float | None = None,
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
        intercept_bound: float | None = None,
        constants: str | Mapping[str, float] = "online",
        scales: str | None = None,
        max_features: int | None = None,
        scale_features: bool | None = None,
        half_life: float | None = None,
        beta: float = 2 / 3,
        growth: float = 0.5,
        passes: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        warm_start: bool = False,
        predict_with: str = "auto",
    ) -> None:
        self.budget = budget
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.loss_parameter = loss_parameter
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.intercept_bound = intercept_bound
        self.constants = constants
        self.scales = scales
        self.max_features = max_features
        self.scale_features = scale_features
        self.half_life = half_life
        self.beta = beta
        self.growth = growth
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.predict_with = predict_with

    @exclusive
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows, `passes` times over.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            By what the loss of each row is multiplied.

        Returns
        -------
        self : BudgetLinearRegressor
            This estimator.
        """
        return self._learn(X, y, sample_weight, goes_on=self.warm_start, streams=False)

    @exclusive
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows once, in their order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            By what the loss of each row is multiplied.

        Returns
        -------
        self : BudgetLinearRegressor
            This estimator.
        """
        if self._is_plain(X) and type(y) is np.ndarray and y.shape == (X.shape[0],) and y.dtype.kind in "fiu":
            labels = labels_for(y, X.shape[0], classifies=False)
            self._learn_block(self._block(X), [labels], self._weights(sample_weight, X), 1, None)
            return self
        return self._learn(X, y, sample_weight, goes_on=True, streams=True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, *, goes_on: bool, streams: bool) -> Self:
        with self._as_it_was_on_errors():
            if self.loss not in CODES or CODES[self.loss] in OF_TWO_CLASSES:
                names = [name for name, code in CODES.items() if code not in OF_TWO_CLASSES]
                raise InputError("loss", f"{self.loss!r} is not a loss of targets", f"Choose one of {', '.join(names)}")
            goes_on, random = goes_on and hasattr(self, "_learners"), self._random()
            X, y = self._validated(X, y, reset=not goes_on, y_numeric=True)
            self._streams = streams
            deviation = float(np.std(y[:1000])) or float(np.abs(y[0]))
            if not goes_on:
                self._learners = self._make_learners(1, X, random, deviation)
            labels, weights = labels_for(y, X.shape[0], classifies=False), self._weights(sample_weight, X)
            if goes_on or streams:
                passes, order = (1, None) if streams else (self._passes_over(len(y)), random)
                self._learn_block(self._block(X), [labels], weights, passes, order)
            else:
                self._fit_rows(X, [labels], weights, random, deviation)
        return self

    def _shaped(self, weights: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(weights[0])

    def _intercepts(self, intercepts: NDArray[Any]) -> Any:
        return float(intercepts[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """The prediction for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        predictions : ndarray of shape (n,)
            ⟨u, x⟩ + b.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        weights, intercepts = self._chosen()
        return np.asarray(safe_sparse_dot(X, weights[0], dense_output=True) + intercepts[0])
