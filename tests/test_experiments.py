"""From a specification to a folder: what is there is not computed again, and what is computed is always the same."""

import io
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from longterm import AOGD, InputError, budgeted_logistic, doubly_stochastic, run
from longterm.data import load_sample
from longterm.errors import DataError, LongtermError, SnapshotError, TokenError
from longterm.experiments import Backend, LearnerSpec, load_result, run_experiment, spec_of, summary_of
from longterm.experiments import run as run_module
from longterm.experiments.folder import ResultFolder
from longterm.experiments.progress import Lines
from longterm.experiments.records import decode, encode
from longterm.experiments.result import MEASURES
from longterm.experiments.spec import kept_rounds
from longterm.hindsight import nearest_to_mean
from longterm.streams import RandomPermutations, ResampledRows

pytest.importorskip("joblib", reason="experiments need the extra `experiments`")

TABLE = {
    "name": "small",
    "rounds": 60,
    "seeds": 3,
    "record": 10,
    "engine": "numpy",
    "problem": {"name": "doubly_stochastic", "size": 3},
    "learners": [{"learner": "aogd", "beta": [0.5, 0.75]}, {"learner": "mirror_prox"}],
}
SMALL = spec_of(TABLE)
HERE = Backend(workers=1)
"""One after the other, in this process."""


def quietly(spec, folder, backend=HERE):
    return run_experiment(spec, folder, backend=backend, out=io.StringIO())


def files(folder):
    """Every file that must not differ, by name."""
    every = (path for path in folder.rglob("*") if path.is_file() and path.name != "timings.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in every}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "small"
    return folder, quietly(SMALL, folder)


def test_a_result_is_what_the_loop_and_hindsight_give(whole):
    _, result = whole
    problem, stream, rounds = doubly_stochastic(3), RandomPermutations(3), kept_rounds(60, 10)
    best = nearest_to_mean(problem, stream, rounds, seeds=[0, 1, 2])
    np.testing.assert_array_equal(result.rounds, rounds)
    assert [curve.name for curve in result.curves] == ["A-OGD, beta = 0.5", "A-OGD, beta = 0.75", "Mirror prox"]
    for curve, beta in zip(result.curves, (0.5, 0.75), strict=False):
        trace = run(problem, AOGD.convex(problem, beta), stream, 60, seeds=range(3), record=rounds)
        np.testing.assert_allclose(curve.measures["regret"], trace.regret(best), atol=1e-9)
        for measure in ("signed_violation", "hard_violation", "squared_violation"):
            np.testing.assert_allclose(curve.measures[measure], getattr(trace, measure), atol=1e-9)
        np.testing.assert_allclose(curve.measures["per_constraint_violation"], trace.long_term_violation, atol=1e-9)
        assert set(curve.bounds) == {"regret", "signed_violation"}
        assert set(curve.printed_bounds) == {"regret", "signed_violation"}
        assert curve.bounds["regret"].shape == rounds.shape
    assert result.certified_gap.shape == (len(rounds), 3)
    assert result.certified_gap.max() == 0
    assert result.seeds == (0, 1, 2)
    assert result.problem["constants"]["constraint_bound"] == problem.constants.constraint_bound
    assert result.versions["numpy"] == np.__version__


def test_the_folder_is_the_result(whole):
    folder, result = whole
    again = load_result(folder)
    assert again.remarks == result.remarks
    for one, other in zip(again.curves, result.curves, strict=True):
        assert all(np.array_equal(one.measures[m], other.measures[m]) for m in MEASURES)
        assert one.learner == other.learner
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest) == {"spec", "seeds", "versions"}
    assert spec_of(manifest["spec"]) == SMALL
    assert len(list((folder / "runs").iterdir())) == 1 + 1 + 3 + 3 * 3
    assert set(json.loads((folder / "timings.json").read_text())) == {p.stem for p in (folder / "runs").iterdir()}


def test_the_summary_has_the_schema_that_others_read(whole):
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
    frame = whole[1].frame()
    assert list(frame.columns) == ["curve", "sequence", "round", *MEASURES, "certified_gap"]
    assert len(frame) == 3 * 3 * len(whole[1].rounds)
    last = frame[(frame["curve"] == "Mirror prox") & (frame["round"] == 60) & (frame["sequence"] == 2)]
    assert last["regret"].item() == whole[1].curves[2].measures["regret"][-1, 2]


def test_what_is_there_is_not_computed_again(whole, tmp_path, monkeypatch):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    for missing in ("mirror-prox-1", "comparator-2"):
        (folder / "runs" / f"{missing}.json").unlink()
    done = []
    work = run_module.work
    monkeypatch.setattr(run_module, "work", lambda spec, job, known: done.append(job.stem) or work(spec, job, known))
    quietly(SMALL, folder)
    assert sorted(done) == ["comparator-2", "mirror-prox-1"]
    assert files(folder) == files(whole[0])
    quietly(SMALL, folder)
    assert len(done) == 2


def cut(data):
    return data[: len(data) // 2]


def flipped(data):
    return data.replace(b"0.7", b"0.8", 1) if b"0.7" in data else data[:-9] + b"1" + data[-8:]


@pytest.mark.parametrize("damage", [cut, flipped, lambda data: b"", lambda data: data + b" ", lambda data: b"\xff{}"])
@pytest.mark.parametrize("stem", ["problem", "bounds", "comparator-0", "a-ogd-beta-0.5-1"])
def test_a_damaged_file_is_found_and_made_again(whole, tmp_path, damage, stem):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    path = folder / "runs" / f"{stem}.json"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=rf"runs/{stem}.json is missing or damaged.*again"):
        load_result(folder)
    (folder / "runs" / "problem.json.partial").write_bytes(b"left by a crash")
    quietly(SMALL, folder)
    assert files(folder) == files(whole[0])


def test_a_file_under_another_name_is_not_that_run(whole, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    shutil.copy(folder / "runs" / "mirror-prox-0.json", folder / "runs" / "mirror-prox-1.json")
    quietly(SMALL, folder)
    assert files(folder) == files(whole[0])


def test_records_are_exact():
    content = {"job": "x", "values": [0.1, 1e-300, -0.0, 5e-324, 1 / 3, 1e22], "word": "θ"}
    assert decode(encode(content)) == content
    assert str(decode(encode(content))["values"][2]) == "-0.0"
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode({"job": "x", "value": float("nan")})


def test_a_folder_of_something_else_is_refused(whole, tmp_path, monkeypatch):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    with pytest.raises(InputError, match=r"another experiment: rounds was 60, now 70\. Give another folder"):
        quietly(replace(SMALL, rounds=70), folder)
    with pytest.raises(InputError, match="another experiment: learners was"):
        quietly(replace(SMALL, learners=(LearnerSpec("aogd"),)), folder)
    assert files(folder) == files(whole[0])
    monkeypatch.setattr(run_module, "versions", lambda spec: {"numpy": "1.0"})
    assert quietly(SMALL, folder).name == "small"  # whole: nothing would be added to it
    (folder / "runs" / "bounds.json").unlink()
    with pytest.raises(InputError, match=r"begun with other versions: .*numpy was"):
        quietly(SMALL, folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match="has results but no manifest"):
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
    with ResultFolder(whole[0]).locked(), pytest.raises(InputError, match="another process is at work"):
        quietly(SMALL, whole[0])


COMMAND = [
    *(sys.executable, "-m", "longterm.cli", "run", "--problem", "doubly_stochastic size=3", "--rounds", "400"),
    *("--sequences", "4", "--engine", "numpy", "--no-report", "--workers", "2", "--learners", "aogd", "mirror_prox"),
]


def start(folder):
    """What it says goes to a file: workers outlive a killed process for a while, and would hold a pipe open."""
    with folder.with_suffix(".said").open("wb") as said:
        return subprocess.Popen([*COMMAND, "--out", str(folder)], stderr=said, stdout=subprocess.DEVNULL)


def end(process, folder):
    """Its exit status, and what it said."""
    status = process.wait()
    return status, folder.with_suffix(".said").read_text()


def wait_for(process, folder, count):
    """Until so many jobs are done."""
    while process.poll() is None and len(list(folder.glob("runs/*.json"))) < count:
        time.sleep(0.005)


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_files(tmp_path):
    pytest.importorskip("tyro", reason="the command line is of the extra `experiments`")
    undisturbed, folder, draw = tmp_path / "undisturbed", tmp_path / "killed", random.Random(1)
    assert end(start(undisturbed), undisturbed)[0] == 0
    for count in (draw.randint(0, 2), draw.randint(3, 7)):
        process = start(folder)
        wait_for(process, folder, count)
        time.sleep(draw.random() / 20)
        process.send_signal(signal.SIGKILL)
        assert end(process, folder)[0] == -signal.SIGKILL
        assert not (folder / "summary.json").exists()
    process = start(folder)
    wait_for(process, folder, len(list(folder.glob("runs/*.json"))) + 1)  # it is at work
    process.send_signal(signal.SIGINT)
    status, said = end(process, folder)
    assert status == 130, said
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert not (folder / "summary.json").exists()
    assert end(start(folder), folder)[0] == 0
    assert files(folder) == files(undisturbed)


def lose_the_worker(problem, rounds):
    """A learner that takes its process with it, once."""
    marker = os.environ["LOSE_ONCE"]
    if not os.path.exists(marker):  # noqa: PTH110
        open(marker, "w").close()  # noqa: PTH123
        os.kill(os.getpid(), signal.SIGKILL)
    return AOGD.convex(problem)


def test_a_lost_worker_is_said_and_the_rest_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("LOSE_ONCE", str(tmp_path / "lost"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]))  # noqa: PTH120
    spec = replace(SMALL, learners=(LearnerSpec("test_experiments:lose_the_worker", name="mine"), LearnerSpec("aogd")))
    with pytest.raises(LongtermError, match="a worker was lost"):
        quietly(spec, tmp_path / "folder", Backend(workers=2))
    quietly(spec, tmp_path / "folder", Backend(workers=2))
    quietly(spec, tmp_path / "other")
    assert files(tmp_path / "folder") == files(tmp_path / "other")


def refuse(problem, rounds):
    raise DataError("mine.csv", "is empty", "Fill it", line=3)


def test_what_a_worker_refuses_is_said_in_its_words(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]))  # noqa: PTH120
    spec = replace(SMALL, learners=(LearnerSpec("test_experiments:refuse", name="mine"),))
    with pytest.raises(DataError, match=r"mine.csv, line 3: is empty\. Fill it") as refused:
        quietly(spec, tmp_path, Backend(workers=2))
    assert (refused.value.line, refused.value.remedy) == (3, "Fill it")


def test_errors_travel_between_processes():
    for error in (
        InputError("x", "is wrong", "Mend it", round=4, trace={"a": 1}),
        SnapshotError("file", "truncated", "ends early", "Restore it"),
        TokenError(3, "is unknown", "Ask first"),
        LongtermError("plain"),
    ):
        there = pickle.loads(pickle.dumps(error))
        assert type(there) is type(error)
        assert (str(there), there.__dict__) == (str(error), error.__dict__)


def register_mine():
    """A joblib backend of one's own."""
    import joblib
    from joblib.parallel import ThreadingBackend

    joblib.register_parallel_backend("mine", ThreadingBackend)


def test_another_backend_by_registering_it(whole, tmp_path):
    backend = Backend("mine", 1, None, "test_experiments:register_mine")
    quietly(SMALL, tmp_path / "folder", backend)
    assert files(tmp_path / "folder") == files(whole[0])


def test_backends_that_are_not_there(tmp_path):
    for backend, match in (
        (Backend("nothing"), "not known to joblib"),
        (Backend(scheduler="tcp://127.0.0.1:1"), "means nothing to 'loky'"),
        (Backend("dask"), "scheduler: is missing"),
        (Backend("mine", register="no_such_module:function"), "cannot be imported"),
    ):
        with pytest.raises(InputError, match=match):
            quietly(SMALL, tmp_path / "folder", backend)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_gives_the_same(whole, tmp_path):
    distributed = pytest.importorskip("distributed", reason="a cluster needs distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        quietly(SMALL, tmp_path / "folder", Backend("dask", scheduler=cluster.scheduler_address))
    assert files(tmp_path / "folder") == files(whole[0])


@pytest.mark.slow
def test_processes_and_jax_give_the_same_as_one_process(tmp_path):
    pytest.importorskip("jax", reason="the compiled engine needs the extra `jax`")
    rows = {"name": "budgeted_logistic", "data": "sample"}
    learners = [{"learner": "aogd"}, {"learner": "aftrl"}]
    spec = spec_of({"problem": rows, "learners": learners, "rounds": 300, "seeds": 2, "record": 8, "engine": "jax"})
    one = quietly(spec, tmp_path / "one")
    quietly(spec, tmp_path / "two", Backend(workers=2))
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert one.spec["engine"] == "jax"
    assert one.certified_gap.max() <= 1e-6
    assert one.problem["comparator_on_the_boundary"]
    assert one.problem["offline_nonzeros"] == 16
    sample = load_sample()
    problem = budgeted_logistic(sample.features, one.problem["budget"])
    trace = run(problem, AOGD.convex(problem), ResampledRows(sample.features, sample.labels), 300, seeds=range(2))
    np.testing.assert_allclose(one.curves[0].measures["signed_violation"][-1], trace.signed_violation[-1], rtol=1e-9)


def test_the_engine_is_chosen_by_the_length_of_the_runs(monkeypatch):
    there = replace(SMALL, engine="auto")
    monkeypatch.setattr(run_module, "find_spec", lambda name: name)
    assert run_module.engine_for(there) == "numpy"
    assert run_module.engine_for(replace(there, rounds=100_000)) == "jax"
    assert run_module.engine_for(replace(there, rounds=None)) == "jax"
    assert run_module.engine_for(replace(there, engine="jax")) == "jax"
    monkeypatch.setattr(run_module, "find_spec", lambda name: None)
    assert run_module.engine_for(replace(there, rounds=None)) == "numpy"


def test_steps_that_no_theorem_covers_are_said(tmp_path):
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
    step = Lines("mine", 4, out, lambda: next(times))
    for _ in range(4):
        step()
    assert out.getvalue().splitlines() == [
        "mine: 1 of 4 jobs",
        "mine: 3 of 4 jobs, 0.38 a second, 3 s left",
        "mine: 4 of 4 jobs, 0.44 a second, 0 s left",
    ]
