"""Linear losses that others choose: at random, in phases that turn round, or with an eye on the learner."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

from longterm import Learner, Problem, observe
from longterm.streams import RandomCosts, SwitchingCosts

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


def best_in_box(lower, upper, matrix, offset, cost, total=None):
    """min ⟨cost, x⟩ over lower ≤ x ≤ upper, matrix x ≤ offset, and Σ x = total where that is given."""
    equal = {} if total is None else {"A_eq": np.ones((1, len(cost))), "b_eq": [total]}
    return linprog(cost, A_ub=matrix, b_ub=offset, bounds=np.stack([lower, upper], axis=1), **equal).fun


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
