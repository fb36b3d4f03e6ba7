"""Random states of linear learners, once as a reference learner has them and once as ours does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linear_learners import learner_with, put
from longterm import Problem, observe
from longterm.learners import AdaptiveAFTRL
from longterm.learners.ftrl.ftrl_scales import OnlineScale
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.linear_model import BudgetLinearLearner
from longterm.linear_model.kernels.layout import Parameters
from longterm.linear_model.kernels.losses import CODES, OF_TWO_CLASSES
from longterm.problems.constraints import ElasticNetBudget
from longterm.problems.losses import Hinge, Huber, LeastSquares, Logistic, Loss, Quantile, SquaredHinge


def reference_loss(name: str, dimension: int, parameter: float) -> Loss:
    """The loss of `longterm.problems.losses`; its bounds play no part in a single round."""
    match name:
        case "logistic":
            return Logistic(dimension, 1.0)
        case "hinge":
            return Hinge(dimension, 1.0)
        case "squared_hinge":
            return SquaredHinge(dimension, 1.0)
        case "squared":
            return LeastSquares(dimension, 1.0, 1.0)
        case "huber":
            return Huber(dimension, 1.0, 1.0, threshold=parameter)
        case "quantile":
            return Quantile(dimension, 1.0, 1.0, level=parameter)
    raise AssertionError(name)


@dataclass
class Pair:
    """One problem, played by a reference learner and by one of ours."""

    rule: str
    problem: Problem
    budget: ElasticNetBudget
    learner: Any
    parameters: Parameters

    def learner_of_ours(self) -> BudgetLinearLearner:
        return learner_with(self.rule, self.parameters, self.budget.dimension, one_scale=True)

    def reference_round(self, state: Any, row: np.ndarray, label: float, weight: float = 1.0) -> tuple[Any, Any]:
        """The next state, and what was seen."""
        seen = observe(self.problem, self.learner.ask(state), [row.astype(np.float64), np.float64(label)])
        seen = seen._replace(loss=weight * seen.loss, loss_gradient=weight * seen.loss_gradient)
        return self.learner.update(state, seen), seen


def make_pair(loss: str, rng: np.random.Generator) -> Pair:
    """A pair of one radius with every constant drawn."""
    d = int(rng.integers(1, 40))
    l1, l2 = rng.choice([0.0, 0.3, 1.0, 2.5]), rng.choice([0.0, 0.5, 1.0, 3.0])
    if l1 == l2 == 0:
        l1 = l2 = 1.0
    budget = ElasticNetBudget(d, float(np.exp(rng.uniform(-2, 3))), l1=l1, l2=l2)
    over = budget.enclosing_ball()
    parameter, scale = float(rng.uniform(0.1, 0.9)), float(np.exp(rng.uniform(-2, 2)))
    problem = Problem(over, reference_loss(loss, d, parameter), budget)
    beta = float(rng.uniform(0.3, 0.8))
    learner = AdaptiveAFTRL(budget.prox(over), OnlineScale(), Multiplier(scale, beta))
    p = Parameters(budget.budget, l1, l2, over.radius, 0.0, CODES[loss], parameter, beta=beta, theta_0=scale)
    return Pair("a-ftrl", problem, budget, learner, p)


def our_learner(pair: Pair, t: int, z: np.ndarray, multiplier: Any, total: Any, x: np.ndarray) -> BudgetLinearLearner:
    """Our learner in round t, about to play x; `total` is Λ_t."""
    threshold = total * pair.budget.l1
    v = z - np.clip(z, -threshold, threshold)
    length = np.linalg.norm(v)
    scale = np.linalg.norm(x) / length if length > 0 else 1.0
    scalars = {"round": t, "multiplier": multiplier, "multiplier_sum": total, "scale": scale}
    scalars |= {"norm_1": np.abs(v).sum(), "norm_2": v @ v}
    return put(pair.learner_of_ours(), z, **scalars)


def draw_row(pair: Pair, rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, float, float]:
    """A row with zeros in it, its label and its weight."""
    d = pair.budget.dimension
    row = rng.standard_normal(d) * rng.choice([0.0, 1.0, 1.0], size=d) * np.exp(rng.uniform(-3, 3))
    label = rng.standard_normal() if pair.parameters.loss not in OF_TWO_CLASSES else rng.choice([-1.0, 1.0])
    return row.astype(dtype), float(label), float(rng.choice([1.0, rng.exponential()]))
