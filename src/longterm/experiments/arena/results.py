"""What the matches of an arena found: regret and violations, their growth, and whether theorems were kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from longterm._arrays import FloatArray
from longterm.experiments.arena.spec import HORIZONS, ArenaJob, ArenaSpec, problem_name
from longterm.experiments.folder import JobFolder
from longterm.experiments.result import MEASURES, by_measure
from longterm.learners import Need

MEASURED = (*MEASURES, "largest_violation")
"""What a match is about; the last is the worst single round."""
ROUNDING = 1e-9
"""What projections and sums may be off by: as a share of a bound, and of D in each round."""
ORACLES: tuple[tuple[str, frozenset[Need]], ...] = (
    ("values at other points", frozenset({Need.OTHER_POINTS})),
    ("projection", frozenset({Need.PROJECTION})),
    ("prox", frozenset({Need.PROX, Need.PENALTY_PROX, Need.LATEST_PENALTY_PROX})),
    ("affine g", frozenset({Need.AFFINE_CONSTRAINT})),
    ("gradients, g known", frozenset({Need.KNOWN_CONSTRAINT})),
)
GRADIENTS = "gradients"
Verdict = Literal["held", "held on average", "broken", "none"]
"""In every sequence; in their mean, as theorems in expectation promise; not at all; there is no theorem here."""


@dataclass(frozen=True, eq=False)
class Match:
    """One learner on one problem."""

    learner: str
    problem: str
    needs: frozenset[Need] = frozenset()
    refused: str = ""
    """Why it does not play, in words; empty where it does."""
    stopped: bool = False
    """Whether that is an error on the way, and no refusal before round 1."""
    horizons: tuple[int, ...] = ()
    measures: Mapping[str, FloatArray] = field(default_factory=dict)
    """At these horizons, (horizons, sequences): at the end of a run made for each, or on the way of one that is not.
    A horizon that is too short for the learner's steps is left out."""
    noise: Mapping[str, FloatArray] = field(default_factory=dict)
    """At these horizons, what is no more than rounding, or than the comparator is uncertain: it counts as nothing."""
    ratios: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """For each measure that a theorem bounds, measured ÷ bound where it is largest: of a sequence, and of their mean.
    Above 1 the bound is broken. Where the bound is 0 or less, 0 where it was kept and infinity where not."""
    warnings: tuple[str, ...] = ()
    """What its theorem assumes and does not hold here."""
    microseconds: float | None = None
    """Of processor time for a round of all sequences at once."""

    def __repr__(self) -> str:
        if self.refused:
            return f"Match({self.learner!r} on {self.problem!r}, {'stopped' if self.stopped else 'refused'})"
        found = f"regret {self.mean('regret'):.4g}, hard violation {self.mean('hard_violation'):.4g}"
        return f"Match({self.learner!r} on {self.problem!r}, {found})"

    @property
    def anytime(self) -> bool:
        """Whether it plays without knowing the number of rounds."""
        return Need.HORIZON not in self.needs

    @property
    def oracle(self) -> str:
        """What it asks for in every round."""
        return next((name for name, needs in ORACLES if needs & self.needs), GRADIENTS)

    @property
    def also_needs(self) -> tuple[str, ...]:
        """What else has to be known or given."""
        named = {Need.SLATER_POINT: "Slater point", Need.FIXED_CONSTRAINT: "fixed g"}
        return tuple(words for need, words in named.items() if need in self.needs)

    def mean(self, measure: str) -> float:
        """After T rounds, over the sequences; 0 where it is no more than rounding."""
        return self._above_noise(measure, float(self.measures[measure][-1].mean()))

    def std(self, measure: str) -> float:
        """Its deviation over the sequences; 0 where it is no more than rounding."""
        return self._above_noise(measure, float(self.measures[measure][-1].std()))

    def _above_noise(self, measure: str, value: float) -> float:
        return value if abs(value) > self.noise[measure][-1] else 0.0

    def lost(self, measure: str) -> float:
        """What counts of the mean: nothing below 0, and no noise."""
        return float(self._lost(measure)[-1])

    def slope(self, measure: str) -> float | None:
        """The a of c·T^a through what was lost after T/16, T/4 and T rounds; None where one of them is nothing."""
        return growth(self.horizons, self._lost(measure)) if len(self.horizons) == len(HORIZONS) else None

    def _lost(self, measure: str) -> FloatArray:
        mean = self.measures[measure].mean(axis=1)
        return np.where(mean > self.noise[measure], mean, 0.0)

    @property
    def verdict(self) -> Verdict:
        """Whether the theorem was kept, in every kept round."""
        if not self.ratios:
            return "none"
        if all(single <= 1 for single, _ in self.ratios.values()):
            return "held"
        return "held on average" if all(mean <= 1 for _, mean in self.ratios.values()) else "broken"


@dataclass(frozen=True, eq=False)
class ArenaResult:
    """All matches, learner after learner within a problem."""

    spec: ArenaSpec
    matches: tuple[Match, ...]
    problems: Mapping[str, Mapping[str, Any]]
    """What was played, by name: dimension, constraints, the comparator's certified gap, …"""
    without_data: Mapping[str, str]
    """Problems whose data are not here, and what to do about it."""

    def __repr__(self) -> str:
        played = sum(not match.refused for match in self.matches)
        size = f"{len(self.learners)} learners on {len(self.problems)} problems, {self.spec.rounds} rounds"
        return f"ArenaResult({size}, {played} matches played, {len(self.matches) - played} not)"

    @cached_property
    def learners(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(one.name for one in self.spec.learners)

    def played(self, problem: str) -> list[Match]:
        """The matches on this problem that took place."""
        return [match for match in self.matches if match.problem == problem and not match.refused]

    def votes(self, problem: str) -> list[float]:
        """Of these matches: one for all settings of a learner that played together, each an equal part of it."""
        families = {one.name: one.learner for one in self.spec.learners}
        there = [families[match.learner] for match in self.played(problem)]
        return [1 / there.count(family) for family in there]

    def of(self, learner: str) -> list[Match]:
        """The matches of this learner that took place."""
        return [match for match in self.matches if match.learner == learner and not match.refused]


def growth(rounds: Sequence[int], values: FloatArray) -> float | None:
    """The slope of the line through (log T, log value) by least squares; None where a value is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.experiments.arena.results import growth
    >>> round(growth([16, 64, 256], np.array([4.0, 8.0, 16.0])), 12), growth([1, 2, 4], np.array([0.0, 1.0, 2.0]))
    (0.5, None)
    """
    if np.any(values <= 0):
        return None
    return float(np.polyfit(np.log(np.asarray(rounds, dtype=np.float64)), np.log(values), 1)[0])


def load_arena(spec: ArenaSpec, kept: JobFolder, without_data: Mapping[str, str]) -> ArenaResult:
    """What the folder of a finished arena holds; `without_data` has the problems that were left out, and why."""
    matches, about = [], {}
    seconds = kept.timings
    for problem in spec.problems:
        name = problem_name(problem)
        if name in without_data:
            continue
        best = kept.require(ArenaJob(problem))
        about[name] = {key: best[key] for key in ("about", "dimension", "constraints", "facts")} | {
            "certified_gap": float(np.max(np.divide(best["gap"], np.maximum(np.abs(best["loss"]), 1e-300))))
        }
        for who in spec.learners:
            job = ArenaJob(problem, who)
            took = seconds.get(job.stem)
            microseconds = None if took is None else 1e6 * took / spec.rounds
            matches.append(_match(spec, who.name, name, kept.require(job), best, microseconds))
    return ArenaResult(spec, tuple(matches), about, without_data)


def _match(
    spec: ArenaSpec,
    learner: str,
    problem: str,
    record: Mapping[str, Any],
    best: Mapping[str, Any],
    microseconds: float | None,
) -> Match:
    if "refused" in record:
        return Match(learner, problem, refused=record["refused"], stopped=bool(record.get("failed")))
    needs = frozenset(Need[name] for name in record["needs"])
    loss = dict(zip(best["rounds"], np.asarray(best["loss"], dtype=np.float64), strict=True))
    runs = [_with_regret(run, loss) for run in record["played"].values()]
    at = {int(T): run for run in runs for T in run["rounds"]}  # of an anytime learner, one run has all horizons
    if Need.HORIZON in needs:
        at = {int(run["rounds"][-1]): run for run in runs}
    horizons = tuple(T for T in spec.horizons if T in at)
    picked = [(at[T], at[T]["rounds"].index(T)) for T in horizons]
    return Match(
        learner,
        problem,
        needs,
        horizons=horizons,
        measures={name: np.stack([run["measures"][name][place] for run, place in picked]) for name in MEASURED},
        noise=_noise(horizons, best),
        ratios=_worst([_ratios(run, best["constraint_bound"]) for run in runs]),
        warnings=tuple(record.get("warnings", ())),
        microseconds=microseconds,
    )


def _noise(horizons: Sequence[int], best: Mapping[str, Any]) -> dict[str, FloatArray]:
    T, D, F = np.asarray(horizons, dtype=np.float64), best["constraint_bound"], best["loss_range"]
    gap = dict(zip(best["rounds"], np.mean(best["gap"], axis=1), strict=True))
    return dict.fromkeys(MEASURED, ROUNDING * D * T) | {
        "regret": ROUNDING * F * T + np.array([gap[t] for t in horizons]),
        "squared_violation": ROUNDING**2 * D**2 * T,
        "largest_violation": ROUNDING * D * np.ones_like(T),
    }


def _with_regret(run: Mapping[str, Any], best: Mapping[int, FloatArray]) -> dict[str, Any]:
    found = {name: np.asarray(values, dtype=np.float64) for name, values in by_measure(run["measures"]).items()}
    found["regret"] = found["cumulative_loss"] - np.stack([best[t] for t in run["rounds"]])
    return {**run, "measures": found}


def _ratios(run: Mapping[str, Any], D: float) -> dict[str, tuple[float, float]]:
    made: dict[str, tuple[float, float]] = {}
    for measure, values in by_measure(run["bounds"]).items():
        bound, measured = np.asarray(values, dtype=np.float64), run["measures"][measure]
        allowed = bound * (1 + ROUNDING * np.sign(bound)) + ROUNDING * D * np.asarray(run["rounds"])
        single, mean = (
            _largest(one, bound[:, None], allowed[:, None]) for one in (measured, measured.mean(axis=1, keepdims=True))
        )
        made[measure] = single, mean
    return made


def _largest(measured: FloatArray, bound: FloatArray, allowed: FloatArray) -> float:
    none = np.where(measured <= allowed, 0.0, np.inf)
    ratio = np.divide(measured, bound, out=none, where=bound > 0)
    return float(np.max(np.where((ratio > 1) & (measured <= allowed), 1.0, np.maximum(ratio, 0.0))))


def _worst(found: Sequence[Mapping[str, tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """Over the runs of a match, for a sequence and for the mean."""
    made: dict[str, tuple[float, float]] = {}
    for one in found:
        for measure, (single, mean) in one.items():
            before = made.get(measure, (0.0, 0.0))
            made[measure] = max(before[0], single), max(before[1], mean)
    return made
