"""The ranking of an arena for a given trade-off between regret and violation.

For a measure of a problem, v_i is the mean over the sequences of learner i after T rounds; only [v_i]₊ counts. The
scale s is the median of the positive values of all learners on the problem, or 1 if there is none. All settings of one
learner together have weight 1 in the median, so that a family of near copies does not move it. The learner's share is

    u_i = [v_i]₊ / ([v_i]₊ + s):     0 without loss, ½ at the median, near 1 for the worst.

A learner's score is the mean over all problems of (1 − weight) u_i(regret) + weight u_i(violation). A problem that the
learner cannot handle counts ½. Smaller is better. Shares do not depend on the units of losses and constraints, and
every problem has the same weight. They do depend on the other learners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.lab.arena.results import ArenaResult, Match
from longterm.play.engines.sums import ROUNDING_SHARE

Violation = Literal["long-term", "signed", "hard", "squared", "largest"]
"""max_j Σ_t g_j(x_t); Σ_t max_j g_j(x_t); Σ_t [·]₊; Σ_t [·]₊²; the largest violation in one round."""
MEASURE_OF: Mapping[str, str] = {
    "long-term": "long_term_violation",
    "signed": "signed_violation",
    "hard": "hard_violation",
    "squared": "squared_violation",
    "largest": "largest_violation",
}
ABSENT = 0.5
"""The share of a learner on a problem that it cannot handle."""


@dataclass(frozen=True)
class Preference:
    """The weight of violation against regret, and the measure of violation.

    Parameters
    ----------
    weight : float
        The weight of violation, from 0 (regret only) to 1 (violation only).
    violation : str
        The measure of violation: "long-term", "signed", "hard", "squared" or "largest" (the worst round).
    """

    weight: float = 0.5
    violation: Violation = "long-term"

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise InputError(
                "weight",
                f"{self.weight!r} is not between 0 and 1",
                "Give 0 to rank by regret only, 1 by violation only, or a number between",
            )
        if self.violation not in get_args(Violation):
            known = list(get_args(Violation))
            raise InputError("violation", f"{self.violation!r} is not known", f"Choose from {known}")

    @property
    def measure(self) -> str:
        """The name of the violation among the measures."""
        return MEASURE_OF[self.violation]


@dataclass(frozen=True, eq=False)
class Standing:
    """One learner's row of the league table."""

    rank: int
    learner: str
    score: float
    shares: Mapping[str, float]
    """The mean share over all problems, by measure."""
    matches: tuple[Match, ...]
    """The finished matches."""
    deviation: float = 0.0
    """The standard error of the score over the sequences; 0 with one sequence."""
    tied: bool = False
    """True if the difference to the learner before is less than twice its standard error."""

    def __repr__(self) -> str:
        rank, error = f"{self.rank}{'=' if self.tied else ''}", f" ± {self.deviation:.3f}" if self.deviation else ""
        return f"Standing({rank}, {self.learner!r}, score {self.score:.3f}{error}, {len(self.matches)} matches)"

    def slope(self, measure: str) -> float | None:
        """Return the median slope over the problems that have one."""
        found = [slope for match in self.matches if (slope := match.slope(measure)) is not None]
        return float(np.median(found)) if found else None

    @property
    def bound_ratio(self) -> float | None:
        """The largest ratio of measured to bound over sequences, measures and problems."""
        found = [single for match in self.matches for single, _ in match.ratios.values()]
        return max(found) if found else None

    def verdicts(self, verdict: str) -> int:
        """Return the number of problems with this verdict."""
        return sum(match.verdict == verdict for match in self.matches)

    @property
    def microseconds(self) -> float | None:
        """The median time of a round over the problems."""
        found = [match.microseconds for match in self.matches if match.microseconds is not None]
        return float(np.median(found)) if found else None


def shares(values: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """Return each value's share u; `weights` are those of the median, by default equal.

    Examples
    --------
    >>> from longterm.lab.arena.league import shares
    >>> shares([-3.0, 0.0, 1.0, 3.0, 9.0])
    [0.0, 0.0, 0.25, 0.5, 0.75]
    >>> shares([1.0, 1.0, 1.0, 3.0, 9.0], weights=[1 / 3, 1 / 3, 1 / 3, 1.0, 1.0])  # the first three count as one
    [0.25, 0.25, 0.25, 0.5, 0.75]
    """
    lost = np.maximum(np.asarray(values, dtype=np.float64), 0.0)
    return [float(share) for share in lost / (lost + _scale(values, weights))]


def league(arena: ArenaResult, preference: Preference | None = None) -> list[Standing]:
    """Return the league table, the best first; equal scores share a rank.

    Parameters
    ----------
    arena : ArenaResult
        The finished arena, as `run_arena` returns it.
    preference : Preference, optional
        The trade-off. Default: equal weights of regret and long-term violation.

    Returns
    -------
    list of Standing
        One row for each learner, with its score and its share of each measure.
    """
    chosen = Preference() if preference is None else preference
    measures = ("regret", *MEASURE_OF.values())
    found: dict[tuple[str, str], list[float]] = {}
    each: dict[tuple[str, str], list[FloatArray]] = {}
    sequences = max((len(match.measures["regret"][-1]) for match in arena.matches if not match.refused), default=1)
    for problem in arena.problems:
        present, weights = {match.learner: match for match in arena.on_problem(problem)}, arena.weights(problem)
        for measure in measures:
            lost = [match.lost(measure) for match in present.values()]
            by_learner, scale = dict(zip(present, shares(lost, weights), strict=True)), _scale(lost, weights)
            for learner in arena.learners:
                found.setdefault((learner, measure), []).append(by_learner.get(learner, ABSENT))
                one_by_one = np.full(sequences, ABSENT)
                if learner in present:
                    single = np.maximum(present[learner].measures[measure][-1], 0.0)
                    one_by_one = single / (single + scale)
                each.setdefault((learner, measure), []).append(one_by_one)
    means = {key: float(np.mean(values)) for key, values in found.items()}
    parts = ((1 - chosen.weight, "regret"), (chosen.weight, chosen.measure))
    score = {name: sum(weight * means[name, measure] for weight, measure in parts) for name in arena.learners}
    scores = {
        name: np.sum([weight * np.mean(each[name, measure], axis=0) for weight, measure in parts], axis=0)
        for name in arena.learners
    }
    order = sorted((name for name in arena.learners if arena.of_learner(name)), key=lambda name: score[name])

    def is_tied(name: str, before: str | None) -> bool:
        return before is not None and score[name] - score[before] < 2 * standard_error(scores[name] - scores[before])

    return [
        Standing(
            1 + sum(score[other] < score[learner] for other in order),
            learner,
            score[learner],
            {measure: means[learner, measure] for measure in measures},
            tuple(arena.of_learner(learner)),
            standard_error(scores[learner]),
            is_tied(learner, before),
        )
        for learner, before in zip(order, [None, *order[:-1]], strict=True)
    ]


def standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _scale(values: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Return the weighted median of the positive values, or 1 if there are none."""
    lost = np.asarray(values, dtype=np.float64)
    weight = np.ones(len(lost)) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(lost, kind="stable")
    order = order[lost[order] > 0]
    if not len(order):
        return 1.0
    lost, cumulative = lost[order], np.cumsum(weight[order])
    half = cumulative[-1] / 2
    low, high = np.searchsorted(cumulative, half * (1 + ROUNDING_SHARE * np.array([-1, 1])), side="left")
    return float(lost[low] + lost[high]) / 2
