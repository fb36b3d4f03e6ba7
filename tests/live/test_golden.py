"""Files that an older version wrote still load, and go on as they went on then.

The files in golden/ were written by version 1 of snapshots and journals: four rounds told, one open ask, a save,
then three more rounds and a last ask in the journal; expected.json holds the decision of that ask.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from longterm import AOGD, Fleet, LiveLearner
from longterm.learners import (
    AFTRL,
    AdaptiveAFTRL,
    DriftPlusPenalty,
    MahdaviOGD,
    NoViolationAOGD,
    ProjectedOGD,
    QuadraticPenaltyOGD,
    YuNeely,
)
from longterm.problems import two_dimensional
from longterm.storage import specification as specifications
from longterm.storage.snapshot import read_snapshot, restored_state, state_arrays
from longterm.storage.specification import difference, specification

GOLDEN = Path(__file__).parent / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
PROBLEM = two_dimensional()
LEARNERS = {
    "aogd_convex": lambda: AOGD.for_problem(PROBLEM),
    "aogd_strongly_convex": lambda: AOGD.for_problem(PROBLEM, steps="strongly convex", beta=0.5),
    "aftrl": lambda: AFTRL.for_problem(PROBLEM),
    "yu_neely": lambda: YuNeely.for_problem(PROBLEM, horizon=1000),
    "projected_ogd": lambda: ProjectedOGD.for_problem(PROBLEM),
    "penalised_quadratic": lambda: QuadraticPenaltyOGD.for_problem(PROBLEM),
    "mahdavi_ogd": lambda: MahdaviOGD.for_problem(PROBLEM, horizon=1000, multipliers="each"),
    "drift_plus_penalty": lambda: DriftPlusPenalty.for_problem(PROBLEM, horizon=1000),
    "adaptive_aftrl": lambda: AdaptiveAFTRL.for_problem(PROBLEM),
    "no_violation_aogd": lambda: NoViolationAOGD.for_problem(PROBLEM, horizon=50_000),
}


def test_every_golden_file_is_tried():
    assert sorted(LEARNERS) == sorted(path.stem for path in GOLDEN.glob("*.journal"))
    assert sorted(EXPECTED) == sorted([*LEARNERS, "fleet"])


@pytest.mark.parametrize("name", LEARNERS)
def test_an_old_snapshot_and_its_journal_go_on(name, tmp_path):
    for kind in ("snapshot", "journal"):
        shutil.copy(GOLDEN / f"{name}.{kind}", tmp_path / kind)
    with LiveLearner.load(tmp_path / "snapshot", LEARNERS[name](), PROBLEM, journal=tmp_path / "journal") as live:
        assert (live.state.asked, live.state.told, live.state.in_flight) == (9, 7, 2)
        np.testing.assert_allclose(live.in_flight[-1].x, EXPECTED[name], rtol=0, atol=1e-12)
        np.testing.assert_allclose(live.ask().x, EXPECTED[name], rtol=0, atol=1e-12)


def test_an_old_fleet_goes_on():
    fleet = Fleet.load(GOLDEN / "fleet.snapshot", AOGD.for_problem(PROBLEM))
    assert fleet.rounds.tolist() == [5, 5, 5]
    np.testing.assert_allclose(fleet.ask(), EXPECTED["fleet"], rtol=0, atol=1e-12)


# --- learners change, files do not --------------------------------------------------------------------------


def made(name, fields):
    """A frozen dataclass of this name and these fields, as a version of the library might define it."""
    body = {"__annotations__": dict.fromkeys(fields, object)}
    return dataclass(frozen=True)(type(name, (), body | {f: d for f, d in fields.items() if d is not ...}))


def stored(value):
    return json.loads(json.dumps(specification(value)))


def test_a_field_that_a_file_lacks_is_at_its_default():
    older, newer = made("Rule", {"step": ...}), made("Rule", {"step": ..., "penalty": 0.5, "parts": (1, 2)})
    file = stored(older(0.1))
    assert difference(file, specification(newer(0.1))) is None
    assert difference(file, specification(newer(0.1, 0.5, (1, 2)))) is None
    assert difference(file, specification(newer(0.1, 0.7))) == "learner.penalty is 0.5 in the file and 0.7 here"
    assert difference(file, specification(newer(0.2))) == "learner.step is 0.1 in the file and 0.2 here"
    assert difference(stored(newer(0.1)), specification(newer(0.1))) is None
    assert difference(stored(newer(0.1, 0.7)), specification(older(0.1))) is not None  # it did something, and is gone


def test_inside_other_objects_too():
    older, newer, outer = made("Part", {"a": ...}), made("Part", {"a": ..., "b": None}), made("Rule", {"part": ...})
    assert difference(stored(outer([older(1)])), specification(outer([newer(1)]))) is None
    assert "learner.part[0].b is None" in difference(stored(outer([older(1)])), specification(outer([newer(1, 2)])))


def test_a_field_without_a_default_must_be_in_the_file():
    older, newer = made("Rule", {"step": ...}), made("Rule", {"step": ..., "bound": ...})
    assert difference(stored(older(0.1)), specification(newer(0.1, 3.0))) == (
        "learner.bound is None in the file and 3.0 here"
    )


def test_renamed_classes(monkeypatch):
    older, newer = made("OldRule", {"step": ...}), made("Rule", {"step": ..., "hard": False})
    assert "class is 'OldRule' in the file and 'Rule' here" in difference(stored(older(1)), specification(newer(1)))
    monkeypatch.setitem(specifications.RENAMED, "OldRule", ("Rule", {"hard": True}))
    assert difference(stored(older(1)), specification(newer(1, True))) is None
    assert difference(stored(older(1)), specification(newer(1))) == "learner.hard is True in the file and False here"
    assert difference(stored(older(1)), specification(newer(2, True))) is not None


def test_replaced_values_and_fields_that_need_not_be_said(monkeypatch):
    older, newer = made("Rule", {"sigma": ...}), made("Rule", {"sigma": ..., "horizon": 1.0})
    assert difference(stored(older(None)), specification(newer(0.0))) is not None
    monkeypatch.setitem(specifications.REPLACED, ("Rule", "sigma"), (None, 0.0))
    assert difference(stored(older(None)), specification(newer(0.0))) is None
    assert difference(stored(older(None)), specification(newer(0.5))) is not None
    assert difference(stored(older(0.5)), specification(newer(0.5, 9.0))) is not None
    monkeypatch.setitem(specifications.UNSAID, "Rule", frozenset(["horizon"]))
    assert difference(stored(older(0.5)), specification(newer(0.5, 9.0))) is None
    assert difference(stored(newer(0.5, 8.0)), specification(newer(0.5, 9.0))) is not None


class Before(NamedTuple):
    round: np.ndarray
    x: np.ndarray


class After(NamedTuple):
    round: np.ndarray
    x: np.ndarray
    first: np.ndarray = 0


def test_a_state_that_got_a_field():
    file = state_arrays(Before(np.int64(3), np.ones(2)))
    template = After(np.int64(1), np.zeros(2), np.int64(0))
    assert restored_state(template, file) == After(np.int64(3), file["state.x"], np.int64(0))
    whole = state_arrays(After(np.int64(3), np.ones(2), np.int64(2)))
    assert restored_state(template, whole).first == 2
    with pytest.raises(ValueError, match="the state holds"):
        restored_state(template, {"state.round": np.int64(3), "state.first": np.int64(0)})  # x has no default
    with pytest.raises(ValueError, match="the state holds"):
        restored_state(Before(np.int64(1), np.zeros(2)), whole)


def test_a_field_added_later_changes_no_specification_at_its_default(monkeypatch):
    older, newer = made("Rule", {"step": ...}), made("Rule", {"step": ..., "penalty": 0.5})
    monkeypatch.setitem(specifications.ADDED, "Rule", frozenset(["penalty"]))
    assert specification(newer(0.1)) == specification(older(0.1))
    assert stored(newer(0.1, 0.7))["penalty"] == 0.7
    assert difference(stored(newer(0.1, 0.7)), specification(newer(0.1))) == (
        "learner.penalty is 0.7 in the file and 0.5 here"
    )


def test_a_change_of_layout_raises_the_version(tmp_path):
    """Never change what a version stores: raise it, and add golden files of it."""
    live = LiveLearner(LEARNERS["aogd_convex"](), PROBLEM)
    live.ask()
    live.save(tmp_path / "live")
    Fleet(LEARNERS["aogd_convex"](), 3).save(tmp_path / "fleet")
    for kind, file in (("live learner", "live"), ("fleet", "fleet")):
        now, _ = read_snapshot(tmp_path / file, kind, 99)
        golden, _ = read_snapshot(GOLDEN / f"{'aogd_convex' if file == 'live' else 'fleet'}.snapshot", kind, 99)
        assert (now.version > golden.version) or (
            (list(now.metadata), list(now.metadata.get("book", ()))),
            {name: array.dtype for name, array in now.arrays.items()},
        ) == (
            (list(golden.metadata), list(golden.metadata.get("book", ()))),
            {name: array.dtype for name, array in golden.arrays.items()},
        )
