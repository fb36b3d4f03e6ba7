"""A result as a section of the page: what the reader came for first, then how it came about."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from longterm.experiments.result import Curve, Remark, Result
from longterm.report.chart import chart
from longterm.report.components import Section, command, details, facts, tiles
from longterm.report.html import Html, join, tag
from longterm.report.tables import regret_table, rounds_table, violation_table
from longterm.report.words import (
    ROLE_WORDS,
    extent,
    gap_in_words,
    mean_and_deviation,
    number,
    problem_facts,
    seeds_in_words,
    share,
)

VERDICTS = {
    "matches": ("Matches the paper", "✓"),
    "differs": ("Differs from the paper", "≠"),
    "note": ("Worth knowing", "i"),
}
WANTED_GAP = 1e-6
"""What every comparator is asked to certify, as a share of its loss."""


def experiment_section(result: Result, id: str) -> Section:
    """One experiment."""
    body = join(
        tiles(headlines(result)),
        regret_table(result).html(),
        violation_table(result).html(),
        tag("h3", "Figures"),
        chart(result, id),
        _remarks(result.remarks),
        tag("h3", "What was run"),
        _what_was_run(result),
        tag("h3", "The best in hindsight, certified"),
        tag("p", certificate(result)),
        tag("h3", "Run it again"),
        command(result.command),
        details("Numbers behind the figures", *(rounds_table(result, measure).html() for measure in result.measures)),
        details("Full specification", tag("pre", tag("code", _as_json(result.spec)), tabindex=0)),
        details("Versions", facts(result.versions.items())),
    )
    return Section(id, result.title, body, kicker=f"{result.name} · {extent(result)}")


def headlines(result: Result) -> list[tuple[str, str, str]]:
    """What it is, the number, and whose it is."""
    regret, broken = least(result, "regret"), least(result, "hard_violation")
    gap = float(np.max(result.certified_gap))
    lines = [
        ("Least regret", _mean_and_std(regret[0], "regret"), _whose(regret, "regret")),
        ("Least hard violation", _mean_and_std(broken[0], "hard_violation"), _whose(broken, "hard_violation")),
        ("Certified gap", gap_in_words(gap), "of the best in hindsight, as a share of its loss"),
    ]
    compared = against_the_paper(result.remarks)
    return [*lines, ("Beside the paper", compared, "with reasons, below")] if compared else lines


def least(result: Result, measure: str) -> list[Curve]:
    """The curves that end lowest: several where they tie."""
    ends = np.array([curve.mean(measure)[-1] for curve in result.curves])
    return [curve for curve, end in zip(result.curves, ends, strict=True) if end == ends.min()]


def against_the_paper(remarks: Sequence[Remark]) -> str:
    """How many findings agree with the paper and how many do not; nothing where none was compared."""
    counts = {verdict: sum(remark.verdict == verdict for remark in remarks) for verdict in ("matches", "differs")}
    words = {"matches": ("matches", "match"), "differs": ("differs", "differ")}
    return ", ".join(f"{n} {words[verdict][n != 1]}" for verdict, n in counts.items() if n)


def certificate(result: Result) -> str:
    """How exact the comparator is, and what that means for regret."""
    gap = float(np.max(result.certified_gap))
    if not np.isfinite(gap):
        return (
            "Some of the comparators carry no certificate: true regret may be higher than shown by an unknown amount."
        )
    if gap == 0:
        return "The best fixed decision is known in closed form at every kept round: regret is exact, to rounding."
    kept = "which is" if gap <= WANTED_GAP else "which is not"
    return (
        f"At every kept round of every sequence, no feasible point has a loss lower than the comparator's by more than "
        f"{number(gap)} of it, {kept} within the {number(WANTED_GAP)} that is asked for. True regret is at least what "
        "is shown, and at most that share of the comparator's loss higher."
    )


def _mean_and_std(curve: Curve, measure: str) -> str:
    return mean_and_deviation(float(curve.mean(measure)[-1]), float(curve.std(measure)[-1]))


def _whose(curves: list[Curve], measure: str) -> str:
    names = "; ".join(curve.name for curve in curves)  # names have commas in them
    if len(curves) > 1 or measure not in curves[0].bounds or not curves[0].bounds[measure][-1] > 0:
        return names
    return f"{names}: {share(float(curves[0].mean(measure)[-1] / curves[0].bounds[measure][-1]))} of its bound"


def _remarks(remarks: Sequence[Remark]) -> Html:
    """By verdict, agreement first."""
    if not remarks:
        return Html()
    items = [
        tag(
            "li",
            tag("span", VERDICTS[verdict][1], class_="mark", aria_hidden="true"),
            tag("div", tag("strong", VERDICTS[verdict][0]), tag("p", remark.text)),
            class_=verdict,
        )
        for verdict in VERDICTS
        for remark in remarks
        if remark.verdict == verdict
    ]
    heading = "What matches the paper, what does not, and why" if against_the_paper(remarks) else "Remarks"
    return join(tag("h3", heading), tag("ul", *items, class_="remarks"))


def _what_was_run(result: Result) -> Html:
    played = [
        ("Rounds T", f"{int(result.rounds[-1]):,}"),
        ("Sequences", f"{len(result.seeds)}, {seeds_in_words(result.seeds)}"),
    ]
    drawn = any(curve.role == "paper" for curve in result.curves)  # else none of them has anything to do with it
    learners = [
        (
            curve.name,
            (curve.learner or "parameters as in the specification below")
            + (f" ({ROLE_WORDS[curve.role]})" if drawn else ""),
        )
        for curve in result.curves
    ]
    problem = {key: value for key, value in result.problem.items() if key != "rounds"}
    return join(
        facts([*problem_facts(problem), *played]),
        tag("h4", "Learners"),
        facts(learners, wide=True),
    )


def _as_json(spec: Any) -> str:
    return json.dumps(spec, indent=2, ensure_ascii=False, default=str)
