"""Running a specification into a folder: only what is missing is computed."""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from longterm.engines.run import Engine
from longterm.experiments.assemble import load_result, summary_of
from longterm.experiments.backends import Backend, opened
from longterm.experiments.folder import ResultFolder
from longterm.experiments.jobs import Job, work
from longterm.experiments.progress import job_progress
from longterm.experiments.result import Result
from longterm.experiments.spec import ExperimentSpec

ROUNDS_WORTH_COMPILING = 50_000
"""Of one learner, over all sequences. A round takes NumPy about 100 µs and JAX 3, which first compiles for seconds."""


def run_experiment(
    spec: ExperimentSpec, folder: str | Path, *, backend: Backend | None = None, out: TextIO | None = None
) -> Result:
    """Run what the specification asks for and is not in the folder yet; the result, which is also written there.

    A run that was stopped (an interrupt, a killed process, a lost worker) goes on where it was, and ends with the same
    files, byte for byte, as one that was not; only timings.json differs. Progress goes to `out`, by default stderr.

    >>> import io, tempfile
    >>> from longterm.experiments import Backend, run_experiment, spec_of
    >>> problem = {"name": "doubly_stochastic", "size": 3}
    >>> spec = spec_of({"problem": problem, "learners": [{"learner": "aogd"}], "rounds": 100, "engine": "numpy"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run_experiment(spec, folder, backend=Backend(workers=1), out=io.StringIO())
    >>> result.curves[0].name, result.curves[0].measures["regret"].shape[1]
    ('A-OGD', 10)
    """
    chosen = Backend() if backend is None else backend
    decided = replace(spec, engine=engine_for(spec))
    kept = ResultFolder(folder)
    with kept.locked():
        kept.open_for(decided, versions(decided.engine))
        prepared = kept.read(Job("problem"))
        todo = kept.missing(decided)
        with job_progress(spec.name, len(todo), out) as step, opened(chosen) as do:
            for jobs in (
                [job for job in todo if job.kind == "problem"],
                [job for job in todo if job.kind != "problem"],
            ):
                by_stem = {job.stem: job for job in jobs}
                for content, seconds in do(work, [(decided, job, prepared) for job in jobs]):
                    kept.write(by_stem[content["job"]], content)
                    kept.note_time(by_stem[content["job"]], seconds)
                    step()
                prepared = kept.read(Job("problem"))
        result = load_result(folder)
        kept.write_json("summary.json", summary_of(result))
    return result


def versions(engine: str) -> dict[str, str]:
    """What the numbers may depend on."""
    packages = ["longterm", "numpy", "scipy", *(["jax", "jaxlib"] if engine == "jax" else [])]
    return {"python": platform.python_version(), **{name: _version(name) for name in packages}}


def _version(package: str) -> str:
    if package == "longterm":
        from longterm import __version__

        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def engine_for(spec: ExperimentSpec) -> Engine:
    """The engine that is named; else JAX, where it is installed and there are rounds enough to pay for compiling."""
    if spec.engine != "auto":
        return spec.engine
    short = spec.rounds is not None and spec.rounds * len(spec.seeds) < ROUNDS_WORTH_COMPILING
    return "numpy" if short or find_spec("jax") is None else "jax"
