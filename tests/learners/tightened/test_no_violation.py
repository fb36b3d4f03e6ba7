"""Learners without violation: what they are told, and what they report before round 1."""

import numpy as np
import pytest

from leaning import Leaning
from longterm import AOGD, InputError, Problem, SlaterPoint, observe, run
from longterm.errors import AssumptionWarning
from longterm.learners import DecayingMarginAOGD, DoublingRestarts, NoViolationAOGD, NoViolationMahdaviOGD
from longterm.learners.interface.needs import Need
from longterm.learners.tightened.margins import ConstantMargin, DecayingMargin
from longterm.problems import two_dimensional
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball
from longterm.problems.streams import Replay
from longterm.theory.margin_sizes import exact_margin
from longterm.theory.schedules import ConstantSchedule

# --- what the learners are told -----------------------------------------------------------------------------

TARGETS = Leaning(2, towards=(1.0, 0.0))


def test_first_rounds_by_hand():
    # A-OGD with θ = ½, η = 1, μ = 1 on g = x − ½ with γ = ¼: λ sees x − ¼.
    problem = Problem(Ball(1, radius=4.0), Linear(1), Affine([[1.0]], [0.5]))
    rule = AOGD(problem.enclosing_set, ConstantSchedule(0.5, 1.0, 1.0))
    learner = NoViolationAOGD(learner=rule, slater=SlaterPoint(4.0), margin=ConstantMargin(0.25))
    state, seen = learner.init(), []
    for _ in range(3):
        state = learner.tell(state, observe(problem, learner.ask(state), [np.array([-1.0])]))
        seen.append((float(state.x[0]), float(state.multiplier)))
    # x: 0 → 1 → 2 → 3 − λ_3; λ: [0 − ¼]₊ = 0, then 1 − ¼ = ¾, then ¾ + (2 − ¼ − ½·¾)
    assert seen == [(1.0, 0.0), (2.0, 0.75), (2.25, 2.125)]
    assert float(learner.report(state)["margin"]) == 0.25


def test_a_decaying_margin_by_hand():
    problem = two_dimensional()
    rule, margin = AOGD.for_problem(problem, beta=0.5), DecayingMargin(coefficient=2.0, power=0.25, limit=1.0)
    learner = DecayingMarginAOGD(learner=rule, margin=margin, slater=SlaterPoint(1.0))
    margins = [float(learner.margin.at(np.asarray(t), np.zeros(1))) for t in (1, 16, 81, 256)]
    assert margins == pytest.approx([1.0, 1.0, 2 / 3, 0.5])  # min(1, 2 t^{−1/4})
    assert learner.needed_horizon == pytest.approx(16)


def test_epochs_double_and_start_again():
    problem = two_dimensional()
    rule = AOGD.for_problem(problem)
    inside = NoViolationAOGD(learner=rule, slater=SlaterPoint(1.0), margin=ConstantMargin(1.0), coefficient=1.0)
    learner = DoublingRestarts(inside, first_epoch=3)
    assert learner.epochs(25) == [(1, 3), (4, 6), (10, 12), (22, 24)]
    targets = np.random.default_rng(0).uniform([-0.5, -0.6], [0.7, 0.6], (21, 2))
    state = learner.init()
    for t, target in enumerate(targets, start=1):
        starts = t in (1, 4, 10)
        assert (int(learner.round_within(state.round)) == 1) == starts
        if starts:
            assert (state.x.tolist(), float(state.multiplier)) == ([0, 0], 0)
        state = learner.tell(state, observe(problem, state.x, [target]))
    # The last epoch is A-OGD on g + 12^{−1/3} by itself.
    alone = NoViolationAOGD(learner=rule, slater=SlaterPoint(1.0), margin=ConstantMargin(12 ** (-1 / 3)))
    trace = run(problem, alone, Replay([targets[9:20]]))
    state = learner.init()
    for target in targets[:20]:
        state = learner.tell(state, observe(problem, state.x, [target]))
    np.testing.assert_allclose(state.x, trace.state.x, atol=1e-14)
    np.testing.assert_allclose(state.multiplier, trace.state.multiplier, atol=1e-14)


def test_a_grid_of_scales_is_one_run():
    problem, scales = two_dimensional(), np.array([0.05, 0.2])
    rule = AOGD.for_problem(problem)
    for build in (
        lambda s: NoViolationAOGD.for_problem(problem, horizon=50_000, learner=rule, margin="theorem", scale=s),
        lambda s: DecayingMarginAOGD.for_problem(problem, learner=rule, scale=s),
        lambda s: DoublingRestarts.for_problem(problem, of="no_violation_aogd", learner=rule, scale=s),
    ):
        with pytest.warns(AssumptionWarning, match="1 ≤ scale"):
            together = run(problem, build(scales), TARGETS, 80, seeds=range(2))
        with pytest.warns(AssumptionWarning):
            alone = run(problem, build(0.2), TARGETS, 80, seeds=1)
        np.testing.assert_allclose(together.signed_violation[:, 1, 1], alone.signed_violation, atol=1e-9)


# --- what is reported before round 1 ------------------------------------------------------------------------


def test_c0_is_reported_and_a_shorter_horizon_is_warned_of():
    problem = two_dimensional()
    rule = AOGD.for_problem(problem)
    early = NoViolationAOGD.for_problem(problem, horizon=40_000, learner=rule, margin="theorem")
    assert early.needed_horizon == pytest.approx(40_427.2, abs=0.1)
    assert early.margin.gamma == pytest.approx(1.25)  # ε: the tightened set is not empty
    with pytest.warns(AssumptionWarning, match="c_0 ≤ T does not hold .*at least 40428"):
        run(problem, early, TARGETS, 5)
    in_time = NoViolationAOGD.for_problem(problem, horizon=40_428, learner=rule, margin="theorem")
    assert all(assumption.holds for assumption in in_time.assumptions)
    assert not NoViolationAOGD.for_problem(problem, horizon=500, learner=rule).assumptions[0].holds
    assert NoViolationAOGD.for_problem(problem, horizon=1000, learner=rule).assumptions[0].holds
    doubling = DoublingRestarts.for_problem(problem, of="no_violation_aogd", first_epoch=100)
    assert not doubling.assumptions[0].holds
    assert "first epoch, of at least 40428" in doubling.assumptions[0].remedy
    in_time = DoublingRestarts.for_problem(problem, of="no_violation_aogd")
    assert in_time.first_epoch == 40_428
    assert all(assumption.holds for assumption in in_time.assumptions)
    odd = AOGD(problem.enclosing_set, ConstantSchedule(theta=1.0, eta=0.01, mu=0.1))
    assert NoViolationAOGD.for_problem(problem, horizon=1000, learner=odd).needed_horizon is None


def test_a_margin_of_ones_own_is_checked():
    problem = two_dimensional()
    rule = AOGD.for_problem(problem)
    with pytest.raises(InputError, match=r"not below ε = 1\.25"):
        NoViolationAOGD.for_problem(problem, horizon=1000, learner=rule, margin=1.25)
    with pytest.raises(InputError, match="not below ε"):
        NoViolationAOGD.for_problem(problem, horizon=1000, learner=rule, margin=0.2, slater=SlaterPoint(0.1))
    assert not NoViolationAOGD.for_problem(problem, horizon=10_000, learner=rule, margin=0.1).assumptions[0].holds
    enough = exact_margin(rule.schedule, problem.constants, 10_000)
    assert NoViolationAOGD.for_problem(problem, horizon=10_000, learner=rule, margin=enough).assumptions[0].holds
    too_short = NoViolationAOGD.for_problem(problem, horizon=2, learner=rule, margin=0.5)  # for any γ: no refusal
    assert not too_short.assumptions[0].holds


def test_the_conditions_of_theorem_8_are_reported():
    problem = two_dimensional()
    late, early = (NoViolationMahdaviOGD.for_problem(problem, horizon=T) for T in (20_000, 10))
    assert [assumption.holds for assumption in late.assumptions] == [True] * 4
    assert [assumption.holds for assumption in early.checked] == [False, True, False]
    violations = [float(one.bound(problem, T)["signed_violation"]) for one, T in ((late, 20_000), (early, 10))]
    assert violations[0] <= 0 < violations[1]


def test_they_say_what_they_need():
    assert NoViolationAOGD.needs == {Need.SLATER_POINT, Need.HORIZON}
    doubling = DoublingRestarts.for_problem(two_dimensional(), of="no_violation_aogd")
    assert doubling.needs == DecayingMarginAOGD.needs == {Need.SLATER_POINT}


def test_a_margin_made_for_one_horizon_is_not_made_for_another():
    problem = two_dimensional()
    exact, own = (NoViolationAOGD.for_problem(problem, horizon=1000, margin=m) for m in ("exact sums", 0.1))
    for learner in (exact, own):
        with pytest.raises(InputError, match="made for one horizon"):
            learner.for_horizon(np.asarray(2000.0))
    theorem = NoViolationAOGD.for_problem(problem, horizon=1000, margin="theorem", beta=0.8)
    wanted = NoViolationAOGD.for_problem(problem, horizon=60_000, margin="theorem", beta=0.8)
    made = theorem.for_horizon(np.asarray(60_000.0))
    assert float(made.margin.gamma) == pytest.approx(wanted.margin.gamma, rel=1e-15)
    assert str(made.assumptions[0]) == str(wanted.assumptions[0])


def test_margins_are_known_for_the_papers_penalty_only():
    problem = two_dimensional()
    lighter = AOGD.for_problem(problem, penalty=0.3)
    with pytest.raises(InputError, match="λ²/2"):
        NoViolationAOGD.for_problem(problem, horizon=1000, learner=lighter)
    bound = NoViolationAOGD(learner=lighter, slater=SlaterPoint(1.0), margin=ConstantMargin(0.1)).bound(problem, 1000)
    assert not bound
    assert "λ²/2" in bound.reason
    with pytest.raises(InputError, match="'loosely' is not known"):
        NoViolationAOGD.for_problem(problem, horizon=1000, margin="loosely")
