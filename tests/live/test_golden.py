"""Files that an older version wrote still load, and go on as they went on then.

The files in golden/ were written by version 1 of snapshots and journals: four rounds told, one open ask, a save,
then three more rounds and a last ask in the journal; expected.json holds the decision of that ask.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

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
    SinhaVaze,
    YuNeely,
)
from longterm.problems import two_dimensional
from longterm.storage import specification as specifications
from longterm.storage.specification import difference, specification

GOLDEN = Path(__file__).parent / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
PROBLEM = two_dimensional()
LEARNERS = {
    "aogd_convex": lambda: AOGD.convex(PROBLEM),
    "aogd_strongly_convex": lambda: AOGD.strongly_convex(PROBLEM, beta=0.5),
    "aftrl": lambda: AFTRL.tuned(PROBLEM),
    "yu_neely": lambda: YuNeely.tuned(PROBLEM, 1000),
    "projected_ogd": lambda: ProjectedOGD.convex(PROBLEM),
    "penalised_quadratic": lambda: QuadraticPenaltyOGD.convex(PROBLEM),
    "sinha_vaze": lambda: SinhaVaze.convex(PROBLEM, 1000),
    "mahdavi_ogd": lambda: MahdaviOGD.vector(PROBLEM, 1000),
    "drift_plus_penalty": lambda: DriftPlusPenalty.tuned(PROBLEM, 1000),
    "adaptive_aftrl": lambda: AdaptiveAFTRL.tuned(PROBLEM),
    "no_violation_aogd": lambda: NoViolationAOGD.by_exact_sums(AOGD.convex(PROBLEM), PROBLEM, 50_000),
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
    fleet = Fleet.load(GOLDEN / "fleet.snapshot", AOGD.convex(PROBLEM))
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
    older, newer = made("OldRule", {"step": ...}), made("Rule", {"step": ...})
    assert "class is 'OldRule' in the file and 'Rule' here" in difference(stored(older(1)), specification(newer(1)))
    monkeypatch.setitem(specifications.RENAMED, "OldRule", "Rule")
    assert difference(stored(older(1)), specification(newer(1))) is None
    assert difference(stored(older(1)), specification(newer(2))) is not None


def test_a_field_added_later_changes_no_specification_at_its_default(monkeypatch):
    older, newer = made("Rule", {"step": ...}), made("Rule", {"step": ..., "penalty": 0.5})
    monkeypatch.setitem(specifications.ADDED, "Rule", frozenset(["penalty"]))
    assert specification(newer(0.1)) == specification(older(0.1))
    assert stored(newer(0.1, 0.7))["penalty"] == 0.7
    assert difference(stored(newer(0.1, 0.7)), specification(newer(0.1))) == (
        "learner.penalty is 0.7 in the file and 0.5 here"
    )
