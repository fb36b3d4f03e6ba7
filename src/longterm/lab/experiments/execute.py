"""Running a specification into a folder: only jobs without a record are computed."""

from __future__ import annotations

import platform
import sys
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

import longterm
from longterm._base.progress import reporter
from longterm.catalogue.lookup import find_learner, find_problem
from longterm.errors import LongtermError
from longterm.lab.experiments.backends import Backend, open_backend
from longterm.lab.experiments.folder import ResultFolder
from longterm.lab.experiments.jobs import Job, all_jobs, batches, prepare, work
from longterm.lab.experiments.load import load_result, summary_of
from longterm.lab.experiments.records import write_json
from longterm.lab.experiments.result import Result
from longterm.lab.experiments.spec import ExperimentSpec
from longterm.play.engines.selection import Engine, faster_engine

MAX_LISTED = 3
"""The number of stopped runs whose errors are listed."""
ENGINE_REASONS = {"numpy": "the runs are too short to compile", "jax": "the runs are long enough to compile"}


def run_experiment(
    spec: ExperimentSpec, folder: str | Path, *, backend: Backend | None = None, out: TextIO | None = None
) -> Result:
    """Run the jobs of a specification that have no record in the folder yet.

    An interrupted run (Ctrl-C, a killed process, a lost worker) continues where it stopped. It ends with the same
    files, byte for byte, as an uninterrupted one; only timings.json differs.

    Parameters
    ----------
    spec : ExperimentSpec
        The experiment to run.
    folder : str or pathlib.Path
        Created if it is missing; a folder with another experiment is refused.
    backend : Backend, optional
        The workers. Default: processes of this machine, one for each core.
    out : text stream, optional
        The stream for progress. Default: stderr.

    Returns
    -------
    Result
        As `load_result` reads it from the folder.

    Examples
    --------
    >>> import io, tempfile
    >>> from longterm.lab.experiments.backends import Backend
    >>> from longterm.lab.experiments.execute import run_experiment
    >>> from longterm.lab.experiments.spec_tables import spec_of
    >>> problem = {"name": "doubly_stochastic", "size": 3}
    >>> spec = spec_of({"problem": problem, "learners": [{"learner": "aogd"}], "rounds": 100, "engine": "numpy"})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run_experiment(spec, folder, backend=Backend(workers=1), out=io.StringIO())
    >>> result.curves[0].name, result.curves[0].measures["regret"].shape[1]
    ('A-OGD', 10)
    """
    out = out or sys.stderr
    engine = engine_for(spec)
    if spec.engine == "auto":
        out.write(f"{spec.name}: engine {engine} ({ENGINE_REASONS[engine]}; --engine chooses)\n")
    spec = replace(spec, engine=engine)
    results = ResultFolder(folder)
    with results.opened_for(spec, versions(engine)):
        with open_backend(backend or Backend()) as do:
            prepared = results.read(Job("problem"))
            if prepared is None:
                for record in do(prepare, [(spec,)]):
                    results.store(record)
                prepared = results.require(Job("problem"))
            unfinished = {job.stem for job in results.unfinished(all_jobs(spec, prepared))}
            todo = [batch for batch in batches(spec, prepared) if not unfinished.isdisjoint(job.stem for job in batch)]
            done, total, failures = 0, len(unfinished), []
            with reporter("auto", spec.name, unit="runs", lines=out) as report:
                for records in do(work, [(spec, batch, prepared) for batch in todo]):
                    new = [record for record in records if record[0]["job"] in unfinished]
                    failures += [content["failed"] for content, _ in new if "failed" in content]
                    results.store(*(record for record in new if "failed" not in record[0]))
                    done += len(new)
                    report(done, total)
        if failures:
            hidden = len(failures) - MAX_LISTED
            listed = "\n  ".join([*failures[:MAX_LISTED], *([f"… and {hidden} more"] if hidden > 0 else [])])
            raise LongtermError(
                f"{len(failures)} runs stopped:\n  {listed}\nThe others are kept: correct the error and run again"
            )
        result = load_result(folder)
        write_json(results.path / "summary.json", summary_of(result))
    return result


def versions(engine: str) -> dict[str, str]:
    """Return the versions that the numbers may depend on."""
    packages = ["numpy", "scipy", *(["jax", "jaxlib"] if engine == "jax" else [])]
    found = {name: version(name) for name in packages if find_spec(name) is not None}
    return {"python": platform.python_version(), "longterm": longterm.__version__, **found}


def engine_for(spec: ExperimentSpec) -> Engine:
    """Return the engine of the specification, or the faster one for all sequences together."""
    if spec.engine != "auto":
        return spec.engine
    problem = find_problem(spec.problem.name)
    rounds = spec.rounds if spec.rounds is not None else problem.rounds(spec.problem.parameters)
    builders = (problem.build, *(find_learner(one.learner).build for one in spec.learners))
    return faster_engine(None if rounds is None else rounds * len(spec.seeds), builders)
