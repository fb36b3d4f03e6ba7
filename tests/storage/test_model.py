"""Several replicas of an object, with calls that cross and a clock that jumps, are one object in memory."""

import pytest

import replica_model
from longterm.storage import schema
from longterm.storage.positions import LastPositions
from longterm.storage.replica import Replica
from longterm.storage.rounds import RoundsCopy
from memory_files import tmp_path as tmp_path
from postgres import server
from replica_model import KINDS, DisagreementError


@pytest.mark.parametrize("name", KINDS)
def test_replicas_are_one_object(tmp_path, name):
    replica_model.search(name, tmp_path, 1, 100)


@pytest.mark.slow
def test_replicas_are_one_object_on_postgresql(tmp_path, tmp_path_factory):
    pytest.importorskip("psycopg")
    with server(tmp_path_factory.mktemp("postgres")) as running:
        if running is None:
            pytest.skip("no PostgreSQL server can be started here")
        for name in KINDS:
            replica_model.search(name, tmp_path, 7, 60, running.url)


def forgets_closed_rounds(monkeypatch):
    """As it was: a replica that is behind takes a round that was closed since for an open one."""
    monkeypatch.setattr(schema, "READ_CHANGED", schema.READ_CHANGED + " AND status = 0")


def tells_beside_asks(monkeypatch):
    """As it was: a tell does not notice the rounds that another process has opened meanwhile."""
    monkeypatch.setattr(schema, "UPDATE_OBJECT_UP_TO", schema.UPDATE_OBJECT + " AND ? >= 0")


def remembers_few_rounds(monkeypatch):
    """As it was: a key is forgotten after a number of rounds."""
    repeated = RoundsCopy.repeated

    def forgets(self, key, now):
        found = repeated(self, key, now)
        return None if found is not None and found.number < self.asked - 10 else found

    monkeypatch.setattr(RoundsCopy, "repeated", forgets)


def expires_in_order(monkeypatch):
    """As it was: a round opened by a clock that was ahead keeps later ones from expiring."""

    def outdated(self, now):
        found = []
        for number, opened in self.open.items():
            if self.max_age is None or opened.opened >= now - self.max_age:
                break
            found.append(number)
        return tuple(found)

    monkeypatch.setattr(RoundsCopy, "outdated", outdated)


def expires_with_traffic(monkeypatch):
    """As it was: rounds are closed by the next call, and figures show them as open until then."""
    monkeypatch.setattr(Replica, "_is_due", lambda self: False)


def skips_the_version(monkeypatch):
    """A replica writes although another one was first."""
    monkeypatch.setattr(schema, "UPDATE_OBJECT", schema.UPDATE_OBJECT.replace("version = ?", "version <= 99999 + ?"))
    monkeypatch.setattr(schema, "UPDATE_OBJECT_UP_TO", schema.UPDATE_OBJECT_UP_TO.replace("version = ?", "TRUE OR ?"))


def remembers_own_positions(monkeypatch):
    """A replica does not see which messages another one has applied."""
    monkeypatch.setattr(LastPositions, "last", lambda self, _, name, partition: self.here.get(partition, -1))


MUTANTS = (forgets_closed_rounds, tells_beside_asks, remembers_few_rounds, expires_in_order, expires_with_traffic)


@pytest.mark.parametrize("mutant", [*MUTANTS, skips_the_version, remembers_own_positions])
def test_the_search_finds_faults(tmp_path, monkeypatch, mutant):
    monkeypatch.setattr(replica_model, "shortest", lambda plan, is_wrong: plan)
    mutant(monkeypatch)
    for seed in range(19, 60):  # the rarest fault shows in seed 19
        for name in ("learner", "pacer: mirror descent"):
            try:
                replica_model.search(name, tmp_path, seed, 100)
            except DisagreementError:
                return
    pytest.fail("the search finds nothing")


def test_a_round_that_is_too_old_expires_before_a_call_of_a_copy_that_has_not_read_it(tmp_path):
    """The search found it: sums were added in another order than the transactions."""
    plan = [
        ("options", 60.0, None, 1000),
        ("call", 0, (None, "bid", "key 3", 5, True, 0.32473210102103434, True)),
        ("call", 0, (None, "settle", None, 1, False, 0.5651665766672346, True)),
        (
            "cross",
            0,
            (None, "settle", None, 1, False, 0.798513464915535, True),
            3,
            (None, "bid", None, 5, True, 0.7073906229278176, True),
        ),
        ("time", 0, 40000.0, 0.0),
        ("call", 0, (None, "correct", None, 3, False, 0.4191130606109216, True)),
    ]
    replica_model.follow(KINDS["pacer: return"], str(tmp_path / "s.db"), "p", plan)


def test_the_time_of_a_call_that_another_crossed_is_not_kept(tmp_path):
    """A replica that expired rounds while it was read kept that time, and then closed a round that was not old."""
    first, second = (None, "route", None, 2, 0.9, "reward"), (None, "route", None, 2, 0.2, "reward")
    plan = [
        ("options", 60.0, 25, 1000),
        ("call", 0, first),
        ("call", 0, second),
        ("view", 2),
        ("time", 2, 61.0, 0.0),
        ("cross", 2, (None, "skip", None, 0, 0.9, "both"), 0, (None, "correct", None, 0, 0.2, "both")),
        ("time", 3, 1.0, -90.0),
        ("call", 3, (None, "route", None, 2, 0.2, "both")),
    ]
    replica_model.follow(KINDS["router: bank"], str(tmp_path / "s.db"), "r", plan)


def test_rounds_that_are_too_old_end_before_a_change_of_limits(tmp_path):
    """A replica changed the limit first, if only another one knew the round."""
    plan = [
        ("options", 60.0, 25, 1000),
        ("view", 1),
        ("call", 3, (None, "act", None, 0, True, 0.922540039673741, "reward, cost follows", "a")),
        ("time", 1, 61.0, 0.0),
        ("call", 1, (None, "change", None, 0.10495960329569476)),
    ]
    replica_model.follow(KINDS["chooser: thompson"], str(tmp_path / "s.db"), "c", plan)


def test_a_group_in_a_replica_that_does_not_know_an_action(tmp_path):
    """Looking up keys together failed at an answer with an action that another replica had added."""
    plan = [
        ("options", 60.0, None, 1000),
        ("view", 2),
        ("call", 1, (None, "add", None, 0, True, 0.5, "both", "")),
        ("call", 1, (None, "act", "key 4", 2, False, 0.16427641118954273, "all", "")),
        (
            "group",
            2,
            ((None, "act", "key 3", 7, False, 0.7, "both", "a"), (None, "act", "key 4", 2, True, 0.02, "both", "a")),
        ),
    ]
    replica_model.follow(KINDS["chooser: ucb"], str(tmp_path / "s.db"), "c", plan)
