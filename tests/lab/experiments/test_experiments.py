"""From a specification to a folder: what is there is not computed again, and what is computed is always the same."""

import io
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from longterm import AOGD, InputError, hindsight, run
from longterm._base.progress import Lines
from longterm.catalogue.lookup import find_problem
from longterm.errors import LongtermError
from longterm.lab import LearnerSpec, ProblemSpec, load_result
from longterm.lab.experiments import execute
from longterm.lab.experiments.execute import engine_for, versions
from longterm.lab.experiments.folder import ResultFolder
from longterm.lab.experiments.load import summary_of
from longterm.lab.experiments.recorded_rounds import logged_rounds, recorded_rounds
from longterm.lab.experiments.records import decode_record, encode_record, write_json
from longterm.lab.experiments.remarks import remarks_on
from longterm.lab.experiments.result import MEASURES, Curve
from longterm.lab.experiments.spec_tables import spec_of, table_of
from longterm.problems import doubly_stochastic
from longterm.problems.streams import RandomPermutations
from small_experiment import SMALL, TABLE, files, quietly

pytest.importorskip("joblib", reason="experiments need the extra `experiments`")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "small"
    return folder, quietly(SMALL, folder)


def test_a_result_equals_run_and_hindsight(whole):
    _, result = whole
    problem, stream, rounds = doubly_stochastic(3), RandomPermutations(3), recorded_rounds(60, 10)
    best = hindsight.best(problem, stream, rounds, seeds=[0, 1, 2])
    np.testing.assert_array_equal(result.rounds, rounds)
    assert [curve.name for curve in result.curves] == ["A-OGD, beta = 0.5", "A-OGD, beta = 0.75", "Mirror prox"]
    for curve, beta in zip(result.curves, (0.5, 0.75), strict=False):
        trace = run(problem, AOGD.for_problem(problem, beta=beta), stream, 60, seeds=range(3), record=rounds)
        np.testing.assert_allclose(curve.measures["regret"], trace.regret(best), atol=1e-9)
        for measure in ("signed_violation", "hard_violation", "squared_violation"):
            np.testing.assert_allclose(curve.measures[measure], getattr(trace, measure), atol=1e-9)
        np.testing.assert_allclose(curve.measures["long_term_violation"], trace.long_term_violation, atol=1e-9)
        assert set(curve.bounds) == {"regret", "signed_violation"}
        assert curve.printed_bounds == {}  # those are for the paper's own runs
        assert curve.bounds["regret"].shape == rounds.shape
    assert result.certified_gap.shape == (len(rounds), 3)
    assert result.certified_gap.max() == 0
    assert result.seeds == (0, 1, 2)
    assert result.problem["constants"]["constraint_bound"] == problem.constants.constraint_bound
    assert result.versions["numpy"] == np.__version__


def test_the_folder_holds_the_result(whole):
    folder, result = whole
    again = load_result(folder)
    assert again.remarks == result.remarks
    for one, other in zip(again.curves, result.curves, strict=True):
        assert all(np.array_equal(one.measures[m], other.measures[m]) for m in MEASURES)
        assert one.learner == other.learner
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest) == {"spec", "seeds", "versions"}
    assert spec_of(manifest["spec"]) == SMALL
    assert len(list((folder / "runs").iterdir())) == 1 + 3 + 3 * 3
    assert set(json.loads((folder / "timings.json").read_text())) == {p.stem for p in (folder / "runs").iterdir()}


def test_the_summary_has_the_documented_schema(whole):
    folder, result = whole
    summary = json.loads((folder / "summary.json").read_text())
    assert summary == json.loads(json.dumps(summary_of(result)))
    assert set(summary) == {"curves", "problem"}
    assert set(summary["curves"]) == {curve.name for curve in result.curves}
    for curve in result.curves:
        there = summary["curves"][curve.name]
        assert set(there) == {*MEASURES, "certified_gap"}
        for measure in MEASURES:
            assert there[measure] == {
                "mean": pytest.approx(curve.measures[measure][-1].mean()),
                "std": pytest.approx(curve.measures[measure][-1].std()),
            }
        assert there["certified_gap"] == 0


def test_frames_are_tidy(whole):
    pytest.importorskip("pandas", reason="frames are pandas'")
    frame = whole[1].to_frame()
    assert list(frame.columns) == ["curve", "sequence", "round", *MEASURES, "certified_gap"]
    assert len(frame) == 3 * 3 * len(whole[1].rounds)
    last = frame[(frame["curve"] == "Mirror prox") & (frame["round"] == 60) & (frame["sequence"] == 2)]
    assert last["regret"].item() == whole[1].curves[2].measures["regret"][-1, 2]


def test_finished_jobs_are_not_computed_again(whole, tmp_path, monkeypatch):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    for missing in ("mirror-prox-1", "comparator-2"):
        (folder / "runs" / f"{missing}.json").unlink()
    done = []
    work = execute.work
    monkeypatch.setattr(execute, "work", lambda spec, batch, known: done.append(batch) or work(spec, batch, known))
    quietly(SMALL, folder)
    # The sequences of a curve are played by one call.
    assert sorted(job.stem for batch in done for job in batch) == [
        "comparator-2",
        *(f"mirror-prox-{k}" for k in range(3)),
    ]
    assert files(folder) == files(whole[0])
    quietly(SMALL, folder)
    assert len(done) == 2


def cut(data):
    return data[: len(data) // 2]


def flipped(data):
    return data.replace(b"0.7", b"0.8", 1) if b"0.7" in data else data[:-9] + b"1" + data[-8:]


@pytest.mark.parametrize("damage", [cut, flipped, lambda data: b"", lambda data: data + b" ", lambda data: b"\xff{}"])
@pytest.mark.parametrize("stem", ["problem", "comparator-0", "a-ogd-beta-0.5-1"])
def test_a_damaged_record_is_detected_and_computed_again(whole, tmp_path, damage, stem):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    path = folder / "runs" / f"{stem}.json"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=rf"runs/{stem}.json is missing or damaged.*again"):
        load_result(folder)
    (folder / "runs" / f"{stem}.json.0123abcd.partial").write_bytes(b"left by a crash")
    quietly(SMALL, folder)
    assert files(folder) == files(whole[0])


def test_a_run_without_its_bounds_is_computed_again(whole, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    path = folder / "runs" / "mirror-prox-0.json"
    content = decode_record(path.read_bytes())
    path.write_bytes(encode_record({name: value for name, value in content.items() if "bounds" not in name}))
    with pytest.raises(InputError, match=r"runs/mirror-prox-0.json is missing or damaged.*again"):
        load_result(folder)
    quietly(SMALL, folder)
    assert files(folder) == files(whole[0])


def test_a_file_under_another_name_is_not_that_run(whole, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    shutil.copy(folder / "runs" / "mirror-prox-0.json", folder / "runs" / "mirror-prox-1.json")
    quietly(SMALL, folder)
    assert files(folder) == files(whole[0])


def test_a_curve_of_one_sequence_has_no_deviation():
    values = np.array([[1.0, 3.0]])
    assert Curve("A", "own", {"regret": values}).last("regret") == "2 ± 1"
    assert Curve("A", "own", {"regret": values[:, 1:]}).last("regret") == "3"


def test_records_are_exact():
    content = {"job": "x", "values": [0.1, 1e-300, -0.0, 5e-324, 1 / 3, 1e22], "word": "θ"}
    assert decode_record(encode_record(content)) == content
    assert str(decode_record(encode_record(content))["values"][2]) == "-0.0"
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_record({"job": "x", "value": float("nan")})


def test_reprs_are_one_line(whole):
    for thing in (whole[1], whole[1].curves[0]):
        assert repr(thing).startswith(f"{type(thing).__name__}(")
        assert len(repr(thing)) <= 200
        assert "\n" not in repr(thing)


def test_a_folder_of_something_else_is_refused(whole, tmp_path, monkeypatch):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    with pytest.raises(InputError, match=r"another experiment: rounds was 60, now 70\. Give another folder"):
        quietly(replace(SMALL, rounds=70), folder)
    with pytest.raises(InputError, match=r"another experiment: learners without A-OGD beta=.*; learners with A-OGD[.]"):
        quietly(replace(SMALL, learners=(LearnerSpec("aogd"),)), folder)
    assert files(folder) == files(whole[0])
    monkeypatch.setattr(execute, "versions", lambda spec: {"numpy": "1.0"})
    assert quietly(SMALL, folder).name == "small"  # whole: nothing would be added to it
    (folder / "runs" / "comparator-1.json").unlink()
    with pytest.raises(InputError, match=r"written by other versions: .*numpy was"):
        quietly(SMALL, folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match="contains results but no manifest"):
        quietly(SMALL, folder)
    with pytest.raises(InputError, match="not the folder of an experiment"):
        load_result(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        load_result(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        quietly(SMALL, tmp_path / "file" / "folder")


def test_two_processes_do_not_work_in_one_folder(whole):
    pytest.importorskip("fcntl", reason="no such locks on this system")
    opened = ResultFolder(whole[0]).opened_for(SMALL, versions("numpy"))
    with opened, pytest.raises(InputError, match="another process is writing"):
        quietly(SMALL, whole[0])


@pytest.mark.parametrize("name", ["manifest.json", "timings.json", "summary.json", "runs/problem.json"])
def test_a_symbolic_link_in_the_folder_is_not_written_through(tmp_path, name):
    target = tmp_path / "target"
    target.write_text("mine")
    link = tmp_path / "folder" / name
    (tmp_path / "folder" / "runs").mkdir(parents=True)
    if name != "manifest.json":
        write_json(tmp_path / "folder" / "manifest.json", manifest_of(SMALL))
    link.symlink_to(target)
    with pytest.raises(InputError, match=r"symbolic link|no manifest[.]json|cannot be read"):
        quietly(SMALL, tmp_path / "folder")
    assert target.read_text() == "mine"


def test_a_symbolic_link_named_like_a_lock_or_for_the_runs_changes_nothing(tmp_path):
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".lock").symlink_to(target)
    quietly(SMALL, tmp_path / "folder")
    assert target.read_text() == "mine"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "runs").symlink_to(tmp_path / "elsewhere")
    write_json(tmp_path / "other" / "manifest.json", manifest_of(SMALL))
    with pytest.raises(InputError, match=r"runs: is a symbolic link"):
        quietly(SMALL, tmp_path / "other")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_partial_files_of_the_user_are_not_removed(tmp_path):
    (tmp_path / "thesis.partial").write_text("mine")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "thesis.0123abcd.partial").write_text("mine")
    write_json(tmp_path / "manifest.json", manifest_of(SMALL))
    quietly(SMALL, tmp_path)
    assert (tmp_path / "thesis.partial").exists()
    assert (tmp_path / "runs" / "thesis.0123abcd.partial").exists()


@pytest.mark.parametrize("existed", [False, True])
def test_an_experiment_that_fails_before_its_first_run_leaves_no_files(tmp_path, existed):
    folder = tmp_path / "folder"
    if existed:
        folder.mkdir()
    with pytest.raises(InputError, match="has no length"):
        quietly(replace(SMALL, rounds=None), folder)
    assert folder.exists() == existed
    assert list(tmp_path.rglob("*")) == ([folder] if existed else [])


def test_of_many_runs_that_stop_three_are_listed(tmp_path):
    spec = replace(SMALL, learners=(LearnerSpec("small_experiment:leave_the_set"),), seeds=tuple(range(5)))
    with pytest.raises(LongtermError) as stopped:
        quietly(spec, tmp_path)
    first, *listed, last = str(stopped.value).splitlines()
    assert first == "5 runs stopped:"
    assert all("lies outside of the enclosing set" in line for line in listed[:3])
    assert listed[3:] == ["  … and 2 more"]
    assert last.startswith("The others are kept")


def test_a_stream_that_ignores_the_seed_is_run_once(tmp_path):
    spec = replace(SMALL, problem=ProblemSpec("small_experiment:fixed_rounds"), rounds=None)
    result = quietly(spec, tmp_path)
    assert result.seeds == (0,)
    assert result.curves[0].measures["regret"].shape[1] == 1
    assert {path.stem for path in (tmp_path / "runs").glob("comparator*")} == {"comparator-0"}
    assert load_result(tmp_path).seeds == (0,)


def manifest_of(spec):
    return {"spec": table_of(spec), "seeds": list(spec.seeds), "versions": versions("numpy")}


def test_the_engine_is_chosen_by_the_length_of_the_runs(monkeypatch):
    there = replace(SMALL, engine="auto")
    monkeypatch.setattr("longterm.play.engines.selection.find_spec", lambda name: name)
    assert engine_for(there) == "numpy"
    assert engine_for(replace(there, rounds=100_000)) == "jax"
    assert engine_for(replace(there, rounds=100_000 // len(there.seeds))) == "jax"
    assert engine_for(replace(there, rounds=None)) == "numpy"  # no end is known
    mine = LearnerSpec("small_experiment:refuse", name="mine")
    assert engine_for(replace(there, rounds=100_000, learners=(mine,))) == "numpy"
    assert engine_for(replace(there, engine="jax")) == "jax"
    monkeypatch.setattr("longterm.play.engines.selection.find_spec", lambda name: None)
    assert engine_for(replace(there, rounds=100_000)) == "numpy"


def test_steps_without_a_theorem_have_a_remark(tmp_path):
    spec = replace(
        SMALL, rounds=20, learners=(LearnerSpec("mahdavi_ogd", {"delta": "twice", "constraint_bound": 0.1}),)
    )
    result = quietly(spec, tmp_path)
    assert result.curves[0].bounds == {}
    assert any("MahdaviOGD" in remark.text and remark.verdict == "note" for remark in result.remarks)


def test_a_problem_without_a_length_asks_for_rounds(tmp_path):
    with pytest.raises(InputError, match="rounds: 'doubly_stochastic' has no length"):
        quietly(replace(SMALL, rounds=None), tmp_path)


def test_progress_says_jobs_rate_and_time_left():
    out, times = io.StringIO(), iter([0.0, 2.0, 3.0, 8.0, 9.0])
    report = Lines("mine", "jobs", out, lambda: next(times))
    for done in range(1, 5):
        report(done, 4)
    assert out.getvalue().splitlines() == [
        "mine: 1 of 4 jobs",
        "mine: 3 of 4 jobs, 0.38 a second, 3 s left",
        "mine: 4 of 4 jobs, 0.44 a second, 0 s left",
    ]


def test_the_logged_sum_is_over_the_logged_rounds_alone(tmp_path):
    spec = replace(SMALL, logged=True, learners=(LearnerSpec("aogd"),))
    result = quietly(spec, tmp_path / "logged")
    problem, stream = doubly_stochastic(3), RandomPermutations(3)
    every = run(problem, AOGD.for_problem(problem), stream, 60, seeds=range(3), record=range(1, 61)).signed_violation
    single = np.diff(every, axis=0, prepend=0.0)
    logged = (8, 16, 32, 60)
    wanted = [sum(single[t - 1] for t in logged if t <= kept) + np.zeros(3) for kept in result.rounds]
    np.testing.assert_allclose(result.curves[0].measures["logged_violation"], wanted, atol=1e-12)
    assert result.measures == (*MEASURES, "logged_violation")
    assert spec_of(json.loads((tmp_path / "logged" / "manifest.json").read_text())["spec"]) == spec
    assert summary_of(result)["curves"]["A-OGD"]["logged_violation"]["std"] > 0
    plain = quietly(replace(spec, logged=False), tmp_path / "plain")
    for measure in MEASURES:
        np.testing.assert_array_equal(plain.curves[0].measures[measure], result.curves[0].measures[measure])
    assert logged_rounds(5).tolist() == [5]
    assert logged_rounds(8).tolist() == [8]
    assert logged_rounds(581_012)[-2:].tolist() == [2**19, 581_012]


GAMES_WITHOUT_DATA = ("switching_constraints", "job_scheduling", "routing", "online_linear_program", "covariance")


@pytest.mark.slow
@pytest.mark.parametrize("name", GAMES_WITHOUT_DATA)
def test_every_problem_of_the_catalogue_is_an_experiment(name, tmp_path):
    """Constraints that change from round to round among them: their comparators have no one value of g."""
    spec = spec_of({"problem": {"name": name}, "learners": [{"learner": "aogd"}], "rounds": 20, "seeds": 2})
    result = quietly(spec, tmp_path / name)
    assert np.all(np.isfinite(result.curves[0].measures["regret"]))
    assert result.certified_gap.max() <= 1e-6
    assert json.loads((tmp_path / name / "summary.json").read_text())["problem"]["rounds"] == 20


def test_a_mistake_is_found_before_the_first_run_and_can_be_corrected(tmp_path):
    folder, right = tmp_path / "small", {**TABLE, "learners": [{"learner": "aogd", "beta": [0.5, 0.75]}]}
    with pytest.raises(InputError, match=r"1\.75 is outside"):
        quietly(spec_of({**TABLE, "learners": [{"learner": "aogd", "beta": [0.5, 1.75]}]}), folder)
    assert not folder.exists()
    quietly(spec_of(right), folder)
    with pytest.raises(
        InputError, match=r"learners without A-OGD beta=\[0.5, 0.75\]; learners with A-OGD, beta = 0.5[.]"
    ):
        quietly(spec_of({**TABLE, "learners": [{"learner": "aogd", "beta": 0.5}]}), folder)


def test_a_manifest_of_another_program_is_not_changed(tmp_path):
    (tmp_path / "manifest.json").write_text('{"name": "an app of the web"}')
    with pytest.raises(InputError, match=r"manifest\.json cannot be read"):
        quietly(SMALL, tmp_path)
    assert json.loads((tmp_path / "manifest.json").read_text()) == {"name": "an app of the web"}


@pytest.mark.slow
def test_a_grid_over_two_parameters_in_any_order(tmp_path):
    """The manifest has them in order of the alphabet; the curves are the same, and equal tables are equal folders."""
    first = {"learner": "mahdavi_ogd", "multipliers": ["one", "each"], "delta": ["smallest root", "twice"]}
    other = dict(reversed(first.items()))
    result = quietly(spec_of({**TABLE, "learners": [first]}), tmp_path / "grid")
    assert [curve.name for curve in result.curves][
        1
    ] == "OGD (Mahdavi et al. 2012), delta = smallest root, multipliers = each"
    assert quietly(spec_of({**TABLE, "learners": [other]}), tmp_path / "grid").curves[0].name == result.curves[0].name


@pytest.mark.parametrize(
    ("name", "problem"),
    [("dsm", {"name": "routing"}), ("covtype", {"name": "budgeted_logistic", "data": "sample", "budget": 3.0})],
)
def test_a_users_experiment_may_have_the_name_of_one_of_the_papers(tmp_path, name, problem):
    table = {"name": name, "problem": problem, "learners": [{"learner": "aogd", "name": "A-OGD"}]}
    result = quietly(spec_of({**table, "rounds": 20, "seeds": 1}), tmp_path / name)
    assert not [remark for remark in result.remarks if "aper" in remark.text or "Figure" in remark.text]
    assert "-0" not in str(result.problem.get("comparator_unused_budget"))


def test_the_certificate_is_the_share_of_the_loss_and_the_summary_has_the_worst(tmp_path):
    problem = {"name": "budgeted_logistic", "data": "sample", "budget": 3.0}
    table = {"problem": problem, "learners": [{"learner": "aogd"}], "rounds": 30, "seeds": [4, 9], "record": 6}
    result = quietly(spec_of(table), tmp_path / "sample")
    game = find_problem("budgeted_logistic").build(data="sample", budget=3.0)
    for column, seed in enumerate((4, 9)):  # each sequence on its own, warm-started along its own rounds
        alone = hindsight.best(game.problem, game.stream, result.rounds, seeds=seed, benchmark=game.benchmark)
        np.testing.assert_allclose(result.certified_gap[:, column], alone.gap / alone.loss, rtol=1e-12)
    assert result.certified_gap.max() > 0
    worse = result.certified_gap.copy()
    worse[0, 1] = 0.5  # not in the last round
    for gaps in (worse, result.certified_gap):
        assert summary_of(replace(result, certified_gap=gaps))["curves"]["A-OGD"]["certified_gap"] == gaps.max()


def test_a_curve_above_its_bound_has_a_remark(whole):
    low = {"regret": np.zeros_like(whole[1].rounds, dtype=float)}
    curves = tuple(replace(curve, bounds=low) for curve in whole[1].curves[:1])
    (broken, *_) = remarks_on(replace(whole[1], curves=curves), {})
    assert broken.verdict == "alarm"
    assert "above the bound of its theorem: A-OGD, beta = 0.5 (regret)" in broken.text


def test_a_budget_is_chosen_once_and_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGTERM_CACHE", str(tmp_path / "cache"))
    rows = np.random.default_rng(0).integers(1, 9, (40, 4))
    text = "".join(f"{1 if a > b else -1} 1:{a} 2:{b} 3:{c} 4:{d}\n" for a, b, c, d in rows)
    (tmp_path / "mine.txt").write_text(text)
    problem = {"name": "budgeted_logistic", "data": str(tmp_path / "mine.txt"), "share": 0.5}
    result = quietly(spec_of({"problem": problem, "learners": [{"learner": "aogd"}], "seeds": 1}), tmp_path / "mine")
    kept = json.loads((tmp_path / "mine" / "runs" / "problem.json").read_text())["content"]
    assert kept["parameters"]["budget"] == result.problem["budget"] > 0
    assert kept["facts"]["budget_chosen"] is True
    assert kept["rounds"] == 40
