"""Linear regression under a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._estimator import BudgetLinearModel
from longterm.linear_model._passes import TrainingRows
from longterm.linear_model._rows import labels_for, row_block, weights_for
from longterm.linear_model.kernels.losses import CODES, OF_TWO_CLASSES
from longterm.storage.one_thread import exclusive


class BudgetLinearRegressor(RegressorMixin, BudgetLinearModel):  # type: ignore[misc]
    """Least squares, Huber or quantile regression with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    Rows are learned one after another by A-FTRL or another `rule`, each after it was scored. All parameters are
    optional.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint g(x) = l1‖x‖₁ + ½ l2‖x‖² − ρ ≤ 0. The intercept is free. `fit` standardises features
        (`scale_features`), and x are then the weights of standardised features. None: a budget that will not bind
        (`budget_`); 10 where there is one scale only.
    l1, l2 : float
        The weights of the two norms in g.
    loss : {"squared", "huber", "quantile"}
        The loss of a row.
    loss_parameter : float, optional
        The threshold of Huber's loss (1 unless given), or the level of the quantile (½ unless given).
    rule : {"a-ftrl", "a-ogd", "penalised-ftrl", "mahdavi"}
        "a-ftrl" has sparse weights, and its rounds cost as much as a row has non-zeros. "penalised-ftrl" has almost no
        violation, and its rounds cost O(d). "mahdavi" has constant steps and needs `constants` with "rounds".
    fit_intercept : bool
        Whether there is an intercept.
    intercept_bound : float, optional
        The intercept for centred features is within ±intercept_bound. None: the interval grows with the targets.
    constants : "online" or dict
        "online": step sizes come from the gradients seen so far. A dict gives bounds known beforehand, for the step
        sizes of the theorems: {"feature_norm": the length of the longest row, "label_bound": …, "rounds": …}.
    scales : {"mixed", "priced", "one"}, optional
        "mixed": a mixture of eight radii, so that a generous budget does no harm. "priced": the same, and each radius
        also pays for the multiplier. "one": the budget's own radius. None: "mixed" where the rule has it.
    max_features : int, optional
        At most this many non-zero weights. `fit` learns a model of all features, keeps those with the largest weights,
        and learns again with these alone. `partial_fit` keeps the limit in every round, by penalised FTRL.
    scale_features : bool, optional
        Whether features are centred and scaled; `coef_` and `intercept_` are for rows as they come. With a budget,
        `fit` standardises them: each is divided by its standard deviation. None: yes, but not for a budget in a stream,
        where standard deviations are not known, nor for a budget and a sparse matrix that is not centred. Sparse
        matrices are centred if they have at most 512 columns, or if a fourth of their entries are stored.
    half_life : float, optional
        After this many rows the weight of a row is halved: for streams that drift, rules "a-ftrl" and "penalised-ftrl".
        `fit` then takes its rows once, in their order, and predicts with the last decision.
    beta : float
        β of the multiplier's regularisation θ_t ∝ t^−β, in (0, 1). Larger values have less violation and more regret.
    growth : float
        Penalised FTRL: its weights are w_t ∝ t^(1 + growth).
    passes : int, optional
        The number of passes of `fit` over its rows. None: 5, or 10 with a budget, but at most 100,000 rounds or one
        pass. `partial_fit` makes one pass.
    shuffle : bool
        Whether every pass of `fit` has an order of its own.
    random_state : int, RandomState instance or None
        Draws these orders, and the rounds whose decisions represent others in `average_coef_`.
    warm_start : bool
        Whether `fit` continues from the last fit.
    predict_with : {"auto", "recent", "last", "average", "within_budget"}
        The model that predicts. "recent": the average of `fit`'s decisions, later ones with larger weights, 0 where
        most of them are 0, and within the budget. "last": the decision in force. "average": the mean of all
        decisions. "within_budget": the nearest point to that mean within the budget. "auto": "recent" after `fit`,
        "last" after `partial_fit`.

    Notes
    -----
    `docs/guides/linear_model.md` lists what each attribute guarantees.

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
        """Learn the rows in `passes` passes, and predict with the average of the decisions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            Factors for the losses of the rows.

        Returns
        -------
        self : BudgetLinearRegressor
            This estimator.
        """
        with self._unchanged_on_errors():
            self._require_loss()
            continues = self.warm_start and hasattr(self, "_learners")
            X, rows = self._training_rows(X, y, sample_weight, reset=not continues)
            self._fit_rows(X, rows, check_random_state(self.random_state), continues=continues)
        return self

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
            Factors for the losses of the rows.

        Returns
        -------
        self : BudgetLinearRegressor
            This estimator.
        """
        with self._unchanged_on_errors():
            first = not hasattr(self, "_learners")
            X, rows = self._training_rows(X, y, sample_weight, reset=first)
            if first:
                self._require_loss()
                self._start(X, rows, check_random_state(self.random_state), stream=True)
            self._learn_stream(rows)
        return self

    def _require_loss(self) -> None:
        if self.loss not in CODES or CODES[self.loss] in OF_TWO_CLASSES:
            names = [name for name, code in CODES.items() if code not in OF_TWO_CLASSES]
            raise InputError("loss", f"{self.loss!r} is not a loss of targets", f"Choose one of {', '.join(names)}")

    def _training_rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, TrainingRows]:
        X, y = self._validated(X, y, reset=reset, y_numeric=True)
        block = row_block(X, X.shape[1])
        labels = labels_for(y, block.count, classifies=False)
        return X, TrainingRows(block, [labels], weights_for(sample_weight, block.count))

    def _target_spread(self, targets: Sequence[FloatArray]) -> float:
        first = targets[0][:1000]
        return float(np.std(first)) or float(np.abs(first[0])) or 1.0

    def _as_coef(self, weights: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(weights[0])

    def _as_intercept(self, intercepts: NDArray[Any]) -> Any:
        return float(intercepts[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction for each row.

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
        weights, intercepts = self._chosen_models()
        return np.asarray(safe_sparse_dot(X, weights[0], dense_output=True) + intercepts[0])
