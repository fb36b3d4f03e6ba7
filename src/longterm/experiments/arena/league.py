"""The ranking: one number for each learner, by a trade-off of the reader's between regret and violation.

For a measure of a problem, v_i is what learner i has after T rounds, mean over the sequences, and nothing below 0
counts: [v_i]₊. Its scale s is the median of the positive ones among all learners that played the problem (1 where
there is none); the settings of one learner have one vote together, so that a family of near twins does not move the
median. The learner's share is

    u_i = [v_i]₊ / ([v_i]₊ + s):     0 where nothing was lost, ½ for the learner in the middle, near 1 for the worst.

A learner's score is the mean over all problems of (1 − weight) u_i(regret) + weight u_i(violation); a problem that it
cannot play counts ½, as if it had been in the middle: not to turn up neither helps nor harms. Less is better. Shares do
not depend on the units of losses and constraints, and no single problem can weigh more than another; they do depend on
who else plays.

**The tables** of an arena: for the terminal, as CSV and as JSON. Times are kept apart: all else is the same every time.

league.csv     a line for each learner, by rank
matches.csv    a line for each learner on each problem, refusals with their reason
arena.json     both, what was asked for, and what was left out
speed.csv      µs per round
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.experiments.arena.results import MEASURED, ROUNDING, ArenaResult, Match
from longterm.experiments.folder import JobFolder
from longterm.storage.files import write_atomically

Violation = Literal["long-term", "signed", "hard", "squared", "largest"]
"""max_j Σ_t g_j(x_t); Σ_t max_j g_j(x_t); Σ_t [·]₊; Σ_t [·]₊²; the worst single round."""
MEASURE_OF: Mapping[str, str] = {
    "long-term": "long_term_violation",
    "signed": "signed_violation",
    "hard": "hard_violation",
    "squared": "squared_violation",
    "largest": "largest_violation",
}
ABSENT = 0.5
"""What a problem counts that a learner cannot play."""


@dataclass(frozen=True)
class Preference:
    """What the reader cares about: the share of violation against regret, and which violation."""

    weight: float = 0.5
    violation: Violation = "long-term"

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise InputError("weight", f"{self.weight!r} is not between 0 and 1", "0: regret alone, 1: violation alone")
        if self.violation not in get_args(Violation):
            known = list(get_args(Violation))
            raise InputError("violation", f"{self.violation!r} is not known", f"Choose from {known}")

    @property
    def measure(self) -> str:
        """The name of the violation among the measures."""
        return MEASURE_OF[self.violation]


@dataclass(frozen=True, eq=False)
class Standing:
    """One learner's line of the league table."""

    rank: int
    learner: str
    score: float
    shares: Mapping[str, float]
    """Of each measure, the mean over all problems: the score is (1 − weight) · regret + weight · violation."""
    matches: tuple[Match, ...]
    """Those that it played."""
    deviation: float = 0.0
    """The standard error of the score, from the sequences one by one; 0 where there is but one."""
    tied: bool = False
    """Whether it is behind the one before by less than twice the standard error of their difference."""

    def __repr__(self) -> str:
        rank, error = f"{self.rank}{'=' if self.tied else ''}", f" ± {self.deviation:.3f}" if self.deviation else ""
        return f"Standing({rank}, {self.learner!r}, score {self.score:.3f}{error}, {len(self.matches)} played)"

    def slope(self, measure: str) -> float | None:
        """The median over the problems where there is one."""
        found = [slope for match in self.matches if (slope := match.slope(measure)) is not None]
        return float(np.median(found)) if found else None

    @property
    def bound_ratio(self) -> float | None:
        """The largest ratio of measured to bound, of any sequence, measure and problem."""
        found = [single for match in self.matches for single, _ in match.ratios.values()]
        return max(found) if found else None

    def verdicts(self, verdict: str) -> int:
        """On how many problems."""
        return sum(match.verdict == verdict for match in self.matches)

    @property
    def microseconds(self) -> float | None:
        """The median over the problems."""
        found = [match.microseconds for match in self.matches if match.microseconds is not None]
        return float(np.median(found)) if found else None


def shares(values: Sequence[float], votes: Sequence[float] | None = None) -> list[float]:
    """Each value's u; `votes` say how much each counts in the median, all alike where they are left out.

    Examples
    --------
    >>> from longterm.experiments.arena.league import shares
    >>> shares([-3.0, 0.0, 1.0, 3.0, 9.0])
    [0.0, 0.0, 0.25, 0.5, 0.75]
    >>> shares([1.0, 1.0, 1.0, 3.0, 9.0], votes=[1 / 3, 1 / 3, 1 / 3, 1.0, 1.0])  # as if there were one of the three
    [0.25, 0.25, 0.25, 0.5, 0.75]
    """
    lost = np.maximum(np.asarray(values, dtype=np.float64), 0.0)
    return [float(share) for share in lost / (lost + _scale(values, votes))]


def league(arena: ArenaResult, preference: Preference | None = None) -> list[Standing]:
    """The league table, the best first; equal scores share a rank.

    Parameters
    ----------
    arena : ArenaResult
    preference : Preference, optional
        The trade-off; left out, half regret, half long-term violation.

    Returns
    -------
    list of Standing
    """
    chosen = Preference() if preference is None else preference
    measures = ("regret", *MEASURE_OF.values())
    found: dict[tuple[str, str], list[float]] = {}
    each: dict[tuple[str, str], list[FloatArray]] = {}
    sequences = max((len(match.measures["regret"][-1]) for match in arena.matches if not match.refused), default=1)
    for problem in arena.problems:
        present, votes = {match.learner: match for match in arena.played(problem)}, arena.votes(problem)
        for measure in measures:
            lost = [match.lost(measure) for match in present.values()]
            by_learner, scale = dict(zip(present, shares(lost, votes), strict=True)), _scale(lost, votes)
            for learner in arena.learners:
                found.setdefault((learner, measure), []).append(by_learner.get(learner, ABSENT))
                one_by_one = np.full(sequences, ABSENT)
                if learner in present:
                    single = np.maximum(present[learner].measures[measure][-1], 0.0)
                    one_by_one = single / (single + scale)
                each.setdefault((learner, measure), []).append(one_by_one)
    means = {key: float(np.mean(values)) for key, values in found.items()}
    parts = ((1 - chosen.weight, "regret"), (chosen.weight, chosen.measure))
    score = {who: sum(weight * means[who, measure] for weight, measure in parts) for who in arena.learners}
    scores = {
        who: np.sum([weight * np.mean(each[who, measure], axis=0) for weight, measure in parts], axis=0)
        for who in arena.learners
    }
    order = sorted((learner for learner in arena.learners if arena.of(learner)), key=lambda learner: score[learner])

    def behind(learner: str, before: str | None) -> bool:
        return before is None or score[learner] - score[before] >= 2 * _error(scores[learner] - scores[before])

    return [
        Standing(
            1 + sum(score[other] < score[learner] for other in order),
            learner,
            score[learner],
            {measure: means[learner, measure] for measure in measures},
            tuple(arena.of(learner)),
            _error(scores[learner]),
            not behind(learner, before),
        )
        for learner, before in zip(order, [None, *order[:-1]], strict=True)
    ]


def _error(values: FloatArray) -> float:
    """The standard error of their mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _scale(values: Sequence[float], votes: Sequence[float] | None = None) -> float:
    """The median of what is positive, by votes; 1 where nothing is."""
    lost = np.asarray(values, dtype=np.float64)
    weights = np.ones(len(lost)) if votes is None else np.asarray(votes, dtype=np.float64)
    order = np.argsort(lost, kind="stable")
    order = order[lost[order] > 0]
    if not len(order):
        return 1.0
    lost, passed = lost[order], np.cumsum(weights[order])
    half = passed[-1] / 2
    low, high = np.searchsorted(passed, [half * (1 - ROUNDING), half * (1 + ROUNDING)], side="left")
    return float(lost[low] + lost[high]) / 2


def write_tables(arena: ArenaResult, standings: Sequence[Standing], preference: Preference, folder: str | Path) -> None:
    """Write them all."""
    kept = JobFolder(folder)
    leagues = [league_row(one, preference, len(arena.problems)) for one in standings]
    matches = [match_row(one) for one in arena.matches]
    for name, rows in (("league.csv", leagues), ("matches.csv", matches), ("speed.csv", _speed(arena))):
        write_atomically(kept.path / name, _csv(rows))
    asked = {"weight": preference.weight, "violation": preference.violation, **arena.spec.table()}
    problems = {name: dict(about) for name, about in arena.problems.items()}
    content = {"asked": asked, "problems": problems, "left_out": dict(arena.without_data)}
    kept.write_json("arena.json", _finite({**content, "league": leagues, "matches": matches}))


def league_row(one: Standing, preference: Preference, problems: int) -> dict[str, Any]:
    """One learner."""
    first = one.matches[0]
    return {
        "rank": one.rank,
        "learner": one.learner,
        "score": one.score,
        "score_error": one.deviation,
        "tied_with_the_one_before": one.tied,
        "regret_share": one.shares["regret"],
        "violation_share": one.shares[preference.measure],
        "played": len(one.matches),
        "problems": problems,
        "regret_slope": one.slope("regret"),
        "violation_slope": one.slope(preference.measure),
        "bound_ratio": one.bound_ratio,
        "bounds_held": one.verdicts("held"),
        "bounds_held_on_average": one.verdicts("held on average"),
        "bounds_broken": one.verdicts("broken"),
        "oracle": first.oracle,
        "anytime": first.anytime,
        "also_needs": ", ".join(first.also_needs),
    }


def match_row(one: Match) -> dict[str, Any]:
    """One learner on one problem."""
    row: dict[str, Any] = {"learner": one.learner, "problem": one.problem, "refused": one.refused}
    for measure in MEASURED:
        row[measure] = None if one.refused else one.mean(measure)
        row[f"{measure}_std"] = None if one.refused else one.std(measure)
    for measure in MEASURED[:-1]:
        row[f"{measure}_slope"] = None if one.refused else one.slope(measure)
    for measure in MEASURED[:-1]:
        row[f"{measure}_of_bound"] = one.ratios[measure][0] if measure in one.ratios else None
    return {**row, "bounds": one.verdict, "assumptions": " ".join(one.warnings)}


def league_text(arena: ArenaResult, standings: Sequence[Standing], preference: Preference) -> str:
    """For the terminal: the league, then bounds that were broken, refusals by reason, and what was left out."""
    widest = max(len(one.learner) for one in standings) + 2
    columns = ("score", "± error", "regret", "violation", "played", "T^regret", "T^viol.", "of bound", "µs/round")
    lines = [
        f"score = {1 - preference.weight:g} × regret + {preference.weight:g} × {preference.violation} violation, "
        "shares from 0 to 1, less is better",
        " " * (widest + 4) + "".join(f"{column:>10}" for column in columns) + "  anytime  oracle",
    ]
    for one in standings:
        cells = (
            f"{one.score:.3f}",
            f"{one.deviation:.3f}",
            f"{one.shares['regret']:.3f}",
            f"{one.shares[preference.measure]:.3f}",
            f"{len(one.matches)}/{len(arena.problems)}",
            short(one.slope("regret")),
            short(one.slope(preference.measure)),
            short(one.bound_ratio),
            short(one.microseconds, 0),
        )
        first = one.matches[0]
        needs = ", ".join((first.oracle, *first.also_needs))
        lines.append(
            f"{one.rank:>3}{'=' if one.tied else ' '}{one.learner:<{widest}}"
            + "".join(f"{cell:>10}" for cell in cells)
            + f"  {'yes' if first.anytime else 'no':<7}  {needs}"
        )
    lines.append("= behind the one before by less than twice the standard error of their difference: a tie")
    return "\n".join([*lines, *_raw(arena, standings, preference), *_findings(arena)]) + "\n"


def _raw(arena: ArenaResult, standings: Sequence[Standing], preference: Preference, first: int = 6) -> Iterable[str]:
    """What the shares are made of: regret and violation themselves, of the first few, mean ± deviation."""
    for measure in ("regret", preference.measure):
        yield f"\n{measure.replace('_', ' ')} after {arena.spec.rounds} rounds, mean ± deviation over the sequences"
        yield f"{'':<28}" + "".join(f"{one.learner[:22]:>24}" for one in standings[:first])
        for problem in arena.problems:
            cells = []
            for one in standings[:first]:
                match = next((m for m in one.matches if m.problem == problem), None)
                cells.append("–" if match is None else f"{match.mean(measure):.4g} ± {match.std(measure):.2g}")
            yield f"{problem[:27]:<28}" + "".join(f"{cell:>24}" for cell in cells)
    yield ""


def _findings(arena: ArenaResult) -> Iterable[str]:
    for match in arena.matches:
        if match.verdict == "broken":
            found = ", ".join(f"{measure} {single:.3g} of it" for measure, (single, _) in match.ratios.items())
            yield f"bound broken: {match.learner} on {match.problem}: {found}"
    stopped = [match for match in arena.matches if match.stopped]
    refused = [match for match in arena.matches if match.refused and not match.stopped]
    yield f"{len(refused)} of {len(arena.matches)} matches were refused; matches.csv has the reasons"
    for match in stopped:
        yield f"stopped with an error: {match.refused}"
    if stopped:
        yield "mend it, and the same command plays it again"
    idle = [name for name in arena.learners if not arena.of(name) and name not in {one.learner for one in stopped}]
    if idle:
        yield f"refused every problem: {', '.join(idle)}"
    for problem, reason in arena.without_data.items():
        yield f"left out: {problem}: {reason}"


def _speed(arena: ArenaResult) -> list[dict[str, Any]]:
    return [
        {"learner": one.learner, "problem": one.problem, "microseconds_per_round": round(one.microseconds, 1)}
        for one in arena.matches
        if one.microseconds is not None
    ]


def _csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: harmless(value) for key, value in row.items()} for row in rows)
    return text.getvalue().encode()


def harmless(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: a word that begins as one does gets an apostrophe before it.

    Examples
    --------
    >>> from longterm.experiments.arena.league import harmless
    >>> harmless("=1+1"), harmless(-1.5), harmless("A-OGD")
    ("'=1+1", -1.5, 'A-OGD')
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    mark = "'" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else ""
    return mark + value.replace("\r", " ")  # which a reader would take for the end of a line


def _finite(value: Any) -> Any:
    """JSON has no infinity: a bound of 0 that was broken is the word."""
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def short(value: float | None, digits: int = 2) -> str:
    """A number with so many digits, never −0.00; a dash for none."""
    return "–" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"
