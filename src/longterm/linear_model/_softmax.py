"""The rounds of a softmax model whose K·d weights share one budget, by the reference learners themselves.

In round t the row u has the scores s = W_t u + b_t and the loss ω(ln Σ exp(s_k) − s_y). The learner of the weights,
`MixedAFTRL` or `MixedPenalisedFTRL` on K·d numbers with g(W) = l1‖W‖₁ + ½ l2‖W‖² − ρ, is told ω(p − e_y) ⊗ u. A-FTRL's
rounds are compiled (`kernels.softmax`, held to the reference by tests), penalised FTRL's are the reference's own.

The intercepts cost no budget. b_t = ln((W_k + ½ω̄)/(Σ_j W_j + ½Kω̄)) + c_t: the logarithms of the classes' shares so far,
W_k the weight of class k before round t and ω̄ the largest weight of a row (the mean of the Dirichlet(W + ½)), plus a
residual c_t by `MixedAFTRL` on the ball of radius 4. Both learners have an expert that stays at 0, so the total loss is
never far above that of the best constant shares (`docs/linear_model.md`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.constraints import ElasticNetBudget
from longterm.errors import InputError
from longterm.learners import MixedAFTRL, MixedPenalisedFTRL
from longterm.learners._scale_mixture import PACE, log_priors, radii, rate
from longterm.learners.feedback import Feedback
from longterm.linear_model._feature_scale import FeatureScale, gathered
from longterm.linear_model._leader import SoftmaxLosses
from longterm.linear_model._rows import IN_ORDER, RowBlock, require_moderate
from longterm.linear_model.kernels.rule import NO_NUMBERS
from longterm.linear_model.kernels.softmax import LANES, NUMBERS, ROOM, softmax_rounds
from longterm.losses import Softmax
from longterm.problems import Problem
from longterm.projections import project_onto_elastic_net
from longterm.storage.snapshot import LARGEST_COUNT

RULES = ("a-ftrl", "penalised-ftrl")
RESIDUAL_RADIUS = 4.0
SUMS = ("loss", "signed", "hard", "squared")


@dataclass(frozen=True)
class SoftmaxSettings:
    """What a learner is made of."""

    classes: int
    features: int
    budget: float
    l1: float = 1.0
    l2: float = 1.0
    rule: str = "a-ftrl"
    fit_intercept: bool = True
    beta: float = 2 / 3
    growth: float = 0.5

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise InputError("rule", f"{self.rule!r} is not a rule", f"Choose one of {', '.join(RULES)}")
        made = self.constraint
        validate.set_frozen(
            self,
            budget=made.budget,
            l1=made.l1,
            l2=made.l2,
            fit_intercept=bool(self.fit_intercept),
            beta=validate.scalar("beta", validate.trade_off("beta", self.beta)),
            growth=validate.positive_scalar("growth", self.growth),
        )

    @property
    def dimension(self) -> int:
        """K·d, the number of weights."""
        return self.classes * self.features

    @property
    def scales(self) -> str:
        """Both rules have eight radii in one leader."""
        return "mixed"

    @property
    def losses(self) -> SoftmaxLosses:
        """The loss of many rows at once."""
        return SoftmaxLosses(self.classes)

    @property
    def constraint(self) -> ElasticNetBudget:
        """g(W) = l1‖W‖₁ + ½ l2‖W‖² − budget, of all classes together."""
        return ElasticNetBudget(self.dimension, self.budget, l1=self.l1, l2=self.l2)

    @property
    def problem(self) -> Problem:
        """Of the weights. Its rules find the length of gradients online, so that of rows is a matter of form."""
        g = self.constraint
        return Problem(g.enclosing_ball(), Softmax(self.classes, self.features, feature_norm=1.0), g)


def residual_problem(classes: int) -> Problem:
    """Of the intercepts' residual: a ball, whose own {g ≤ 0} it is, so that nothing is ever priced."""
    ball = ElasticNetBudget(classes, RESIDUAL_RADIUS**2 / 2, l1=0.0, l2=1.0)
    return Problem(ball.enclosing_ball(), Softmax(classes, 1, feature_norm=1.0), ball)


class SoftmaxLearner:
    """One model: what it knows, and how it learns a block of rows. Labels are the numbers of classes.

    With a `scale`, which is made beforehand and stays, rows are centred and scaled before they are learned, and the
    budget is one of weights of scaled features; `weights` and `intercept` are for rows as they come.
    """

    def __init__(self, settings: SoftmaxSettings, scale: FeatureScale | None = None) -> None:
        self.settings, self.scale = settings, scale
        problem = settings.problem
        self._loss, self._constraint = problem.loss, settings.constraint
        self._rule: Any = (
            MixedAFTRL.for_problem(problem, beta=settings.beta)
            if settings.rule == "a-ftrl"
            else MixedPenalisedFTRL.for_problem(problem, growth=settings.growth)
        )
        self._residual_rule: Any = MixedAFTRL.for_problem(residual_problem(settings.classes))
        self.state: Any = self._rule.init()
        self.residual: Any = self._residual_rule.init()
        self._counts, self._heaviest = np.zeros(settings.classes), 0.0
        self._sums = dict.fromkeys(SUMS, 0.0)
        self._total, self._intercept_total = np.zeros(settings.dimension), np.zeros(settings.classes)

    # --- learning ---------------------------------------------------------------------------------------------

    def require(
        self, block: RowBlock, labels: FloatArray, weights: FloatArray, order: NDArray[np.int64] | None = None
    ) -> None:
        """Raise if a number of the block is too large to be learned from."""
        radii = np.full(block.count, self._rule.prox.over.radius + RESIDUAL_RADIUS)
        require_moderate(block, np.zeros(block.count), weights, radii)

    def learn_checked(
        self,
        block: RowBlock,
        labels: FloatArray,
        weights: FloatArray = NO_NUMBERS,
        order: NDArray[np.int64] = IN_ORDER,
    ) -> None:
        """Learn rows that `row_block` made and `require` has seen, in this order."""
        chosen = np.arange(block.count) if order is IN_ORDER else order
        part = gathered(block.rows, chosen, self.settings.features)
        if self.scale is not None:
            part = self.scale.scaled(self.scale.whole(part))
        if not isinstance(part, tuple):
            matrix = sparse.csr_array(part)
            part = (matrix.data, matrix.indices, matrix.indptr)
        data, indices, indptr = part[0].astype(np.float64), part[1].astype(np.int64), part[2].astype(np.int64)
        of_rows = weights[chosen] if len(weights) else np.ones(len(chosen))
        if self.settings.rule == "a-ftrl":
            self._play(data, indices, indptr, labels[chosen].astype(np.float64), of_rows)
            return
        for n, number in enumerate(chosen):
            own = slice(indptr[n], indptr[n + 1])
            self._learn(data[own], indices[own], int(labels[number]), float(of_rows[n]))

    def _play(self, *rows: Any) -> None:
        """The same rounds as `_learn`, compiled."""
        s = self.settings
        both = [(self._rule, self.state), (self._residual_rule, self.residual)]
        learners = [_opened(rule, state) for rule, state in both]
        sums = np.array([*self._sums.values(), self._heaviest])
        totals = (self._total, self._intercept_total)
        softmax_rounds()(
            *rows, s.features, int(s.fit_intercept), *learners[0], *learners[1], self._counts, sums, *totals
        )
        self.state, self.residual = (_closed(of[1], made) for of, made in zip(both, learners, strict=True))
        self._sums, self._heaviest = dict(zip(SUMS, sums[:4].tolist(), strict=True)), float(sums[4])

    def _learn(self, u: FloatArray, columns: Any, label: int, weight: float) -> None:
        """One round: score, pay, learn. `columns` are those of the features u."""
        s, x, b = self.settings, self.state.x, self._own_intercept
        value, pull = self._loss.of_scores(x.reshape(s.classes, s.features)[:, columns] @ u + b, np.asarray(label))  # type: ignore[attr-defined]
        g = self._constraint.values(x)[0]
        over = max(float(g), 0.0)
        for name, more in zip(SUMS, (weight * float(value), float(g), over, over * over), strict=True):
            self._sums[name] += more
        self._total += x
        self._intercept_total += b
        pull = weight * pull
        gradient = np.zeros((s.classes, s.features))
        gradient[:, columns] = pull[:, None] * u
        self.state = self._rule.update(self.state, Feedback(gradient.reshape(-1), g, None))
        if s.fit_intercept:
            inside = self._residual_rule.prox.constraint.values(self.residual.x)[0]
            self.residual = self._residual_rule.update(self.residual, Feedback(pull, inside, None))
            self._counts[label] += weight
            self._heaviest = max(self._heaviest, weight)

    # --- what is known ----------------------------------------------------------------------------------------

    @property
    def weights(self) -> FloatArray:
        """W_{T+1}, row after row."""
        return self._as_rows_come(self.state.x, self._own_intercept)[0]

    @property
    def intercept(self) -> FloatArray:
        """b_{T+1}, one for each class."""
        return self._as_rows_come(self.state.x, self._own_intercept)[1]

    def _as_rows_come(self, x: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A model of scaled rows as one of rows as they come."""
        if self.scale is None:
            return x, b
        own = x.reshape(self.settings.classes, -1) * self.scale.factors
        return own.reshape(-1), b - own @ self.scale.means

    @property
    def _own_intercept(self) -> FloatArray:
        """That of rows as they are scaled."""
        if not self._heaviest > 0:
            return np.zeros(self.settings.classes)
        shares = self._counts + 0.5 * self._heaviest
        made: FloatArray = np.log(shares / shares.sum()) + self.residual.x
        return made

    def average(self) -> tuple[FloatArray, FloatArray]:
        """The mean decision."""
        n = max(self.rounds, 1)
        return self._as_rows_come(self._total / n, self._intercept_total / n)

    def within_budget(self) -> tuple[FloatArray, FloatArray]:
        """The point nearest to the mean decision with g ≤ 0."""
        return self.nearest_within_budget(*self.average())

    def nearest_within_budget(self, x: FloatArray, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The nearest weights with g ≤ 0, in floating-point numbers too, and their intercepts."""
        s, g = self.settings, self._constraint
        own = self._scaled(x)
        if g.values(own)[0] <= 0:
            return x, intercept
        made: FloatArray = project_onto_elastic_net(own, s.budget, s.l1, s.l2)
        while g.values(made)[0] > 0:  # by a rounding
            made = made * (1 - 1e-15)
        if self.scale is None:
            return made, intercept
        nearest, moved = self._as_rows_come(made - own, intercept)  # a row of the means is scored as before
        return x + nearest, moved

    def size(self, x: FloatArray) -> float:
        """How much of the budget these weights take: l1‖W‖₁ + ½ l2‖W‖², of scaled features where they are."""
        return float(self._constraint.values(self._scaled(x))[0]) + self.settings.budget

    def _scaled(self, x: FloatArray) -> FloatArray:
        """Weights of rows as they come as those of scaled ones."""
        if self.scale is None:
            return x
        made: FloatArray = x.reshape(self.settings.classes, -1) / self.scale.factors
        return made.reshape(-1)

    @property
    def binds(self) -> bool:
        """Whether the budget was ever priced."""
        priced = self.state.multiplier if self.settings.rule == "penalised-ftrl" else self.state.multiplier_sum
        return bool(np.sum(priced) > 0) or self.hard_violation > 0

    @property
    def multiplier(self) -> float:
        """λ_{T+1}, the price of the budget; for penalised FTRL ν, the weight in force."""
        return float(np.sum(self.state.multiplier))

    @property
    def nonzeros(self) -> int:
        """How many of the K·d weights are not 0."""
        return int(np.count_nonzero(self.state.x))

    @property
    def rounds(self) -> int:
        """T, the rows learned so far."""
        return int(self.state.round) - 1

    @property
    def cumulative_loss(self) -> float:
        """Σ f_t(W_t, b_t)."""
        return self._sums["loss"]

    @property
    def signed_violation(self) -> float:
        """Σ g(W_t)."""
        return self._sums["signed"]

    @property
    def hard_violation(self) -> float:
        """Σ [g(W_t)]₊."""
        return self._sums["hard"]

    @property
    def squared_violation(self) -> float:
        """Σ [g(W_t)]₊²."""
        return self._sums["squared"]

    # --- files ------------------------------------------------------------------------------------------------

    def specification(self) -> dict[str, Any]:
        """The settings as JSON."""
        return asdict(self.settings)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that was learned."""
        made = {f"weights.{name}": np.asarray(value) for name, value in self.state._asdict().items()}
        made |= {f"residual.{name}": np.asarray(value) for name, value in self.residual._asdict().items()}
        sums = np.array([*self._sums.values(), self._heaviest])
        if self.scale is not None:
            made |= {f"scale.{name}": array for name, array in self.scale.arrays().items()}
        return made | {
            "counts": self._counts,
            "sums": sums,
            "total": self._total,
            "intercept_total": self._intercept_total,
        }

    @classmethod
    def from_parts(cls, specification: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> SoftmaxLearner:
        """The learner that had these; ValueError where they do not fit."""
        settings = SoftmaxSettings(**specification)
        scale = {name.removeprefix("scale."): array for name, array in arrays.items() if name.startswith("scale.")}
        made = cls(settings, FeatureScale.restored(settings.features, scale) if scale else None)
        fresh = made.arrays()
        arrays = _paying_at_once(arrays)
        if set(arrays) != set(fresh):
            raise ValueError("it has other arrays than a softmax model")
        for name, array in arrays.items():
            fits = array.shape == fresh[name].shape and array.dtype == fresh[name].dtype
            if not (fits and np.abs(array.astype(np.float64)).max(initial=0.0) < LARGEST):
                raise ValueError(f"{name} is not that of a softmax model")
        made.state = type(made.state)(*(_number(arrays[f"weights.{name}"]) for name in made.state._fields))
        made.residual = type(made.residual)(*(_number(arrays[f"residual.{name}"]) for name in made.residual._fields))
        *sums, made._heaviest = arrays["sums"].tolist()
        made._sums = dict(zip(SUMS, sums, strict=True))
        made._counts, made._total = arrays["counts"].copy(), arrays["total"].copy()
        made._intercept_total = arrays["intercept_total"].copy()
        if min(made.rounds, made._heaviest, made._counts.min(), made.state.square_sum, made.residual.square_sum) < 0:
            raise ValueError("it counts below 0")
        if not made.state.round == made.residual.round <= LARGEST_COUNT:
            raise ValueError("weights and intercepts are of different rounds, or of too many")
        for rule, state in ((made._rule, made.state), (made._residual_rule, made.residual)):
            least = min(state.theta_sum, state.largest_gradient, state.hedge_clip, state.hedge_squares)
            if not (least >= 0 and state.multiplier >= 0 and 0 <= state.first_gradient <= state.round >= 1):
                raise ValueError("a sum of squares, a multiplier or a round is out of bounds")
            _require_block(rule, state)
            if state.shares.min() < 0 or abs(float(state.shares.sum()) - 1.0) > 1e-6:
                raise ValueError("the shares of the scales are not shares")
        return made


def _paying_at_once(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arrays of a model from before scales paid in blocks of rounds: they do not wait, and owe nothing."""
    for of in ("weights", "residual"):
        squares, lanes = (arrays.get(f"{of}.hedge_{name}") for name in ("squares", "losses"))
        if f"{of}.hedge_waits" not in arrays and squares is not None and lanes is not None:
            made = {"correction": 1.55 / PACE * np.sqrt(np.abs(squares)), "waiting": 0.0 * squares}  # at most that
            made |= {"owed": 0.0 * lanes, "owed_squares": 0.0 * lanes, "tilt": 0.0 * squares, "waits": 0.0 * squares}
            arrays = arrays | {f"{of}.hedge_{name}": np.asarray(value) for name, value in made.items()}
    return arrays


def _require_block(rule: Any, state: Any) -> None:
    """ValueError if scales could not owe what they do."""
    alpha, R = float(rate(state.hedge)), radii(rule.prox.over.radius)
    sound = np.all(np.abs(state.hedge_owed) <= alpha / 2 * R * (1 + 1e-6)) and state.hedge_owed_squares.min() >= 0
    if not (sound and -1 - 1e-6 <= state.hedge_tilt * alpha <= 0 and state.hedge_waits in (0.0, 1.0)):
        raise ValueError("the scales owe more than they can, or a sum of squares is below 0")


LARGEST = 1e100
"""No number of a model is as large; squares of smaller ones are finite."""


def _opened(rule: MixedAFTRL, state: Any) -> tuple[NDArray[Any], ...]:
    """A learner as the kernel takes it: z, numbers, lanes and x, its own to write in, and the constants."""
    numbers = np.zeros(ROOM)
    numbers[: len(NUMBERS)] = [float(np.sum(getattr(state, name))) for name in NUMBERS]
    g, R = rule.prox.constraint, rule.prox.over.radius
    constants = np.array([g.budget, g.l1, g.l2, rule.dual_scale, rule.beta])
    lanes = np.stack([getattr(state, name) for name in LANES])
    return (
        state.gradient_sum.copy(),
        numbers,
        lanes,
        state.x.copy(),
        constants,
        radii(R),
        log_priors(R, rule.typical_size),
    )


def _closed(before: Any, learner: tuple[NDArray[Any], ...]) -> Any:
    """The state again, each field of the kind it was."""
    z, numbers, lanes, x = learner[:4]
    made: dict[str, Any] = {"gradient_sum": z, "x": x} | dict(zip(LANES, lanes, strict=True))
    for name, value in zip(NUMBERS, numbers, strict=False):
        old = np.asarray(getattr(before, name))
        made[name] = np.full(old.shape, value).astype(old.dtype)[()]
    return before._replace(**made)


def _number(array: NDArray[Any]) -> Any:
    """Arrays of no axes as NumPy's numbers, as they are in a learner's state."""
    return array[()] if array.ndim == 0 else array
