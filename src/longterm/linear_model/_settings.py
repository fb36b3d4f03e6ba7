"""The settings of a learner, and the constants that its kernel reads.

With R the radius of the ball that holds {g ≤ 0}, D the bound on |g| and r the intercept's bound, the set Ball(R) ×
[−r, r] has the radius ϱ = √(R² + r²). Constants found online need no more (`docs/proofs/aftrl.md`); the intercept is
then a learner of its own. Given constants are those of `AFTRL`, `PenalisedFTRL` and `AOGD` on that set, for rows no
longer than `feature_norm` (the intercept adds 1 to its square) and targets within `label_bound`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from longterm._base import validate
from longterm.errors import InputError
from longterm.linear_model.kernels.layout import Parameters
from longterm.linear_model.kernels.losses import CODES, HINGE, HUBER, LOGISTIC, OF_TWO_CLASSES, QUANTILE
from longterm.problems.constraints import ElasticNetBudget
from longterm.problems.losses import Hinge, Huber, LeastSquares, Logistic, Loss, Quantile, SquaredHinge
from longterm.problems.sets import Ball

RULES = ("a-ftrl", "a-ogd", "penalised-ftrl")
LEADERS = ("a-ftrl", "penalised-ftrl")
SCALES, OFFSETS = ("one", "mixed"), ("none", "log-odds", "mean")
"""In the order of the kernels' codes."""
GIVEN = frozenset({"feature_norm", "label_bound"})
DEFAULT_PARAMETER = {HUBER: 1.0, QUANTILE: 0.5}
SHARE = 0.1
"""θ_0 as a share of D²/F, or of D²/(ϱM) where F is not known, as in the reference learners."""


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
    given: Mapping[str, float] | None = field(default=None)
    scales: str = "one"
    """The radii of the leader: "one", or "mixed" for eight in one leader."""
    offset: str = "none"
    """With a mixture: the intercept without its residual, "none", "log-odds" or "mean"."""
    max_features: int = 0
    """Penalised FTRL with a mixture: the largest number of non-zero weights; 0 for no limit."""
    residual_radius: float = 0.0
    """With a mixture: the largest residual; 0 for no intercept, or until the scale of the targets is known."""

    def __post_init__(self) -> None:
        constraint = ElasticNetBudget(self.dimension, self.budget, l1=self.l1, l2=self.l2)
        if self.rule not in RULES:
            raise InputError("rule", f"{self.rule!r} is not a rule", f"Choose one of {', '.join(RULES)}")
        if self.loss not in CODES:
            raise InputError("loss", f"{self.loss!r} is not a loss", f"Choose one of {', '.join(CODES)}")
        if self.scales not in SCALES:
            raise InputError("scales", f"{self.scales!r} is not known", f"Choose one of {', '.join(SCALES)}")
        if self.scales != "one" and (self.given is not None or self.rule not in LEADERS):
            what = f"a mixture of scales is for {' and '.join(LEADERS)} with constants found online"
            raise InputError("scales", what, 'Use scales="one", or another rule')
        if self.max_features and (self.rule != "penalised-ftrl" or self.scales == "one" or self.l1 <= 0):
            what = "is held by penalised FTRL with a mixture of scales and l1 > 0"
            raise InputError("max_features", what, 'Use rule="penalised-ftrl", constants="online", l1=1')
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
            given=self._checked_constants(),
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
    def reach(self) -> float:
        """The largest distance of the intercept from its offset."""
        return max(self.intercept_bound, self.residual_radius)

    @property
    def constraint(self) -> ElasticNetBudget:
        """g(x) = l1‖x‖₁ + ½ l2‖x‖² − budget."""
        return ElasticNetBudget(self.dimension, self.budget, l1=self.l1, l2=self.l2)

    def parameters(self) -> Parameters:
        """Return the constants that the kernel reads."""
        try:
            made = self._parameters()
        except OverflowError:
            made = None
        if made is None or not all(map(math.isfinite, made.numbers())):
            what = f"{self.budget:g} is so large, or so small for its weights, that the steps are not finite"
            raise InputError("budget", what, "Choose another unit for the features")
        return made

    def _parameters(self) -> Parameters:
        g = self.constraint
        ball = g.enclosing_ball()
        radius, D = math.hypot(ball.radius, self.intercept_bound), g.value_bound(ball)
        common = Parameters(
            self.budget, self.l1, self.l2, ball.radius, self.intercept_bound, self.code, self.loss_parameter or 0.0,
            beta=self.beta, growth=self.growth, scales=SCALES.index(self.scales), offset=OFFSETS.index(self.offset),
            residual_radius=self.residual_radius, max_features=self.max_features,
        )  # fmt: skip
        if self.given is None:
            return replace(common, theta_0=SHARE * D**2 / ball.radius, weight_0=2 * ball.radius / D)
        loss, over = self._reference_loss(self.given), Ball(1, radius)
        G, F = loss.gradient_bound(over), loss.value_range(over)
        if self.rule == "a-ogd":
            largest = max(G, g.gradient_bound(ball))
            return replace(common, step=radius / largest, theta_0=6 * radius * largest)
        return replace(common, step=radius / G, theta_0=SHARE * D**2 / F, weight_0=(F + radius * G) / D)

    def _reference_loss(self, given: Mapping[str, float]) -> Loss:
        """Return the loss of `problems.losses`. Its bounds depend on lengths only, so one coordinate suffices."""
        rows = math.hypot(given["feature_norm"], 1.0 if self.intercept_bound > 0 else 0.0)
        if self.classifies:
            if self.code == LOGISTIC:
                return Logistic(1, rows)
            return Hinge(1, rows) if self.code == HINGE else SquaredHinge(1, rows)
        labels, parameter = given["label_bound"], self.loss_parameter or 0.0
        if self.code == HUBER:
            return Huber(1, rows, labels, threshold=parameter)
        return Quantile(1, rows, labels, level=parameter) if self.code == QUANTILE else LeastSquares(1, rows, labels)

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

    def _checked_constants(self) -> Mapping[str, float] | None:
        if self.given is None:
            return None
        wanted = {"feature_norm"} if self.classifies else GIVEN
        if not wanted <= set(self.given) <= GIVEN:
            remedy = 'Give constants={"feature_norm": …}, with "label_bound" for regression'
            raise InputError("constants", f"has {sorted(self.given)}, not {sorted(wanted)}", remedy)
        return {name: validate.positive_scalar(name, value) for name, value in self.given.items()}
