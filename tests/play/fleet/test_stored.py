"""Fleets in a database: as in memory, shared by processes, whole after a kill."""

import multiprocessing
import time

import numpy as np
import pytest

from longterm import AOGD, Feedback, Fleet, observe
from longterm.errors import DatabaseError, InputError
from longterm.problems import two_dimensional
from longterm.problems.sets import Ball
from longterm.storage.database import Database
from longterm.theory.schedules import ConvexSchedule

PROBLEM = two_dimensional()
SIZE = 100


def learner(beta=0.5):
    return AOGD.for_problem(PROBLEM, beta=beta)


def start(tmp_path, **options):
    return Fleet.open(tmp_path / "s.db", learner(), SIZE, durability="relaxed", **options)


def told(seed, count):
    targets = np.random.default_rng(seed).uniform(-0.5, 0.5, (count, 2))
    return observe(PROBLEM, np.zeros((count, 2)), [targets])


def test_replicas_are_the_fleet_in_memory(tmp_path):
    mirror = Fleet(learner(), SIZE)
    with start(tmp_path) as one, start(tmp_path) as other:
        for t in range(20):
            rows = None if t % 7 == 3 else np.random.default_rng(t).choice(SIZE, 5, replace=False)
            feedback = told(t, SIZE if rows is None else 5)
            (one, other)[t % 3 == 0].tell(feedback, rows)
            mirror.tell(feedback, rows)
            np.testing.assert_array_equal(other.ask(rows), mirror.ask(rows))
        for fleet in (one, other):
            np.testing.assert_array_equal(fleet.ask(), mirror.ask())
            np.testing.assert_array_equal(fleet.rounds, mirror.rounds)
            np.testing.assert_array_equal(fleet.signed_violation, mirror.signed_violation)
            np.testing.assert_array_equal(fleet.hard_violation, mirror.hard_violation)
    with start(tmp_path) as again:
        np.testing.assert_array_equal(again.ask(), mirror.ask())
        assert "100 × AOGD" in repr(again)


def test_learners_with_their_own_hyper_parameters(tmp_path):
    schedule = ConvexSchedule(2.0, 1.0, beta=np.linspace(0.3, 0.6, SIZE))
    mirror = Fleet(AOGD(Ball(2), schedule), SIZE)
    for _ in range(2):
        with Fleet.open(tmp_path / "s.db", AOGD(Ball(2), schedule), SIZE, durability="relaxed") as fleet:
            for each in (fleet, mirror):
                each.tell(Feedback(np.full((3, 2), 0.1), np.full(3, 0.2), np.full((3, 2), 0.3)), rows=[0, 40, 98])
            np.testing.assert_array_equal(fleet.ask(), mirror.ask())


def test_a_refused_or_failed_call_changes_nothing(tmp_path, monkeypatch):
    with start(tmp_path) as fleet:
        fleet.tell(told(1, 3), [1, 50, 99])
        before = fleet.ask(), fleet.rounds
        bad = told(2, 2)
        bad.loss_gradient[1] = np.nan
        with pytest.raises(InputError, match="learner 51"):
            fleet.tell(bad, [50, 51])
        with pytest.raises(InputError, match="twice"):
            fleet.tell(told(2, 2), [50, 50])
        write = Database.write_locked

        def fail(self, statements):
            write(self, statements)
            raise DatabaseError(self.path, "full", "no space", "Free some")

        monkeypatch.setattr(Database, "write_locked", fail)
        with pytest.raises(DatabaseError):
            fleet.tell(told(3, 2), [2, 50])  # a block that was written before, and learners that were not
        monkeypatch.undo()
        np.testing.assert_array_equal(fleet.ask(), before[0])
        np.testing.assert_array_equal(fleet.rounds, before[1])


def test_another_learner_or_size_is_refused(tmp_path):
    start(tmp_path).close()
    with pytest.raises(DatabaseError, match="beta"):
        Fleet.open(tmp_path / "s.db", learner(0.6), SIZE)
    with pytest.raises(DatabaseError, match="size"):
        Fleet.open(tmp_path / "s.db", learner(), SIZE + 1)


def test_a_forged_block_is_refused(tmp_path):
    with start(tmp_path) as fleet:
        fleet.tell(told(1, 2), [1, 50])
    database = Database(tmp_path / "s.db", "relaxed")
    ((content,),) = database.read("SELECT content FROM longterm_parts WHERE number = 1")
    for forged in (content[:-3], content[:8] + content[9:], content[:-8] + b"\xff" * 8):
        database.write([("UPDATE longterm_parts SET content = ? WHERE number = 1", (forged,))])
        with pytest.raises(DatabaseError, match="is inconsistent"):
            start(tmp_path)
    database.close()


def hammer(folder, seed):
    with start(folder) as mine:
        while True:
            mine.tell(told(seed, SIZE))  # all rows or none


@pytest.mark.slow
def test_a_killed_process_leaves_whole_calls(tmp_path):
    context = multiprocessing.get_context("spawn")
    with start(tmp_path) as fleet:
        for seed in range(3):
            child, goal = context.Process(target=hammer, args=(tmp_path, seed)), fleet.rounds[0] + 3
            child.start()
            while fleet.rounds[0] < goal:
                assert child.is_alive()
                time.sleep(0.005)
            child.kill()
            child.join()
            assert len(set(fleet.rounds.tolist())) == 1
        assert fleet.rounds[0] >= 10
