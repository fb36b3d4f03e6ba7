"""Bounds hold for every permitted value of every public parameter, also where a learner is changed by hand."""

import warnings
from dataclasses import replace

import pytest

from longterm import InputError, Problem
from longterm.learners import (
    ConstrainedExperts,
    DecayingMarginAOGD,
    DriftPlusPenalty,
    HedgedCuts,
    LatestCut,
    MirrorProx,
    NoViolationAOGD,
    NoViolationMirrorProx,
    Restarted,
    SinhaVaze,
    TrackedPenalty,
    TwoPointBandit,
    YuLeeLee,
    YuNeely,
)
from longterm.learners.tightened.margins import ConstantMargin
from longterm.problems.constraints import Affine, L2Budget, VaryingAffine
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball, Box, Simplex
from longterm.testing import find_worst_cases
from parameter_space import PARAMETERS, all_kinds, choices_of, drawn, signature_of, unsampled_in, values_in, with_value

RANDOM = {TwoPointBandit.__name__, "OSOCO"}
"""Learners whose bounds hold in expectation or with high probability."""
DETERMINISTIC = sorted(set(all_kinds()) - RANDOM)


def require_bounds(name, draws, seed, rounds, generations):
    """Search worst cases of learners with drawn parameters. A learner that refuses the problem has no bound."""
    checked = 0
    for label, problem, learner in drawn(name, draws, seed, rounds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = find_worst_cases(
                    problem, learner, rounds, generations=generations, population=16, progress=None
                )
            except InputError:
                continue
        checked += 1
        for case in found.values():  # a sum of rounding errors breaks a bound of 1e-28
            assert case.ratio <= 1 + 1e-9 or case.value <= 1e-12, (label, learner, case)
    return checked


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_bounds_hold_for_drawn_parameters(name):
    require_bounds(name, draws=1, seed=0, rounds=5, generations=1)


@pytest.mark.cross
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_bounds_hold_for_many_drawn_parameters(name):
    assert require_bounds(name, draws=60, seed=1, rounds=14, generations=4)


@pytest.mark.parametrize("name", sorted(all_kinds()))
def test_every_parameter_has_a_range(name):
    """A new parameter of `for_problem` must be added to the ranges."""
    known = set(PARAMETERS)
    missing = {one for one, hint in signature_of(all_kinds()[name]).items() if not choices_of(hint)} - known
    assert not missing


SHAPES = {"Ball.centre", "Box.lower", "Box.upper", "Polyhedron.matrix", "Polyhedron.limit", "Polyhedron.ball"}
FUNCTIONS = {"FeasibleOnlineADM.project", "OneProjectionSGD.project", "OnlineADM.project"}
LEFT_OUT = {
    "ProjectedOGD.diameter",
    "HedgedCuts.factors",
    "ConstantSchedule.gradient_bound",
    "NoViolationAOGD.coefficient",
}
"""Empty where `for_problem` leaves them out. All but the first are numbers in other learners."""


@pytest.mark.parametrize("name", sorted(all_kinds()))
def test_every_field_of_a_learner_is_drawn_or_changed(name):
    """A new field of a learner, or of one of its parts, is a number, a flag, a fact, or in one of the sets above."""
    made = [learner for _, _, learner in drawn(name, draws=12, seed=2, rounds=8, changed=False)]
    assert made
    assert {one for learner in made for one in unsampled_in(learner)} <= SHAPES | FUNCTIONS | LEFT_OUT


# --- what the search has found -------------------------------------------------------------------------------

HALF = Problem(Box([-1.0], [1.0]), Linear(1), Affine([[1.0]], [0.0]))


@pytest.mark.parametrize("scale", ["loss_scale", "constraint_scale"])
def test_experts_have_no_theorem_for_smaller_scales(scale):
    """The losses and violations of the theorem are at most 1 after the division."""
    problem = Problem(Simplex(3), Linear(3), Affine([[1.0, 0.0, 0.0]], [0.0]))
    made = ConstrainedExperts.for_problem(problem, horizon=100)
    assert made.bound(problem, 100)
    smaller = replace(made, **{scale: 0.9 * getattr(made, scale)})
    assert "it was made for" in smaller.bound(problem, 100).reason


CHANGING = Problem(Box.cube(2, -1.0, 1.0), Linear(2), VaryingAffine(2, 2, 1.0, 0.5))
CURVED = Problem(Ball(2), SquaredDistance(2), L2Budget(2, budget=0.9))


@pytest.mark.parametrize(
    ("made", "problem", "path"),
    [
        (SinhaVaze.for_problem(CHANGING, horizon=100), CHANGING, ("price", "loss_scale")),
        (SinhaVaze.for_problem(CHANGING, horizon=100), CHANGING, ("price", "constraint_scale")),
        (
            SinhaVaze.for_problem(CURVED, horizon=100, steps="strongly convex"),
            CURVED,
            ("price", "constraint_gradient_bound"),
        ),
        (YuLeeLee.for_problem(CHANGING), CHANGING, ("price", "rates", "diameter")),
        (YuLeeLee.for_problem(CHANGING), CHANGING, ("price", "rates", "gradient_bound")),
        (YuLeeLee.for_problem(CHANGING), CHANGING, ("price", "rates", "constraint_bound")),
        (TrackedPenalty.for_problem(CHANGING, horizon=100, slack=0.1), CHANGING, ("inner", "gradient_bound")),
        (DriftPlusPenalty.for_problem(CHANGING, horizon=100), CHANGING, ("lipschitz",)),
        (DriftPlusPenalty.for_problem(CHANGING, horizon=100), CHANGING, ("value_bound",)),
        (YuNeely.for_problem(HALF, horizon=100), HALF, ("lipschitz",)),
    ],
    ids=lambda one: ".".join(one) if isinstance(one, tuple) else None,
)
def test_smaller_constants_than_the_problem_has_have_no_theorem(made, problem, path):
    """Larger ones have it: they are bounds too."""
    value = dict(values_in(made))[path]
    assert made.bound(problem, 100)
    assert with_value(made, path, 1.1 * value).bound(problem, 100)
    assert "it was made for" in with_value(made, path, 0.9 * value).bound(problem, 100).reason


@pytest.mark.parametrize("changed", [{"loss": 1000.0}, {"rows": 1000.0}], ids=lambda one: next(iter(one)))
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_bounds_on_a_problem_with_larger_constants_hold_or_are_refused(name, changed):
    """The learner was made for losses or constraints a thousand times smaller."""

    def problem(loss=1.0, rows=1.0):
        return Problem(Box.cube(2, -1.0, 1.0), Linear(2, loss), VaryingAffine(2, 2, rows, 0.5 * rows))

    options = {"horizon": 12, "slack": 0.1}
    names = signature_of(all_kinds()[name])
    try:
        made = all_kinds()[name].for_problem(problem(), **{key: options[key] for key in options if key in names})
        found = find_worst_cases(problem(**changed), made, 12, generations=2, population=16, progress=None)
    except InputError:
        return
    for case in found.values():
        assert case.ratio <= 1 + 1e-9, case


@pytest.mark.parametrize("kind", [DecayingMarginAOGD, NoViolationAOGD])
def test_a_margin_above_the_slack_has_no_theorem(kind):
    """The comparator between x* and the Slater point would lie beyond the latter."""
    options = {} if kind is DecayingMarginAOGD else {"horizon": 10**6}
    made = kind.for_problem(HALF, **options)
    assert made.bound(HALF, 100)
    margin = ConstantMargin(1.1 * made.slater.epsilon)
    assert "exceeds the slack" in replace(made, margin=margin).bound(HALF, 100).reason


@pytest.mark.parametrize("changed", [{"decay": 0.1}, {"first_step": 5.0}, {"sigma": 0.5}])
def test_latest_cut_has_a_theorem_for_steps_of_one_over_sigma_t_only(changed):
    made = LatestCut.for_problem(CURVED, steps="strongly convex")
    assert made.bound(CURVED, 100)
    assert "not the 1/(σt)" in replace(made, **changed).bound(CURVED, 100).reason


def test_a_penalty_below_one_promises_nothing_of_the_violation():
    made = TrackedPenalty.for_problem(CHANGING, horizon=100, slack=0.1)
    assert made.violation_bound(100, 1.0) > 0
    with pytest.raises(InputError, match="nothing bounds the violation"):
        with_value(made, ("price", "weight"), 0.9).violation_bound(100, 1.0)


def test_restarts_say_the_hypothesis_of_the_learner_inside():
    hedged = HedgedCuts.for_problem(CHANGING)
    assert hedged.hypotheses
    assert "in each stretch" in str(Restarted(hedged, every=10).bound(CHANGING, 100))


def test_mirror_prox_has_no_theorem_for_unequal_steps():
    made = MirrorProx.for_problem(HALF, horizon=1000)
    slow = replace(made, schedule=replace(made.schedule, mu=made.schedule.mu / 10))
    assert made.bound(HALF, 1000)
    assert "μ = η" in slow.bound(HALF, 1000).reason


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_margin_is_that_of_the_polyhedron(factor):
    made = NoViolationMirrorProx.for_problem(HALF, horizon=100_000)
    assert made.bound(HALF, 100_000)
    with pytest.raises(InputError, match="another polyhedron"):
        replace(made, gamma=made.gamma * factor).bound(HALF, 100_000)
    plain = MirrorProx.for_problem(HALF, horizon=100)
    smaller = replace(plain, polyhedron=Affine(plain.polyhedron.matrix, plain.polyhedron.limit - 0.1))
    with pytest.raises(InputError, match="another polyhedron"):
        smaller.bound(HALF, 100)
