"""What a learner was made for, σ and the set, is asked of every problem it meets, whatever wraps it."""

import inspect
from typing import get_args, get_type_hints

import numpy as np
import pytest

from longterm import AOGD, InputError, LiveLearner, Problem, learners, run
from longterm.learners import DecayingMarginAOGD, DoublingRestarts, Learner, NoViolationAOGD, Restarted
from longterm.learners.interface.horizons import MadeForHorizon
from longterm.learners.interface.needs import Need
from longterm.problems.constraints import Affine, ElasticNetBudget
from longterm.problems.losses import Linear, SquaredDistance
from longterm.problems.sets import Ball
from longterm.problems.streams import RandomCosts, Replay
from longterm.theory.paper import lemma_5

BUDGET = ElasticNetBudget(3, budget=1.0)  # it has a prox, a projection and an interior: whoever can play, can play it
SIGMA = 1.0
STRONG = Problem(BUDGET.enclosing_ball(), SquaredDistance(3), BUDGET, name="strong")
FLAT = Problem(STRONG.enclosing_set, STRONG.loss, BUDGET, name="flat", declared={"strong_convexity": 0.0})
"""The same problem in all but σ."""


def kinds() -> dict[str, type[Learner]]:
    """Every learner of the package that can be named."""
    every = vars(learners).values()
    return {kind.name: kind for kind in every if inspect.isclass(kind) and issubclass(kind, Learner) and kind.name}


def for_strongly_convex() -> list[str]:
    """Those that say they have steps for strongly convex losses."""
    hints = {name: get_type_hints(kind.for_problem).get("steps") for name, kind in kinds().items()}
    return sorted(name for name, steps in hints.items() if "strongly convex" in get_args(steps))


def made(name: str, problem: Problem, **options: object) -> Learner:
    kind = kinds()[name]
    horizon = {"horizon": 2000} if Need.HORIZON in kind.needs else {}
    return kind.for_problem(problem, **horizon, **options)


def wrapped() -> dict[str, Learner]:
    """All of those learners with steps for σ = 1, and all that can be put around them."""
    plain = {name: made(name, STRONG, steps="strongly convex") for name in for_strongly_convex()}
    steep = AOGD.for_problem(STRONG, steps="strongly convex")
    around = {
        "no violation around a learner": NoViolationAOGD.for_problem(STRONG, horizon=2000, learner=steep),
        "decaying margin around a learner": DecayingMarginAOGD.for_problem(STRONG, learner=steep),
    }
    for name, learner in plain.items():
        around[f"{name}, restarted"] = Restarted(learner, every=50)
        around[f"{name}, restarted by name"] = Restarted.for_problem(
            STRONG, of=name, every=2000, steps="strongly convex"
        )
        if issubclass(kinds()[name], MadeForHorizon):
            inside = DoublingRestarts.for_problem(STRONG, of=name, steps="strongly convex")
            around[f"{name}, doubling"] = inside
            around[f"{name}, doubling, restarted"] = Restarted(inside, every=40)
    return plain | around


WRAPPED = wrapped()


def test_there_are_such_learners_and_wrappers():
    assert {"aogd", "no_violation_aogd", "decaying_margin_aogd", "projected_ogd"} <= set(for_strongly_convex())
    assert "no_violation_aogd, doubling, restarted" in WRAPPED


@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.filterwarnings("ignore::longterm.errors.AssumptionWarning")
def test_steps_made_for_strongly_convex_losses_are_refused_on_others(name):
    learner = WRAPPED[name]
    assert np.all(np.asarray(learner.strong_convexity) == pytest.approx(SIGMA))
    run(STRONG, learner, RandomCosts(3), 3)
    for asked in (
        lambda: run(FLAT, learner, RandomCosts(3), 3),
        lambda: learner.bound(FLAT, 100),
        lambda: LiveLearner(learner, FLAT),
    ):
        with pytest.raises(InputError, match="steps are made for losses with σ = 1"):
            asked()


@pytest.mark.parametrize("name", for_strongly_convex())
def test_such_steps_are_not_made_for_other_losses(name):
    with pytest.raises(InputError, match="not strongly convex"):
        made(name, FLAT, steps="strongly convex")
    plain = made(name, FLAT)
    assert np.all(np.asarray(plain.strong_convexity) == 0)
    plain.require_playable(FLAT)


def test_less_strongly_convex_is_not_enough_and_more_is():
    steep = AOGD.for_problem(STRONG, steps="strongly convex")
    weaker, stronger = (
        Problem(STRONG.enclosing_set, STRONG.loss, BUDGET, declared={"strong_convexity": sigma}) for sigma in (0.9, 1.1)
    )
    with pytest.raises(InputError, match=r"have 0\.9"):
        steep.require_playable(weaker)
    steep.require_playable(stronger)


# --- the set ------------------------------------------------------------------------------------------------

LINE = Problem(Ball(1, 1.0), Linear(1), Affine([[1.0]], [0.5]))


@pytest.mark.slow
def test_a_set_inside_the_problems_is_refused_because_the_best_decision_may_lie_outside():
    inner = Problem(Ball(1, 0.1), Linear(1), Affine([[1.0]], [0.5]))
    learner, T = AOGD.for_problem(inner), 10_000
    costs = Replay([np.ones((T, 1))])
    for asked in (lambda: run(LINE, learner, costs), lambda: learner.bound(LINE, T)):
        with pytest.raises(InputError, match="another set"):
            asked()
    # Let loose all the same it would break the bound that it had: the best of [−1, 1] has −T.
    regret = float(run(inner, learner, costs).cumulative_loss[-1]) + T
    bound = float(lemma_5(learner.schedule, inner.constants, T).regret)
    assert (round(regret, 1), round(bound, 1)) == (9000.1, 514.5)


def test_a_set_that_sticks_out_of_the_problems_is_refused():
    moved = AOGD.for_problem(Problem(Ball(1, 0.9, centre=np.array([0.9])), Linear(1), Affine([[1.0]], [1.0])))
    assert float(moved.enclosing_set.support(np.ones(1))) == pytest.approx(1.8)
    with pytest.raises(InputError, match="another set"):
        run(LINE, moved, Replay([-np.ones((5, 1))]))
    AOGD.for_problem(Problem(Ball(1, 1.0), Linear(1), Affine([[1.0]], [0.2]))).require_playable(LINE)  # equal, not one
