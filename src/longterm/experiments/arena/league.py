"""The ranking: one number for each learner, by a trade-off of the reader's between regret and violation.

For a measure of a problem, v_i is what learner i has after T rounds, mean over the sequences, and nothing below 0
counts: [v_i]₊. Its scale s is the median of the positive ones among all learners that played the problem (1 where
there is none), and the learner's share is

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

from longterm.errors import InputError
from longterm.experiments.arena.results import ArenaResult, Match

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


def shares(values: Sequence[float]) -> list[float]:
    """Each value's u.

    Examples
    --------
    >>> from longterm.experiments.arena.league import shares
    >>> shares([-3.0, 0.0, 1.0, 3.0, 9.0])
    [0.0, 0.0, 0.25, 0.5, 0.75]
    """
    lost = np.maximum(np.asarray(values, dtype=np.float64), 0.0)
    scale = float(np.median(lost[lost > 0])) if np.any(lost > 0) else 1.0
    return [float(share) for share in lost / (lost + scale)]


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
    for problem in arena.problems:
        present = arena.played(problem)
        for measure in measures:
            by_learner = dict(
                zip((m.learner for m in present), shares([m.lost(measure) for m in present]), strict=True)
            )
            for learner in arena.learners:
                found.setdefault((learner, measure), []).append(by_learner.get(learner, ABSENT))
    means = {key: float(np.mean(values)) for key, values in found.items()}
    score = {
        learner: (1 - chosen.weight) * means[learner, "regret"] + chosen.weight * means[learner, chosen.measure]
        for learner in arena.learners
    }
    order = sorted((learner for learner in arena.learners if arena.of(learner)), key=lambda learner: score[learner])
    return [
        Standing(
            1 + sum(score[other] < score[learner] for other in order),
            learner,
            score[learner],
            {measure: means[learner, measure] for measure in measures},
            tuple(arena.of(learner)),
        )
        for learner in order
    ]
