"""Scenarios: their constants, streams and comparators, and learners within their bounds."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from longterm import AOGD, InputError, challenge, hindsight, run
from longterm.catalogue import scenarios
from longterm.catalogue.scenarios import Scenario
from longterm.learners import AFTRL, MahdaviOGD, ProjectedOGD
from longterm.problems import EveryRound, InExpectation, OnAverage, budgeted_logistic, fair_logistic, power_allocation
from longterm.problems.named.servers import mean_of_arrivals
from longterm.problems.streams import ResampledRows, Windows

RNG = np.random.default_rng(5)
PRICES = 0.6 + 0.5 * np.sin(np.arange(500) / 20) + RNG.uniform(-0.1, 0.1, 500)
ROWS = np.column_stack([RNG.integers(0, 2, (300, 5)), np.ones(300)]).astype(float)
SENSITIVE = (ROWS[:, 0] + RNG.integers(0, 2, 300) > 1).astype(float)
LABELS = np.sign(2 * ROWS[:, 0] - ROWS[:, 1] - 0.5 + RNG.standard_normal(300))


def power_game():
    problem, stream = power_allocation(PRICES, 3), Windows(PRICES)
    return Scenario(problem, stream)


def fair_game():
    problem, stream = fair_logistic(ROWS, SENSITIVE, 1.5, 0.01), ResampledRows(ROWS, LABELS)
    return Scenario(problem, stream)


SMALL_SCENARIOS = {
    "noisy doubly stochastic": scenarios.noisy_doubly_stochastic(3),
    "online linear program": scenarios.online_linear_program(400),
    "power": power_game(),
    "routing": scenarios.routing(),
    "fair logistic": fair_game(),
    "switching constraints": scenarios.switching_constraints(),
    "switching constraints on average": scenarios.switching_constraints(instance=1, benchmark="on average"),
    "jobs": scenarios.job_scheduling(6),
    "jobs in every round": scenarios.job_scheduling(6, benchmark="every round"),
}
each_scenario = pytest.mark.parametrize("case", SMALL_SCENARIOS.values(), ids=SMALL_SCENARIOS)
BENCHMARK = {
    "switching constraints": EveryRound(),
    "switching constraints on average": OnAverage(),
    "jobs": InExpectation(mean_of_arrivals(6)),
    "jobs in every round": EveryRound(),
}


@each_scenario
def test_no_counterexample_to_the_constants(case):
    problem, B, c = case.problem, case.problem.enclosing_set, case.problem.constants
    points = B.sample(np.random.default_rng(0), 400)
    assert np.linalg.norm(points - B.centre, axis=1).max() <= c.radius * (1 + 1e-12)
    block = case.stream.draw(1, 0, 400)
    for t in (0, 1, 2, 150, 399):
        loss, constraint = ([array[t] for array in arrays] for arrays in (block.loss, block.constraint))
        assert challenge(problem.loss, B, parameters=loss, samples=400) == []
        assert challenge(problem.constraint, B, parameters=constraint, samples=400) == []
        # What is declared is tighter than what the parts know of themselves, and still true.
        values, gradients = problem.loss.value_and_gradient(points, *loss)
        assert np.linalg.norm(gradients, axis=1).max() <= c.loss_gradient_bound * (1 + 1e-12)
        assert np.ptp(values) <= c.loss_range * (1 + 1e-12)
        assert np.abs(problem.constraint.values(points, *constraint)).max() <= c.constraint_bound * (1 + 1e-12)


@each_scenario
def test_rounds_are_the_same_however_they_are_reached(case):
    whole = case.stream.draw(3, 0, 300)
    arrays = whole.loss + whole.constraint
    for start, stop in ((0, 1), (5, 70), (63, 65), (127, 300)):
        part = case.stream.draw(3, start, stop)
        for one, other in zip(part.loss + part.constraint, arrays, strict=True):
            np.testing.assert_array_equal(one, other[start:stop])
    (batch,) = case.stream.blocks([3, 9], 0, 300)
    for one, other in zip(batch.loss + batch.constraint, arrays, strict=True):
        np.testing.assert_array_equal(one[:, 0], other)
    assert any(not np.array_equal(one[:, 0], one[:, 1]) for one in batch.loss)


EVERY_SCENARIO = SMALL_SCENARIOS | {
    "doubly stochastic": scenarios.doubly_stochastic(3),
    "doubly stochastic in rows": scenarios.doubly_stochastic(3, enclosing="rows"),
    "correlation": scenarios.covariance(3),
    "covariance": scenarios.covariance(3, unit_diagonal=False),
    "consensus": scenarios.consensus(3),
    "expert advice": scenarios.expert_advice(4),
    "budgeted logistic": Scenario(budgeted_logistic(ROWS, 1.5), ResampledRows(ROWS, LABELS)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY_SCENARIO)
def test_the_best_in_hindsight_is_certified_and_agrees_with_cvxpy(name):
    case = EVERY_SCENARIO[name]
    best = hindsight.best(case.problem, case.stream, [6, 300], seeds=[0, 1], benchmark=case.benchmark)
    benchmark = BENCHMARK.get(name)
    slow = hindsight.best(case.problem, case.stream, [6, 300], seeds=[0, 1], benchmark=benchmark, method="cvxpy")
    scale = np.array([6, 300])[:, None] * case.problem.constants.loss_range
    np.testing.assert_allclose(best.loss / scale, slow.loss / scale, atol=1e-6)
    tight = 1e-6 if "logistic" in name else 1e-12
    assert np.all(best.gap <= tight * scale)
    assert np.all(case.problem.enclosing_set.contains(best.x))
    again = hindsight.best(case.problem, case.stream, [300], seeds=1, benchmark=case.benchmark)
    np.testing.assert_allclose(again.loss[0], best.loss[1, 1], atol=1e-6 * scale[1, 0])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SMALL_SCENARIOS if name != "switching constraints on average"])
def test_learners_stay_below_their_bounds(name):
    case, rounds = SMALL_SCENARIOS[name], [20, 100, 400]
    problem, c = case.problem, case.problem.constants
    best = hindsight.best(case.problem, case.stream, rounds, seeds=[0, 1], benchmark=case.benchmark)
    fixed = not problem.constraint.parameters

    def held(learner):
        bounds = learner.bound(problem, rounds)
        assert len(bounds) >= 2, bounds.reason
        trace = run(problem, learner, case.stream, 400, seeds=[0, 1], record=rounds)
        regret = trace.regret(best) + best.gap
        # Against a comparator that is feasible in expectation, the bound is on the expected regret.
        regret = regret.mean(axis=1, keepdims=True) if name == "jobs" else regret
        for measure, bound in bounds.items():
            measured = regret if measure == "regret" else getattr(trace, measure)
            assert np.all(measured <= bound[:, None] + 1e-6), measure

    for beta in (0.5, 2 / 3):
        held(AOGD.for_problem(problem, beta=beta))
    held(MahdaviOGD.for_problem(problem, horizon=4000, multipliers="each"))
    if c.strong_convexity > 0:
        held(AOGD.for_problem(problem, steps="strongly convex"))
    if fixed and problem.projection is not None:
        held(ProjectedOGD.for_problem(problem))
    if fixed and problem.constraint.prox(problem.enclosing_set) is not None:
        held(AFTRL.for_problem(problem))


@pytest.mark.parametrize("build", [scenarios.noisy_doubly_stochastic, scenarios.routing, scenarios.job_scheduling])
def test_a_scenario_can_be_pickled(build):
    case = build()
    copy = pickle.loads(pickle.dumps(case))
    np.testing.assert_array_equal(
        hindsight.best(copy.problem, copy.stream, [50], seeds=2, benchmark=copy.benchmark).loss,
        hindsight.best(case.problem, case.stream, [50], seeds=2, benchmark=case.benchmark).loss,
    )


def test_every_scenario_is_built_by_name():
    assert set(scenarios.SCENARIOS) == {
        "doubly_stochastic",
        "budgeted_logistic",
        "covariance",
        "consensus",
        "expert_advice",
        "noisy_doubly_stochastic",
        "online_linear_program",
        "power_allocation",
        "routing",
        "fair_logistic",
        "switching_constraints",
        "job_scheduling",
        "turning_half_plane",
        "drifting_targets",
    }
    assert scenarios.SCENARIOS["online_linear_program"](100).length == 100
    with pytest.raises(InputError, match="benchmark"):
        scenarios.switching_constraints(benchmark="in expectation")


@pytest.mark.slow
def test_the_example_of_the_page_on_problems_runs():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "problems.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n([^`]*)```", page)
    played = {}
    exec(compile(code, "problems.md", "exec"), played)
    assert played["regret"].shape == (*played["trace"].rounds.shape, 3)
    for name in scenarios.SCENARIOS:
        assert f"| `{name}` |" in page
