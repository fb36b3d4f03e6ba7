"""Huge values and NaN are refused before they reach a state, by every learner of the zoo."""

import inspect

import numpy as np
import pytest

from longterm import InputError, Problem, observe, run
from longterm._base.states import first_not_finite, state_leaves
from longterm.errors import NonFiniteError
from longterm.learners import MahdaviOGD, OptimisticCOCO, TwoPointBandit, every_learner
from longterm.problems.constraints import Affine
from longterm.problems.losses import Linear
from longterm.problems.sets import Ball, Box
from longterm.problems.streams import RandomCosts
from zoo import crossed, games

GAMES = games()
SIZES = (1e20, 1e308, -1e308)


def one_round(problem, stream, learner, state, t):
    block = stream.draw(0, t, t + 1)
    return observe(problem, learner.ask(state), [a[0] for a in block.loss], [a[0] for a in block.constraint])


@pytest.mark.filterwarnings("ignore::longterm.errors.BrokenBoundWarning")
@pytest.mark.parametrize("game", crossed(GAMES, problems=1))
def test_a_state_never_holds_what_is_not_finite(game):
    """One field after the other is huge, with declared bounds ignored; three normal rounds follow."""
    problem, stream, learner = GAMES[game]
    start, refused = learner.init(), []
    with np.errstate(all="ignore"):
        start = learner.tell(start, one_round(problem, stream, learner, start, 0))
    for field in ("constraint", "constraint_values", "loss_gradient", "constraint_gradient"):
        for size in SIZES:
            state, before = start, {name: np.array(leaf) for name, leaf in state_leaves(start).items()}
            try:
                told = one_round(problem, stream, learner, state, 1)
                told = told._replace(**{field: 0.0 * getattr(told, field) + size})
                state = learner.tell(state, told, on_broken_bound="warn")
                for t in (2, 3, 4):
                    assert np.all(np.isfinite(learner.ask(state)))
                    state = learner.tell(state, one_round(problem, stream, learner, state, t), on_broken_bound="warn")
            except InputError as error:
                refused.append(error)
            assert first_not_finite(state) is None
            for name, leaf in state_leaves(start).items():
                np.testing.assert_array_equal(leaf, before[name])
    assert all(error.argument and error.remedy and error.round for error in refused)


BOX = Problem(Box.cube(2, -1.0, 1.0), Linear(2), Affine([[1.0, 0.0]], [0.3]))


def test_optimistic_coco_after_a_constraint_of_1e20():
    learner = OptimisticCOCO.for_problem(BOX)
    state = learner.init()
    told = observe(BOX, learner.ask(state), [np.array([1.0, 0.0])])
    with pytest.raises(NonFiniteError, match=r"constraint in round 1: has size 1e\+20.*state is unchanged"):
        learner.tell(state, told._replace(constraint=np.float64(1e20)))
    for _ in range(3):
        state = learner.tell(state, observe(BOX, learner.ask(state), [np.array([1.0, 0.0])]))
    assert np.all(np.isfinite(learner.ask(state)))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_a_bandit_refuses_what_is_huge_or_not_finite_from_its_query(value):
    learner = TwoPointBandit.for_problem(BOX, horizon=100)
    state = learner.init()
    told = observe(BOX, learner.ask(state), [np.array([1.0, 0.0])])
    with pytest.raises(NonFiniteError, match=r"constraint_at in round 1: (returned|has size 1e)"):
        learner.tell(state, told._replace(constraint_at=lambda y: np.float64(value)))


def test_an_error_of_a_query_is_not_called_an_overflow():
    learner = TwoPointBandit.for_problem(BOX, horizon=100)
    state = learner.init()
    told = observe(BOX, learner.ask(state), [np.array([1.0, 0.0])])
    with pytest.raises(ZeroDivisionError):
        learner.tell(state, told._replace(constraint_at=lambda y: 1 / 0))


def test_an_overflow_in_the_last_round_of_a_run_is_refused():
    """A learner of one's own whose multiplier doubles its exponent."""

    class Squares(MahdaviOGD):
        def update(self, state, feedback):
            after = super().update(state, feedback)
            return after._replace(multiplier=(after.multiplier + 10.0) ** 2)

    made = MahdaviOGD.for_problem(BOX, horizon=100)
    with np.errstate(all="ignore"), pytest.raises(NonFiniteError, match=r"state\.multiplier in round 9"):
        run(BOX, Squares(made.enclosing_set, made.schedule), RandomCosts(2), 9)


def bound_of(kind, problem):
    horizon = {"horizon": 100} if "horizon" in inspect.signature(kind.for_problem).parameters else {}
    return kind.for_problem(problem, **horizon).bound(problem, 100)


@pytest.mark.parametrize("size", [1e150, 1e-150])
@pytest.mark.parametrize("kind", every_learner(), ids=lambda kind: kind.__name__)
def test_constants_whose_powers_overflow_are_refused(kind, size):
    problem = Problem(Ball(2, radius=size), Linear(2, cost_norm=1 / size), Affine([[1.0, 0.0]], [size / 4]))
    with pytest.raises(InputError):
        bound_of(kind, problem)
