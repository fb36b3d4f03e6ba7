"""The arena: its numbers are those of plain runs, its ranking is worked by hand, and it goes on where it was."""

import csv
import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from longterm import AOGD, InputError, hindsight, run
from longterm.catalogue.lookup import find_learner, find_problem
from longterm.cli import main, parse
from longterm.lab import Backend
from longterm.lab.arena import Preference, arena_of, league, run_arena
from longterm.lab.arena.arena_spec import every_learner, every_problem, problem_name
from longterm.lab.arena.league_tables import league_text, write_tables
from longterm.lab.arena.matches import _bounds
from longterm.lab.arena.results import MEASURED
from longterm.lab.experiments.result import growth
from longterm.lab.experiments.spec import ProblemSpec
from longterm.learners import HedgedCuts, MahdaviOGD
from longterm.learners.interface.needs import Need

ALONE = Backend(workers=1)
LEARNERS = ("aogd", "mahdavi_ogd", "mirror_prox", "projected_ogd")
PROBLEMS = ("doubly_stochastic size=3", "switching_constraints")


def played(folder, **options):
    spec = arena_of(LEARNERS, PROBLEMS, rounds=1024, sequences=2)
    return run_arena(spec, folder, backend=ALONE, out=io.StringIO(), **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arena")


@pytest.fixture(scope="module")
def arena(folder):
    found = played(folder)
    write_tables(found, league(found), Preference(), folder)
    return found


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def match_of(arena, learner, problem):
    return next(m for m in arena.matches if (m.learner, m.problem) == (learner, problem))


# --- what was measured ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_reprs_are_one_line(arena):
    for thing in (arena, arena.matches[0], league(arena)[0], replace(arena.matches[0], refused="no", stopped=True)):
        assert repr(thing).startswith(f"{type(thing).__name__}(")
        assert len(repr(thing)) <= 200
        assert "\n" not in repr(thing)


@pytest.mark.slow
def test_numbers_equal_those_of_run(arena):
    game = find_problem("doubly_stochastic").build(size=3)
    one = match_of(arena, "A-OGD", "doubly stochastic, size = 3")
    trace = run(game.problem, AOGD.for_problem(game.problem), game.stream, 1024, seeds=range(2), record=[64, 256])
    assert one.horizons == (64, 256, 1024)
    np.testing.assert_array_equal(
        one.measures["regret"],
        trace.regret(hindsight.best(game.problem, game.stream, trace.rounds, seeds=range(2), benchmark=game.benchmark)),
    )
    for measure in MEASURED[1:-2]:
        np.testing.assert_array_equal(one.measures[measure], getattr(trace, measure))
    np.testing.assert_array_equal(one.measures["long_term_violation"], trace.long_term_violation)
    np.testing.assert_array_equal(one.measures["largest_violation"], trace.largest_violation)
    assert one.mean("regret") == one.measures["regret"][-1].mean()


@pytest.mark.slow
def test_a_learner_that_needs_the_horizon_is_run_for_each(arena):
    game = find_problem("doubly_stochastic").build(size=3)
    one = match_of(arena, "OGD (Mahdavi et al. 2012)", "doubly stochastic, size = 3")
    for place, T in enumerate((64, 256, 1024)):
        trace = run(game.problem, MahdaviOGD.for_problem(game.problem, horizon=T), game.stream, T, seeds=range(2))
        np.testing.assert_array_equal(one.measures["hard_violation"][place], trace.hard_violation[-1])
    assert not one.anytime
    assert match_of(arena, "A-OGD", "doubly stochastic, size = 3").anytime


def test_bounds_are_the_theorems(arena):
    game = find_problem("doubly_stochastic").build(size=3)
    one = match_of(arena, "A-OGD", "doubly stochastic, size = 3")
    kept = [16, 32, 64, 128, 256, 512, 1024]
    learner = AOGD.for_problem(game.problem)
    trace = run(game.problem, learner, game.stream, 1024, seeds=range(2), record=kept)
    bound = learner.bound(game.problem, kept)["regret"]
    regret = trace.regret(
        hindsight.best(game.problem, game.stream, trace.rounds, seeds=range(2), benchmark=game.benchmark)
    )
    assert one.ratios["regret"][0] == pytest.approx((regret / bound[:, None]).max(), rel=1e-12)
    assert one.ratios["regret"][1] == pytest.approx((regret.mean(axis=1) / bound).max(), rel=1e-12)
    assert one.verdict == "held"


def test_oracles_come_from_the_learners_needs(arena):
    asks = {m.learner: (m.oracle, m.also_needs) for m in arena.on_problem("doubly stochastic, size = 3")}
    assert asks == {
        "A-OGD": ("gradients", ()),
        "OGD (Mahdavi et al. 2012)": ("gradients", ()),
        "Mirror prox": ("affine g", ("fixed g",)),
        "Projected OGD": ("projection", ("fixed g",)),
    }


def test_refusals_are_listed_with_their_reason(arena, folder):
    refused = {m.learner: m.refused for m in arena.matches if m.refused}
    assert set(refused) == {"Mirror prox", "Projected OGD"}
    assert "needs the same constraint in every round" in refused["Mirror prox"]
    rows = table(folder / "matches.csv")
    assert [row["learner"] for row in rows if row["refused"]] == ["Mirror prox", "Projected OGD"]
    assert "2 of 8 matches were refused" in league_text(arena, league(arena), Preference())


def test_the_league_folds_at_the_width_of_the_terminal(arena):
    text = league_text(arena, league(arena), Preference(), width=70)
    rows = [line for line in text.splitlines() if line.startswith("  ")]
    assert max(map(len, rows)) <= 70
    assert "oracle" in text


def test_a_horizon_that_is_too_short_costs_the_slope_not_the_match(tmp_path):
    spec = arena_of(["mahdavi_ogd"], ["consensus"], rounds=512, sequences=1)
    (one,) = run_arena(spec, tmp_path, backend=ALONE, out=io.StringIO()).matches
    assert not one.refused
    assert one.horizons == (128, 512)  # its steps ask for 73 rounds
    assert one.slope("regret") is None


def test_theorems_on_hard_violation_do_not_apply_to_a_comparator_in_expectation(tmp_path):
    spec = arena_of(["coldq", "aogd"], ["job_scheduling", "job_scheduling benchmark='every round'"], rounds=64)
    found = run_arena(spec, tmp_path, backend=ALONE, out=io.StringIO())
    verdicts = {(m.learner, m.problem): m.verdict for m in found.matches}
    assert verdicts["COLDQ", "job scheduling"] == "none"
    assert verdicts["COLDQ", "job scheduling, benchmark = every round"] == "held"
    assert verdicts["A-OGD", "job scheduling"] == "held"


@pytest.mark.slow
def test_their_bounds_do_not_hold_there():
    """A learner without violations has linear regret against an x* that is feasible in expectation."""
    rounds, entry, regret = np.array([256, 1024]), find_learner("coldq"), {}
    for benchmark in ("in expectation", "every round"):
        game = find_problem("job_scheduling").build(benchmark=benchmark)
        learner = entry.learner(game.problem, 1024, {})
        trace = run(game.problem, learner, game.stream, 1024, seeds=range(2), record=[256], progress=None)
        regret[benchmark] = trace.regret(
            hindsight.best(game.problem, game.stream, rounds, seeds=range(2), benchmark=game.benchmark)
        )
    bound = learner.bound(game.problem, rounds)["regret"]
    assert np.all(regret["in expectation"][-1] > 2 * bound[-1])
    assert growth((256, 1024), regret["in expectation"].mean(axis=1)) > 0.9
    assert np.all(regret["every round"] <= bound[:, None])


# --- what is asked for -------------------------------------------------------------------------------------


def test_bad_preferences_and_arenas_are_refused():
    for build, argument in (
        (lambda: Preference(1.5), "weight"),
        (lambda: Preference(0.5, "soft"), "violation"),
        (lambda: arena_of(["aogd"], ["routing"], rounds=10), "rounds"),
        (lambda: arena_of(["aogd", "aogd"], ["routing"]), "learners"),
        (lambda: arena_of(["aogd"], ["routing", "routing"]), "problems"),
        (lambda: arena_of(["nobody"], ["routing"]), "learners.learner"),
    ):
        with pytest.raises(InputError) as refused:
            build()
        assert refused.value.argument == argument


def test_the_rerun_command_gives_the_same_arena():
    assert arena_of().command == "longterm arena"
    words = ["aogd steps='strongly convex' beta=0.5 name='My β'", "quadratic_penalty_ogd penalties=each"]
    spec = arena_of(words, ["doubly_stochastic size=3"], rounds=100, sequences=2)
    _, _, *options = shlex.split(spec.command)
    asked = parse(["arena", *options])
    again = arena_of(asked.learners, asked.problems, rounds=asked.rounds, sequences=asked.sequences)
    assert again == spec


def test_by_default_all_learners_meet_all_problems():
    names = [one.name for one in every_learner()]
    assert len(set(names)) == len(names) >= 40
    assert "Quadratic penalty, each" in names
    assert [problem_name(one) for one in every_problem()][:2] == ["doubly stochastic", "budgeted logistic"]


# --- files ---------------------------------------------------------------------------------------------------------


def contents(folder):
    apart = ("timings.json", ".lock")
    every = (path for path in folder.rglob("*") if path.is_file() and path.name not in apart)
    return {str(path.relative_to(folder)): path.read_bytes() for path in every}


def test_tables_hold_the_same_numbers(arena, folder):
    rows = table(folder / "league.csv")
    assert [row["learner"] for row in rows] == [one.learner for one in league(arena)]
    assert [float(row["score"]) for row in rows] == [one.score for one in league(arena)]


@pytest.mark.slow
def test_missing_matches_are_run_and_give_the_same_bytes(arena, folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    gone = sorted((copy / "runs").iterdir())[::3]
    for path in gone[1:]:
        path.unlink()
    gone[0].write_bytes(gone[0].read_bytes()[:-40])  # one was cut short
    said = io.StringIO()
    spec = arena_of(LEARNERS, PROBLEMS, rounds=1024, sequences=2)
    again = run_arena(spec, copy, backend=ALONE, out=said)
    assert f"{len(gone)} of {len(gone)} jobs" in said.getvalue()
    write_tables(again, league(again), Preference(), copy)
    assert contents(copy) == contents(folder)


def test_another_arena_is_refused_and_another_preference_is_not(arena, folder):
    with pytest.raises(InputError, match="holds another arena"):
        run_arena(arena_of(LEARNERS, PROBLEMS, rounds=2048, sequences=2), folder, backend=ALONE)
    before = contents(folder)
    write_tables(arena, league(arena, Preference(1.0, "hard")), Preference(1.0, "hard"), folder)
    assert {name for name, data in contents(folder).items() if data != before[name]} == {"league.csv"}
    write_tables(arena, league(arena), Preference(), folder)
    assert contents(folder) == before


def test_problems_without_data_are_left_out_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGTERM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LONGTERM_DATA", raising=False)
    spec = arena_of(["aogd"], ["power_allocation", "switching_constraints"], rounds=64, sequences=1)
    found = run_arena(spec, tmp_path / "out", backend=ALONE, out=io.StringIO())
    assert list(found.problems) == ["switching constraints"]
    assert "LONGTERM_DATA" in found.without_data["power allocation"]
    assert "left out: power allocation: " in league_text(found, league(found), Preference())


@pytest.mark.slow
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--learners", "aogd", "coldq", "--problems", "switching_constraints", "--rounds", "64"]
    options += ["--workers", "1", "--sequences", "1", "--out", "here"]
    assert main(["arena", *options]) == 0
    said = capsys.readouterr().out
    assert "COLDQ" in said
    assert {path.name for path in (tmp_path / "here").iterdir()} >= {"arena.html", "league.csv"}
    assert main(["arena", *options, "--weight", "1", "--violation", "hard", "--no-report"]) == 0
    assert "score = 0 × regret + 1 × hard violation" in capsys.readouterr().out
    assert main(["arena", *options, "--weight", "7"]) == 2


def command(folder, *more):
    words = [
        sys.executable,
        "-m",
        "longterm",
        "arena",
        "--out",
        str(folder),
        "--rounds",
        "1024",
        "--sequences",
        "2",
    ]
    return [*words, "--learners", *LEARNERS, "--problems", *PROBLEMS, "--no-report", *more]


def killed_at_work(out):
    """Return whether the arena was killed before its end, which may fail on a busy machine."""
    process = subprocess.Popen(command(out, "--workers", "2"), stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and len(list(out.glob("runs/*.json"))) < 2:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL and len(list(out.glob("runs/*.json"))) < 10


@pytest.mark.cross  # the folder is that of an experiment, whose test kills it too
def test_killed_and_started_again(arena, folder, tmp_path):
    out = next(path for path in (tmp_path / str(number) for number in range(5)) if killed_at_work(path))
    found = played(out)  # here and in this process: who goes on does not matter
    write_tables(found, league(found), Preference(), out)
    assert contents(out) == contents(folder)


def test_the_name_of_a_problem_does_not_depend_on_the_order_of_parameters():
    """A manifest sorts them, and `--add` must find the matches of a held-out arena again."""
    given = {"size": 9, "floor": 0.3}
    backwards = dict(reversed(given.items()))
    assert problem_name(ProblemSpec("covariance", given)) == problem_name(ProblemSpec("covariance", backwards))


def test_no_bound_where_the_comparator_is_feasible_in_expectation_only():
    """Hedged cuts know their hard violation after the run only; their regret is against x* of every round, too."""
    game = find_problem("job_scheduling").build()
    found = [_bounds(kind.for_problem(game.problem), game, [64]) for kind in (HedgedCuts, AOGD)]
    assert [bool(one) for one in found] == [False, True]


def test_needs_are_stored_by_name(folder, arena):
    assert match_of(arena, "OGD (Mahdavi et al. 2012)", "switching constraints").needs == {Need.HORIZON}


def test_one_sequence_has_no_deviation(tmp_path):
    arena = run_arena(arena_of(["aogd"], ["doubly_stochastic size=3"], rounds=64, sequences=1), tmp_path / "one")
    text = league_text(arena, league(arena), Preference())
    assert " ± 0" not in text
    assert "regret after 64 rounds, one sequence" in text
    assert "0 of 1 matches were refused\n" in text
