"""Tokens belong to a life: feedback for a number that was given out twice never reaches the wrong round."""

import json
import os
import shutil

import numpy as np
import pytest

from live_files import put
from live_plan import PROBLEM, fresh, image, learner, start, step
from longterm import LiveLearner, Token
from longterm.errors import AlreadyToldError, ExpiredTokenError, UnknownTokenError
from longterm.live.tokens import LIVES_KEPT, Window

TARGET = [np.array([0.3, -0.2])]


def test_a_token_travels_as_text():
    live = fresh()
    token = live.ask()
    text = json.loads(json.dumps({"token": str(token)}))["token"]
    assert len(text) <= 20
    assert Token.parse(text) == token
    live.tell(text, loss_parameters=TARGET)
    with pytest.raises(AlreadyToldError):
        live.skip(token)


@pytest.mark.parametrize(
    "text",
    ["", "1", "0123456789ab", "0123456789ab-", "0123456789ab-0", "0123456789AB-1", "0123456789ab-1 ", "x" * 10**6],
)
def test_what_is_not_the_text_of_a_token(text):
    with pytest.raises(UnknownTokenError, match="not the text of a token") as refused:
        Token.parse(text)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("part", [np.zeros(3), None, 1.0, True, "1", [1]])
def test_a_token_of_other_things_is_none(part):
    live = fresh()
    token = live.ask()
    for made in (Token(token.number, None, part), Token(part, None, token.life)):
        with pytest.raises(UnknownTokenError):
            live.tell(made, loss_parameters=TARGET)
    live.tell(token, loss_parameters=TARGET)


def test_a_restart_without_a_journal_is_another_life(tmp_path):
    before = fresh()
    known = before.ask()
    before.save(tmp_path / "state")
    lost = before.ask()  # after the save: nobody will remember
    after = LiveLearner.load(tmp_path / "state", learner(), PROBLEM)
    again = after.ask()
    assert again.number == lost.number
    for token in (lost, str(lost)):
        with pytest.raises(UnknownTokenError, match="another life"):
            after.tell(token, loss_parameters=TARGET)
    after.tell(str(known), loss_parameters=TARGET)  # the file knows of this one
    after.tell(again, loss_parameters=TARGET)
    assert after.state.told == 2


def test_a_new_learner_does_not_know_the_old_ones_tokens():
    one, other = fresh(), fresh()
    token = one.ask()
    other.ask()
    with pytest.raises(UnknownTokenError, match="another life"):
        other.tell(token, loss_parameters=TARGET)


@pytest.mark.parametrize("compact", [False, True])
def test_with_a_journal_every_token_stays_good(tmp_path, compact):
    texts = []
    for _ in range(3):
        with start(tmp_path, fsync=False) as live:
            texts.append(str(live.ask()))
            if compact:
                live.checkpoint()
    with start(tmp_path, fsync=False) as live:
        assert [str(token) for token in live.in_flight] == texts
        live.tell(texts[0], loss_parameters=TARGET)
        live.save(tmp_path / "state")
    with start(tmp_path, fsync=False) as live:
        with pytest.raises(AlreadyToldError):
            live.tell(texts[0], loss_parameters=TARGET)
        live.skip(texts[2])


def test_a_start_says_what_it_read_again(tmp_path, caplog):
    with start(tmp_path, fsync=False) as live:
        live.tell(live.ask(), loss_parameters=TARGET)
    with caplog.at_level("INFO", logger="longterm.live"), start(tmp_path, fsync=False):
        pass
    (told,) = caplog.messages
    assert told.endswith(": 2 records read again")


def test_records_that_were_lost_are_not_answered_by_their_successors(tmp_path):
    """The machine died, and the end of a journal that was not forced to the disk with it."""
    with start(tmp_path, fsync=False) as live:
        kept = live.ask()
        short = (tmp_path / "journal").read_bytes()
        lost = live.ask()
    put(tmp_path / "journal", short)
    with start(tmp_path, fsync=False) as live:
        again = live.ask()
        assert again.number == lost.number
        np.testing.assert_array_equal(again.x, lost.x)
        with pytest.raises(UnknownTokenError, match="another life"):
            live.tell(lost, loss_parameters=TARGET)
        live.tell(kept, loss_parameters=TARGET)
        live.tell(again, loss_parameters=TARGET)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_copy_of_the_files_is_another_life(tmp_path):
    """Two services from one backup give the same numbers out; neither takes the other's."""
    with start(tmp_path, fsync=False) as live:
        step(live)
        live.save(tmp_path / "state")
    shutil.copytree(tmp_path, tmp_path / "copy")
    with start(tmp_path, fsync=False) as one, start(tmp_path / "copy", fsync=False) as other:
        mine, theirs = one.ask(), other.ask()
        assert mine.number == theirs.number
        with pytest.raises(UnknownTokenError, match="another life"):
            one.tell(theirs, loss_parameters=TARGET)
        assert image(one) == image(other)


def test_lives_are_remembered_for_so_long(tmp_path):
    first = None

    def start(folder, **options):
        return LiveLearner(learner(), PROBLEM, expire_after=9, journal=folder / "journal", **options)

    for _ in range(LIVES_KEPT + 3):
        with start(tmp_path, fsync=False) as live:
            token = live.ask()
            first = first or token
            assert len(live._recorded.memory.window.lives) <= LIVES_KEPT
    with start(tmp_path, fsync=False) as live:
        with pytest.raises(ExpiredTokenError):
            live.tell(
                token._replace(number=token.number - 20, life=live._recorded.memory.window.life_of(token.number - 20))
            )
        with pytest.raises(UnknownTokenError, match="another life"):
            live.tell(first, loss_parameters=TARGET)


def test_which_life_a_number_belongs_to():
    window = Window(5, 5, asked=9, lives=((3, 70), (7, 80)))
    assert [window.life_of(n) for n in range(1, 10)] == [0, 0, 70, 70, 70, 70, 80, 80, 80]
    assert window.lives_with(80) is window.lives
    assert window.lives_with(90) == ((3, 70), (7, 80), (10, 90))
