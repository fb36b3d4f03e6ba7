"""A linear classifier under a budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from longterm.errors import InputError
from longterm.linear_model._estimator import BudgetLinearModel
from longterm.linear_model._estimator_files import stored_classes, taken_classes
from longterm.linear_model._passes import TrainingRows
from longterm.linear_model._rows import row_block, weights_for
from longterm.linear_model.kernels.losses import CODES, OF_TWO_CLASSES
from longterm.storage.one_thread import exclusive


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic":
        raise AttributeError(f"probabilities are those of the logistic loss, not of {estimator.loss!r}")
    return True


class BudgetLinearClassifier(ClassifierMixin, BudgetLinearModel):  # type: ignore[misc]
    """Logistic regression, or a support vector machine, with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    Rows are learned one after another by A-FTRL or another `rule`, each after it was scored. More than two classes are
    learned one against the rest, each with the whole budget. All parameters are optional.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint g(x) = l1‖x‖₁ + ½ l2‖x‖² − ρ ≤ 0. The intercept is free. `fit` standardises features
        (`scale_features`), and x are then the weights of standardised features. None: a budget that will not bind
        (`budget_`); 10 where there is one scale only.
    l1, l2 : float
        The weights of the two norms in g.
    loss : {"logistic", "hinge", "squared_hinge"}
        The loss of a row.
    rule : {"a-ftrl", "a-ogd", "penalised-ftrl", "mahdavi"}
        "a-ftrl" has sparse weights, and its rounds cost as much as a row has non-zeros. "penalised-ftrl" has almost no
        violation, and its rounds cost O(d). "mahdavi" has constant steps and needs `constants` with "rounds".
    fit_intercept : bool
        Whether there is an intercept.
    intercept_bound : float, optional
        The intercept for centred features is within ±intercept_bound. None: it is free with a mixture of scales, and
        within ±4 with one scale, which allows shares of the classes from 2 % to 98 %.
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
    class_weight : dict, "balanced" or None
        The loss of a row is multiplied by the weight of its class. "balanced" is for `fit` only.
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
    >>> from longterm.linear_model import BudgetLinearClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 10))
    >>> y = np.where(X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(1000) > 0, "up", "down")
    >>> model = BudgetLinearClassifier(budget=2.0, random_state=0).fit(X, y)
    >>> model.coef_.round(1)[0, :4], model.n_nonzero_, bool(model.score(X, y) > 0.95)
    (array([ 0.7, -0.7,  0. ,  0. ]), 2, True)
    """

    def __init__(
        self,
        budget: float | None = None,
        *,
        l1: float = 1.0,
        l2: float = 1.0,
        loss: str = "logistic",
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
        class_weight: str | Mapping[Any, float] | None = None,
        warm_start: bool = False,
        predict_with: str = "auto",
    ) -> None:
        self.budget = budget
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
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
        self.class_weight = class_weight
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
            Their classes.
        sample_weight : array-like of shape (n,), optional
            Factors for the losses of the rows.

        Returns
        -------
        self : BudgetLinearClassifier
            This estimator.
        """
        with self._unchanged_on_errors():
            self._require_loss()
            continues = self.warm_start and hasattr(self, "_learners")
            X, y = self._validated(X, y, reset=not continues)
            check_classification_targets(y)
            self._set_classes(self.classes_ if continues else unique_labels(y))
            rows = self._training_rows(X, y, sample_weight)
            self._fit_rows(X, rows, check_random_state(self.random_state), continues=continues)
        return self

    @exclusive
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn the rows once, in their order.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.
        y : array-like of shape (n,)
            Their classes.
        classes : array-like, optional
            All classes. Required in the first call.
        sample_weight : array-like of shape (n,), optional
            Factors for the losses of the rows.

        Returns
        -------
        self : BudgetLinearClassifier
            This estimator.
        """
        with self._unchanged_on_errors():
            first = not hasattr(self, "_learners")
            if first and classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            if isinstance(self.class_weight, str) and self.class_weight == "balanced":
                raise ValueError("class_weight 'balanced' is for fit: a stream's shares are not known. Give a mapping.")
            X, y = self._validated(X, y, reset=first)
            if first:
                self._require_loss()
                check_classification_targets(y)
                self._set_classes(unique_labels(classes))
            elif classes is not None and not np.array_equal(classes, self.classes_):
                raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit")
            rows = self._training_rows(X, y, sample_weight)
            if first:
                self._start(X, rows, check_random_state(self.random_state), stream=True)
            self._learn_stream(rows)
        return self

    def _require_loss(self) -> None:
        if CODES.get(self.loss) not in OF_TWO_CLASSES:
            names = [name for name, code in CODES.items() if code in OF_TWO_CLASSES]
            raise InputError("loss", f"{self.loss!r} is not a loss of classes", f"Choose one of {', '.join(names)}")

    def _set_classes(self, classes: NDArray[Any]) -> None:
        if len(classes) < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {len(classes)} class")
        self.classes_ = classes

    def _training_rows(self, X: Any, y: NDArray[Any], sample_weight: Any) -> TrainingRows:
        """Return the rows with labels ±1 for each learner, and with their weights times those of their classes."""
        block, classes = row_block(X, X.shape[1]), self.classes_
        positive = [y == one for one in (classes[1:] if len(classes) == 2 else classes)]
        known = y == classes[0]
        for one in positive:
            known = known | one
        if not known.all():
            raise ValueError(f"y has classes that were not there before: {np.unique(y[~known])[:5].tolist()}")
        weights = weights_for(sample_weight, block.count)
        if self.class_weight is not None:
            of_classes = np.asarray(compute_class_weight(self.class_weight, classes=classes, y=y))
            if not np.all((of_classes >= 0) & (of_classes < np.inf)):
                what = f"has the values {of_classes.tolist()}"
                raise InputError("class_weight", what, "Give finite weights of at least 0")
            of_rows = of_classes[np.searchsorted(classes, y)]
            weights = of_rows * weights if len(weights) else of_rows
        return TrainingRows(block, [np.where(one, 1.0, -1.0) for one in positive], weights)

    def _count_models(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _stored_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata, arrays = super()._stored_parts()
        return {"classes": stored_classes(self.classes_), **metadata}, arrays

    def _take_parts(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.classes_ = taken_classes(metadata.pop("classes", None))
        super()._take_parts(metadata, arrays)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the margins ⟨u, x⟩ + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        margins : ndarray of shape (n,) or (n, classes)
            One for each row, or one for each row and class where there are more than two.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        weights, intercepts = self._chosen_models()
        scores = safe_sparse_dot(X, weights.T, dense_output=True) + intercepts
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        classes : ndarray of shape (n,)
            The class with the largest margin.
        """
        scores = self.decision_function(X)
        index = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class, for the logistic loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n, classes)
            For more than two classes one against the rest, normalised.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            positive = expit(scores)
            return np.stack([1 - positive, positive], axis=1)
        each = expit(scores)
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1 / each.shape[1])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        logarithms : ndarray of shape (n, classes)
            For the logistic loss.
        """
        return np.asarray(np.log(self.predict_proba(X)))
