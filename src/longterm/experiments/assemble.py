"""From the files of a folder to a `Result`, a summary, and pandas frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.experiments.folder import ResultFolder
from longterm.experiments.jobs import Job
from longterm.experiments.remarks import remarks_on
from longterm.experiments.result import MEASURES, Curve, Result
from longterm.experiments.spec import ExperimentSpec, LearnerSpec

ON_THE_BOUNDARY = 1e-6
"""A share of the budget; what a comparator leaves unused may be as small as this and it still counts as spent."""


def load_result(folder: str | Path) -> Result:
    """What the folder of a finished experiment holds."""
    kept = ResultFolder(folder)
    manifest, spec = kept.manifest, kept.spec
    prepared, bounds = _read(kept, Job("problem")), _read(kept, Job("bounds"))
    best = [_read(kept, Job("comparator", seed=seed)) for seed in spec.seeds]
    loss, gap = _columns(best, "loss"), _columns(best, "gap")
    curves = tuple(
        _curve(curve, [_read(kept, Job("run", curve, seed)) for seed in spec.seeds], loss, bounds)
        for curve in spec.curves
    )
    result = Result(
        name=spec.name,
        title=spec.title,
        problem=_facts(prepared, best),
        rounds=np.asarray(bounds["rounds"], dtype=np.int64),
        seeds=spec.seeds,
        curves=curves,
        certified_gap=np.divide(gap, np.abs(loss), out=np.where(gap > 0, np.inf, 0.0), where=loss != 0),
        spec=manifest["spec"],
        versions=manifest["versions"],
        command=spec.command or f"longterm run {Path(folder) / 'manifest.json'}",
    )
    return replace(result, remarks=remarks_on(result, _warnings(kept, spec)))


def summary_of(result: Result) -> dict[str, Any]:
    """The last round of every curve, mean and deviation over the sequences.

    `certified_gap` is the largest of all kept rounds and sequences, as a share of the comparator's loss.
    """
    worst = float(result.certified_gap.max())
    return {
        "curves": {
            curve.name: {
                measure: {"mean": float(curve.mean(measure)[-1]), "std": float(curve.std(measure)[-1])}
                for measure in MEASURES
            }
            | {"certified_gap": worst}
            for curve in result.curves
        },
        "problem": dict(result.problem),
    }


def _curve(spec: LearnerSpec, runs: Sequence[Mapping[str, Any]], best: FloatArray, bounds: Mapping[str, Any]) -> Curve:
    found = {name: np.array([run["measures"][name] for run in runs]).T for name in runs[0]["measures"]}
    measures = {"regret": found["cumulative_loss"] - best} | {name: found[name] for name in MEASURES[1:]}
    words = ", ".join(
        f"{key} = {value:.6g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in spec.parameters.items()
    )
    return Curve(
        name=spec.name,
        role=spec.role,
        measures=measures,
        bounds={name: np.asarray(values) for name, values in bounds["bounds"][spec.name].items()},
        printed_bounds={name: np.asarray(values) for name, values in bounds["printed_bounds"][spec.name].items()},
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
        "comparator_unused_budget": max(unused, 0.0) + 0.0,  # no −0
        "comparator_on_the_boundary": bool(abs(unused) <= ON_THE_BOUNDARY),
        "comparator_nonzeros": float(np.mean(nonzeros)),
    }


def _warnings(kept: ResultFolder, spec: ExperimentSpec) -> dict[str, list[str]]:
    """What the runs of a curve were warned of, once."""
    said = {
        c.name: [w for s in spec.seeds for w in _read(kept, Job("run", c, s)).get("warnings", [])] for c in spec.curves
    }
    return {name: sorted(set(texts)) for name, texts in said.items() if texts}


def _read(kept: ResultFolder, job: Job) -> dict[str, Any]:
    content = kept.read(job)
    if content is None:
        what = f"runs/{job.stem}.json is missing or damaged"
        raise InputError(str(kept.path), what, "Run the same specification into it again: only this is computed")
    return content


def _columns(records: Sequence[Mapping[str, Any]], name: str) -> FloatArray:
    """Rounds first, then the sequences."""
    return np.array([record[name] for record in records], dtype=np.float64).T
