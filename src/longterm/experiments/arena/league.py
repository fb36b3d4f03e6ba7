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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from longterm._arrays import FloatArray
from longterm.errors import InputError
from longterm.experiments.arena.results import ROUNDING, ArenaResult, Match

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
