"""Stopped, killed, spread over processes and machines: an experiment ends with the same files."""

import io
import logging
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from longterm import AOGD, InputError, run
from longterm.data import load_sample
from longterm.errors import AssumptionWarning, DataError, LongtermError, SnapshotError, TokenError
from longterm.lab import Backend, LearnerSpec, run_experiment
from longterm.lab.experiments import backends
from longterm.lab.experiments.spec_tables import spec_of
from longterm.problems import budgeted_logistic
from longterm.problems.streams import ResampledRows
from pages import block_of_page
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


def alive(group):
    """Return the processes of a group that are no zombies."""
    lines = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,pid="], capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if line.split()[0] == str(group) and not line.split()[1].startswith("Z")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
def test_workers_of_a_killed_experiment_end(tmp_path):
    """Their results fill a pipe that nobody reads."""
    command = [*COMMAND, *WORDS, "--workers", "2", "--out", str(tmp_path / "killed")]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(process, tmp_path / "killed", 2)
    assert len(alive(process.pid)) >= 3
    process.kill()
    process.wait()
    until = time.monotonic() + 30
    while alive(process.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert alive(process.pid) == []


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
    assert said.splitlines()[-1].startswith("longterm: stopped by SIGTERM. Finished work is kept")
    assert not re.search("Traceback|leaked|loky", said), said
    for place in (folder, whole):
        assert main([*command, "--workers", "1", "--out", str(place)]) == 0
    kept = {path.relative_to(folder): path.read_bytes() for path in folder.glob("**/runs/*.json")}
    assert kept == {path.relative_to(whole): path.read_bytes() for path in whole.glob("**/runs/*.json")}


@pytest.fixture
def workers_import_support(monkeypatch):
    path = [str(Path(__file__).parents[2] / "support"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))


def with_learner(name):
    return replace(SMALL, learners=(LearnerSpec(f"small_experiment:{name}", name="mine"), LearnerSpec("aogd")))


@pytest.mark.slow
def test_a_lost_worker_is_replaced(tmp_path, monkeypatch, workers_import_support):
    monkeypatch.setenv("LOSE_ONCE", str(tmp_path / "lost"))
    spec = with_learner("lose_the_worker")
    quietly(spec, tmp_path / "folder", Backend(workers=2))
    assert (tmp_path / "lost").exists()
    quietly(spec, tmp_path / "other")
    assert files(tmp_path / "folder") == files(tmp_path / "other")


@pytest.mark.slow
def test_a_worker_that_is_lost_again_and_again_is_reported(tmp_path, monkeypatch, workers_import_support):
    monkeypatch.setattr(backends, "STARTS", 1)
    with pytest.raises(LongtermError, match=r"a worker was lost .* Finished jobs are kept"):
        quietly(with_learner("lose_every_worker"), tmp_path / "folder", Backend(workers=2))


def arena(folder, *words):
    """Run the command for an arena one of whose jobs kills its worker once, and return the files of the folder."""
    pytest.importorskip("tyro", reason="the command line is of the extra `experiments`")
    from longterm.cli import main

    learners = ("aogd", "small_experiment:lose_the_worker")
    command = ["arena", "--rounds", "256", "--problems", "routing", "--learners", *learners, "--no-report"]
    assert main([*command, "--out", str(folder), *words]) == 0
    return files(folder)


@pytest.mark.slow
def test_dask_loses_a_worker_and_gives_the_same_files(tmp_path, monkeypatch, workers_import_support, whole, own_module):
    distributed = pytest.importorskip("distributed", reason="needs the extra `dask`")
    monkeypatch.setenv("LOSE_ONCE", str(tmp_path / "lost"))
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "spawn")
    spec = with_learner("lose_the_worker")
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(n_workers=2, host="127.0.0.1", **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        warnings.simplefilter("ignore")  # of Dask's own sockets, when its worker is killed
        executor = client.get_executor(retries=3)
        with pytest.raises(LongtermError, match=MISSING):
            quietly(own_module, tmp_path / "own", Backend(executor=executor))
        quietly(spec, tmp_path / "folder", Backend(executor=executor))
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        run = partial(run_experiment, out=io.StringIO())
        names = {"run_experiment": run, "spec": SMALL, "Backend": Backend}
        exec(block_of_page("import Client").replace("tcp://host:8786", cluster.scheduler_address), names)
        names["client"].close()
        function = block_of_page("def dask").replace("tcp://host:8786", cluster.scheduler_address)
        (tmp_path / "mine.py").write_text(f"from distributed import Client\n{function}")
        opened = []
        monkeypatch.setattr(
            import_module("mine"), "Client", lambda to: opened.append(distributed.Client(to)) or opened[-1]
        )
        (tmp_path / "lost").unlink()
        theirs = arena(tmp_path / "arena", "--executor", "mine:dask")
        opened.pop().close()
        del sys.modules["mine"]
    assert (tmp_path / "lost").exists()
    quietly(spec, tmp_path / "other")
    assert files(tmp_path / "folder") == files(tmp_path / "other")
    assert files(tmp_path / "results" / "mine") == files(whole[0])
    assert theirs == arena(tmp_path / "here", "--workers", "1")


@pytest.mark.slow
@pytest.mark.cross
def test_ray_loses_a_worker_and_gives_the_same_files(tmp_path, monkeypatch, workers_import_support, whole, own_module):
    ray = pytest.importorskip("ray", reason="needs the extra `ray`")
    monkeypatch.setenv("LOSE_ONCE", str(tmp_path / "lost"))
    spec = with_learner("lose_the_worker")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        try:
            with pytest.raises(LongtermError, match=MISSING):
                quietly(own_module, tmp_path / "own", Backend(executor="longterm.compat.ray:executor"))
            quietly(spec, tmp_path / "folder", Backend(executor="longterm.compat.ray:executor"))
            quietly(SMALL, tmp_path / "small", Backend(executor="longterm.compat.ray:executor"))
            (tmp_path / "lost").unlink()
            theirs = arena(tmp_path / "arena", "--executor", "longterm.compat.ray:executor")
        finally:
            ray.shutdown()
    assert (tmp_path / "lost").exists()
    quietly(spec, tmp_path / "other")
    assert files(tmp_path / "folder") == files(tmp_path / "other")
    assert files(tmp_path / "small") == files(whole[0])
    assert theirs == arena(tmp_path / "here", "--workers", "1")


def test_a_module_that_only_the_worker_misses_has_a_remedy(tmp_path):
    class Elsewhere(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            future = Future()
            future.set_exception(ModuleNotFoundError("No module named 'mine'", name="mine"))
            return future

    with pytest.raises(LongtermError, match=r"a worker cannot import 'mine'\. .*upload_file.*runtime_env"):
        quietly(SMALL, tmp_path / "folder", Backend(executor=Elsewhere()))


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Return a specification with a learner of a module that was imported here and is gone: a worker cannot have it."""
    monkeypatch.syspath_prepend(tmp_path / "here")
    (tmp_path / "here").mkdir()
    file = tmp_path / "here" / "own_module.py"
    file.write_text("from longterm import AOGD\n\ndef build(problem, horizon):\n    return AOGD.for_problem(problem)\n")
    import_module("own_module")
    shutil.rmtree(tmp_path / "here")
    yield replace(SMALL, learners=(LearnerSpec("own_module:build", name="mine"), LearnerSpec("aogd")))
    del sys.modules["own_module"]


MISSING = r"a worker cannot import 'own_module'\. .*upload_file.*runtime_env"


@pytest.mark.slow
def test_processes_without_the_users_module(tmp_path, own_module):
    quietly(own_module, tmp_path / "here")  # this process has it
    with pytest.raises(LongtermError, match=MISSING):
        quietly(own_module, tmp_path / "folder", Backend(workers=2))


def test_an_interrupted_batch_ends_with_the_same_files(whole, tmp_path):
    """The records of some sequences are there, so the batch is computed again and only the others are written."""
    folder = tmp_path / "folder"
    quietly(SMALL, folder)
    kept = folder / "runs" / "mirror-prox-1.json"
    before = kept.stat().st_mtime_ns
    for name in ("mirror-prox-0", "mirror-prox-2", "comparator-1"):
        (folder / "runs" / f"{name}.json").unlink()
    quietly(SMALL, folder)
    assert kept.stat().st_mtime_ns == before
    assert files(folder) == files(whole[0])


def test_a_run_that_stops_does_not_stop_the_other_sequences(tmp_path):
    spec = with_learner("stop_on_the_second_sequence")
    with pytest.raises(LongtermError, match=r"1 runs stopped:\n  mine on .*, seed 1, round 30: ValueError: enough"):
        quietly(spec, tmp_path / "folder")
    assert sorted(path.stem for path in (tmp_path / "folder" / "runs").glob("mine-*.json")) == ["mine-0", "mine-2"]


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
def test_any_executor(whole, tmp_path):
    quietly(SMALL, tmp_path / "named", Backend(executor="small_experiment:threads"))
    with ThreadPoolExecutor(2) as executor:
        quietly(SMALL, tmp_path / "given", Backend(executor=executor))
        assert executor.submit(int).result() == 0  # it is not shut down
    assert files(tmp_path / "named") == files(tmp_path / "given") == files(whole[0])


def test_what_is_no_executor_is_refused(tmp_path):
    for where, match in (
        ("nothing", "executor: 'nothing' cannot be used .* Give module:function"),
        ("no_such_module:function", "cannot be used"),
        ("small_experiment:no_such_function", "cannot be used"),
        ("small_experiment:no_executor", "returned a str, not a concurrent.futures.Executor"),
    ):
        with pytest.raises(InputError, match=match):
            quietly(SMALL, tmp_path / "folder", Backend(executor=where))


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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_interrupt_leaves_no_process_behind(monkeypatch):
    """Loky's thread failed before it ended its processes if futures were cancelled before the shutdown.

    After that it may still fail on a job that waits (a `KeyError` in its queue), which does no harm.
    """
    opened, processes, really_open = [], [], backends._open

    def recorded(backend):
        opened.append(really_open(backend))
        return opened[-1]

    def interrupted(futures, return_when):
        if processes:
            raise KeyboardInterrupt
        done = wait(futures, return_when=return_when)
        processes.extend(opened[0]._processes.values())
        return done

    monkeypatch.setattr(backends, "_open", recorded)
    monkeypatch.setattr(backends, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt), backends.open_backend(Backend(workers=2)) as do:
        list(do(time.sleep, [(0.01,)] * 200))
    assert processes
    for process in processes:
        process.join(20)
        assert not process.is_alive()


def warn_of_an_assumption():
    warnings.warn("this does not hold", AssumptionWarning, stacklevel=1)
    return 7


class FreshProcess(Executor):
    """Runs jobs here, with the filters of a process that has just started, and keeps the warnings."""

    seen: ClassVar[list[warnings.WarningMessage]] = []

    def submit(self, function, /, *arguments):
        future = Future()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            future.set_result(function(*arguments))
        self.seen.extend(seen)
        return future


def test_workers_do_not_print_warnings_that_the_records_name():
    with backends.open_backend(Backend(executor=FreshProcess())) as do:
        assert list(do(warn_of_an_assumption, [(), ()])) == [7, 7]
    assert not FreshProcess.seen
