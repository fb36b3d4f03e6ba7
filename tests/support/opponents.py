"""Linear losses that others choose: at random, in phases that turn round, or with an eye on the learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from longterm import Learner, Problem, observe, run
from longterm.problems.constraints import VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.sets import Box
from longterm.problems.streams import RandomCosts
from longterm.problems.streams.base import Block
from longterm.problems.streams.costs import SwitchingCosts

KINDS = st.sampled_from(["random", "switching", "same", "adaptive"])


class Game(NamedTuple):
    """What was played: decisions and costs (T, d), the losses' sum, g_j in every round (T, m), the last state."""

    decisions: np.ndarray
    costs: np.ndarray
    loss: float
    values: np.ndarray
    state: Any


def play_linear(
    problem: Problem, learner: Learner[Any], kind: str, rounds: int, seed: int, scales: np.ndarray | None = None
) -> Game:
    """Rounds against costs of the problem's own cost_norm, times a scale for each round where these are given."""
    norm, d = problem.loss.cost_norm, problem.dimension
    rng = np.random.default_rng(seed)
    given = (SwitchingCosts if kind == "switching" else RandomCosts)(d, norm=norm).draw(seed, 0, rounds).loss[0]
    state, costs, losses, values, decisions = learner.init(), [], [], [], []
    before = learner.ask(state)
    for t in range(rounds):
        x = learner.ask(state)
        cost = given[0] if kind == "same" else given[t]
        if kind == "adaptive":  # charges for where the learner stands, and sometimes for where it is going
            away = x - (problem.enclosing_set.centre if rng.random() < 0.7 else before)
            away = away + 1e-3 * rng.standard_normal(d)
            cost = norm * away / np.linalg.norm(away)
        cost = cost if scales is None else scales[t] * cost
        told = observe(problem, x, [cost])
        costs.append(cost)
        decisions.append(x)
        losses.append(float(told.loss))
        values.append(told.constraint_values)
        before, state = x, learner.tell(state, told)
    return Game(np.array(decisions), np.array(costs), sum(losses), np.array(values), state)


@dataclass(frozen=True)
class BiasedCosts(RandomCosts):
    """Random costs with a mean of 0.3 along the first axis: whoever does not learn has linear regret."""

    def expand(self, drawn: np.ndarray) -> Block:
        (costs,) = super().expand(drawn).loss
        return Block((0.7 * costs + 0.3 * np.eye(self.dimension)[0],))


def regret_in_a_ball(problem: Problem, make: Any, horizons: list[int], seeds: int = 20) -> np.ndarray:
    """The regret of make(T) after T rounds of biased costs under ‖x‖ ≤ budget, averaged over seeds, for each T."""
    stream, found = BiasedCosts(problem.dimension), []
    for T in horizons:
        trace = run(problem, make(T), stream, T, seeds=range(seeds), record=[T], progress=None)
        totals = [stream.draw(seed, 0, T).loss[0].sum(axis=0) for seed in range(seeds)]
        best = -problem.constraint.budget * np.linalg.norm(totals, axis=1)
        found.append(float((trace.cumulative_loss[-1] - best).mean()))
    return np.array(found)


def slope(rounds: Any, values: Any) -> float:
    """The exponent p of a growth like T^p."""
    return float(np.polyfit(np.log(rounds), np.log(values), 1)[0])


def best_in_box(lower, upper, matrix, offset, cost, total=None):
    """min ⟨cost, x⟩ over lower ≤ x ≤ upper, matrix x ≤ offset, and Σ x = total where that is given."""
    equal = {} if total is None else {"A_eq": np.ones((1, len(cost))), "b_eq": [total]}
    return linprog(cost, A_ub=matrix, b_ub=offset, bounds=np.stack([lower, upper], axis=1), **equal).fun


def best_linear(B, matrix, offset, cost):
    """min ⟨cost, x⟩ over X = B ∩ {matrix x ≤ offset}, from below, for any B: duality with its support function."""
    found = linprog_over(B, matrix, offset, cost)
    return found if found is not None else dual_bound(B, matrix, offset, cost)


def linprog_over(B, matrix, offset, cost):
    if not hasattr(B, "lower"):
        return None
    solved = linprog(cost, A_ub=matrix, b_ub=offset, bounds=np.stack([B.lower, B.upper], axis=1))
    return solved.fun


def dual_bound(B, matrix, offset, cost):
    """max over λ ≥ 0 of −⟨λ, offset⟩ − support_B(−cost − Aᵀλ), one constraint: a concave function of one number."""
    (row,), (b,) = matrix, offset
    grid = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 400) * (np.linalg.norm(cost) + 1e-12)])
    values = -grid * b - B.support(-cost - grid[:, None] * row)
    for _ in range(40):
        k = int(np.argmax(values))
        grid = np.linspace(grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)], 30)
        values = -grid * b - B.support(-cost - grid[:, None] * row)
    return values.max()


def onto_box_and_half_space(lower, upper, row, offset):
    """Π onto {lower ≤ x ≤ upper, ⟨row, x⟩ ≤ offset}: clip(y − τ row) with the least feasible τ ≥ 0, by bisection."""

    def project(y):
        def at(tau):
            return np.clip(y - tau[..., None] * row, lower, upper)

        corner = np.where(row > 0, y - lower, upper - y) / np.abs(row)  # from here on a coordinate is clipped
        low, high = np.zeros(y.shape[:-1]), np.maximum(corner.max(axis=-1), 0.0)
        for _ in range(55):
            middle = (low + high) / 2
            low, high = np.where(at(middle) @ row > offset, [middle, high], [low, middle])
        inside = np.clip(y, lower, upper)
        return np.where((inside @ row <= offset)[..., None], inside, at(high))

    return project


class Cut(NamedTuple):
    """What an adversary who chooses the constraints left behind: Σ f_t(x_t) − f_t(x*), Σ [g_t(x_t)]₊, Σ g_t(x_t)."""

    regret: float
    hard: float
    signed: float


def cut_problem() -> Problem:
    """The square [−1, 1]² with costs of length 1 and one half-space a round."""
    return Problem(Box.cube(2, -1.0, 1.0), Linear(2), VaryingAffine(2, 1, row_norm=1.0, limit_bound=1.0))


def play_cut(learner: Learner[Any], rounds: int) -> Cut:
    """In every round the cost pulls up and right, and the constraint x_k ≤ −½ is put where the learner stands worse.

    x* = (−½, −½) is feasible in every round, (−1, −1) slack by ½ in every one.
    """
    problem, state, totals = cut_problem(), learner.init(), np.zeros(3)
    cost, best = np.full(2, -(0.5**0.5)), np.full(2, -0.5)
    for _ in range(rounds):
        x = learner.ask(state)
        row = np.eye(2)[[int(x[1] > x[0])]]
        told = observe(problem, x, [cost], [row, np.array([-0.5])])
        g = float(told.constraint)
        totals += [float(cost @ (x - best)), max(g, 0.0), g]
        state = learner.update(state, told)
    return Cut(*totals.tolist())


def play_against(problem, learner, kind, rounds, seed, parameters=()):
    """Costs drawn beforehand, or by an adversary who sees x_t: costs, total loss, Σ_t g_j, Σ_t max_j g_j."""
    rng = np.random.default_rng(seed)
    norm, direction = problem.loss.cost_norm, rng.standard_normal(problem.dimension)
    state, costs, loss, sums, worst = learner.init(), [], 0.0, 0.0, 0.0
    for t in range(rounds):
        x = learner.ask(state)
        if kind == "adaptive":  # charge for standing where it is, seldom for being feasible
            direction = x - problem.enclosing_set.centre + 1e-2 * rng.standard_normal(x.shape)
        elif kind == "switching":
            direction = -direction if t & (t + 1) == 0 else direction
        elif kind == "pushing":  # out of the feasible set, against the first constraint
            direction = -observe(problem, x, [direction], [p[t] for p in parameters]).pullback(
                np.eye(problem.constraint.count)[0]
            )
        else:
            direction = rng.standard_normal(x.shape)
        costs.append(norm * direction / max(np.linalg.norm(direction), 1e-12))
        told = observe(problem, x, [costs[-1]], [p[t] for p in parameters])
        loss, sums, worst = loss + float(told.loss), sums + told.constraint_values, worst + float(told.constraint)
        state = learner.tell(state, told)
    return np.array(costs), loss, sums, worst
