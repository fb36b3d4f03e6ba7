"""Snapshots and journals: what was saved is what is loaded, and damage is never taken for a state."""

import hashlib
import json
import struct
from copy import deepcopy

import numpy as np
import pytest

from live_files import load, put, saved
from live_plan import PROBLEM, fresh, image, learner, start, step, undisturbed
from longterm import AOGD, InputError, LiveLearner, Problem
from longterm.constraints import L2Budget
from longterm.errors import JournalError, SnapshotError
from longterm.learners import ProjectedOGD
from longterm.live import durable
from longterm.live.memory import KIND, VERSION
from longterm.losses import Linear
from longterm.problems import covariance, two_dimensional
from longterm.sets import Ball, Box, Product, Simplex
from longterm.storage.snapshot import Snapshot, write_snapshot
from longterm.storage.specification import difference, specification
from longterm.theory.schedules import CustomSchedule
from zoo import crossed, games

GAMES = games()


# --- what was saved is what is loaded -----------------------------------------------------------------------


@pytest.mark.parametrize("journaled", [False, True], ids=["snapshot", "journal"])
@pytest.mark.parametrize("game", crossed(GAMES))
def test_a_stopped_and_restored_learner_continues_bit_for_bit(game, journaled, tmp_path):
    problem, stream, rule = GAMES[game]
    block = stream.draw(0, 0, 60)
    journal = tmp_path / "journal" if journaled else None

    def play(live, rounds):
        for i in rounds:
            live.ask()
            if i % 3 == 2:  # late, and the newest first
                for token in live.in_flight[::-1][:2]:
                    k = token.number - 1
                    loss, constraint = [a[k] for a in block.loss], [a[k] for a in block.constraint]
                    live.tell(token, loss_parameters=loss, constraint_parameters=constraint)

    whole = LiveLearner(rule, problem, expire_after=7)
    play(whole, range(60))
    live = LiveLearner(rule, problem, expire_after=7, journal=journal, fsync=False)
    play(live, range(20))
    live.save(tmp_path / "state")
    play(live, range(20, 23) if journaled else ())
    live.close()
    with LiveLearner.load(tmp_path / "state", deepcopy(rule), problem, journal=journal, fsync=False) as again:
        assert image(again) == image(live)
        play(again, range(23 if journaled else 20, 60))
        assert image(again) == image(whole)
        for mine, theirs in zip(again.in_flight, whole.in_flight, strict=True):
            np.testing.assert_array_equal(mine.x, theirs.x)
            assert not mine.x.flags.writeable


def test_every_moment_of_a_life_can_be_saved(tmp_path):
    live = fresh()
    for expected in undisturbed(60)[1:]:
        step(live)
        live.save(tmp_path / "state")
        live = load(tmp_path, journal=None)
        assert image(live) == expected


def test_a_journal_alone_brings_a_fresh_learner_back(tmp_path):
    for _ in range(3):
        with start(tmp_path, fsync=False) as live:
            for _ in range(6):
                step(live)
    with start(tmp_path, fsync=False) as live:
        assert image(live) == undisturbed(18)[-1]


def test_a_snapshot_and_its_journal(tmp_path):
    folder, images = saved(tmp_path)
    with load(folder) as live:
        assert image(live) == images[29]
    assert image(load(folder, journal=None)) == images[20]


def test_a_journal_can_be_begun_at_any_load(tmp_path):
    live = fresh()
    for _ in range(10):
        step(live)
    live.save(tmp_path / "state")
    for _ in range(2):
        with load(tmp_path) as live:
            step(live)
    with load(tmp_path) as live:
        assert image(live) == undisturbed(12)[-1]


def test_the_same_state_makes_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "draw_life", lambda: 7)
    for name in ("a", "b"):
        live = fresh()
        for _ in range(15):
            step(live)
        live.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


# --- foreign, newer, another learner ------------------------------------------------------------------------


@pytest.mark.parametrize("contents", [b"PK\x03\x04 a zip file, or whatever", b"{}", b"\x80\x04\x95pickle", b"\0" * 500])
def test_foreign_files(tmp_path, contents):
    folder, _ = saved(tmp_path)
    for name in ("state", "journal"):
        put(folder / name, contents)
        with pytest.raises(SnapshotError, match="this is not a") as refused:
            LiveLearner.load(folder / "state", learner(), PROBLEM, journal=folder / "journal")
        assert refused.value.reason == "foreign"
        assert refused.value.path == folder / "state"
    with pytest.raises(JournalError, match="this is not a journal"):
        fresh(journal=folder / "journal")


def with_layout(data, version):
    made = data[:8] + struct.pack("<I", version) + data[12:-32]
    return made + hashlib.sha256(made).digest()


def test_newer_files_and_other_kinds(tmp_path):
    path = tmp_path / "state"
    path.write_bytes(with_layout(Snapshot(KIND, VERSION, {}, {}).encode(), 2))
    reasons = {}
    for name, call in {
        "layout": lambda: None,
        "kind": lambda: write_snapshot(path, Snapshot("fleet", 1, {}, {})),
        "version": lambda: write_snapshot(path, Snapshot(KIND, VERSION + 1, {}, {})),
        "empty": lambda: write_snapshot(path, Snapshot(KIND, VERSION, {}, {})),
    }.items():
        call()
        with pytest.raises(SnapshotError) as refused:
            load(tmp_path)
        reasons[name] = refused.value.reason
    assert reasons == {
        "layout": "another version",
        "kind": "foreign",
        "version": "another version",
        "empty": "another learner",
    }


def test_a_newer_journal(tmp_path):
    with start(tmp_path, fsync=False) as live:
        step(live)
    data = (tmp_path / "journal").read_bytes()
    made = data[:8] + struct.pack("<I", 3) + data[12:76]
    put(tmp_path / "journal", made + hashlib.blake2b(made, digest_size=16).digest())
    with pytest.raises(JournalError) as refused:
        start(tmp_path)
    assert refused.value.reason == "newer"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.6),
            r"schedule\.beta is 0\.5 in the file and 0\.6 here",
        ),
        (AOGD.for_problem(PROBLEM, beta=0.5), r"schedule\.class is 'StronglyConvexSchedule' in the file"),
        (AOGD(Ball(2, 2.0), learner().schedule), r"enclosing_set\.radius is 1\.0 in the file and 2\.0 here"),
        (AOGD(Box.cube(2, -1, 1), learner().schedule), r"enclosing_set\.class is 'Ball'"),
        (
            AOGD(Ball(2), CustomSchedule(theta=lambda t: 1 / t, eta=lambda t: 1 / t, mu=lambda t: 1 / t)),
            r"schedule\.class",
        ),
    ],
)
def test_the_state_of_another_learner_is_refused_in_words(tmp_path, other, words):
    folder, _ = saved(tmp_path)
    with pytest.raises(SnapshotError, match=words) as refused:
        LiveLearner.load(folder / "state", other)
    assert refused.value.reason == "another learner"


def harmonic(t):
    return 1 / t


def test_specifications_tell_learners_apart():
    one = Product([Ball(2), Simplex(3)])
    assert difference(specification(one), specification(Product([Ball(2), Simplex(3)]))) is None
    assert "factors[1]" in difference(specification(one), specification(Product([Ball(2), Simplex(4)])))
    long = [Box(np.arange(20.0), np.arange(20.0) + k) for k in (1, 2)]
    assert "upper.sha256" in difference(*(specification(B) for B in long))
    json.dumps(specification(long[0]))
    f = CustomSchedule(theta=np.sqrt, eta=harmonic, mu=lambda t: 1 / t)
    assert specification(f)["eta"] == {"function": f"{__name__}.harmonic"}


def test_a_snapshot_never_replaces_its_journal(tmp_path):
    problem = two_dimensional()
    with LiveLearner(AOGD.for_problem(problem), problem, journal=tmp_path / "journal") as live:
        live.tell(live.ask(), loss_parameters=[np.zeros(2)])
        with pytest.raises(InputError, match="journal"):
            live.save(tmp_path / "." / "journal")
        live.save(tmp_path / "snapshot")


def test_projections_tell_learners_apart():
    def budget(amount):
        return Problem(Ball(2, radius=3.0), Linear(2), L2Budget(2, amount))

    for one, other in ((covariance(3, 0.1), covariance(3, 0.5)), (budget(1.0), budget(2.0))):
        ours, theirs = (specification(ProjectedOGD.for_problem(p)) for p in (one, other))
        assert difference(ours, theirs) is not None
        assert difference(ours, specification(ProjectedOGD.for_problem(one))) is None


def test_a_missing_snapshot_is_said_to_be_missing(tmp_path):
    with pytest.raises(SnapshotError) as refused:
        LiveLearner.load(tmp_path / "nothing", AOGD.for_problem(two_dimensional()))
    assert refused.value.reason == "missing"
