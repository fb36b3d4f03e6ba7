"""What the reader of a result should know, found in the measured numbers: what matches, what differs, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from longterm.experiments.paper import OF_THE_PAPER, WITH_A_BUDGET
from longterm.experiments.remarks_on_paper import is_near, on_budgets, on_doubly_stochastic
from longterm.experiments.result import Curve, Remark, Result

LABELS = {
    "regret": "regret",
    "signed_violation": "signed violation",
    "hard_violation": "hard violation",
    "squared_violation": "squared violation",
    "per_constraint_violation": "largest violation of one constraint",
}


def remarks_on(result: Result, warnings: Mapping[str, Sequence[str]]) -> tuple[Remark, ...]:
    """All that can be said; `warnings` are what the runs were warned of, by curve."""
    made = [*_read_off(result)]
    drawn = any(curve.role == "paper" for curve in result.curves)  # a user's experiment may have any name
    if drawn and result.name == "dsm" and "size" in result.problem:
        made += on_doubly_stochastic(result)
    elif drawn and result.name in WITH_A_BUDGET and "offline_nonzeros" in result.problem:
        made += on_budgets(result, of_the_paper=result.name in OF_THE_PAPER)
    made += [_bounds(result), _certificate(result)]
    made += [Remark("note", f"{name}: {text}") for name, texts in warnings.items() for text in texts]
    return tuple(made)


def _read_off(result: Result) -> Iterator[Remark]:
    for curve in result.curves:
        for measure, value in curve.read_off.items():
            text = (
                f"{curve.name}: {LABELS[measure]} {curve.last(measure)} beside about {value:,g} read off the "
                "paper's figure."
            )
            yield Remark("matches" if is_near(curve, measure) else "differs", text)


def _bounds(result: Result) -> Remark:
    """Whether every curve keeps what its theorem promises, in every kept round of every sequence."""
    broken = [f"{curve.name} ({LABELS[measure]})" for curve in result.curves for measure in _above(curve)]
    proven = [curve.name for curve in result.curves if curve.bounds]
    if broken:
        return Remark("differs", f"Above the bound of its theorem: {'; '.join(broken)}. That should not happen.")
    if not proven:
        return Remark("note", "No curve here has a theorem to be held against.")
    return Remark("note", f"Below the bounds of their theorems, with the exact constants: {'; '.join(proven)}.")


def _above(curve: Curve) -> list[str]:
    return [m for m, bound in curve.bounds.items() if np.any(curve.measures[m] > bound[:, None] * (1 + 1e-9))]


def _certificate(result: Result) -> Remark:
    worst = float(result.certified_gap.max())
    where = f"at each of the {len(result.rounds)} kept rounds of every sequence"
    if worst == 0:
        return Remark("note", f"The best decisions in hindsight are exact, {where}: they have a closed form.")
    return Remark(
        "note",
        f"The best decisions in hindsight are certified: {where} the loss is at most {worst:.2g} of itself above the "
        "least.",
    )
