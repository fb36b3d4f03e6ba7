"""A linear classifier under a budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from longterm.errors import InputError
from longterm.linear_model._estimator import BudgetLinearModel
from longterm.linear_model._estimator_files import stored_classes, taken_classes
from longterm.linear_model._passes import TrainingRows
from longterm.linear_model._rows import row_block, weights_for
from longterm.storage.one_thread import exclusive


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic":
        raise AttributeError(f"predict_proba needs loss='logistic', and this model has loss={estimator.loss!r}")
    return True


class BudgetLinearClassifier(ClassifierMixin, BudgetLinearModel):  # type: ignore[misc]
    """Classify rows with a linear model whose size you limit by a budget or by a number of features.

    The model is a logistic regression or a support vector machine with l1‖x‖₁ + ½ l2‖x‖² ≤ budget in the long run.

    Rows are learned one after another, each after it was scored. More than two classes are learned one against the
    rest, each with the whole budget. All parameters are optional.

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint l1‖x‖₁ + ½ l2‖x‖² ≤ ρ, where a weight counts times the size of its feature. None: no budget;
        if features are not scaled, a large one that depends on the first 1,000 rows.
    l1, l2 : float
        The weights of the two norms.
    loss : {"logistic", "hinge", "squared_hinge"}
        The loss of a row.
    rule : {"a-ftrl", "penalised-ftrl"}
        "a-ftrl": sparse weights, O(non-zeros) per row; "penalised-ftrl": almost no violation, O(d) per row.
    fit_intercept : bool
        Whether there is an intercept. It does not count towards the budget.
    max_features : int, optional
        At most this many non-zero weights of each class: chosen by a first `fit`, or in every round of `partial_fit`.
    scale_features : bool, optional
        Whether features are scaled, and centred unless the matrix is wide and sparse. None: yes, without half_life.
    half_life : float, optional
        After this many rows the weight of a row is halved, for streams that drift. `fit` then makes one pass.
    passes : int, optional
        Passes of `fit` over its rows. None: 1, 2 or 5, whichever has the least loss on thirds of the rows left out.
    shuffle : bool
        Whether every pass of `fit` has an order of its own.
    random_state : int, RandomState instance or None
        Draws these orders, and the rounds of `average_coef_`.
    class_weight : dict, "balanced" or None
        Factors for the losses of the classes. "balanced" is for `fit` only.
    predict_with : {"auto", "recent", "last", "average", "within_budget"}
        "recent": an average of `fit`'s decisions within the budget; "last": the decision in force; "average": the mean
        decision; "within_budget": the nearest to it within the budget; "auto": "recent" after `fit`, else "last".

    Notes
    -----
    The budget counts |x_j| times the size of feature j: its standard deviation or, if it is often 0, its usual size
    where it is not 0, times the fourth root of the share of such rows. So units do not matter, and a budget that is
    never reached changes nothing. `coef_` and `intercept_` are for rows as they come. `docs/guides/linear_model.md`
    lists what each attribute guarantees.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model.classifier import BudgetLinearClassifier
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
        max_features: int | None = None,
        scale_features: bool | None = None,
        half_life: float | None = None,
        passes: int | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        class_weight: str | Mapping[Any, float] | None = None,
        predict_with: str = "auto",
    ) -> None:
        self._keep(locals())

    @exclusive
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn the rows once, in their order. The first call needs all `classes`."""
        first = not hasattr(self, "_learners")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if not first and classes is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit")
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' works with fit only, because the shares of the classes in a stream are not "
                "known. Give a mapping {class: weight}."
            )
        return self._learn_once(X, y, sample_weight, classes)

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any = None
    ) -> tuple[Any, TrainingRows]:
        """Return X and its rows, with labels ±1 for each learner and weights times those of their classes."""
        X, y = self._validated(X, y, reset=reset)
        if reset:
            check_classification_targets(y)
            self.classes_ = unique_labels(y if classes is None else classes)
        block, classes = row_block(X, X.shape[1]), self.classes_
        if len(classes) < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {len(classes)} class")
        known = np.isin(y, classes)
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
        positive = classes[1:] if len(classes) == 2 else classes
        return X, TrainingRows(block, [np.where(y == one, 1.0, -1.0) for one in positive], weights)

    def _count_models(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _stored_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata, arrays = super()._stored_parts()
        return {"classes": stored_classes(self.classes_), **metadata}, arrays

    def _take_parts(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.classes_ = taken_classes(metadata.pop("classes", None))
        super()._take_parts(metadata, arrays)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the margins ⟨u, x⟩ + b, one for each row or, with more than two classes, for each row and class."""
        scores = self._margins(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row, that of the largest margin."""
        scores = self.decision_function(X)
        index = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class, for the logistic loss: one against the rest, normalised."""
        each = expit(self._margins(X))
        if each.shape[1] == 1:
            return np.hstack([1 - each, each])
        total = each.sum(axis=1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1 / each.shape[1])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithm of `predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))
