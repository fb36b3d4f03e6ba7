"""What both estimators share: parameters, learners, what was promised about each attribute.

`coef_` and what is made of it are computed when asked for, so that `partial_fit` on sparse rows never passes over all
columns. Whatever raises, raises before anything was learned, and leaves the estimator as it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.errors import InputError, warn_caller
from longterm.linear_model._estimator_files import (
    StoredModel,
    require,
    stored_names,
    take_names,
    with_prefix,
    without_prefix,
)
from longterm.linear_model._fit import (
    DECAY,
    ENOUGH_ROUNDS,
    ENOUGH_ROWS,
    MOST_PASSES,
    SAMPLES,
    Choice,
    HeldOut,
    Recent,
    Rows,
)
from longterm.linear_model._leader import MOST_ENTRIES, Leaders
from longterm.linear_model._memory import VERSION as LEARNER_VERSION
from longterm.linear_model._rows import IN_ORDER, RowBlock, row_block, weights_for
from longterm.linear_model._settings import LEADERS
from longterm.linear_model._shown import SummarisedModel
from longterm.linear_model.evolving import EvolvingLinearLearner
from longterm.linear_model.kernels.rule import NO_NUMBERS
from longterm.linear_model.streaming import BudgetLinearLearner
from longterm.storage.one_thread import exclusive, serialised

PLAIN = frozenset({np.ndarray, sparse.csr_array, sparse.csr_matrix})
MODELS = ("auto", "recent", "last", "average", "within_budget")
GENEROUS = 250.0
"""Without a budget, R is this (regression: times the targets' deviation): scaled rows have lengths about 1."""

ONE_SCALE = 10.0
SPARSE_BELOW, FEW_COLUMNS = 4, 512
"""Features of a sparse matrix are centred only where a fourth of its entries are stored, or more, or where its columns
are so few that a round which passes over all of them takes no longer than one on a memory for sparse rows."""


def is_full(X: Any) -> bool:
    """Whether so much of a sparse matrix is stored, or it is so narrow, that its features can be centred."""
    return bool(X.shape[1] <= FEW_COLUMNS or X.nnz * SPARSE_BELOW >= math.prod(X.shape))


class BudgetWarning(UserWarning):
    """A budget that leaves nothing to predict with, or that is never reached."""


class BudgetLinearModel(StoredModel, SummarisedModel, BaseEstimator):  # type: ignore[misc]
    """Base of `BudgetLinearClassifier` and `BudgetLinearRegressor`."""

    _learners: list[BudgetLinearLearner]
    _streams: bool
    """Whether learning began with `partial_fit`."""
    n_features_in_: int

    budget: float | None
    l1: float
    l2: float
    loss: str
    loss_parameter: float | None = None
    """The regressor's; losses of two classes have none."""
    rule: str
    fit_intercept: bool
    intercept_bound: float | None
    constants: str | Mapping[str, float]
    scales: str | None
    max_features: int | None
    scale_features: bool | None
    half_life: float | None = None
    """Paths of budgets have none."""
    beta: float
    growth: float
    passes: int | None
    shuffle: bool
    random_state: Any
    warm_start: bool
    predict_with: str

    # --- learning ---------------------------------------------------------------------------------------------

    def _make_learners(self, count: int, X: Any, random: Any, deviation: float = 1.0) -> list[BudgetLinearLearner]:
        if self.predict_with not in MODELS:
            raise InputError("predict_with", f"{self.predict_with!r} is no model", f"Choose one of {', '.join(MODELS)}")
        seeds = random.randint(2**31, size=count)
        self._recent: list[Recent] = []
        rule = "penalised-ftrl" if self.max_features is not None and self.rule == "a-ftrl" else self.rule
        mixed = self._is_mixed
        scaled = bool(self.scale_features)
        if self.scale_features is None:
            scaled = mixed and self.budget is None and self.half_life is None
        if self.budget is not None:
            budget = self.budget
        else:
            budget = self._generous_budget(X, deviation, scaled) if mixed else ONE_SCALE
        known = scaled and not self._streams and self.scale_features is None
        kind: Any = BudgetLinearLearner
        if self.half_life is not None:
            kind = partial(EvolvingLinearLearner, half_life=self.half_life)
        learners = [
            kind(
                X.shape[1],
                budget,
                l1=self.l1,
                l2=self.l2,
                loss=self.loss,
                loss_parameter=self.loss_parameter,
                rule=rule,
                fit_intercept=self.fit_intercept,
                intercept_bound=self.intercept_bound,
                constants=self.constants,
                beta=self.beta,
                growth=self.growth,
                scales=self.scales,
                max_features=self.max_features,
                scale_features=scaled,
                sparse=sparse.issparse(X) and rule == "a-ftrl" and not (scaled and is_full(X)),
                seed=int(seed),
            )
            for seed in seeds
        ]
        if known:
            block = self._block(X)
            for learner in learners:
                learner.scale_by(block)
        return learners

    @property
    def _is_mixed(self) -> bool:
        """Whether there are several scales, and so, without a budget, none that binds."""
        return self.scales != "one" and self.rule in LEADERS and isinstance(self.constants, str)

    def _generous_budget(self, X: Any, deviation: float, scaled: bool) -> float:
        """A budget that will not bind: that of R = 250 · deviation, of scaled features; else over ‖u‖, u a median row.

        With a mixture of scales its size does no harm: eight radii, from R down to R/16384, are tried at once. Where
        there is one scale the budget sets the steps, and 10 it is.
        """
        length = 1.0
        if not scaled:
            self._block(X)  # rows are checked before they are computed with
            few = X[:1000]
            squares = few.multiply(few).sum(axis=1) if sparse.issparse(X) else (few * few).sum(axis=1)
            lengths = np.sqrt(np.asarray(squares))
            lengths = lengths[(lengths > 0) & np.isfinite(lengths)]
            length = float(np.median(lengths)) if lengths.size else 1.0
        radius = GENEROUS * (deviation or 1.0) / length
        return self.l1 * radius + 0.5 * self.l2 * radius**2

    def _learn_block(
        self,
        block: RowBlock,
        targets: list[FloatArray],
        weights: FloatArray,
        passes: int,
        random: Any,
        samples: int = SAMPLES,
    ) -> None:
        """Learn the block, `passes` times, each time in a new order where `shuffle` asks for it."""
        for learner, labels in zip(self._learners, targets, strict=True):
            learner.require(block, labels, weights, IN_ORDER if random is None else None)
        self._kept: dict[str, tuple[FloatArray, FloatArray]] = {}
        self._fitted = random is not None
        if self.half_life is not None:  # the order of the rows is that of time
            for _ in range(passes):
                for learner, labels in zip(self._learners, targets, strict=True):
                    learner.learn_checked(block, labels, weights)
            return
        if not self._fitted:
            for learner, labels in zip(self._learners, targets, strict=True):
                learner.learn_checked(block, labels, weights)
            return
        self._recent = self._recent or [Recent() for _ in self._learners]
        for recent in self._recent:
            recent.decay = DECAY if passes == 1 else 1
        rows, averages = Rows(block, targets, weights), [[recent] for recent in self._recent]
        for _ in range(passes):
            order = random.permutation(block.count) if self.shuffle else np.arange(block.count)
            rows.play(self._learners, averages, order, passes, samples)
        if not any(learner.nonzeros for learner in self._learners) and any(np.ptp(y) > 0 for y in targets):
            what = f"the budget of {self.budget_:g} left no weight other than 0: the model is a constant"
            warn_caller(f"{what}. Give more, or none (budget=None)", BudgetWarning)
        elif self.budget is not None and not any(one.binds or one.settings.scales == "one" for one in self._learners):
            what = f"the budget of {self.budget_:g} was never reached: the model is that without a budget"
            warn_caller(f"{what}. Give less, or none (budget=None)", BudgetWarning)

    def _fit_rows(
        self, X: Any, targets: list[FloatArray], weights: FloatArray, random: Any, deviation: float = 1.0
    ) -> None:
        """`fit` with new learners. Where no budget keeps weights small, `HeldOut` says what does."""
        block, most = self._block(X), self._passes_over(X.shape[0])
        if self.passes is not None or self.budget is not None or not self._is_mixed:
            self._learn_block(block, targets, weights, most, random)
            return

        def made(random: Any) -> list[BudgetLinearLearner]:
            return self._make_learners(len(targets), X, random, deviation)

        rows, first, choice = Rows(block, targets, weights), self._learners[0], Choice(most)
        losses, leaders = first.settings.losses, None
        if losses.is_smooth and self._may_lead(X):
            leaders = Leaders(losses, X, block, self._leader_centres(X), self.fit_intercept)
        if block.count >= ENOUGH_ROWS and (leaders or most > 1):
            held = HeldOut(rows, X, losses, lambda: made(check_random_state(0)), leaders)
            choice = held.choice(most, self.shuffle)
        runs = rows.runs(choice.passes, choice.share) if self.shuffle and most > 1 else 1
        means = []
        for run in range(runs):
            self._learners = made(random) if run else self._learners
            self._learn_block(block, targets, weights, choice.passes, random, SAMPLES // runs)
            means.append([recent.mean for recent in self._recent])
        for number, recent in enumerate(self._recent):
            recent.mean = np.mean([own[number] for own in means], axis=0)
            if leaders and choice.share < 1:
                leader = choice.leader(partial(leaders.of, targets[number], weights))
                recent.mean = choice.share * recent.mean + (1 - choice.share) * leader

    def _may_lead(self, X: Any) -> bool:
        """Whether the answer may be that of all rows at once: rows alike, not too many, and no bound but the budget."""
        bounded = self.half_life is not None or self.max_features is not None or self.intercept_bound is not None
        return not bounded and X.size <= MOST_ENTRIES  # of a sparse matrix, what it stores

    def _leader_centres(self, X: Any) -> bool | None:
        """Whether the leader's features are centred as well as scaled, as the learners' are; None: neither."""
        scale = self._learners[0].scale
        return None if scale is None else scale.centred

    def _passes_over(self, rows: int) -> int:
        if self.passes is None and self.half_life is not None:
            return 1
        if self.passes is None:
            return min(-(-ENOUGH_ROUNDS // rows), MOST_PASSES)
        return validate.count("passes", self.passes)

    def _random(self) -> Any:
        return check_random_state(self.random_state)

    def _validated(self, X: Any, y: Any, *, reset: bool, **more: Any) -> tuple[Any, Any]:
        """X and y by scikit-learn's own checks."""
        wanted = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        X, y = validate_data(self, X, y, reset=reset, **wanted, **more)
        return X, y

    def _is_plain(self, X: Any) -> bool:
        """Whether X is what scikit-learn's checks would hand back as it is, but for its numbers, which we check.

        Its checks take longer than learning a row does.
        """
        if not hasattr(self, "_learners") or hasattr(self, "feature_names_in_") or type(X) not in PLAIN:
            return False
        fits = X.ndim == 2 and X.shape[0] > 0 and X.shape[1] == self.n_features_in_
        return bool(fits and (X.dtype == np.float64 or X.dtype == np.float32))

    def _weights(self, sample_weight: Any, X: Any) -> FloatArray:
        if sample_weight is None:
            return NO_NUMBERS
        checked = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return weights_for(checked, X.shape[0])

    def _block(self, X: Any) -> RowBlock:
        return row_block(X, X.shape[1])

    @contextmanager
    def _as_it_was_on_errors(self) -> Iterator[None]:
        """Attributes that an exception leaves behind are taken back."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learners")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- files ------------------------------------------------------------------------------------------------

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: copied here, because what is handed out is read when the turn is over."""
        return deepcopy(super().__getstate__())

    def _every_learner(self) -> list[BudgetLinearLearner]:
        return self._learners

    def _learners_of(self) -> int:
        """How many learners there are in one model."""
        return 1

    def _stored_parts(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays: dict[str, NDArray[Any]] = {}
        for number, learner in enumerate(self._every_learner()):
            arrays |= with_prefix(f"learner.{number}", learner._arrays())
        recent = getattr(self, "_recent", [])
        arrays |= {f"recent.{number}": one.mean for number, one in enumerate(recent)}
        metadata = {
            "feature_names": stored_names(self),
            "fitted": getattr(self, "_fitted", False),
            "samples": [one.count for one in recent],
            "learner_version": LEARNER_VERSION,
            "learners": [learner._specification() for learner in self._every_learner()],
        }
        return metadata, arrays

    def _take_parts(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        wanted = {"feature_names", "fitted", "samples", "learner_version", "learners"}
        require(set(metadata) == wanted, f"it has {sorted(map(str, metadata))}, not {sorted(wanted)}")
        version, specifications = metadata["learner_version"], metadata["learners"]
        known = type(version) is int and 1 <= version <= LEARNER_VERSION
        require(known, f"its learners are version {version!r:.20}, and this library knows up to {LEARNER_VERSION}")
        require(isinstance(specifications, list) and len(specifications) > 0, "there are no learners")
        learners = []
        for number, specification in enumerate(specifications):
            require(isinstance(specification, dict), f"learner {number} has no specification")
            kind = EvolvingLinearLearner if "half_life" in specification else BudgetLinearLearner
            learner = kind.__new__(kind)
            own = without_prefix(f"learner.{number}", arrays)
            learner.__setstate__({"specification": specification, "arrays": own})
            learners.append(learner)
        first = learners[0]
        for learner in learners:
            kinds = [(s.dimension, s.loss, s.loss_parameter) for s in (first.settings, learner.settings)]
            require(kinds[0] == kinds[1] and learner.rounds == first.rounds, "its learners do not belong together")
        require(first.settings.classifies == hasattr(self, "classes_"), "its loss is not one of this estimator")
        require(type(self.loss) is str, "its loss has no name")
        take_names(self, metadata["feature_names"], first.settings.dimension)
        require(type(metadata["fitted"]) is bool, "fitted is neither true nor false")
        self._fitted, self._kept = metadata["fitted"], {}
        self._take_learners(learners, arrays)
        self._take_recent(metadata["samples"], arrays)
        require(not arrays, "it has arrays that no estimator has")

    def _take_learners(self, learners: list[BudgetLinearLearner], arrays: dict[str, NDArray[Any]]) -> None:
        require(len(learners) == self._learners_of(), f"{len(learners)} learners are not {self._learners_of()}")
        require(self.predict_with in MODELS, f"{self.predict_with!r:.40} is no model")
        self._learners = learners

    def _take_recent(self, samples: Any, arrays: dict[str, NDArray[Any]]) -> None:
        good = isinstance(samples, list) and all(type(count) is int and count >= 1 for count in samples)
        require(good and len(samples) in (0, self._learners_of()), "the recent average is of no learner")
        self._recent = []
        for number, count in enumerate(samples):
            recent, mean = Recent(), arrays.pop(f"recent.{number}")
            fits = mean.dtype == np.float64 and mean.shape == (self.n_features_in_ + 1,)
            require(fits and bool(np.isfinite(mean).all()), "the recent average is not one of these features")
            recent.count, recent.mean = count, mean
            self._recent.append(recent)

    # --- what is known ----------------------------------------------------------------------------------------

    def _models(self, which: str) -> tuple[FloatArray, FloatArray]:
        """Weights (K, d) and intercepts (K,) of the K learners."""
        check_is_fitted(self)
        made = []
        for learner in self._learners:
            if which == "last":
                made.append((learner.weights, learner.intercept))
            elif which == "recent":
                made.append(self._recent_of(len(made)))
            else:
                made.append(learner.average() if which == "average" else learner.within_budget())
        return np.stack([x for x, _ in made]), np.array([b for _, b in made])

    @serialised
    def _chosen(self) -> tuple[FloatArray, FloatArray]:
        """The model to predict with, remembered until something is learned."""
        check_is_fitted(self)
        which = self.predict_with
        if which == "auto":
            which = "recent" if self._fitted else "last"
        if which not in self._kept:
            self._kept[which] = self._models(which)
        return self._kept[which]

    @serialised
    def _settled(self, which: str) -> tuple[FloatArray, FloatArray]:
        """`_models`, not in the middle of a round of another thread."""
        return self._models(which)

    def _recent_of(self, number: int) -> tuple[FloatArray, float]:
        """The recent average of one learner: 0 where its last decision is, and within the budget."""
        learner = self._learners[number]
        if not self._recent:  # nothing was fitted, all came in a stream
            return learner.weights, learner.intercept
        return self._recent[number].model(learner)

    def _shaped(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Per-learner rows as scikit-learn's users expect them."""
        return weights

    def _of_each(self, name: str) -> Any:
        check_is_fitted(self)
        return self._single(np.array([getattr(learner, name) for learner in self._learners]))

    def _single(self, values: NDArray[Any]) -> Any:
        """One number where there is one learner."""
        return values[0].item() if len(values) == 1 else values

    @property
    def budget_(self) -> float:
        """The budget in force: the one given, chosen, or made for the rows."""
        check_is_fitted(self)
        return float(self._learners[0].settings.budget)

    @property
    def coef_(self) -> NDArray[Any]:
        """The weights that `predict` uses: after `fit` a recent average, after `partial_fit` the decision in force."""
        return self._shaped(self._chosen()[0])

    @property
    def intercept_(self) -> Any:
        """The intercept that `predict` uses."""
        return self._intercepts(self._chosen()[1])

    def _intercepts(self, intercepts: NDArray[Any]) -> Any:
        return intercepts

    @property
    def average_coef_(self) -> NDArray[Any]:
        """x̄, the mean decision: the model of the online-to-batch theorem."""
        return self._shaped(self._settled("average")[0])

    @property
    def average_intercept_(self) -> Any:
        """The intercept of x̄."""
        return self._intercepts(self._settled("average")[1])

    @property
    def coef_within_budget_(self) -> NDArray[Any]:
        """The nearest point to x̄ with l1‖x‖₁ + ½ l2‖x‖² ≤ budget: guaranteed, whatever was learned."""
        return self._shaped(self._settled("within_budget")[0])

    @property
    def intercept_within_budget_(self) -> Any:
        """The intercept that goes with it, that of x̄."""
        return self._intercepts(self._settled("within_budget")[1])

    @property
    def budget_binds_(self) -> Any:
        """Whether the budget has cost anything so far; where it has not, another size of model was never asked for."""
        return self._of_each("binds")

    @property
    def multiplier_(self) -> Any:
        """λ, what one unit of budget is worth in loss per row at the moment (penalised FTRL: the weight in force)."""
        return self._of_each("multiplier")

    @property
    def n_rounds_(self) -> int:
        """T: rows learned so far, every pass counted."""
        check_is_fitted(self)
        return self._learners[0].rounds

    @property
    def n_nonzero_(self) -> Any:
        """How many weights of the last decision are not 0."""
        return self._of_each("nonzeros")

    @property
    def cumulative_loss_(self) -> Any:
        """Σ f_t(x_t), each row scored before it was learned."""
        return self._of_each("cumulative_loss")

    @property
    def signed_violation_(self) -> Any:
        """Σ g(x_t)."""
        return self._of_each("signed_violation")

    @property
    def hard_violation_(self) -> Any:
        """Σ [g(x_t)]₊."""
        return self._of_each("hard_violation")

    @property
    def squared_violation_(self) -> Any:
        """Σ [g(x_t)]₊²."""
        return self._of_each("squared_violation")
