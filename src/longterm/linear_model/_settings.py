"""The settings of a learner, and the constants that its kernel reads.

R is the radius of the ball that holds {g ≤ 0}, and D the bound on |g| there. All other constants are found online
(`docs/proofs/aftrl.md`). The intercept is a learner of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from longterm._base import validate
from longterm.errors import InputError
from longterm.linear_model.kernels.layout import Parameters
from longterm.linear_model.kernels.losses import CODES, HUBER, OF_TWO_CLASSES, QUANTILE
from longterm.problems.constraints import ElasticNetBudget

RULES = ("a-ftrl", "penalised-ftrl")
OFFSETS = ("none", "log-odds", "mean")
"""In the order of the kernels' codes."""
DEFAULT_PARAMETER = {HUBER: 1.0, QUANTILE: 0.5}
NO_BUDGET = 1e50
"""Stands for no budget where features are scaled: the radius is bounded by `largest_radius`."""
GENEROUS_RADIUS, GENEROUS_RADIUS_OF_TARGETS = 250.0, 32.0
"""The largest radius for scaled rows: for two classes, and in units of the largest residual of targets."""
SHARE = 0.1
"""θ_0 as a share of D²/R, as in the reference learners."""


@dataclass(frozen=True)
class Settings:
    """The settings of a learner; `intercept_bound` is r, 0 for no intercept."""

    dimension: int
    budget: float
    l1: float = 1.0
    l2: float = 1.0
    loss: str = "logistic"
    loss_parameter: float | None = None
    rule: str = "a-ftrl"
    intercept_bound: float = 0.0
    beta: float = 2 / 3
    growth: float = 0.5
    offset: str = "none"
    """The intercept without its residual: "none", "log-odds" or "mean"."""
    max_features: int = 0
    """Penalised FTRL: the largest number of non-zero weights; 0 for no limit."""
    residual_radius: float = 0.0
    """The largest residual. For targets it is also their scale, 0 until it is known; for classes 0 for no intercept."""

    def __post_init__(self) -> None:
        constraint = ElasticNetBudget(self.dimension, self.budget, l1=self.l1, l2=self.l2)
        if self.rule not in RULES:
            raise InputError("rule", f"{self.rule!r} is not a rule", f"Choose one of {', '.join(RULES)}")
        if self.loss not in CODES:
            raise InputError("loss", f"{self.loss!r} is not a loss", f"Choose one of {', '.join(CODES)}")
        if self.max_features and (self.rule != "penalised-ftrl" or self.l1 <= 0):
            raise InputError(
                "max_features", "works only with penalised FTRL and l1 > 0", 'Use rule="penalised-ftrl", l1=1'
            )
        if self.offset not in OFFSETS:
            raise InputError("offset", f"{self.offset!r} is not known", f"Choose one of {', '.join(OFFSETS)}")
        validate.set_frozen(
            self,
            dimension=constraint.dimension,
            budget=constraint.budget,
            l1=constraint.l1,
            l2=constraint.l2,
            loss_parameter=self._checked_parameter(),
            intercept_bound=validate.non_negative_scalar("intercept_bound", self.intercept_bound),
            beta=validate.scalar("beta", validate.trade_off("beta", self.beta)),
            growth=validate.positive_scalar("growth", self.growth),
            max_features=validate.count("max_features", self.max_features) if self.max_features else 0,
            residual_radius=validate.non_negative_scalar("residual_radius", self.residual_radius),
        )

    @property
    def code(self) -> int:
        """The code of the loss."""
        return CODES[self.loss]

    @property
    def classifies(self) -> bool:
        """True if labels are ±1."""
        return self.code in OF_TWO_CLASSES

    @property
    def has_residual(self) -> bool:
        """True if the intercept is an offset and a residual."""
        return self.classifies or self.offset == "mean"

    @property
    def reach(self) -> float:
        """The largest distance of the intercept from its offset."""
        return max(self.intercept_bound, self.residual_radius)

    def may_centre(self, sparse: bool) -> bool:
        """Return True if an intercept can take up the means of features, and the layout is not sparse."""
        return (self.offset != "none" or self.reach > 0) and not (sparse and self.rule == "a-ftrl")

    @property
    def largest_radius(self) -> float:
        """The radius of weights for scaled rows, whose mean length is 1, until the budget is first reached."""
        return GENEROUS_RADIUS if self.classifies else GENEROUS_RADIUS_OF_TARGETS * (self.residual_radius or 1.0)

    @property
    def constraint(self) -> ElasticNetBudget:
        """g(x) = l1‖x‖₁ + ½ l2‖x‖² − budget."""
        return ElasticNetBudget(self.dimension, self.budget, l1=self.l1, l2=self.l2)

    def parameters(self, units: Sequence[float] = ()) -> Parameters:
        """Return the constants that the kernel reads.

        Where features are scaled, `units` has N, by which the weights of the kernel are larger than those that the
        budget counts, and the largest N so far. The budget's radius belongs to the largest N, so that it never falls.
        """
        try:
            unit, largest_unit = units if len(units) else (1.0, 1.0)
            made = self._parameters(unit, largest_unit, is_scaled=len(units) > 0)
        except OverflowError:
            made = None
        if made is None or not all(map(math.isfinite, made.numbers())):
            what = f"{self.budget:g} is so large, or so small for its weights, that the steps are not finite"
            raise InputError("budget", what, "Choose another unit for the features")
        return made

    def _parameters(self, unit: float, largest_unit: float, *, is_scaled: bool) -> Parameters:
        l1, l2 = self.l1 / unit, self.l2 / unit**2
        g = ElasticNetBudget(self.dimension, self.budget, l1=l1, l2=l2)
        ball = g.enclosing_ball()
        D, radius = g.value_bound(ball), ball.radius * (largest_unit / unit)
        return Parameters(
            self.budget, l1, l2, self.largest_radius if is_scaled else radius, self.intercept_bound,
            self.code, self.loss_parameter or 0.0, beta=self.beta, theta_0=SHARE * D**2 / ball.radius,
            weight_0=2 * ball.radius / D, growth=self.growth, offset=OFFSETS.index(self.offset),
            residual_radius=self.residual_radius if self.has_residual else 0.0, max_features=self.max_features,
            budget_radius=radius,
        )  # fmt: skip

    def _checked_parameter(self) -> float | None:
        default = DEFAULT_PARAMETER.get(self.code)
        if default is None:
            return None
        if self.loss_parameter is None:
            return default
        parameter = validate.positive_scalar("loss_parameter", self.loss_parameter)
        if self.code == QUANTILE and parameter >= 1:
            what = f"{parameter:g} is not the level of a quantile"
            raise InputError("loss_parameter", what, "Give a number between 0 and 1, 0.9 for example")
        return parameter
