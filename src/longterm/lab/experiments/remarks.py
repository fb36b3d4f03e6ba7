"""Remarks that every result has: values read off figures, bounds, the comparator's certificate, warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from longterm.lab.experiments.result import LOGGED, Curve, Remark, Result
from longterm.play.engines.sums import ROUNDING_SHARE

LABELS = {
    "regret": "regret",
    "signed_violation": "signed violation",
    "hard_violation": "hard violation",
    "squared_violation": "squared violation",
    "long_term_violation": "long-term violation",
    LOGGED: "signed violation over logged rounds",
}
READING_ACCURACY = 0.1
"""A value within this share of one read off a figure by eye counts as equal."""
MAX_NAMES = 8
"""Curves that a remark names; of more it gives the number."""


def remarks_on(result: Result, warnings: Mapping[str, Sequence[str]]) -> tuple[Remark, ...]:
    """Return the remarks on a result; `warnings` has the warnings of the runs, by curve."""
    notes = [Remark("note", f"{name}: {text}") for name, texts in warnings.items() for text in texts]
    return (*_compare_with_figures(result), _check_bounds(result), _certificate(result), *notes)


def is_near_figure(curve: Curve, measure: str) -> bool:
    """Return whether the last round equals the value read off a figure, to reading accuracy or the deviation."""
    distance = abs(curve.mean(measure)[-1] - curve.read_off[measure])
    return bool(distance <= max(READING_ACCURACY * abs(curve.read_off[measure]), float(curve.std(measure)[-1])))


def _compare_with_figures(result: Result) -> Iterator[Remark]:
    for curve in result.curves:
        for measure, value in curve.read_off.items():
            text = (
                f"{curve.name}: {LABELS[measure]} {curve.last(measure)} beside about {value:,g} read off the "
                "paper's figure."
            )
            yield Remark("matches" if is_near_figure(curve, measure) else "differs", text)


def _check_bounds(result: Result) -> Remark:
    """Compare every curve with its theorem's bounds, in every recorded round of every sequence."""
    broken = [f"{curve.name} ({LABELS[measure]})" for curve in result.curves for measure in _broken_bounds(curve)]
    proven = [curve.name for curve in result.curves if curve.bounds]
    if broken:
        return Remark(
            "alarm", f"A measured value is above the bound of its theorem: {'; '.join(broken)}. This should not happen."
        )
    if not proven:
        return Remark("note", "No curve here has a theorem with a bound.")
    names = f"all {len(proven)}" if MAX_NAMES < len(proven) == len(result.curves) else list_names(proven, MAX_NAMES)
    return Remark("note", f"Every measured value is below the bound of its theorem, for these learners: {names}.")


def _broken_bounds(curve: Curve) -> list[str]:
    return [
        measure
        for measure, bound in curve.bounds.items()
        if np.any(curve.measures[measure] > bound[:, None] * (1 + ROUNDING_SHARE))
    ]


def list_names(names: Sequence[str], most: int) -> str:
    """Return the names; of many, the first few and the number of the others."""
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])


def _certificate(result: Result) -> Remark:
    worst = float(result.certified_gap.max())
    where = f"at each of the {len(result.rounds)} recorded rounds of every sequence"
    if worst == 0:
        return Remark("note", f"The best decisions in hindsight are exact, {where}: they have a closed form.")
    if not np.isfinite(worst):
        return Remark("note", "Some best decisions in hindsight have no certificate: the true regret may be larger.")
    return Remark(
        "note",
        f"The best decisions in hindsight are certified: {where} the relative gap is at most {worst:.2g}. The true "
        "regret exceeds the value shown by at most that share of their loss.",
    )
