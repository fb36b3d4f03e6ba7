"""A live learner: tokens in any order, every documented answer, threads, and what can be read of it."""

import threading

import numpy as np
import pytest

from live_plan import image
from longterm import AOGD, LiveLearner, Token, observe, run
from longterm._base.states import state_leaves
from longterm.errors import (
    AlreadyToldError,
    ExpiredTokenError,
    SkippedTokenError,
    TokenError,
    UnknownTokenError,
    WindowFullError,
)
from longterm.problems import two_dimensional
from longterm.problems.sets import Ball
from zoo import crossed, games

PROBLEM = two_dimensional()
GAMES = games()
TARGET = [np.array([0.6, -0.3])]


def live(**options):
    return LiveLearner(AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5), PROBLEM, **options)


def test_two_rounds_in_the_wrong_order_by_hand():
    learner = live()
    first, second, third = learner.ask(), learner.ask(), learner.ask()
    assert (first.number, second.number, third.number) == (1, 2, 3)
    for token in (first, second, third):  # nothing told yet: all three play the centre
        np.testing.assert_array_equal(token.x, [0, 0])
    # First update, η_1 = 1, with round 2 at x_2 = 0: x = 0 − (0 − target) = (0, 0.8); g = −¼, so λ stays 0.
    learner.tell(second, loss_parameters=[np.array([0.0, 0.8])])
    np.testing.assert_allclose(learner.ask().x, [0, 0.8])
    # Second update, η_2 = ½, with round 1 at x_1 = 0, not at (0, 0.8): x = (0, 0.8) − ½ (0 − (0.6, 0)).
    learner.tell(first, loss_parameters=[np.array([0.6, 0.0])])
    state = learner.state
    np.testing.assert_allclose(state.x, [0.3, 0.8])
    assert (state.round, state.told, state.asked, state.in_flight, state.largest_delay) == (3, 2, 4, 2, 3)
    assert state.eta == pytest.approx(1 / 3)
    assert state.theta == pytest.approx(24 / 3**0.5)
    assert state.mu == pytest.approx(1 / (state.theta * 4))
    assert float(state.multiplier) == 0.0
    assert float(state.cumulative_loss) == pytest.approx(0.32 + 0.18)
    assert float(state.signed_violation) == pytest.approx(-0.5)
    assert float(state.hard_violation) == float(state.squared_violation) == 0.0
    assert float(state.largest_violation) == -0.25


@pytest.mark.parametrize("game", crossed(GAMES))
def test_without_delay_it_is_the_loop_bit_for_bit(game):
    problem, stream, rule = GAMES[game]
    block = stream.draw(0, 0, 40)
    trace = run(problem, rule, stream, 40)
    learner = LiveLearner(rule, problem)
    for i in range(40):
        loss, constraint = [a[i] for a in block.loss], [a[i] for a in block.constraint]
        learner.tell(learner.ask(), loss_parameters=loss, constraint_parameters=constraint)
    states = [state_leaves(state).values() for state in (learner._replica.copy.state.state, trace.state)]
    for mine, theirs in zip(*states, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    state = learner.state
    for name in ("cumulative_loss", "signed_violation", "hard_violation", "squared_violation", "largest_violation"):
        assert getattr(state, name) == getattr(trace, name)[-1], name
    assert state.losses_told == state.told == 40
    assert state.largest_delay == 0


def test_three_ways_to_tell_are_one():
    made = [live() for _ in range(4)]
    tokens = [learner.ask() for learner in made]
    told = observe(PROBLEM, tokens[0].x, TARGET)
    made[0].tell(tokens[0], told)
    made[1].tell(tokens[1], loss_parameters=TARGET)
    made[2].tell(
        tokens[2],
        loss=lambda x: (0.5 * np.vecdot(x - TARGET[0], x - TARGET[0]), x - TARGET[0]),
        constraint=lambda x: (x[0] - 0.25, np.array([1.0, 0.0])),
    )
    made[3].tell(str(tokens[3]), told._replace(constraint=float(told.constraint), loss=float(told.loss)))
    assert len({image(learner) for learner in made}) == 1


def test_functions_are_called_at_the_decision_of_their_token():
    learner = live()
    old = learner.ask()
    learner.tell(learner.ask(), loss_parameters=TARGET)
    seen = []
    learner.tell(
        old,
        loss=lambda x: (seen.append(x), (0.0, np.zeros(2)))[1],
        constraint=lambda x: (seen.append(x), (-1.0, np.zeros(2)))[1],
    )
    assert not np.array_equal(learner.ask().x, old.x)
    for x in seen:
        np.testing.assert_array_equal(x, old.x)


def test_a_loss_may_be_left_out():
    learner = live()
    token = learner.ask()
    told = observe(PROBLEM, token.x, TARGET)
    learner.tell(token, told._replace(loss=None, constraint_values=None, pullback=None))
    learner.tell(learner.ask(), loss_parameters=TARGET)
    state = learner.state
    assert (state.told, state.losses_told) == (2, 1)
    assert float(state.cumulative_loss) == float(observe(PROBLEM, Ball(2).project(TARGET[0]), TARGET).loss)


# --- tokens -------------------------------------------------------------------------------------------------


def answers(learner, token, error, words):
    """Both tell and skip give the documented answer and change nothing."""
    before = image(learner)
    for call in (lambda: learner.tell(token, loss_parameters=TARGET), lambda: learner.skip(token)):
        with pytest.raises(error, match=words) as refused:
            call()
        assert isinstance(refused.value, TokenError)
        assert refused.value.argument == "token"
    assert image(learner) == before


def test_unknown_tokens():
    learner = live()
    answers(learner, Token(1), UnknownTokenError, "did not issue it")
    token = learner.ask()
    answers(learner, Token(2, epoch=token.epoch), UnknownTokenError, "so far are 1 to 1")
    for number in (0, -1, 1, np.int64(1)):
        answers(learner, number, UnknownTokenError, "a bare number")
    for nonsense in (
        "1",
        "",
        "1-1",
        None,
        True,
        1.0,
        (1, token.x),
        Token(None),
        Token([1]),
        Token(True, epoch=token.epoch),
    ):
        answers(learner, nonsense, UnknownTokenError, r"not a token|not the text of a token")
    answers(learner, token._replace(x=token.x + 1), UnknownTokenError, "different decision")
    answers(learner, token._replace(epoch=token.epoch ^ 1), UnknownTokenError, "another epoch")
    learner.tell(
        token._replace(x=np.array(token.x)), loss_parameters=TARGET
    )  # one rebuilt from what was stored is good


def test_doubled_tokens_count_once():
    learner = live()
    token = learner.ask()
    learner.tell(token, loss_parameters=TARGET)
    answers(learner, token, AlreadyToldError, "counts once")


def test_skipped_tokens_leave_the_learner_where_it_was():
    learner = live()
    token = learner.ask()
    x = learner.state.x
    learner.skip(token)
    np.testing.assert_array_equal(learner.state.x, x)
    assert (learner.state.round, learner.state.skipped, learner.state.in_flight) == (1, 1, 0)
    answers(learner, token, SkippedTokenError, "skipped")


def test_tokens_expire_at_the_stated_age():
    learner = live(expire_after=3)
    tokens = [learner.ask() for _ in range(4)]
    learner.tell(tokens[0], loss_parameters=TARGET)  # three rounds later is not too late
    assert learner.state.largest_delay == 3
    learner.ask()
    learner.ask()  # the fourth round after token 2
    answers(learner, tokens[1], ExpiredTokenError, "4 later rounds were requested")
    learner.tell(tokens[2], loss_parameters=TARGET)
    state = learner.state
    assert (state.expired, state.told, state.in_flight, state.asked) == (1, 2, 3, 6)
    # What became of a token is remembered as long as it could have been told; after that it is simply too old.
    answers(learner, tokens[0], ExpiredTokenError, "expire_after = 3")
    answers(learner, tokens[2], AlreadyToldError, "once")


def test_feedback_before_the_next_ask_or_never():
    learner = live(expire_after=0, max_in_flight=1)
    first = learner.ask()
    second = learner.ask()
    answers(learner, first, ExpiredTokenError, "1 later rounds")
    learner.tell(second, loss_parameters=TARGET)


def test_what_is_remembered_of_tokens_is_bounded():
    learner = live(expire_after=10)
    for t in range(200):
        token = learner.ask()
        if t % 3:
            learner.tell(token, loss_parameters=TARGET)
    assert len(learner._replica.copy.history) <= 11
    assert len(learner._replica.copy.open) <= 11


def test_a_full_window_refuses_and_recovers():
    learner = live(max_in_flight=2, expire_after=100)
    first, second = learner.ask(), learner.ask()
    before = image(learner)
    for _ in range(3):
        with pytest.raises(WindowFullError, match="2 rounds are open, the oldest is 1"):
            learner.ask()
    assert image(learner) == before
    assert [token.number for token in learner.in_flight] == [1, 2]
    learner.skip(first)
    assert learner.ask().number == 3
    learner.tell(second, loss_parameters=TARGET)
    assert learner.ask().number == 4


def test_a_window_wider_than_the_age_is_never_full():
    learner = live(max_in_flight=4, expire_after=3)
    for _ in range(50):
        learner.ask()
    assert (learner.state.in_flight, learner.state.expired) == (4, 46)


def test_a_token_that_expires_with_this_ask_makes_room_for_it():
    learner = live(max_in_flight=3, expire_after=2)
    for _ in range(10):
        learner.ask()
    assert learner.state.in_flight == 3


def test_decisions_cannot_be_changed_from_outside():
    learner = live()
    token = learner.ask()
    with pytest.raises(ValueError, match="read-only"):
        token.x[0] = 1.0
    learner.state.x[:] = 7.0
    np.testing.assert_array_equal(learner.ask().x, token.x)


# --- reading, batches, threads ------------------------------------------------------------------------------


def test_a_view_stays_as_it_was():
    learner = live()
    learner.tell(learner.ask(), loss_parameters=TARGET)
    view = learner.state
    seen = (view.round, view.x.copy(), float(view.signed_violation), dict(view.report))
    learner.tell(learner.ask(), loss_parameters=TARGET)
    assert (view.round, float(view.signed_violation), dict(view.report)) == (seen[0], seen[2], seen[3])
    np.testing.assert_array_equal(view.x, seen[1])


def test_a_grid_of_learners_lives_as_one():
    grid = np.array([0.3, 0.5, 0.9])
    together = LiveLearner(AOGD.for_problem(PROBLEM, steps="strongly convex", beta=grid), PROBLEM)
    alone = [LiveLearner(AOGD.for_problem(PROBLEM, steps="strongly convex", beta=b), PROBLEM) for b in grid.tolist()]
    rng = np.random.default_rng(0)
    for target in rng.uniform(-0.7, 0.7, (30, 2)):
        for learner in (together, *alone):
            learner.tell(learner.ask(), loss_parameters=[target])
    view = together.state
    assert view.x.shape == (3, 2)
    for k, single in enumerate(alone):
        np.testing.assert_allclose(view.x[k], single.state.x, rtol=0, atol=1e-9)
        assert view.signed_violation[k] == pytest.approx(float(single.state.signed_violation), abs=1e-9)


@pytest.mark.slow
def test_threads_hammering_are_as_good_as_one_after_another(tmp_path):
    """Several threads ask, tell and skip, and fight over tokens; the database knows the order that counted."""
    rule = AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5)
    options = {"max_in_flight": 50, "expire_after": 10_000, "durability": "relaxed"}
    learner = LiveLearner.open(tmp_path / "service.db", rule, PROBLEM, **options)
    shared: list[Token] = []
    won, refused, failures = [], [], []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(300):
                try:
                    shared.append(learner.ask())
                except WindowFullError:
                    shared.extend(learner.in_flight[:5])
                token = shared[int(rng.integers(max(0, len(shared) - 8), len(shared)))]
                try:
                    if rng.random() < 0.1:
                        learner.skip(token)
                    else:
                        target = np.random.default_rng(token.number).uniform(-0.7, 0.7, 2)
                        learner.tell(token, loss_parameters=[target])
                    won.append(token.number)
                except (AlreadyToldError, SkippedTokenError) as error:
                    refused.append(error.number)
                state = learner.state
                assert state.asked == state.told + state.skipped + state.expired + state.in_flight
                assert state.round == state.told + 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(won) == len(set(won)) == learner.state.told + learner.state.skipped
    assert len(won) > 300
    assert refused  # they did fight
    with LiveLearner.open(tmp_path / "service.db", rule, PROBLEM, **options) as again:
        assert image(again) == image(learner)
    learner.close()


def test_a_function_given_to_tell_may_use_the_learner():
    """It runs outside the lock, so it cannot lock the learner against itself; of two tells of a token one counts."""
    learner = live()
    token = learner.ask()

    def loss(x):
        learner.tell(token, loss_parameters=TARGET)
        return 0.0, np.zeros(2)

    with pytest.raises(AlreadyToldError):
        learner.tell(token, loss=loss, constraint=lambda x: (0.0, np.zeros(2)))
    assert learner.state.told == 1
