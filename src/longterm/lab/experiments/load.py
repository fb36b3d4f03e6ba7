"""Reading the result of an experiment from its folder."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm._base.arrays import FloatArray
from longterm.catalogue.lookup import names_only
from longterm.lab.experiments.folder import ResultFolder
from longterm.lab.experiments.jobs import Job, seeds_of
from longterm.lab.experiments.remarks import remarks_on
from longterm.lab.experiments.result import LOGGED, MEASURES, Curve, Result
from longterm.lab.experiments.spec import ExperimentSpec, LearnerSpec
from longterm.play.engines.sums import zero_rounding

BOUNDARY_SHARE = 1e-6
"""A comparator is on the boundary if it leaves at most this share of the budget unused."""


@names_only()
def load_result(folder: str | Path) -> Result:
    """Read a finished experiment; no module that its manifest names is imported.

    Parameters
    ----------
    folder : str or pathlib.Path
        A folder that `longterm run`, `longterm reproduce` or `run_experiment` wrote.

    Returns
    -------
    Result
        As `run_experiment` returned it.
    """
    results = ResultFolder(folder)
    manifest, spec = results.manifest, results.spec
    prepared = results.require(Job("problem"))
    seeds = seeds_of(spec, prepared)
    best = [results.require(Job("comparator", seed=seed)) for seed in seeds]
    runs = {curve.name: [results.require(Job("run", curve, seed)) for seed in seeds] for curve in spec.curves}
    rounds = np.asarray(best[0]["rounds"], dtype=np.int64)
    loss, gap = _columns(best, "loss"), _columns(best, "gap")
    D = prepared["facts"]["constants"]["constraint_bound"]
    result = Result(
        name=spec.name,
        title=spec.title,
        problem=_facts(prepared, best),
        rounds=rounds,
        seeds=seeds,
        curves=tuple(_curve(curve, runs[curve.name], loss, D) for curve in spec.curves),
        certified_gap=_relative_gap(gap, loss, rounds),
        spec=manifest["spec"],
        versions=manifest["versions"],
        command=_rerun_command(spec, results.path),
    )
    warnings = {
        name: sorted({text for run in found for text in run.get("warnings", [])}) for name, found in runs.items()
    }
    return replace(result, remarks=remarks_on(result, warnings))


def _relative_gap(gap: FloatArray, loss: FloatArray, rounds: NDArray[np.int64]) -> FloatArray:
    """Return gaps relative to the losses; a loss near 0 is replaced by a thousandth of the final loss per round."""
    scale = np.maximum(np.abs(loss), 1e-3 * np.abs(loss[-1]) * (rounds / rounds[-1])[:, None])
    return np.asarray(np.divide(gap, scale, out=np.where(gap > 0, np.inf, 0.0), where=scale != 0))


def summary_of(result: Result) -> dict[str, Any]:
    """Return the last round of every curve: mean and standard deviation over the sequences.

    `certified_gap` is the largest relative gap of all recorded rounds and sequences.

    Parameters
    ----------
    result : Result
        A finished experiment.

    Returns
    -------
    dict
        The content of summary.json: `curves`, by name and measure, and `problem`.
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


def _curve(spec: LearnerSpec, runs: Sequence[Mapping[str, Any]], best: FloatArray, D: float) -> Curve:
    """Return the curve of a learner; values that are rounding relative to D become 0."""
    found = {name: _columns([run["measures"] for run in runs], name) for name in runs[0]["measures"]}
    found["regret"] = found["cumulative_loss"] - best
    scales: dict[str, Any] = {"regret": np.abs(best), "squared_violation": D**2}
    parameters = ", ".join(
        f"{key} = {value:.6g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in spec.parameters.items()
    )
    return Curve(
        name=spec.name,
        role=spec.role,
        measures={
            name: zero_rounding(found[name], scales.get(name, D)) for name in (*MEASURES, LOGGED) if name in found
        },
        bounds={name: np.asarray(values) for name, values in runs[0]["bounds"].items()},
        # The user's own curves are not compared with what a paper prints.
        printed_bounds={
            name: np.asarray(values) for name, values in runs[0]["printed_bounds"].items() if spec.role != "own"
        },
        read_off=spec.read_off,
        learner=f"{spec.learner}({parameters})",
    )


def _facts(prepared: Mapping[str, Any], best: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the problem's facts and, with a budget, the share of it that the comparators use."""
    facts = dict(prepared["facts"]) | {"rounds": prepared["rounds"]}
    if facts.get("budget") is None or "constraint" not in best[0]:
        return facts
    unused = max(-one["constraint"][-1] for one in best) / facts["budget"]
    nonzeros = [int(np.count_nonzero(one["x"])) for one in best]
    return facts | {
        "comparator_unused_budget": unused if unused > 1e-9 else 0.0,  # below is rounding
        "comparator_on_the_boundary": bool(abs(unused) <= BOUNDARY_SHARE),
        "comparator_nonzeros": float(np.mean(nonzeros)),
    }


def _columns(records: Sequence[Mapping[str, Any]], name: str) -> FloatArray:
    """Return one field of several records, rounds first, then the sequences."""
    return np.array([record[name] for record in records], dtype=np.float64).T


def _rerun_command(spec: ExperimentSpec, folder: Path) -> str:
    """Return the command that runs the experiment again into the same folder."""
    if not spec.command:
        return shlex.join(["longterm", "run", str(folder / "manifest.json")])
    parent = folder.parent  # of the paper's experiments
    return spec.command if str(parent) == "results" else f"{spec.command} --out {shlex.quote(str(parent))}"
