"""What the paper's figures show, and what our notes measured."""

import dataclasses

import numpy as np
import pytest

from longterm import AOGD, compare, doubly_stochastic
from longterm.bounds import theorem_1, theorem_1_as_printed, theorem_1_strongly_convex
from longterm.experiments.doubly_stochastic import main, reproduce
from longterm.hindsight import nearest_to_mean
from longterm.streams import RandomPermutations


def test_doubly_stochastic_p8():
    problem, stream, seeds = doubly_stochastic(8), RandomPermutations(8), range(10)
    learners = {"convex": AOGD.convex(problem), "strong": AOGD.strongly_convex(problem)}
    traces = compare(problem, learners, stream, 1000, seeds=seeds, record=[1, 1000])
    best = nearest_to_mean(problem, stream, [1, 1000], seeds=seeds)
    wanted = {"convex": (33.4, 4.04, 0.05), "strong": (30.0, 1.01, 0.02)}
    for name, (regret, violation, tolerance) in wanted.items():
        trace = traces[name]
        assert trace.regret(best)[-1].mean() == pytest.approx(regret, abs=1.0)
        assert trace.signed_violation[-1].mean() == pytest.approx(violation, abs=tolerance)
        # g ≥ 0 everywhere here, so the signed and the hard violation are the same
        np.testing.assert_allclose(trace.hard_violation, trace.signed_violation, atol=1e-9)
    # In the strongly convex run the only violation is g(0) = 1, in round 1.
    np.testing.assert_allclose(traces["strong"].signed_violation[0], 1.0)


def test_the_papers_D_can_be_declared():
    problem = doubly_stochastic(8)
    assert problem.constants.constraint_bound == pytest.approx(9.0)
    as_in_paper = dataclasses.replace(problem, declared={"constraint_bound": 8**0.5})
    assert as_in_paper.constants.constraint_bound == pytest.approx(8**0.5)


def test_the_experiment_draws_the_bounds_of_its_own_beta():
    curves = reproduce(size=3, rounds=60, beta=0.8, sequences=2)
    facts = doubly_stochastic(3).constants
    assert curves[0].bound.regret[-1] == pytest.approx(float(theorem_1(facts, 60, 0.8).regret))
    assert curves[0].printed.regret[-1] == pytest.approx(float(theorem_1_as_printed(facts, 60, 0.8).regret))
    assert curves[1].bound.violation[-1] == pytest.approx(float(theorem_1_strongly_convex(facts, 60, 0.8).violation))


def test_the_command_prints_a_table_and_writes_a_figure(tmp_path, capsys):
    main(["--size", "3", "--rounds", "400", "--sequences", "2", "--baselines", "--out", str(tmp_path / "here")])
    printed = capsys.readouterr().out
    assert "Convex A-OGD" in printed
    assert "Strongly convex A-OGD" in printed
    assert "Convex OGD, a multiplier each" in printed
    for ending in ("png", "pdf", "svg"):
        assert (tmp_path / "here" / f"doubly_stochastic.{ending}").stat().st_size > 5000
