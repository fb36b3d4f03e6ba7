"""A linear classifier whose size is a budget, not a penalty to tune."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.linear_model._estimator import BudgetLinearModel
from longterm.linear_model._estimator_files import stored_classes, taken_classes
from longterm.linear_model.kernels.losses import CODES, OF_TWO_CLASSES
from longterm.linear_model.kernels.rule import NO_NUMBERS
from longterm.storage.one_thread import exclusive


def _gives_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic":
        raise AttributeError(f"probabilities are those of the logistic loss, not of {estimator.loss!r}")
    return True


class BudgetLinearClassifier(ClassifierMixin, BudgetLinearModel):  # type: ignore[misc]
    """Logistic regression, or a support vector machine, with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    Rows are learned one after another by A-FTRL (or another `rule`), each after it was scored. More than two classes
    are learned one against the rest, each with a budget of its own. Nothing must be given.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint g(x) = l1‖x‖₁ + ½ l2‖x‖² − ρ ≤ 0. The intercept costs nothing. None: one that will not bind,
        from the length of the rows that come first (`budget_`); 10 where there is one scale only.
    l1, l2 : float
        The weights of the two norms in g.
    loss : {"logistic", "hinge", "squared_hinge"}
        The loss of a row.
    rule : {"a-ftrl", "a-ogd", "penalised-ftrl", "mahdavi"}
        "a-ftrl" has sparse weights and rounds that cost what a sparse row touches; "penalised-ftrl" rounds of a few
        passes over d and almost no violation; "mahdavi" constant steps (it needs `constants` with "rounds").
    fit_intercept : bool
        Whether there is an intercept.
    intercept_bound : float, optional
        The intercept stays within ±intercept_bound; 4 unless given: log-odds of shares between 2 % and 98 %.
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
    class_weight : dict, "balanced" or None
        A row's loss is multiplied by the weight of its class. "balanced" is for `fit` only.
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
        """Learn the rows, `passes` times over.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.
        y : array-like of shape (n,)
            Their classes.
        sample_weight : array-like of shape (n,), optional
            By what the loss of each row is multiplied.

        Returns
        -------
        self : BudgetLinearClassifier
            This estimator.
        """
        with self._as_it_was_on_errors():
            self._require_loss()
            random = self._random()
            goes_on = self.warm_start and hasattr(self, "_learners")
            X, y = self._validated(X, y, reset=not goes_on)
            check_classification_targets(y)
            classes = unique_labels(y)
            if goes_on:
                classes = self._known(y)
            self._streams = False
            self._start(classes, X, random, goes_on)
            targets, weights = self._targets(y), self._class_weights(y, self._weights(sample_weight, X))
            if goes_on:
                self._learn_block(self._block(X), targets, weights, self._passes_over(len(y)), random)
            else:
                self._fit_rows(X, targets, weights, random)
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
            All classes; the first call must name them.
        sample_weight : array-like of shape (n,), optional
            By what the loss of each row is multiplied.

        Returns
        -------
        self : BudgetLinearClassifier
            This estimator.
        """
        if (
            self._is_plain(X)
            and self._weighs_as_before()
            and (classes is None or np.array_equal(classes, self.classes_))
        ):
            labels, plain = np.asarray(y), self._weights(sample_weight, X)
            if labels.shape == (X.shape[0],):
                targets = self._targets(labels)
                self._learn_block(self._block(X), targets, self._class_weights(labels, plain), 1, None)
                return self
        with self._as_it_was_on_errors():
            self._require_loss()
            first = not hasattr(self, "_learners")
            if first and classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            X, y = self._validated(X, y, reset=first)
            check_classification_targets(y)
            known = unique_labels(classes) if classes is not None else self.classes_
            if not first and not np.array_equal(known, self.classes_):
                raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit")
            if self.class_weight == "balanced":
                raise ValueError("class_weight 'balanced' is for fit: a stream's shares are not known. Give a mapping.")
            self._streams = True
            self._start(known, X, self._random(), not first)
            weights = self._class_weights(y, self._weights(sample_weight, X))
            self._learn_block(self._block(X), self._targets(y), weights, 1, None)
        return self

    def _require_loss(self) -> None:
        if CODES.get(self.loss) not in OF_TWO_CLASSES:
            names = [name for name, code in CODES.items() if code in OF_TWO_CLASSES]
            raise InputError("loss", f"{self.loss!r} is not a loss of classes", f"Choose one of {', '.join(names)}")

    def _start(self, classes: NDArray[Any], X: Any, random: Any, goes_on: bool) -> None:
        if len(classes) < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {len(classes)} class")
        if not goes_on:
            self.classes_ = classes
            self._learners = self._make_learners(self._learners_of(), X, random)
        self._class_weight_values = self._values_of_class_weight()
        self._class_weight_read = self.class_weight

    def _weighs_as_before(self) -> bool:
        """Whether `class_weight` is what it was when its values were read; "balanced" is for whole data sets."""
        return self.class_weight is self._class_weight_read and self.class_weight != "balanced"

    def _values_of_class_weight(self) -> FloatArray | None:
        if self.class_weight is None or self.class_weight == "balanced":
            return None
        values = np.asarray(compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_))
        if not np.all((values >= 0) & (values < np.inf)):
            raise InputError("class_weight", f"has the values {values.tolist()}", "Give finite weights of at least 0")
        return values

    def _known(self, y: NDArray[Any]) -> NDArray[Any]:
        """The classes so far, if every label is one of them."""
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y has classes that were not there before: {unknown[:5].tolist()}")
        return self.classes_

    def _targets(self, y: NDArray[Any]) -> list[FloatArray]:
        """±1 for each learner."""
        if len(self.classes_) == 2:
            positive = y == self.classes_[1]
            if not (positive | (y == self.classes_[0])).all():
                self._known(y)
            return [np.where(positive, 1.0, -1.0)]
        self._known(y)
        return [np.where(y == one, 1.0, -1.0) for one in self.classes_]

    def _class_weights(self, y: NDArray[Any], weights: FloatArray) -> FloatArray:
        values = self._class_weight_values
        if self.class_weight == "balanced":
            values = np.asarray(compute_class_weight("balanced", classes=self.classes_, y=y))
        if values is None:
            return weights
        of_rows = values[np.searchsorted(self.classes_, y)]
        return of_rows if weights is NO_NUMBERS else of_rows * weights

    def _learners_of(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _stored_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata, arrays = super()._stored_parts()
        return {"classes": stored_classes(self.classes_), **metadata}, arrays

    def _take_parts(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.classes_ = taken_classes(metadata.pop("classes", None))
        super()._take_parts(metadata, arrays)
        self._class_weight_values = self._values_of_class_weight()
        self._class_weight_read = self.class_weight

    def _intercepts(self, intercepts: NDArray[Any]) -> Any:
        return intercepts

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The margins ⟨u, x⟩ + b.

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
        weights, intercepts = self._chosen()
        scores = safe_sparse_dot(X, weights.T, dense_output=True) + intercepts
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        classes : ndarray of shape (n,)
            Those with the largest margins.
        """
        scores = self.decision_function(X)
        index = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class, logistic loss only.

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

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        logarithms : ndarray of shape (n, classes)
            Logistic loss only.
        """
        return np.asarray(np.log(self.predict_proba(X)))
