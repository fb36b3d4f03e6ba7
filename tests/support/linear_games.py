"""Random states of linear learners, once as a reference learner has them and once as a kernel does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from longterm import AOGD, Problem, observe
from longterm.constraints import Constraint, ElasticNetBudget, OnFirst
from longterm.learners import AFTRL, MahdaviOGD, PenalisedFTRL
from longterm.learners.aftrl import AFTRLState
from longterm.learners.aogd import AOGDState
from longterm.learners.duals import OneForTheMaximum
from longterm.learners.penalised_ftrl import PenalisedFTRLState
from longterm.linear_model import _layout as at
from longterm.linear_model import _losses as codes
from longterm.linear_model._layout import Parameters, State
from longterm.losses import Hinge, Huber, LeastSquares, Logistic, Loss, Quantile, SquaredHinge
from longterm.sets import Box, Product, Set
from longterm.theory.schedules import ConstantSchedule, ConvexSchedule, DecoupledSchedule

KINDS = ("aogd", "mahdavi", "aftrl", "penalised_ftrl")
LOSSES = tuple(codes.CODES)


def reference_loss(name: str, dimension: int, parameter: float) -> Loss:
    """The loss of `longterm.losses`; its bounds play no part in a single round."""
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
class Game:
    """One problem, played by a reference learner and by a kernel."""

    rule: str
    problem: Problem
    budget: ElasticNetBudget
    learner: Any
    parameters: Parameters

    @property
    def intercept(self) -> bool:
        return self.parameters.intercept_bound > 0

    def features(self, row: np.ndarray) -> np.ndarray:
        """A row as the reference learner sees it: in float64, with a 1 for the intercept."""
        row = row.astype(np.float64)
        return np.append(row, 1.0) if self.intercept else row

    def reference_round(self, state: Any, row: np.ndarray, label: float, weight: float = 1.0) -> tuple[Any, Any]:
        """The next state, and what was seen."""
        seen = observe(self.problem, self.learner.ask(state), [self.features(row), np.float64(label)])
        seen = seen._replace(loss=weight * seen.loss, loss_gradient=weight * seen.loss_gradient)
        return self.learner.update(state, seen), seen


def make_game(kind: str, loss: str, rng: np.random.Generator, *, intercept: bool) -> Game:
    """A game with every constant drawn; `kind` is one of KINDS."""
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
    base = replace(base, loss=codes.CODES[loss], loss_parameter=parameter, beta=beta)
    rule, learner, parameters = _learner(kind, problem, base, rng)
    return Game(rule, problem, budget, learner, parameters)


def _learner(kind: str, problem: Problem, base: Parameters, rng: np.random.Generator) -> tuple[str, Any, Parameters]:
    over, prox = problem.enclosing_set, problem.constraint.prox(problem.enclosing_set)
    step, theta = np.exp(rng.uniform(-3, 1, 2)).tolist()
    if kind == "aogd":
        schedule = ConvexSchedule(diameter=1.0, gradient_bound=1 / (2 * step), beta=base.beta)
        return "aogd", AOGD(over, schedule), replace(base, step=step, theta_0=3 / (2 * step))
    if kind == "mahdavi":
        steps = ConstantSchedule(theta=theta, eta=step / 10, mu=step / 5)
        learner = MahdaviOGD(over, steps, OneForTheMaximum())
        return "aogd", learner, replace(base, step=step / 10, theta_0=theta, mu=step / 5)
    if kind == "aftrl":
        learner = AFTRL(prox, DecoupledSchedule(step, theta, base.beta))
        return "aftrl", learner, replace(base, step=step, theta_0=theta)
    assert kind == "penalised_ftrl"
    learner = PenalisedFTRL(prox, step, w_0=theta, growth=0.5)
    return "penalised_ftrl", learner, replace(base, step=step, weight_0=theta, growth=0.5)


def draw_states(game: Game, rng: np.random.Generator) -> tuple[Any, State]:
    """The same state of round t ≥ 2 twice. Decisions have zeros, are inside the ball or on its surface."""
    t = int(np.exp(rng.uniform(np.log(2), 12)))
    over, d = game.problem.enclosing_set, game.budget.dimension
    round, multiplier = np.asarray(t), np.asarray(rng.choice([0.0, rng.exponential(1.0)]))
    if game.rule == "aogd":
        raw = rng.standard_normal(over.dimension) * rng.choice([0.0, 1.0], size=over.dimension)
        x = over.project(raw * rng.choice([0.1, 3.0]) * over.radius)
        return AOGDState(round, x, multiplier), kernel_state(game, t, x[:d], multiplier, 0.0, x)
    z = rng.standard_normal(over.dimension) * np.exp(rng.uniform(-2, 4))
    curvature = np.asarray(np.sqrt(t) / game.parameters.step)
    weight = np.asarray(rng.uniform(0, 1.2) * np.abs(z[:d]).max() / max(game.budget.l1, 0.3))
    if game.rule == "penalised_ftrl":
        weight_sum = weight * 10
        weight = np.minimum(game.learner.prox.least_weight(z, curvature), weight_sum)
        x = game.learner.prox.argmin(z, weight[None], curvature)
        state: Any = PenalisedFTRLState(round, x, weight, z, weight_sum)
        return state, kernel_state(game, t, z[:d], weight, weight_sum, x, z)
    x = game.learner.prox.argmin(z, weight[None], curvature)
    state = AFTRLState(round, x, multiplier[None], z, weight[None])
    return state, kernel_state(game, t, z[:d], multiplier, weight, x, z)


def kernel_state(
    game: Game, t: int, vector: np.ndarray, multiplier: Any, total: Any, x: np.ndarray, z: np.ndarray | None = None
) -> State:
    """A kernel's state of round t that is about to play x."""
    d = game.budget.dimension
    state = State.start(d)
    state.round[0], state.vector[:] = t, vector
    numbers = state.numbers
    numbers[at.MULTIPLIER], numbers[at.MULTIPLIER_SUM] = multiplier, total
    v = x[:d]
    if z is not None:
        weight = multiplier if game.rule == "penalised_ftrl" else total
        threshold = weight * game.budget.l1
        v = vector - np.clip(vector, -threshold, threshold)
        length = np.linalg.norm(v)
        numbers[at.SCALE] = np.linalg.norm(x[:d]) / length if length > 0 else 1.0
    numbers[at.NORM_1], numbers[at.NORM_2] = np.abs(v).sum(), v @ v
    if game.intercept:
        numbers[at.INTERCEPT] = x[d]
        numbers[at.INTERCEPT_SLOPE] = 0.0 if z is None else z[d]
    return state


def draw_row(game: Game, rng: np.random.Generator, dtype: Any) -> tuple[np.ndarray, float, float]:
    """A row with zeros in it, its label and its weight."""
    d = game.budget.dimension
    row = rng.standard_normal(d) * rng.choice([0.0, 1.0, 1.0], size=d) * np.exp(rng.uniform(-3, 3))
    label = rng.standard_normal() if game.parameters.loss not in codes.OF_TWO_CLASSES else rng.choice([-1.0, 1.0])
    return row.astype(dtype), float(label), float(rng.choice([1.0, rng.exponential()]))
