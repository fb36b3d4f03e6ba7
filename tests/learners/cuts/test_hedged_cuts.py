"""Hedged cuts: the rule by hand, its theorem on streams that answer back, and what it does not promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypothesis_settings import examples
from longterm import InputError, Problem, observe, run
from longterm.catalogue.scenarios import switching_constraints
from longterm.learners import HedgedCuts
from longterm.learners.cuts.cuts import PARALLEL_SQUARE, Cut, cut_within
from longterm.learners.cuts.meta import AdaHedge, AdaptMLProd
from longterm.learners.cuts.modes import PARALLEL, cut_by_rows, order_by_use, remember
from longterm.problems import doubly_stochastic, two_dimensional
from longterm.problems.constraints import Affine, Constraint, CustomConstraint, L1Budget, L2Budget, Stack, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box, Set, Simplex
from longterm.problems.streams import RandomCosts, RandomPermutations, Replay
from longterm.testing import find_worst_cases

INTERVAL = Box([-1.0], [1.0])


def interval(offset: float = 0.5) -> Problem:
    return Problem(INTERVAL, Linear(1), Affine([[1.0]], [offset]))


def told(problem: Problem, learner: HedgedCuts, state: Any, *parameters: Any) -> Any:
    loss, constraint = parameters[0], parameters[1:]
    return learner.tell(state, observe(problem, learner.ask(state), [np.asarray(loss)], list(constraint)))


def test_first_rounds_by_hand() -> None:
    problem = interval()
    learner = HedgedCuts.for_problem(problem)
    state = learner.init()
    assert learner.ask(state) == 0.0
    state = told(problem, learner, state, [-1.0])
    # Steps ½·2, ⅛·2, … of −1; the first is cut from 1 to ½, the others stay; nobody leads.
    np.testing.assert_allclose(state.experts[:, 0], [0.5, 0.25, 0.0625, 0.015625], rtol=0, atol=1e-15)
    x_2 = (0.5 + 0.25 + 0.0625 + 0.015625) / 4
    np.testing.assert_allclose(learner.ask(state), [x_2], rtol=0, atol=1e-15)
    state = told(problem, learner, state, [1.0])
    # ℓ_k = x^k − x_2, the last expert leads, Γ = −ℓ_3, and weights fall by 4 for every Γ behind.
    lost = np.array([0.5, 0.25, 0.0625, 0.015625]) - x_2
    weights = 4.0 ** -((lost - lost[3]) / -lost[3])
    experts = np.array([0.5, 0.25, 0.0625, 0.015625]) - np.array([1.0, 0.25, 0.0625, 0.015625]) / np.sqrt(2)
    np.testing.assert_allclose(state.experts[:, 0], experts, rtol=0, atol=1e-15)
    np.testing.assert_allclose(learner.ask(state), [weights @ experts / weights.sum()], rtol=0, atol=1e-14)


def as_written(problem: Problem, costs: np.ndarray, bank: float = 0.0, query: bool = True) -> np.ndarray:
    """The rule of the docstring, line by line, for a fixed g; all x_t."""
    g, B = problem.constraint, problem.enclosing_set

    def along(v: np.ndarray) -> np.ndarray:
        """The part of a direction that is parallel to B."""
        return v - v.mean() if isinstance(B, Simplex) else v

    def half_space(y: np.ndarray, at: np.ndarray, relaxed: np.ndarray | float = 0.0) -> tuple[np.ndarray, float]:
        slopes = np.stack([g.gradient_of(at, np.asarray(j)) for j in range(g.count)])
        v = np.maximum(g.values(at) + slopes @ (y - at) - relaxed, 0)
        return along(slopes.T @ v), float(v @ v)

    def nearest(y: np.ndarray, u: np.ndarray, excess: float, b: np.ndarray) -> np.ndarray:
        """The point of {⟨u, z − y⟩ ≤ −excess} and {⟨b, z − y⟩ ≤ 0} that is nearest to y."""
        alone = y - (excess / (u @ u) * u if excess else 0)
        is_parallel = (u @ u) * (b @ b) - (u @ b) ** 2 <= PARALLEL_SQUARE * (u @ u) * (b @ b)
        if not b.any() or b @ (alone - y) <= 0 or is_parallel:
            return alone
        gram = np.array([[u @ u, u @ b], [u @ b, b @ b]])
        return np.asarray(y - np.stack([u, b], axis=1) @ np.linalg.solve(gram, [excess, 0.0]))

    def cut(y: np.ndarray, at: np.ndarray, relaxed: Any, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u, excess = half_space(y, at, relaxed)
        outside = nearest(y, u, excess, b)
        inside = B.project(outside)
        return inside, outside - inside if np.linalg.norm(outside - inside) > 1e-12 * B.diameter else u

    start = np.array(B.centre, dtype=float)
    for _ in range(200 if query else 0):
        start, _ = cut(start, start, 0.0, np.zeros(3))
    c = 0.5 * 4.0 ** -np.arange(4)
    X, L, gamma, S, C = np.tile(start, (4, 1)), np.zeros(4), 0.0, 0.0, np.zeros(g.count)
    p, played = np.full(4, 0.25), []
    for t, n in enumerate(costs, start=1):
        x, n = p @ X, along(n)
        played.append(x)
        C = C + g.values(x)
        relaxed = bank * np.maximum(-C, 0)
        S += n @ n
        loss = (X - x) @ n
        if gamma == 0:
            delta = min(L) - min(L + loss)
        else:
            alpha = np.log(4) / gamma
            delta = np.log(p @ np.exp(-alpha * loss)) / alpha
        L, gamma = L + loss, gamma + max(delta, 0)
        w = np.exp(-np.log(4) / gamma * (L - min(L))) if gamma > 0 else (min(L) == L).astype(float)
        p = w / w.sum()
        X = X - (np.outer(c * B.diameter / np.sqrt(S), n) if S > 0 else 0)
        at, normals = x, np.zeros_like(X)
        for i in range(30 if query else 3):
            if query and i > 0:
                at = x if g.is_affine else p @ X
                spaces = [half_space(y, at, relaxed) for y in X]
                if p @ [e / np.linalg.norm(u) if e else 0.0 for u, e in spaces] <= 0.005 * B.diameter / np.sqrt(t):
                    break
            pairs = [cut(y, at, relaxed, b if query else 0 * b) for y, b in zip(X, normals, strict=True)]
            X, normals = (np.stack(part) for part in zip(*pairs, strict=True))
    return np.array(played)


def constraint_of(kind: str, rng: np.random.Generator, diamond: float) -> Constraint:
    if kind == "a ball":
        return L2Budget(3, budget=0.6)
    if kind == "a diamond and half-spaces":
        return Stack([L1Budget(3, budget=diamond), Affine(rng.standard_normal((2, 3)), rng.uniform(-0.1, 0.3, 2))])
    count = 1 if kind == "a half-space" else 4
    return Affine(rng.standard_normal((count, 3)), rng.uniform(-0.1, 0.3, count))


@pytest.mark.parametrize("query", [True, False], ids=["known", "told"])
@pytest.mark.parametrize("bank", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["a half-space", "half-spaces", "a ball", "a diamond and half-spaces"])
@pytest.mark.parametrize("B", [Box.cube(3, -1.0, 1.0), Ball(3, radius=1.5), Simplex(3)], ids=["box", "ball", "simplex"])
def test_is_the_rule_as_written(B: Set, kind: str, bank: float, query: bool) -> None:
    rng = np.random.default_rng(len(kind))
    problem = Problem(B, Linear(3, cost_norm=9.0), constraint_of(kind, rng, 1.2 if isinstance(B, Simplex) else 0.8))
    costs = rng.standard_normal((60, 3)) * rng.uniform(0, 2, (60, 1)) + [0.5, -1.0, 0.0]
    costs[:3] = 0  # nothing is known at first
    learner, played = HedgedCuts.for_problem(problem, bank=bank, query=query), []
    state = learner.init()
    for cost in costs:
        played.append(learner.ask(state))
        state = told(problem, learner, state, cost)
    expected = as_written(problem, costs, bank=bank, query=query)
    np.testing.assert_allclose(np.array(played), expected, rtol=0, atol=1e-9)


def test_a_known_constraint_is_kept_from_the_start() -> None:
    """Doubly-stochastic matrices: the nearest to the centre is 1/p, and round 1 breaks nothing; told only, it must."""
    problem = doubly_stochastic(4)
    learner = HedgedCuts.for_problem(problem)
    np.testing.assert_allclose(learner.ask(learner.init((2,))), np.full((2, 16), 0.25), rtol=0, atol=1e-11)
    told_only = HedgedCuts.for_problem(problem, query=False)
    np.testing.assert_array_equal(told_only.ask(told_only.init()), np.zeros(16))


def test_a_constraint_that_is_constant_on_the_set_is_not_cut() -> None:
    """Σ x_i ≤ 1 on the simplex: its excess is rounding, and so is the part of its gradient parallel to the simplex."""
    problem = Problem(Simplex(3), Linear(3), Affine([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]], [1.0, 0.5]))
    trace = run(problem, HedgedCuts.for_problem(problem), RandomCosts(3), 300)
    assert trace.state.limited == 0  # the number of rounds in which 30 cuts did not suffice


def test_a_known_constraint_is_violated_less() -> None:
    """A curved g, costs that push across it: a known g is violated less, and the bounds hold."""
    problem = Problem(Ball(3, radius=2.0), Linear(3, cost_norm=3.0), L1Budget(3, budget=0.5))
    costs = np.random.default_rng(5).standard_normal((400, 3)) * 0.4 + [0.5, -0.7, 0.1]
    broken = {}
    for query in (True, False):
        learner = HedgedCuts.for_problem(problem, query=query)
        trace = run(problem, learner, Replay([costs]))
        bound = learner.bound(problem, 400, state=trace.state)
        best = -0.5 * np.abs(costs.sum(axis=0)).max()
        assert trace.cumulative_loss[-1] - best <= bound["regret"]
        assert trace.hard_violation[-1] <= bound["hard_violation"]
        broken[query] = float(trace.hard_violation[-1])
    assert broken[True] < 0.1 * broken[False]


def against(
    learner: HedgedCuts, problem: Problem, best: np.ndarray, seed: int, rounds: int, power: float
) -> dict[str, float]:
    """Costs that push away from x*, half of them against the way the learner went; half-spaces that hold x*."""
    rng = np.random.default_rng(seed)
    state, sums, m, d = learner.init(), np.zeros(3), problem.constraint.count, problem.dimension
    each = np.zeros(m)
    aside = rng.standard_normal(d)
    for t in range(rounds):
        x = learner.ask(state)
        away = (x - best) if rng.random() < 0.5 else rng.standard_normal(d) + aside * np.sign(rng.random() - 0.4)
        cost = rng.random() ** power * away / max(np.linalg.norm(away), 1e-12)
        rows = rng.standard_normal((m, d)) + (best - x if rng.random() < 0.5 else 0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        offsets = np.minimum(rows @ best + rng.random(m) * 0.3 * (rng.random() < 0.7), 3.0)
        feedback = observe(problem, x, [cost], [rows, offsets])
        worst = max(float(feedback.constraint), 0.0)
        sums += [cost @ (x - best), worst, worst**2]
        each += feedback.constraint_values
        if t == 0 and rng.random() < 0.3:
            feedback = feedback._replace(loss_gradient=feedback.loss_gradient * 0)
            sums[0] = 0.0
        state = learner.tell(state, feedback)
    bound = learner.bound(problem, rounds, state=state)
    found = {
        "regret": sums[0],
        "hard_violation": sums[1],
        "squared_violation": sums[2],
        "long_term_violation": float(each.max()),
    }
    for measure, value in bound.items():
        assert found[measure] <= value * (1 + 1e-9) + 1e-9, (measure, found[measure], float(value))
    if "regret" in (beforehand := learner.bound(problem, rounds)):
        assert bound["regret"] <= beforehand["regret"] * (1 + 1e-9), "what happened is worse than what might have"
    return found


@pytest.mark.slow
@examples(40)
@given(
    seed=st.integers(0, 10**6),
    constraints=st.sampled_from([1, 3]),
    ball=st.booleans(),
    bank=st.sampled_from([0.0, 0.1, 1.0]),
    meta=st.sampled_from(["adahedge", "adapt-ml-prod"]),
    power=st.sampled_from([0.0, 1.0, 6.0]),
    cuts=st.sampled_from([1, 3]),
)
def test_bounds_hold_against_an_adversary(
    seed: int, constraints: int, ball: bool, bank: float, meta: Any, power: float, cuts: int
) -> None:
    B: Set = Ball(2) if ball else Box.cube(2, -1.0, 1.0)
    problem = Problem(B, Linear(2), VaryingAffine(2, constraints, 1.0, 3.0))
    best = B.project(np.random.default_rng(seed).uniform(-1, 1, 2))
    learner = HedgedCuts.for_problem(problem, bank=bank, meta=meta, cuts=cuts)
    measures = {"regret", "long_term_violation"} if bank else {"regret", "hard_violation", "squared_violation"}
    against(learner, problem, best, seed, 120, power)
    assert set(learner.bound(problem, 120, state=learner.init())) == measures


@pytest.mark.slow
@examples(25)
@given(
    seed=st.integers(0, 10**6),
    push=st.floats(0.0, 3.0),
    steps=st.sampled_from(["universal", "strongly convex"]),
    meta=st.sampled_from([None, "adahedge"]),
)
def test_strongly_convex_bounds_hold(seed: int, push: float, steps: Any, meta: Any) -> None:
    """Targets that flee from the decision; regret and squared violation of order log T for steps 1/(σt) alone."""
    problem = Problem(Ball(2), SquaredDistance(2, targets=Ball(2)), L2Budget(2, budget=0.4))
    learner, rng = HedgedCuts.for_problem(problem, steps=steps, meta=meta), np.random.default_rng(seed)
    state, targets, loss, hard, squared = learner.init(), [], 0.0, 0.0, 0.0
    for _ in range(150):
        x = learner.ask(state)
        target = Ball(2).project(rng.standard_normal(2) - push * x)
        targets.append(target)
        feedback = observe(problem, x, [target])
        loss, worst = loss + float(feedback.loss), max(float(feedback.constraint), 0.0)
        hard, squared = hard + worst, squared + worst**2
        state = learner.tell(state, feedback)
    best = Ball(2, radius=0.4).project(np.mean(targets, axis=0))
    regret = loss - 0.5 * np.sum((np.array(targets) - best) ** 2)
    bound = learner.bound(problem, 150, state=state)
    assert regret <= bound["regret"]
    assert hard <= bound["hard_violation"]
    assert squared <= bound["squared_violation"]


@pytest.mark.slow
def test_curvature_is_found_among_the_experts() -> None:
    """Noisy targets: the regret comes near to that of steps 1/(σt) alone, and its bound is the smaller, O(log T)."""
    problem = Problem(Ball(2), SquaredDistance(2, targets=Ball(2)), L2Budget(2, budget=0.4))
    rng, T = np.random.default_rng(0), 1500
    targets = Ball(2).project(np.array([0.3, 0.2]) + 0.5 * rng.standard_normal((T, 2)))
    best = Ball(2, radius=0.4).project(targets.mean(axis=0))
    lost, bounds = {}, {}
    for steps in ("universal", "convex", "strongly convex"):
        learner = HedgedCuts.for_problem(problem, steps=steps)  # type: ignore[arg-type]
        trace = run(problem, learner, Replay([targets]), record=[T])
        lost[steps] = float(trace.cumulative_loss[-1] - 0.5 * np.sum((targets - best) ** 2))
        bounds[steps] = float(learner.bound(problem, T, state=trace.state)["regret"])
    assert lost["universal"] <= bounds["universal"] < bounds["convex"]
    assert lost["strongly convex"] < lost["universal"] < lost["convex"]


def test_strongly_convex_by_hand() -> None:
    """x_2 = 0 − (0 − (1, 0))/1 = (1, 0), cut back to x₁ = ¼; then half way to (0, 1)."""
    problem = two_dimensional()
    learner = HedgedCuts.for_problem(problem, steps="strongly convex")
    state = told(problem, learner, learner.init(), [1.0, 0.0])
    np.testing.assert_allclose(learner.ask(state), [0.25, 0.0], atol=1e-15)
    state = told(problem, learner, state, [0.0, 1.0])
    np.testing.assert_allclose(learner.ask(state), [0.125, 0.5], atol=1e-15)


@pytest.mark.slow
def test_feasible_on_average_is_not_enough() -> None:
    """g_t = x ∓ 1 by a fair coin, f_t = −x: x* = 0 has E g_t(x*) = 0, and the regret against it grows as T."""
    problem = Problem(INTERVAL, Linear(1), VaryingAffine(1, 1, 1.0, 1.0))
    T = 4000
    coins = np.where(np.random.default_rng(0).random(T) < 0.5, 1.0, -1.0)
    stream = Replay([np.full((T, 1), -1.0)], [np.ones((T, 1, 1)), coins[:, None]])
    trace = run(problem, HedgedCuts.for_problem(problem), stream, record=[1000, T])
    assert np.all(trace.cumulative_loss > 0.85 * trace.rounds)  # against 0, whose loss is 0
    for beta in (0.1, 1.0):  # `bank` mends the example; that it does so in general is open
        banked = run(problem, HedgedCuts.for_problem(problem, bank=beta), stream, record=[1000, T])
        assert np.all(banked.cumulative_loss < 3 * np.sqrt(banked.rounds))
        learner = HedgedCuts.for_problem(problem, bank=beta)
        assert banked.long_term_violation[-1] <= learner.bound(problem, T, state=banked.state)["long_term_violation"]
        assert banked.long_term_violation[-1] < 0.02 * T
        assert banked.hard_violation[-1] > 0.4 * T, "with `bank` single rounds are broken without end"


@pytest.mark.slow
def test_experts_for_a_moving_comparator() -> None:
    """A half-plane that turns: `path` adds longer steps, the bound is that of the path, and it is kept."""
    T, turns = 2000, 4
    angle = 2 * np.pi * turns * np.arange(T) / T
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    stream = Replay([-rows], [rows[:, None, :], np.full((T, 1), 0.3)])
    points = 0.3 * rows  # on the edge in every round: the best there is
    path = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    learner = HedgedCuts.for_problem(problem, path=path)
    assert learner.factors == (8.0, 2.0, 0.5, 0.125, 0.03125, 0.0078125)
    trace = run(problem, learner, stream)
    regret = trace.cumulative_loss[-1] + 0.3 * T
    bound = learner.bound(problem, T, state=trace.state)
    assert regret <= bound["regret"] < learner.bound(problem, T)["regret"]
    assert trace.hard_violation[-1] <= bound["hard_violation"]
    fixed = run(problem, HedgedCuts.for_problem(problem), stream)
    assert regret + trace.hard_violation[-1] < fixed.cumulative_loss[-1] + 0.3 * T + fixed.hard_violation[-1]


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_units_do_not_matter(scale: float) -> None:
    """A common factor of the losses, and one of the constraints, changes nothing."""
    rng = np.random.default_rng(1)
    costs, matrix, offset = rng.standard_normal((200, 3)), rng.standard_normal((4, 3)), rng.uniform(0, 0.2, 4)
    B = Box.cube(3, -1.0, 1.0)
    played = []
    for of_loss, of_constraint in ((1.0, 1.0), (scale, 1.0), (1.0, scale)):
        problem = Problem(B, Linear(3, 10 * of_loss), Affine(of_constraint * matrix, of_constraint * offset))
        state = run(problem, HedgedCuts.for_problem(problem), Replay([of_loss * costs])).state
        played.append(state.x)
    np.testing.assert_allclose(played[1], played[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(played[2], played[0], rtol=0, atol=1e-9)


def test_nothing_but_zeros() -> None:
    """No gradient ever: it stays, or goes where the constraint wants it, and no bound is broken."""
    for offset, place in ((0.5, 0.0), (-0.5, -0.5)):
        problem = interval(offset)
        learner = HedgedCuts.for_problem(problem)
        trace = run(problem, learner, Replay([np.zeros((300, 1))]))
        np.testing.assert_allclose(learner.ask(trace.state), [place], atol=1e-12)
        bound = learner.bound(problem, 300, state=trace.state)
        assert bound["regret"] == 0.0
        assert trace.hard_violation[-1] <= bound["hard_violation"]


def test_adapt_ml_prod_by_hand() -> None:
    """Two experts, gains ±1 once the reach 1 is known: w = 1 ± ½, then the powers and rates of the new e."""
    rule = AdaptMLProd()
    memory = rule.update(rule.start(np.zeros(2)), np.array([-1.0, 1.0]))
    np.testing.assert_allclose(rule.weights(memory), [0.5, 0.5])  # clipped to the reach before it, which was 0
    memory = rule.update(memory, np.array([-1.0, 1.0]))
    before, rate = 0.5, min(0.5, np.sqrt(np.log(2) / 2))
    weights = np.array([1.5, 0.5]) ** (rate / before)
    np.testing.assert_allclose(rule.weights(memory), weights / weights.sum(), rtol=1e-12)
    memory = rule.update(memory, np.array([-4.0, 4.0]))  # four times the reach: gains 1 again, and a rate of ⅛
    weights = (weights * (1 + rate * np.array([1.0, -1.0]))) ** (0.125 / rate)
    np.testing.assert_allclose(rule.weights(memory), weights / weights.sum(), rtol=1e-12)


@pytest.mark.slow
@examples(60)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 6), power=st.floats(0, 8))
def test_meta_rules_keep_their_promise(seed: int, K: int, power: float) -> None:
    """Losses of any size, centred by the weights in force: at most `regret` is lost to each expert."""
    rng = np.random.default_rng(seed)
    for rule in (AdaHedge(), AdaptMLProd()):
        memory, lost = rule.start(np.zeros(K)), np.zeros(K)
        for _ in range(80):
            raw = rng.uniform(-1, 1, K) * rng.random() ** power
            if rng.random() < 0.5:  # what hurts: whoever leads now loses
                raw = np.where(rule.weights(memory) >= rule.weights(memory).max(), np.abs(raw), -np.abs(raw))
            losses = raw - rule.weights(memory) @ raw
            memory, lost = rule.update(memory, losses), lost - losses
        assert np.all(lost <= rule.regret(memory) + 1e-9)


def _shifted(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    affine = problem.constraint.as_affine()
    assert affine is not None
    return affine.matrix, affine.limit + 0.1


def test_invalid_arguments_are_refused() -> None:
    problem = doubly_stochastic(3)
    with pytest.raises(InputError, match="factors"):
        HedgedCuts(INTERVAL, ())
    with pytest.raises(InputError, match="strongly convex"):
        HedgedCuts.for_problem(interval(), steps="strongly convex")
    with pytest.raises(InputError, match="meta"):
        HedgedCuts.for_problem(problem, meta="squint")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1 constraints"):
        run(problem, HedgedCuts(problem.enclosing_set), RandomPermutations(3), 5)
    other = Problem(problem.enclosing_set, problem.loss, Affine(*_shifted(problem)))
    with pytest.raises(InputError, match="another constraint"):
        run(other, HedgedCuts.for_problem(problem), RandomPermutations(3), 5)
    learner = HedgedCuts.for_problem(problem)
    feedback = observe(problem, learner.ask(learner.init()), [np.zeros(9)])
    for name in ("constraint_values", "pullback", "pushforward"):
        with pytest.raises(InputError, match=name):
            learner.tell(learner.init(), feedback._replace(**{name: None}))


def test_a_grid_of_banks_is_one_learner() -> None:
    problem = doubly_stochastic(3)
    grid = run(problem, HedgedCuts.for_problem(problem, bank=np.array([0.0, 0.1])), RandomPermutations(3), 100)
    for k, bank in enumerate((0.0, 0.1)):
        single = run(problem, HedgedCuts.for_problem(problem, bank=bank), RandomPermutations(3), 100)
        np.testing.assert_allclose(grid.cumulative_loss[:, k], single.cumulative_loss, rtol=0, atol=1e-9)


def test_remembered_half_spaces_by_hand() -> None:
    rows, lost, x = np.zeros((2, 3)), [], np.array([1.0, 1.0])

    def add(value: float, normal: list[float]) -> None:
        nonlocal rows
        rows, one = remember(rows, x, Cut(np.asarray(value), np.array(normal)), 2.0)
        lost.append(float(one))

    add(0.25, [1.0, 0.0])  # z_1 ≤ 0.75
    add(-1.0, [0.0, 1.0])  # satisfied: not remembered
    np.testing.assert_allclose(rows, [[0, 0, 0], [1, 0, 0.75]])
    add(0.5, [0.0, 1.0])
    add(0.1, [1.0, 0.0])  # z_1 ≤ 0.9 says less than z_1 ≤ 0.75
    np.testing.assert_allclose(rows, [[0, 1, 0.5], [1, 0, 0.75]])
    assert lost == [0, 0, 0, 0]
    add(1.0, [0.0, -1.0])  # the first is replaced
    np.testing.assert_allclose(rows, [[1, 0, 0.75], [0, -1, -2.0]])
    assert lost[-1] == 1
    cut = cut_by_rows(rows)(np.array([[0.0, 3.0], [1.75, 3.0]]))
    np.testing.assert_allclose(cut.distance, [0.0, 1.0])
    # z_1 ≤ ¾ binds at one of the points: it was used last, so −z_2 ≤ −2 is the next to be replaced.
    used = order_by_use(rows, np.array([[0.75, 5.0], [0.0, 4.0]]), np.asarray(0.01))
    np.testing.assert_allclose(used, rows[::-1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_merging_cuts_off_no_point(dtype: Any) -> None:
    """Two half-spaces whose normals differ by less than `PARALLEL`: points of B in both are in the merged one."""
    rng, B = np.random.default_rng(0), Ball(3)
    for _ in range(50):
        one = rng.standard_normal(3)
        one /= np.linalg.norm(one)
        other = one + 0.5 * PARALLEL * rng.standard_normal(3) / 3**0.5
        corner = np.cross(one, rng.standard_normal(3))
        corner *= 0.99 / np.linalg.norm(corner)  # on both edges, and far from where they are violated
        rows = np.zeros((2, 4), dtype)
        for normal in (one, other):
            x = B.project(-corner + 0.1 * one)
            value = np.asarray(normal @ (x - corner), dtype)
            rows, lost = remember(rows, x.astype(dtype), cut_within(B, normal.astype(dtype), value), 2.0)
        assert (rows[0] == 0).all()
        assert dtype is np.float32 or lost == 1
        assert rows[1, :3] @ corner <= rows[1, 3] + 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("batch", [(), (2,)])
def test_half_spaces_of_a_pool_are_violated_once(batch: tuple[int, ...]) -> None:
    """Six half-spaces in turn, six remembered: all but the first violations of each are within the tolerance."""
    scenario, T = switching_constraints(dimension=3, constraints=6), 300
    problem, B = scenario.problem, scenario.problem.enclosing_set
    seeds: Any = list(range(batch[0])) if batch else 0
    hard, large = {}, {}
    for M in (0, 6):
        learner = HedgedCuts.for_problem(problem, remembered=M)
        trace = run(problem, learner, scenario.stream, T, seeds=seeds, record=np.arange(1, T + 1))
        broken = np.diff(trace.hard_violation, axis=0)
        tolerance = (
            problem.constants.constraint_gradient_bound * np.sqrt(6) * 0.005 * B.diameter / np.sqrt(np.arange(1, T))
        )
        large[M] = np.sum(tolerance < broken.T, axis=-1)
        hard[M] = trace.hard_violation[-1]
        assert np.all(np.asarray(trace.state.limited) == 0)
    assert np.all(large[6] <= 6)
    assert np.all(hard[6] < 0.9 * hard[0])


def test_remembering_is_for_constraints_that_change() -> None:
    with pytest.raises(InputError, match="remembered"):
        HedgedCuts.for_problem(interval(), remembered=2)
    with pytest.raises(InputError, match="remembered"):
        HedgedCuts(INTERVAL, bank=0.1, remembered=2)


def pool(T: int, d: int, limits: int, seed: int) -> tuple[Problem, Replay]:
    """Limits ⟨a, x⟩ ≤ 0.1 on the unit ball that return in random order, and costs that push across them."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((limits, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    drawn = rows[rng.integers(limits, size=T)]
    costs = -rows.mean(axis=0) + rng.standard_normal((T, d)) / d**0.5
    costs /= np.linalg.norm(costs, axis=1, keepdims=True)
    problem = Problem(Ball(d), Linear(d), VaryingAffine(d, 1, 1.0, 1.0))
    return problem, Replay([costs], [drawn[:, None, :], np.full((T, 1), 0.1)])


def test_memory_violates_limits_that_return_a_fifth_as_much() -> None:
    problem, stream = pool(600, 5, 20, 0)
    hard = {}
    for M in (0, 64):
        learner = HedgedCuts.for_problem(problem, remembered=M)
        trace = run(problem, learner, stream, record=[600])
        hard[M] = float(trace.hard_violation[-1])
        bound = learner.bound(problem, 600, state=trace.state)
    assert hard[64] < 0.2 * hard[0]
    assert hard[64] <= bound["hard_violation"]
    assert trace.state.limited == 0
    n = np.sum(np.linalg.norm(trace.state.half_spaces[:, :-1], axis=1) > 0.5)
    assert n <= 20
    assert float(bound["hard_violation"]) == pytest.approx(2 * (n + 0.04 * (64 * 600) ** 0.5))  # (d), by hand
    assert not bound.vacuous("hard_violation")


def test_memory_forgets_when_nothing_is_common() -> None:
    """x ≤ −½ for 100 rounds, then x ≥ ½: without forgetting, every later round would be violated."""
    problem = Problem(INTERVAL, Linear(1), VaryingAffine(1, 1, 1.0, 1.0))
    rows = np.repeat([1.0, -1.0], 100)[:, None, None]
    stream = Replay([np.where(np.arange(200) % 2, 0.3, -0.3)[:, None]], [rows, np.full((200, 1), -0.5)])
    learner = HedgedCuts.for_problem(problem, remembered=4)
    trace = run(problem, learner, stream, record=[100, 110, 200])
    assert trace.hard_violation[-1] - trace.hard_violation[1] < 0.05
    assert trace.state.limited >= 1
    assert trace.hard_violation[-1] <= learner.bound(problem, 200, state=trace.state)["hard_violation"]


@pytest.mark.slow
@examples(15)
@given(
    seed=st.integers(0, 10**6),
    M=st.sampled_from([1, 3, 8, 64]),
    count=st.sampled_from([1, 3]),
    dtype=st.sampled_from([np.float64, np.float32]),
    curved=st.booleans(),
)
def test_the_bound_with_memory_holds_under_attack(seed: int, M: int, count: int, dtype: Any, curved: bool) -> None:
    """Limits that cut off the point played: several in a round, few or many directions, balls, or none in common."""
    T, d, rng = 60, 2, np.random.default_rng(seed)
    if curved:
        g: Constraint = CustomConstraint(
            d,
            lambda x, c, r: np.sqrt(((x - c) ** 2).sum(-1)) - r,
            lambda x, c, r: (x - c) / np.maximum(np.sqrt(((x - c) ** 2).sum(-1)), 1e-9)[..., None],
            gradient_bound=1.0,
            value_bound=4.0,
            parameters={"c": (d,), "r": ()},
        )
    else:
        g = VaryingAffine(d, count, 1.0, 1.0)
    problem = Problem(Ball(d), Linear(d), g)
    learner = HedgedCuts.for_problem(problem, remembered=M)
    state, hard = learner.init(dtype=dtype), 0.0
    common = rng.random() < 0.7
    goal = Ball(d).project(rng.uniform(-0.5, 0.5, d))
    for t in range(1, T + 1):
        x = np.asarray(learner.ask(state), dtype=np.float64)
        point = goal if common else Ball(d).project(goal + rng.standard_normal(d))
        away = x - point + rng.choice([1e-6, 0.1, 1.0]) * rng.standard_normal(d)
        away /= np.linalg.norm(away)
        if curved:
            limits: list[Any] = [point - 0.3 * away, np.asarray(0.3 + 1e-9)]
        else:
            rows = np.stack([away, *rng.standard_normal((count - 1, d))])
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            limits = [rows, rows @ point]
        cost = away if rng.random() < 0.3 else -away
        feedback = observe(
            problem, np.asarray(learner.ask(state)), [cost.astype(dtype)], [a.astype(dtype) for a in limits]
        )
        hard += max(float(feedback.constraint), 0.0)
        state = learner.tell(state, feedback)
        assert hard <= float(learner.bound(problem, t, state=state)["hard_violation"]) * (1 + 1e-5), t


@pytest.mark.slow
def test_a_search_does_not_break_the_bound_with_memory() -> None:
    problem = Problem(Ball(2), Linear(2), VaryingAffine(2, 1, 1.0, 1.0))
    learner = HedgedCuts.for_problem(problem, remembered=2)
    found = find_worst_cases(problem, learner, 16, generations=6, population=24, seed=1)
    assert {"regret", "hard_violation"} <= found.keys()
    assert all(case.ratio <= 1 for case in found.values())


@pytest.mark.parametrize("bank", [3.0, 10.0])
def test_a_bank_above_one_spends_slack_at_once(bank: float) -> None:
    """|x| ≤ 0.3 on [−1, 1]: the bound of a bank up to 1 would be 0.035 after four rounds."""
    g = CustomConstraint(1, lambda x: np.abs(x[..., 0]) - 0.3, lambda x: np.sign(x) + 0.0, 1.0, 0.7)
    problem = Problem(INTERVAL, Linear(1), g)
    learner = HedgedCuts.for_problem(problem, bank=bank)
    state, total = learner.init(), 0.0
    for t in range(1, 9):
        feedback = observe(problem, learner.ask(state), [np.array([-1.0])])
        total += float(feedback.constraint)
        state = learner.tell(state, feedback)
        bound = learner.bound(problem, t, state=state)["long_term_violation"]
        assert total <= float(bound)
    assert float(bound) == pytest.approx(0.7 * (1 - 1 / bank) + 0.02 * 8**0.5)


def test_the_violation_has_a_bound_before_the_run() -> None:
    problem, stream = pool(500, 3, 5, 1)
    learner = HedgedCuts.for_problem(problem)
    before = learner.bound(problem, 500)
    assert "G_f/√T" in str(before)
    assert "vacuous" not in repr(before)
    assert "(vacuous)" in repr(learner.bound(problem, 2))
    trace = run(problem, learner, stream, record=[500])
    after = learner.bound(problem, 500, state=trace.state)
    assert trace.hard_violation[-1] <= after["hard_violation"] <= before["hard_violation"]


def test_a_large_matrix_is_read_in_part() -> None:
    """The sums over the rows that can be violated equal those over all rows, for points that move or stay."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 300)) / 300**0.5
    g = Affine(A, rng.uniform(-0.1, 2.0, 400))
    x = rng.standard_normal((2, 4, 300))
    nearby = g.squared_excess_nearby(x)
    for size in (0.0, 0.01, 0.3, 3.0):
        points = x + size * rng.standard_normal(x.shape) * np.array([0.0, 0.1, 0.5, 1.0])[:, None]
        for found, wanted in zip(nearby(points), g.squared_excess(points), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e60])
def test_rows_are_found_that_float32_cannot_tell_from_the_limit(scale: float) -> None:
    """Half of the limits are exceeded by 1e-10 of the sizes of row and point, far below float32's rounding."""
    rng = np.random.default_rng(1)
    A, y = rng.standard_normal((400, 300)), rng.standard_normal(300)
    A[0] = 0.0
    A[1:, :150] *= 1e-8  # entries of very different sizes
    sizes = np.linalg.norm(A, axis=1) * np.linalg.norm(y)
    limit = A @ y + 1e-10 * sizes * np.where(np.arange(400) % 2, -1.0, 1.0)
    limit[10:] += sizes[10:]  # a few rows only, so that the others are left out
    g, y = Affine(A, limit * scale), y * scale
    nearby = g.squared_excess_nearby(y)
    for point in (y, np.zeros(300), y):
        found, wanted = nearby(point), g.squared_excess(point)
        assert found[0] == pytest.approx(wanted[0], rel=1e-4, abs=0.0)
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4, atol=1e-4 * np.max(np.abs(wanted[1])))
    assert nearby(y)[0] > 0


@pytest.mark.parametrize("remembered", [0, 4])
@pytest.mark.parametrize("size", [1e-8, 1e-6, 1e6])
def test_small_units_of_the_constraints_are_kept_in_float32(size, remembered):
    """Multiplying every g by a positive number changes no decision. ‖v‖² and ‖u‖² are as small as size⁴."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((40, 2, 3)).astype(np.float32)
    limits, costs = rng.uniform(0.0, 0.2, (40, 2)).astype(np.float32), rng.standard_normal((40, 3)).astype(np.float32)
    fixed = Affine(rows[0].astype(np.float64), limits[0].astype(np.float64))

    def played(unit: float) -> np.ndarray:
        varying = VaryingAffine(3, 2, 10.0 * unit, unit)
        g = varying if remembered else Affine(fixed.matrix * unit, fixed.limit * unit)
        problem = Problem(Ball(3), Linear(3, 10.0), g)
        learner = HedgedCuts.for_problem(problem, remembered=remembered)
        state, points = learner.init(dtype=np.float32), []
        for row, limit, cost in zip(rows, limits, costs, strict=True):
            x = learner.ask(state)
            points.append(np.asarray(x))
            parameters = [row * np.float32(unit), limit * np.float32(unit)] if remembered else []
            state = learner.update(state, observe(problem, x, [cost], parameters))
        return np.array(points)

    np.testing.assert_allclose(played(size)[:20], played(1.0)[:20], atol=2e-3)


@pytest.mark.parametrize("unit", [1e-15, 1e-6, 1e10])
@pytest.mark.parametrize("over", [Ball(3), Simplex(3)], ids=["ball", "simplex"])
def test_float32_keeps_several_limits_in_any_unit(over: Any, unit: float) -> None:
    """‖Σ v_j ∇g_j‖² is of the order of g⁴, which float32 cannot hold."""
    rows, limit = np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.3]]), np.array([0.35, 0.4])
    problem = Problem(over, Linear(3), Affine(unit * rows, unit * limit))
    learner, costs = HedgedCuts.for_problem(problem), np.tile([-0.6, -0.8, 0.0], (100, 1))
    trace = run(problem, learner, Replay([costs]), dtype=np.float32, progress=None)
    assert float(trace.state.limited) == 0
    assert trace.hard_violation[-1] <= learner.bound(problem, 100, state=trace.state)["hard_violation"]


@pytest.mark.parametrize("unit", [1e-15, 1.0, 1e12])
def test_float32_learns_from_losses_in_any_unit(unit: float) -> None:
    """The steps divide by the root of Σ ‖n_t‖²."""
    problem = Problem(Simplex(3), Linear(3, unit), Affine([[1.0, 0.0, 0.0]], [0.9]))
    learner, cost = HedgedCuts.for_problem(problem), 0.99 * unit * np.array([0.6, 0.8, 0.0])
    trace = run(problem, learner, Replay([np.tile(cost, (200, 1))]), dtype=np.float32, progress=None)  # the best has 0
    assert trace.cumulative_loss[-1] <= learner.bound(problem, 200, state=trace.state)["regret"]
