"""Stopped, killed, spread over processes and machines: an experiment ends with the same files."""

import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from longterm import AOGD, InputError, run
from longterm.data import load_sample
from longterm.errors import DataError, LongtermError, SnapshotError, TokenError
from longterm.lab import Backend, LearnerSpec
from longterm.lab.experiments.spec_tables import spec_of
from longterm.problems import budgeted_logistic
from longterm.problems.streams import ResampledRows
from small_experiment import SMALL, files, quietly

pytest.importorskip("joblib", reason="experiments need the extra `experiments`")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "small"
    return folder, quietly(SMALL, folder)


# A shell's background job ignores interrupts, and so would all that it starts: listen to them again.
LISTENING = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); import longterm.cli as c; "
WORDS = (
    *("run", "--problem", "doubly_stochastic size=3", "--rounds", "1000", "--sequences", "10", "--engine", "numpy"),
    *("--no-report", "--learners", "aogd", "mirror_prox"),
)
COMMAND = [sys.executable, "-c", LISTENING + "sys.exit(c.main())"]


def start(folder, words=WORDS):
    """Start the command with its messages in a file: workers of a killed process would hold a pipe open."""
    folder.with_suffix(".said").unlink(missing_ok=True)  # those of a killed one write on
    with folder.with_suffix(".said").open("wb") as said:
        command = [*COMMAND, *words, "--workers", "2", "--out", str(folder)]
        return subprocess.Popen(command, stderr=said, stdout=subprocess.DEVNULL)


def end(process, folder):
    """Return the exit status and the messages."""
    status = process.wait()
    return status, folder.with_suffix(".said").read_text()


def wait_for(process, folder, count):
    """Wait until this many jobs are finished."""
    while process.poll() is None and len(list(folder.glob("**/runs/*.json"))) < count:
        time.sleep(0.005)


def disturbed(folder, kills, draw):
    """Kill and interrupt; False where it was done before we looked, as it may be on a machine that is busy."""
    for count in (draw.randint(3, 7), draw.randint(0, 2))[:kills]:
        process = start(folder)
        wait_for(process, folder, count)
        time.sleep(draw.random() / 20)
        process.send_signal(signal.SIGKILL)
        status, said = end(process, folder)
        if status == 0:
            return False
        assert status == -signal.SIGKILL, said
        assert not (folder / "summary.json").exists()
    for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 143))[:kills]:
        process = start(folder)
        wait_for(process, folder, len(list(folder.glob("runs/*.json"))) + 1)  # it is at work
        process.send_signal(number)
        status, said = end(process, folder)
        if status == 0:
            return False
        assert status == expected, said
        assert "the same command continues" in said
        assert not re.search("Traceback|leaked|loky", said), said
        assert not (folder / "summary.json").exists()
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(2, marks=pytest.mark.cross)])
def test_an_experiment_killed_at_random_moments_ends_with_the_same_files(tmp_path, kills):
    pytest.importorskip("tyro", reason="the command line is of the extra `experiments`")
    from longterm.cli import main

    undisturbed, draw = tmp_path / "undisturbed", random.Random(1)
    assert main([*WORDS, "--workers", "1", "--out", str(undisturbed)]) == 0
    folder = next(path for path in (tmp_path / str(number) for number in range(5)) if disturbed(path, kills, draw))
    assert main([*WORDS, "--workers", "1", "--out", str(folder)]) == 0
    assert files(folder) == files(undisturbed)


@pytest.mark.cross
@pytest.mark.parametrize(
    "words",
    [
        "arena --rounds 4096 --learners aogd mirror_prox --problems routing expert_advice",
        "reproduce dsm --rounds 1000 --sequences 6",
    ],
)
def test_sigterm_of_the_other_commands(tmp_path, words):
    pytest.importorskip("tyro", reason="the command line is of the extra `experiments`")
    from longterm.cli import main

    folder, whole = tmp_path / "stopped", tmp_path / "whole"
    command = [*words.split(), "--no-report"]
    process = start(folder, command)
    wait_for(process, folder, 1)
    process.send_signal(signal.SIGTERM)
    status, said = end(process, folder)
    assert status == 143, said
    assert said.splitlines()[-1].startswith("longterm: stopped by SIGTERM. Finished runs are kept")
    assert not re.search("Traceback|leaked|loky", said), said
    for place in (folder, whole):
        assert main([*command, "--workers", "1", "--out", str(place)]) == 0
    kept = {path.relative_to(folder): path.read_bytes() for path in folder.glob("**/runs/*.json")}
    assert kept == {path.relative_to(whole): path.read_bytes() for path in whole.glob("**/runs/*.json")}


@pytest.mark.slow
def test_a_lost_worker_is_reported_and_finished_jobs_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("LOSE_ONCE", str(tmp_path / "lost"))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2] / "support"), os.environ.get("PYTHONPATH", "")])
    )
    spec = replace(SMALL, learners=(LearnerSpec("small_experiment:lose_the_worker", name="mine"), LearnerSpec("aogd")))
    with pytest.raises(LongtermError, match="a worker was lost"):
        quietly(spec, tmp_path / "folder", Backend(workers=2))
    quietly(spec, tmp_path / "folder", Backend(workers=2))
    quietly(spec, tmp_path / "other")
    assert files(tmp_path / "folder") == files(tmp_path / "other")


@pytest.mark.slow
def test_the_error_of_a_worker_is_raised_unchanged(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2] / "support"), os.environ.get("PYTHONPATH", "")])
    )
    spec = replace(SMALL, learners=(LearnerSpec("small_experiment:refuse", name="mine"),))
    with pytest.raises(DataError, match=r"mine.csv, line 3: is empty\. Fill it") as refused:
        quietly(spec, tmp_path, Backend(workers=2))
    assert (refused.value.line, refused.value.remedy) == (3, "Fill it")


def test_errors_can_be_pickled():
    for error in (
        InputError("x", "is wrong", "Mend it", round=4, trace={"a": 1}),
        SnapshotError("file", "truncated", "ends early", "Restore it"),
        TokenError(3, "is unknown", "Ask first"),
        LongtermError("plain"),
    ):
        there = pickle.loads(pickle.dumps(error))
        assert type(there) is type(error)
        assert (str(there), there.__dict__) == (str(error), error.__dict__)


@pytest.mark.slow
def test_another_backend_by_registering_it(whole, tmp_path):
    backend = Backend("mine", 1, "small_experiment:register_mine")
    quietly(SMALL, tmp_path / "folder", backend)
    assert files(tmp_path / "folder") == files(whole[0])


def test_unknown_backends_are_refused(tmp_path):
    for backend, match in (
        (Backend("nothing"), "backend: 'nothing' cannot be used .* Choose loky, or register another"),
        (Backend("mine", register="no_such_module:function"), "cannot be imported"),
    ):
        with pytest.raises(InputError, match=match):
            quietly(SMALL, tmp_path / "folder", backend)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.cross)])
def test_processes_and_jax_give_the_same_as_one_process(tmp_path, workers):
    pytest.importorskip("jax", reason="the compiled engine needs the extra `jax`")
    rows = {"name": "budgeted_logistic", "data": "sample"}
    learners = [{"learner": "aogd"}, {"learner": "aftrl"}]
    spec = spec_of({"problem": rows, "learners": learners, "rounds": 300, "seeds": 2, "record": 8, "engine": "jax"})
    one = quietly(spec, tmp_path / "one")
    if workers > 1:
        quietly(spec, tmp_path / "more", Backend(workers=workers))
        assert files(tmp_path / "one") == files(tmp_path / "more")
    assert one.spec["engine"] == "jax"
    assert one.certified_gap.max() <= 1e-6
    assert one.problem["comparator_on_the_boundary"]
    assert one.problem["offline_nonzeros"] == 16
    sample = load_sample()
    problem = budgeted_logistic(sample.features, one.problem["budget"])
    trace = run(problem, AOGD.for_problem(problem), ResampledRows(sample.features, sample.labels), 300, seeds=range(2))
    np.testing.assert_allclose(one.curves[0].measures["signed_violation"][-1], trace.signed_violation[-1], rtol=1e-9)
