"""The league's ranking, verdicts and slopes, on tables small enough to be worked by hand."""

import numpy as np
import pytest

from longterm.lab import LearnerSpec, ProblemSpec
from longterm.lab.arena import Preference, league
from longterm.lab.arena.arena_spec import ArenaSpec
from longterm.lab.arena.league import shares
from longterm.lab.arena.league_tables import format_decimals, league_text
from longterm.lab.arena.results import MEASURED, ArenaResult, Match
from longterm.lab.experiments.result import growth


def made(learner, problem, regret, violation, ratios=None, **more):
    values = {"regret": regret} | dict.fromkeys(MEASURED[1:], violation)
    return Match(
        learner,
        problem,
        horizons=(16, 64, 256),
        measures={name: np.full((3, 2), float(value)) for name, value in values.items()},
        noise=dict.fromkeys(MEASURED, np.full(3, 1e-9)),
        ratios=ratios or {},
        **more,
    )


def tiny(*matches):
    names = list(dict.fromkeys(m.learner for m in matches))
    spec = ArenaSpec(
        tuple(LearnerSpec("aogd", {"beta": 0.1 + 0.1 * k}, name) for k, name in enumerate(names)),
        (ProblemSpec("routing"),),
    )
    return ArenaResult(spec, matches, {m.problem: {} for m in matches}, {})


def test_ranking_by_hand():
    arena = tiny(
        made("a", "one", 0, 9), made("b", "one", 1, 3), made("c", "one", 3, 0), made("d", "one", 9, -5),
        made("a", "two", 2, 0), made("b", "two", 2, 0), made("c", "two", -7, 0), Match("d", "two", refused="no"),
    )  # fmt: skip
    # one: s = 3 for the regret, s = 6 for the violation; two: s = 2 for the regret, nothing is broken.
    regret = {"a": (0 + 1 / 2) / 2, "b": (1 / 4 + 1 / 2) / 2, "c": (1 / 2 + 0) / 2, "d": (3 / 4 + 1 / 2) / 2}
    broken = {"a": (9 / 15 + 0) / 2, "b": (3 / 9 + 0) / 2, "c": 0.0, "d": (0 + 1 / 2) / 2}
    for weight in (0.0, 0.3, 0.5, 1.0):
        table = league(arena, Preference(weight, "hard"))
        wanted = {k: (1 - weight) * regret[k] + weight * broken[k] for k in "abcd"}
        assert {one.learner: one.score for one in table} == pytest.approx(wanted)
        assert [one.learner for one in table] == sorted("abcd", key=lambda k: wanted[k])
    first, second, *_ = league(arena, Preference(0.0))
    assert (first.learner, second.learner, first.rank, second.rank) == ("a", "c", 1, 1)  # ¼ each


def test_shares():
    assert shares([0.0, 1.0, 3.0, 9.0]) == [0.0, 0.25, 0.5, 0.75]
    assert shares([-1.0, 0.0]) == [0.0, 0.0]


def test_settings_of_one_learner_share_a_weight():
    """Three settings of one learner count as one in the median, wherever they played."""
    spec = ArenaSpec(
        (*(LearnerSpec("aogd", {"beta": k / 9}, f"twin {k}") for k in (1, 2, 3)),
         LearnerSpec("aftrl", {}, "other"), LearnerSpec("lewa", {}, "third")),
        (ProblemSpec("routing"),),
    )  # fmt: skip
    there = [made(f"twin {k}", "one", 1, 0) for k in (1, 2, 3)] + [
        made("other", "one", 3, 0),
        made("third", "one", 9, 0),
    ]
    arena = ArenaResult(spec, tuple(there), {"one": {}}, {})
    assert arena.weights("one") == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1])
    found = {standing.learner: standing.score for standing in league(arena, Preference(0.0))}
    assert found == pytest.approx({"twin 1": 0.25, "twin 2": 0.25, "twin 3": 0.25, "other": 0.5, "third": 0.75})
    assert shares([1.0, 1.0, 3.0], [0.5, 0.5, 1.0]) == pytest.approx([1 / 3, 1 / 3, 3 / 5])  # half and half: s = 2


def test_noise_is_no_violation():
    arena = tiny(made("a", "one", 1, 1e-12), made("b", "one", 1, 4.0))
    assert league(arena, Preference(1.0))[0].score == 0.0
    assert league(arena, Preference(1.0))[1].score == 0.5  # the scale is b's alone
    assert arena.matches[0].slope("hard_violation") is None


def test_verdicts():
    held, average = {"regret": (0.9, 0.5)}, {"regret": (1.2, 0.9)}
    assert made("a", "one", 1, 1).verdict == "none"
    assert made("a", "one", 1, 1, held).verdict == "held"
    assert made("a", "one", 1, 1, held | {"hard_violation": (1.1, 1.0)}).verdict == "held on average"
    assert made("a", "one", 1, 1, average).verdict == "held on average"
    assert made("a", "one", 1, 1, average | {"hard_violation": (3.0, 2.0)}).verdict == "broken"
    broken = tiny(made("a", "one", 1, 1, {"regret": (3.0, 2.0)}))
    assert "bound broken: a on one: regret 3 of it" in league_text(broken, league(broken), Preference())


def test_numbers_are_never_minus_zero():
    assert [format_decimals(value) for value in (-0.001, -0.3, None)] == ["0.00", "-0.30", "–"]


def test_growth_through_three_horizons():
    assert growth((16, 64, 256), np.array([4.0, 8.0, 16.0])) == pytest.approx(0.5)
    assert growth((16, 64, 256), np.array([4.0, 0.0, 16.0])) is None


def test_ties_and_errors_come_from_the_sequences():
    """Equal differences in every sequence are no tie; differences smaller than their spread are."""
    from longterm.lab.arena.league import standard_error

    np.testing.assert_allclose(standard_error(np.array([0.2, 0.2, 0.2])), 0.0, atol=1e-12)
    np.testing.assert_allclose(standard_error(np.array([1.0, 3.0])), 1.0)  # √2/√2
    assert standard_error(np.array([1.0])) == 0.0


def test_the_held_out_half_is_new_and_the_same_each_time():
    from longterm.lab.arena import arena_of
    from longterm.lab.arena.arena_spec import HELD_OUT_SEEDS, every_problem

    one, again, other = (arena_of(["aogd"], held_out=seed, sequences=2) for seed in (7, 7, 8))
    assert one.problems == again.problems != other.problems
    assert min(one.seeds) >= HELD_OUT_SEEDS
    assert not set(one.seeds) & set(other.seeds)
    assert {p.name for p in one.problems} == {p.name for p in every_problem()}
    assert "--held-out 7" in one.command
    drift = arena_of(["aogd"], league="drift")
    assert {p.name for p in drift.problems} == {"turning_half_plane", "drifting_targets"}
    assert not {p.name for p in drift.problems} & {p.name for p in one.problems}
