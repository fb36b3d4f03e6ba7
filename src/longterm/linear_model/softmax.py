"""A classifier of several classes whose weights share one budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.utils.validation import check_is_fitted

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm._display import format_number
from longterm.errors import InputError
from longterm.linear_model._estimator import MODELS, is_full
from longterm.linear_model._estimator_files import (
    require,
    stored_classes,
    stored_names,
    take_names,
    taken_classes,
    with_prefix,
    without_prefix,
)
from longterm.linear_model._feature_scale import FeatureScale
from longterm.linear_model._fit import Recent
from longterm.linear_model._softmax import SoftmaxLearner, SoftmaxSettings
from longterm.linear_model.classifier import BudgetLinearClassifier


class BudgetSoftmaxClassifier(BudgetLinearClassifier):
    """Softmax regression with l1‖W‖₁ + ½ l2‖W‖² ≤ budget in the long run, one budget for all classes together.

    The loss of a row u of class y is ln Σ_k exp(s_k) − s_y, s = Wu + b. `BudgetLinearClassifier` learns each class
    against the rest, with a budget of its own; here the K·d weights compete for one, and the probabilities are those
    of one model. A round costs O(K·d).

    Parameters
    ----------
    budget : float, optional
        ρ of the constraint g(W) = l1‖W‖₁ + ½ l2‖W‖² − ρ ≤ 0. The intercepts cost nothing. None: one that will not bind
        (`budget_`), in `fit` one of weights of features that are centred and scaled by all of its rows (sparse matrices
        of more than 512 columns are not centred, unless a fourth of their entries are stored); `coef_` and
        `intercept_` are for rows as they come. Streams are learned as they come.
    l1, l2 : float
        The weights of the two norms in g.
    rule : {"a-ftrl", "penalised-ftrl"}
        The learner of the weights, `MixedAFTRL` or `MixedPenalisedFTRL`; the second has almost no violation, and rounds
        that are not compiled and take thousands of times as long.
    fit_intercept : bool
        Whether there are intercepts: the logarithms of the classes' shares, and a residual.
    beta : float
        A-FTRL: β of the multiplier's regularisation θ_t ∝ t^−β, in (0, 1).
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
        Draws these orders.
    class_weight : dict, "balanced" or None
        A row's loss is multiplied by the weight of its class. "balanced" is for `fit` only.
    warm_start : bool
        Whether `fit` goes on from where the last one ended.
    predict_with : {"auto", "recent", "last", "average", "within_budget"}
        Which model predicts, as in `BudgetLinearClassifier`. "auto": "recent" after `fit`, "last" after `partial_fit`.

    Notes
    -----
    `coef_` has the shape (K, d) and `intercept_` (K,), with two classes, too.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.linear_model import BudgetSoftmaxClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 6))
    >>> y = np.argmax(X[:, :3] + 0.1 * rng.standard_normal((300, 3)), axis=1)
    >>> model = BudgetSoftmaxClassifier(budget=5.0, passes=2, random_state=0).fit(X, y)
    >>> model.coef_.shape, bool(model.score(X, y) > 0.9), bool(np.allclose(model.predict_proba(X).sum(axis=1), 1))
    ((3, 6), True, True)
    >>> bool(np.abs(model.coef_).sum() + 0.5 * (model.coef_**2).sum() <= 5.0)
    True
    """

    loss = "logistic"
    """What `predict_proba` asks for; of several classes the softmax loss is what the logistic one is of two."""
    intercept_bound = None
    constants = "online"
    scales = None
    max_features = None
    scale_features = False
    half_life = None

    def __init__(
        self,
        budget: float | None = None,
        *,
        l1: float = 1.0,
        l2: float = 1.0,
        rule: str = "a-ftrl",
        fit_intercept: bool = True,
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
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.beta = beta
        self.growth = growth
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.predict_with = predict_with

    def _require_loss(self) -> None:
        """There is one."""

    def _make_learners(self, count: int, X: Any, random: Any, deviation: float = 1.0) -> Any:
        if self.predict_with not in MODELS:
            raise InputError("predict_with", f"{self.predict_with!r} is no model", f"Choose one of {', '.join(MODELS)}")
        self._recent = []
        budget, scale = self.budget, None
        if budget is None:
            if not self._streams:
                centred = bool(self.fit_intercept and (not sparse.issparse(X) or is_full(X)))
                scale = FeatureScale.of_block(self._block(X), X.shape[1], centred)
            # Of the radius that one class would get, √K for all of them.
            budget = self._generous_budget(X, float(np.sqrt(len(self.classes_))), scale is not None)
        settings = SoftmaxSettings(
            len(self.classes_),
            X.shape[1],
            budget,
            l1=self.l1,
            l2=self.l2,
            rule=self.rule,
            fit_intercept=self.fit_intercept,
            beta=self.beta,
            growth=self.growth,
        )
        return [SoftmaxLearner(settings, scale)]

    def _learners_of(self) -> int:
        return 1

    def _targets(self, y: NDArray[Any]) -> list[FloatArray]:
        self._known(y)
        return [np.searchsorted(self.classes_, y).astype(np.float64)]

    @property
    def _learner(self) -> SoftmaxLearner:
        return cast(SoftmaxLearner, self._learners[0])

    def _models(self, which: str) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self)
        learner = self._learner
        if which == "average":
            x, b = learner.average()
        elif which == "within_budget":
            x, b = learner.within_budget()
        elif which == "recent" and self._recent:
            x, b = self._recent[0].model(learner)
        else:
            x, b = learner.weights, learner.intercept
        return x.reshape(len(self.classes_), -1), b

    def _scores(self, X: Any) -> FloatArray:
        """s, shape (n, K)."""
        scores = super().decision_function(X)
        return np.asarray(scores)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The scores Wu + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n, classes) or (n,)
            One for each row and class; of two classes the second's minus the first's.
        """
        scores = self._scores(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class, softmax(Wu + b).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n, classes)
            Each row sums to 1.
        """
        return np.asarray(softmax(self._scores(X), axis=1))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithm of `predict_proba`, finite where that is 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The rows.

        Returns
        -------
        logarithms : ndarray of shape (n, classes)
            Scores minus the logarithm of the sum of their exponentials.
        """
        return np.asarray(log_softmax(self._scores(X), axis=1))

    def _columns_of_summary(self) -> tuple[str, ...]:
        return tuple(str(one) for one in self.classes_)

    def _title_of_summary(self, weights: Any) -> str:
        features = int(np.count_nonzero(np.abs(weights).max(axis=0)))
        one = f"{type(self).__name__}: {features:,} of {weights.shape[1]:,} features, {self.n_rounds_:,} rounds"
        used = self._learner.size(weights.reshape(-1))
        binds = "" if self.budget_binds_ else "; the budget does not bind"
        budget, size = format_number(self.budget_), format_number(used)
        two = f"budget {budget}, used {size} ({used / self.budget_:.1%}) by all classes"
        return f"{one}\n{two}, price {format_number(self.multiplier_)}{binds}"

    # --- files ------------------------------------------------------------------------------------------------

    def _stored_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = with_prefix("learner", self._learner.arrays())
        recent = getattr(self, "_recent", [])
        arrays |= {f"recent.{number}": one.mean for number, one in enumerate(recent)}
        metadata = {
            "classes": stored_classes(self.classes_),
            "feature_names": stored_names(self),
            "fitted": getattr(self, "_fitted", False),
            "samples": [one.count for one in recent],
            "learner": self._learner.specification(),
        }
        return metadata, arrays

    def _take_parts(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.classes_ = taken_classes(metadata.pop("classes", None))
        wanted = {"feature_names", "fitted", "samples", "learner"}
        require(set(metadata) == wanted, f"it has {sorted(map(str, metadata))}, not {sorted(wanted)}")
        specification = metadata["learner"]
        require(isinstance(specification, dict), "its learner has no specification")
        own = without_prefix("learner", arrays)
        known = {name: specification.get(name) for name in ("classes", "features")}
        fits = known["classes"] == len(self.classes_) and type(known["features"]) is int
        # Sizes are believed where the bytes are there: a fresh learner of that size is made next.
        fits = fits and own["total"].shape == (known["classes"] * validate.count("features", known["features"]),)
        require(fits, "its classes, features and weights do not belong together")
        learner = SoftmaxLearner.from_parts(specification, own)
        take_names(self, metadata["feature_names"], learner.settings.features)
        require(type(metadata["fitted"]) is bool, "fitted is neither true nor false")
        require(self.predict_with in MODELS, f"{self.predict_with!r:.40} is no model")
        self._fitted, self._kept, self._streams = metadata["fitted"], {}, not metadata["fitted"]
        self._learners = cast(Any, [learner])
        samples = metadata["samples"]
        good = isinstance(samples, list) and all(type(count) is int and count >= 1 for count in samples)
        require(good and len(samples) <= 1, "the recent average is of no learner")
        self._recent = [Recent() for _ in samples]
        for recent, count in zip(self._recent, samples, strict=True):
            recent.count, recent.mean = count, arrays.pop("recent.0")
            fits = recent.mean.dtype == np.float64 and recent.mean.shape == (own["total"].size + len(self.classes_),)
            require(fits and bool(np.isfinite(recent.mean).all()), "the recent average is not one of these features")
        require(not arrays, "it has arrays that no estimator has")
        self._class_weight_values = self._values_of_class_weight()
        self._class_weight_read = self.class_weight
