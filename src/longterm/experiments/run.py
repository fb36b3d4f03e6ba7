"""Running a specification into a folder, where only what is missing is computed; and reading a folder back."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from longterm._arrays import FloatArray
from longterm.engines.selection import Engine, faster_engine
from longterm.errors import LongtermError
from longterm.experiments.catalogue import find_learner, find_problem, names_only
from longterm.experiments.folder import ResultFolder
from longterm.experiments.jobs import Backend, Job, opened, work
from longterm.experiments.paper import remarks_on
from longterm.experiments.result import LOGGED, MEASURES, Curve, Result, by_measure, without_rounding
from longterm.experiments.spec import ExperimentSpec, LearnerSpec
from longterm.progress import reporter

ENGINE_REASONS = {"numpy": "compiling is not known to pay", "jax": "long enough to pay for compiling"}


def run_experiment(
    spec: ExperimentSpec, folder: str | Path, *, backend: Backend | None = None, out: TextIO | None = None
) -> Result:
    """Run what the specification asks for and is not in the folder yet.

    A run that was stopped (an interrupt, a killed process, a lost worker) goes on where it was, and ends with the same
    files, byte for byte, as one that was not; only timings.json differs.

    Parameters
    ----------
    spec : ExperimentSpec
        What to run.
    folder : str or pathlib.Path
        Made where it is missing; one that holds another experiment is refused.
    backend : Backend, optional
        Who does the work; left out, processes of this machine, one for each core.
    out : text stream, optional
        Where progress goes; left out, stderr.

    Returns
    -------
    Result
        What `load_result` reads from the folder.

    Examples
    --------
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
    if spec.engine == "auto":
        (out or sys.stderr).write(
            f"{spec.name}: engine {decided.engine} ({ENGINE_REASONS[decided.engine]}; --engine chooses)\n"
        )
    kept = ResultFolder(folder)
    with kept.locked():
        kept.open_for(decided, versions(decided.engine))
        prepared = kept.read(Job("problem"))
        todo, done = kept.missing(decided), 0
        failed: list[str] = []
        with reporter("auto", spec.name, unit="jobs", lines=out or sys.stderr) as report, opened(chosen) as do:
            for jobs in (
                [job for job in todo if job.kind == "problem"],
                [job for job in todo if job.kind != "problem"],
            ):
                for content, seconds in do(work, [(decided, job, prepared) for job in jobs]):
                    if "failed" in content:
                        failed.append(content["failed"])
                    else:
                        kept.keep(content, seconds)
                    done += 1
                    report(done, len(todo))
                prepared = kept.read(Job("problem"))
        if failed:
            stopped = "\n  ".join(failed)
            raise LongtermError(f"{len(failed)} runs stopped:\n  {stopped}\nThe others are kept: correct it, run again")
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
    """The engine that is named; else the faster one, by the rule of `longterm.run` for all sequences together."""
    if spec.engine != "auto":
        return spec.engine
    problem = find_problem(spec.problem.name)
    rounds = spec.rounds if spec.rounds is not None else problem.rounds(spec.problem.parameters)
    builders = (problem.build, *(find_learner(one.learner).build for one in spec.learners))
    return faster_engine(None if rounds is None else rounds * len(spec.seeds), builders)


ON_THE_BOUNDARY = 1e-6
"""A share of the budget; what a comparator leaves unused may be as small as this and it still counts as spent."""


def load_result(folder: str | Path) -> Result:
    """What the folder of a finished experiment holds.

    Parameters
    ----------
    folder : str or pathlib.Path
        One that `longterm run`, `longterm reproduce` or `run_experiment` wrote.

    Returns
    -------
    Result
        As `run_experiment` returned it.
    """
    with names_only():
        return _read_result(Path(folder))


def _read_result(folder: Path) -> Result:
    kept = ResultFolder(folder)
    manifest, spec = kept.manifest, kept.spec
    prepared, bounds = kept.require(Job("problem")), kept.require(Job("bounds"))
    best = [kept.require(Job("comparator", seed=seed)) for seed in spec.seeds]
    loss, gap = _columns(best, "loss"), _columns(best, "gap")
    curves = tuple(
        _curve(
            curve,
            [kept.require(Job("run", curve, seed)) for seed in spec.seeds],
            loss,
            bounds,
            prepared["facts"]["constants"]["constraint_bound"],
        )
        for curve in spec.curves
    )
    result = Result(
        name=spec.name,
        title=spec.title,
        problem=_facts(prepared, best),
        rounds=np.asarray(bounds["rounds"], dtype=np.int64),
        seeds=spec.seeds,
        curves=curves,
        certified_gap=_shares(gap, loss, np.asarray(bounds["rounds"])),
        spec=manifest["spec"],
        versions=manifest["versions"],
        command=_again(spec, Path(folder)),
    )
    return replace(result, remarks=remarks_on(result, _warnings(kept, spec)))


def _shares(gap: FloatArray, loss: FloatArray, rounds: NDArray[np.int64]) -> FloatArray:
    """Gaps as shares of the losses; where a loss is next to nothing, of a thousandth of what such rounds cost later."""
    scale = np.maximum(np.abs(loss), 1e-3 * np.abs(loss[-1]) * (rounds / rounds[-1])[:, None])
    return np.asarray(np.divide(gap, scale, out=np.where(gap > 0, np.inf, 0.0), where=scale != 0))


def summary_of(result: Result) -> dict[str, Any]:
    """The last round of every curve, mean and deviation over the sequences.

    `certified_gap` is the largest of all kept rounds and sequences, as a share of the comparator's loss.

    Parameters
    ----------
    result : Result
        Of `run_experiment`.

    Returns
    -------
    dict
        `curves`, by name and measure, and `problem`: what summary.json holds.
    """
    worst = float(result.certified_gap.max())
    return {
        "curves": {
            curve.name: {
                measure: {"mean": float(curve.mean(measure)[-1]), "std": float(curve.std(measure)[-1])}
                for measure in result.measures
            }
            | {"certified_gap": worst}
            for curve in result.curves
        },
        "problem": dict(result.problem),
    }


def _curve(
    spec: LearnerSpec, runs: Sequence[Mapping[str, Any]], best: FloatArray, bounds: Mapping[str, Any], largest: float
) -> Curve:
    """The curve of a learner; `largest` is D, beside which what is rounding is told."""
    found = {name: np.array([run["measures"][name] for run in runs]).T for name in runs[0]["measures"]}
    found = by_measure(found) | {"regret": found["cumulative_loss"] - best}
    scales: dict[str, Any] = {"regret": np.abs(best), "squared_violation": largest**2}
    measures = {
        name: without_rounding(found[name], scales.get(name, largest)) for name in (*MEASURES, LOGGED) if name in found
    }
    words = ", ".join(
        f"{key} = {value:.6g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in spec.parameters.items()
    )
    return Curve(
        name=spec.name,
        role=spec.role,
        measures=measures,
        bounds=by_measure({name: np.asarray(values) for name, values in bounds["bounds"][spec.name].items()}),
        printed_bounds={name: np.asarray(values) for name, values in bounds["printed_bounds"][spec.name].items()}
        if spec.role != "own"  # nobody's own run is held against what a paper prints
        else {},
        read_off=spec.read_off,
        learner=f"{spec.learner}({words})",
    )


def _facts(prepared: Mapping[str, Any], best: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The problem's own facts, and where the comparators of the last round lie."""
    facts = dict(prepared["facts"]) | {"rounds": prepared["rounds"]}
    if facts.get("budget") is None or "constraint" not in best[0]:
        return facts
    unused = max(-one["constraint"][-1] for one in best) / facts["budget"]
    nonzeros = [int(np.count_nonzero(one["x"])) for one in best]
    return facts | {
        "comparator_unused_budget": unused if unused > 1e-9 else 0.0,  # less is rounding, on either side
        "comparator_on_the_boundary": bool(abs(unused) <= ON_THE_BOUNDARY),
        "comparator_nonzeros": float(np.mean(nonzeros)),
    }


def _warnings(kept: ResultFolder, spec: ExperimentSpec) -> dict[str, list[str]]:
    """What the runs of a curve were warned of, once."""
    noted = {
        c.name: [w for s in spec.seeds for w in kept.require(Job("run", c, s)).get("warnings", [])] for c in spec.curves
    }
    return {name: sorted(set(texts)) for name, texts in noted.items() if texts}


def _columns(records: Sequence[Mapping[str, Any]], name: str) -> FloatArray:
    """Rounds first, then the sequences."""
    return np.array([record[name] for record in records], dtype=np.float64).T


def _again(spec: ExperimentSpec, folder: Path) -> str:
    """The command that makes it anew, in its place."""
    if not spec.command:
        return shlex.join(["longterm", "run", str(folder / "manifest.json")])
    place = folder.parent  # of an experiment of the paper
    return spec.command if str(place) == "results" else f"{spec.command} --out {shlex.quote(str(place))}"
