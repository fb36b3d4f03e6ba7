"""Random states of linear learners, once as a reference learner has them and once as ours does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linear_learners import learner_with, put
from longterm import AOGD, Problem, observe
from longterm.learners import AFTRL, PenalisedFTRL
from longterm.learners.ftrl.ftrl_scales import GivenScale
from longterm.learners.ftrl.growing_penalty import GrowingPenalty
from longterm.learners.ftrl.multiplier import Multiplier
from longterm.learners.interface.states import DualState
from longterm.linear_model import BudgetLinearLearner
from longterm.linear_model.kernels.layout import Parameters
from longterm.linear_model.kernels.losses import CODES, OF_TWO_CLASSES
from longterm.problems.constraints import Constraint, ElasticNetBudget, OnFirst
from longterm.problems.losses import Hinge, Huber, LeastSquares, Logistic, Loss, Quantile, SquaredHinge
from longterm.problems.sets import Box, Product, Set
from longterm.theory.schedules import ConvexSchedule

KINDS = ("a-ogd", "a-ftrl", "penalised-ftrl")


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

    @property
    def intercept(self) -> bool:
        return self.parameters.intercept_bound > 0

    def learner_of_ours(self) -> BudgetLinearLearner:
        return learner_with(self.rule, self.parameters, self.budget.dimension)

    def decision(self, learner: BudgetLinearLearner) -> np.ndarray:
        """Our learner's decision as the reference learner has it."""
        return np.append(learner.weights, learner.intercept) if self.intercept else learner.weights

    def features(self, row: np.ndarray) -> np.ndarray:
        """A row as the reference learner sees it: in float64, with a 1 for the intercept."""
        row = row.astype(np.float64)
        return np.append(row, 1.0) if self.intercept else row

    def reference_round(self, state: Any, row: np.ndarray, label: float, weight: float = 1.0) -> tuple[Any, Any]:
        """The next state, and what was seen."""
        seen = observe(self.problem, self.learner.ask(state), [self.features(row), np.float64(label)])
        seen = seen._replace(loss=weight * seen.loss, loss_gradient=weight * seen.loss_gradient)
        return self.learner.update(state, seen), seen


def make_pair(kind: str, loss: str, rng: np.random.Generator, *, intercept: bool) -> Pair:
    """A pair with every constant drawn; `kind` is one of KINDS."""
    d = int(rng.integers(1, 40))
    l1, l2 = rng.choice([0.0, 0.3, 1.0, 2.5]), rng.choice([0.0, 0.5, 1.0, 3.0])
    if l1 == l2 == 0:
        l1 = l2 = 1.0
    budget = ElasticNetBudget(d, float(np.exp(rng.uniform(-2, 3))), l1=l1, l2=l2)
    constraint: Constraint = budget
    over: Set = budget.enclosing_ball()
    bound = float(rng.uniform(0.1, 3)) if intercept else 0.0
    base = Parameters(budget.budget, l1, l2, over.radius, intercept_bound=bound)
    if intercept:
        over, constraint = Product([over, Box([-bound], [bound])]), OnFirst(budget)
    parameter = float(rng.uniform(0.1, 0.9))
    problem = Problem(over, reference_loss(loss, constraint.dimension, parameter), constraint)
    beta = float(rng.uniform(0.3, 0.8))
    base = replace(base, loss=CODES[loss], loss_parameter=parameter, beta=beta)
    rule, learner, parameters = _learner(kind, problem, base, rng)
    return Pair(rule, problem, budget, learner, parameters)


def _learner(kind: str, problem: Problem, base: Parameters, rng: np.random.Generator) -> tuple[str, Any, Parameters]:
    over, prox = problem.enclosing_set, problem.constraint.prox(problem.enclosing_set)
    step, theta = np.exp(rng.uniform(-3, 1, 2)).tolist()
    if kind == "a-ogd":
        schedule = ConvexSchedule(diameter=1.0, gradient_bound=1 / (2 * step), beta=base.beta)
        return "a-ogd", AOGD(over, schedule), replace(base, step=step, theta_0=3 / (2 * step))
    if kind == "a-ftrl":
        learner = AFTRL(prox, GivenScale(step), Multiplier(theta, base.beta))
        return "a-ftrl", learner, replace(base, step=step, theta_0=theta)
    assert kind == "penalised-ftrl"
    learner = PenalisedFTRL(prox, GivenScale(step), GrowingPenalty(w_0=theta, growth=0.5))
    return "penalised-ftrl", learner, replace(base, step=step, weight_0=theta, growth=0.5)


def draw_states(pair: Pair, rng: np.random.Generator) -> tuple[Any, BudgetLinearLearner]:
    """The same state of round t ≥ 2 twice. Decisions have zeros, are inside the ball or on its surface."""
    t = int(np.exp(rng.uniform(np.log(2), 12)))
    over, d = pair.problem.enclosing_set, pair.budget.dimension
    round, multiplier = np.asarray(t), np.asarray(rng.choice([0.0, rng.exponential(1.0)]))
    if pair.rule == "a-ogd":
        raw = rng.standard_normal(over.dimension) * rng.choice([0.0, 1.0], size=over.dimension)
        x = over.project(raw * rng.choice([0.1, 3.0]) * over.radius)
        return DualState(round, x, multiplier), our_learner(pair, t, x[:d], multiplier, 0.0, x)
    z = rng.standard_normal(over.dimension) * np.exp(rng.uniform(-2, 4))
    curvature = np.asarray(np.sqrt(t) / pair.parameters.step)
    weight = np.asarray(rng.uniform(0, 1.2) * np.abs(z[:d]).max() / max(pair.budget.l1, 0.3))
    start = pair.learner.init()._replace(round=round, gradient_sum=z)
    if pair.rule == "penalised-ftrl":
        weight_sum = weight * 10
        weight = np.minimum(pair.learner.prox.least_weight(z, curvature), weight_sum)
        x = pair.learner.prox.argmin(z, weight[None], curvature)
        state = start._replace(x=x, weight=weight[None], dual=start.dual._replace(weight_sum=weight_sum))
        return state, our_learner(pair, t, z[:d], weight, weight_sum, x, z)
    x = pair.learner.prox.argmin(z, weight[None], curvature)
    state = start._replace(x=x, weight=weight[None], dual=start.dual._replace(multiplier=multiplier[None]))
    return state, our_learner(pair, t, z[:d], multiplier, weight, x, z)


def our_learner(
    pair: Pair, t: int, vector: np.ndarray, multiplier: Any, total: Any, x: np.ndarray, z: np.ndarray | None = None
) -> BudgetLinearLearner:
    """Our learner in round t, about to play x; `total` is Λ_t, or W_t in penalised FTRL."""
    d, v, scale = pair.budget.dimension, x[: pair.budget.dimension], 1.0
    if z is not None:
        threshold = (multiplier if pair.rule == "penalised-ftrl" else total) * pair.budget.l1
        v = vector - np.clip(vector, -threshold, threshold)
        length = np.linalg.norm(v)
        scale = np.linalg.norm(x[:d]) / length if length > 0 else 1.0
    scalars = {"round": t, "multiplier": multiplier, "multiplier_sum": total, "scale": scale}
    scalars |= {"norm_1": np.abs(v).sum(), "norm_2": v @ v}
    if pair.intercept:
        scalars |= {"intercept": x[d], "intercept_slope": 0.0 if z is None else z[d]}
    return put(pair.learner_of_ours(), vector, **scalars)


def draw_row(pair: Pair, rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, float, float]:
    """A row with zeros in it, its label and its weight."""
    d = pair.budget.dimension
    row = rng.standard_normal(d) * rng.choice([0.0, 1.0, 1.0], size=d) * np.exp(rng.uniform(-3, 3))
    label = rng.standard_normal() if pair.parameters.loss not in OF_TWO_CLASSES else rng.choice([-1.0, 1.0])
    return row.astype(dtype), float(label), float(rng.choice([1.0, rng.exponential()]))
