"""Results of an arena: regret and violations, their growth, and comparisons with the theorems' bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.lab.arena.arena_spec import HORIZONS, ArenaJob, ArenaSpec, problem_name
from longterm.lab.experiments.folder import JobFolder
from longterm.lab.experiments.result import MEASURES, growth
from longterm.learners.interface.needs import Need
from longterm.play.engines.sums import ROUNDING_SHARE

MEASURED = (*MEASURES, "largest_violation")
"""The measures of a match; the last is the largest violation in one round."""
ORACLES: tuple[tuple[str, frozenset[Need]], ...] = (
    ("values at other points", frozenset({Need.OTHER_POINTS})),
    ("projection", frozenset({Need.PROJECTION})),
    ("prox", frozenset({Need.PROX, Need.PENALTY_PROX, Need.LATEST_PENALTY_PROX})),
    ("affine g", frozenset({Need.AFFINE_CONSTRAINT})),
    ("gradients, g known", frozenset({Need.KNOWN_CONSTRAINT})),
)
GRADIENTS = "gradients"
Verdict = Literal["held", "held on average", "broken", "none"]
"""The bound held in every sequence, held for their mean, was broken, or there is none."""


@dataclass(frozen=True, eq=False)
class Match:
    """One learner on one problem."""

    learner: str
    problem: str
    needs: frozenset[Need] = frozenset()
    refused: str = ""
    """The reason why the learner cannot run; empty if it can."""
    stopped: bool = False
    """True if the reason is an error after round 1."""
    horizons: tuple[int, ...] = ()
    measures: Mapping[str, FloatArray] = field(default_factory=dict)
    """Values at these horizons, shape (horizons, sequences): of a run for each horizon if the learner needs it, else of
    one run. A horizon that is too short for the learner's steps is left out."""
    noise: Mapping[str, FloatArray] = field(default_factory=dict)
    """At these horizons, the size of rounding and of the comparator's gap; smaller values count as 0."""
    ratios: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """For each measure with a bound, the largest ratio measured ÷ bound, of a sequence and of the mean. Above 1 the
    bound is broken. For a bound of at most 0, the ratio is 0 if the bound holds and infinity if not."""
    warnings: tuple[str, ...] = ()
    """Assumptions of its theorem that do not hold here."""
    microseconds: float | None = None
    """Processor time of one round of all sequences."""

    def __repr__(self) -> str:
        if self.refused:
            return f"Match({self.learner!r} on {self.problem!r}, {'stopped' if self.stopped else 'refused'})"
        found = f"regret {self.mean('regret'):.4g}, hard violation {self.mean('hard_violation'):.4g}"
        return f"Match({self.learner!r} on {self.problem!r}, {found})"

    @property
    def anytime(self) -> bool:
        """True if the learner does not need the number of rounds."""
        return Need.HORIZON not in self.needs

    @property
    def oracle(self) -> str:
        """The oracle that it calls in every round."""
        return next((name for name, needs in ORACLES if needs & self.needs), GRADIENTS)

    @property
    def also_needs(self) -> tuple[str, ...]:
        """Other knowledge that it needs."""
        names = {Need.SLATER_POINT: "Slater point", Need.FIXED_CONSTRAINT: "fixed g"}
        return tuple(words for need, words in names.items() if need in self.needs)

    def mean(self, measure: str) -> float:
        """Return the mean over the sequences after T rounds; 0 if it is rounding."""
        return self._above_noise(measure, float(self.measures[measure][-1].mean()))

    def std(self, measure: str) -> float:
        """Return the standard deviation over the sequences after T rounds; 0 if it is rounding."""
        return self._above_noise(measure, float(self.measures[measure][-1].std()))

    def _above_noise(self, measure: str, value: float) -> float:
        return value if abs(value) > self.noise[measure][-1] else 0.0

    def lost(self, measure: str) -> float:
        """Return the positive part of the mean after T rounds, without noise."""
        return float(self._lost(measure)[-1])

    def slope(self, measure: str) -> float | None:
        """Return the exponent a of a fit c·T^a at T/16, T/4 and T; None if one of the values is 0."""
        return growth(self.horizons, self._lost(measure)) if len(self.horizons) == len(HORIZONS) else None

    def _lost(self, measure: str) -> FloatArray:
        mean = self.measures[measure].mean(axis=1)
        return np.where(mean > self.noise[measure], mean, 0.0)

    @property
    def verdict(self) -> Verdict:
        """The comparison with the theorem in every recorded round."""
        if not self.ratios:
            return "none"
        if all(single <= 1 for single, _ in self.ratios.values()):
            return "held"
        return "held on average" if all(mean <= 1 for _, mean in self.ratios.values()) else "broken"


@dataclass(frozen=True, eq=False)
class ArenaResult:
    """All matches of an arena, ordered by problem and learner."""

    spec: ArenaSpec
    matches: tuple[Match, ...]
    problems: Mapping[str, Mapping[str, Any]]
    """Facts about each problem, by name: dimension, constraints, the comparator's certified gap, …"""
    without_data: Mapping[str, str]
    """Problems whose data are missing, with a remedy."""

    def __repr__(self) -> str:
        finished = sum(not match.refused for match in self.matches)
        size = f"{len(self.learners)} learners on {len(self.problems)} problems, {self.spec.rounds} rounds"
        return f"ArenaResult({size}, {finished} matches, {len(self.matches) - finished} refused)"

    @cached_property
    def learners(self) -> tuple[str, ...]:
        """The names of the learners."""
        return tuple(one.name for one in self.spec.learners)

    def on_problem(self, problem: str) -> list[Match]:
        """Return the finished matches on this problem."""
        return [match for match in self.matches if match.problem == problem and not match.refused]

    def weights(self, problem: str) -> list[float]:
        """Return the weights of these matches: all settings of one learner share a weight of 1 equally."""
        families = {one.name: one.learner for one in self.spec.learners}
        found = [families[match.learner] for match in self.on_problem(problem)]
        return [1 / found.count(family) for family in found]

    def of_learner(self, learner: str) -> list[Match]:
        """Return the finished matches of this learner."""
        return [match for match in self.matches if match.learner == learner and not match.refused]


def load_arena(spec: ArenaSpec, folder: JobFolder, without_data: Mapping[str, str]) -> ArenaResult:
    """Read a finished arena; `without_data` has the problems that were left out, with the remedy."""
    matches, facts = [], {}
    seconds = folder.timings
    for problem in spec.problems:
        name = problem_name(problem)
        if name in without_data:
            continue
        best = folder.require(ArenaJob(problem))
        facts[name] = {key: best[key] for key in ("about", "dimension", "constraints", "facts")} | {
            "certified_gap": float(np.max(np.divide(best["gap"], np.maximum(np.abs(best["loss"]), 1e-300))))
        }
        for learner in spec.learners:
            job = ArenaJob(problem, learner)
            took = seconds.get(job.stem)
            microseconds = None if took is None else 1e6 * took / spec.rounds
            matches.append(_match(spec, learner.name, name, folder.require(job), best, microseconds))
    return ArenaResult(spec, tuple(matches), facts, without_data)


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
    runs = [_with_regret(run, loss) for run in record["runs"].values()]
    at = {int(T): run for run in runs for T in run["rounds"]}  # one run of an anytime learner has all horizons
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
        ratios=_ratios(runs, best["constraint_bound"]),
        warnings=tuple(record.get("warnings", ())),
        microseconds=microseconds,
    )


def _noise(horizons: Sequence[int], best: Mapping[str, Any]) -> dict[str, FloatArray]:
    T, D, F = np.asarray(horizons, dtype=np.float64), best["constraint_bound"], best["loss_range"]
    gap = dict(zip(best["rounds"], np.mean(best["gap"], axis=1), strict=True))
    return dict.fromkeys(MEASURED, ROUNDING_SHARE * D * T) | {
        "regret": ROUNDING_SHARE * F * T + np.array([gap[t] for t in horizons]),
        "squared_violation": ROUNDING_SHARE**2 * D**2 * T,
        "largest_violation": ROUNDING_SHARE * D * np.ones_like(T),
    }


def _with_regret(run: Mapping[str, Any], best: Mapping[int, FloatArray]) -> dict[str, Any]:
    found = {name: np.asarray(values, dtype=np.float64) for name, values in run["measures"].items()}
    found["regret"] = found["cumulative_loss"] - np.stack([best[t] for t in run["rounds"]])
    return {**run, "measures": found}


def _ratios(runs: Sequence[Mapping[str, Any]], D: float) -> dict[str, tuple[float, float]]:
    """Return the largest ratios over the runs of a match, of a sequence and of the mean, by measure."""
    ratios: dict[str, tuple[float, float]] = {}
    for run in runs:
        for measure, values in run["bounds"].items():
            bound, measured = np.asarray(values, dtype=np.float64)[:, None], run["measures"][measure]
            allowed = bound * (1 + ROUNDING_SHARE * np.sign(bound)) + ROUNDING_SHARE * D * np.c_[run["rounds"]]
            single = _largest_ratio(measured, bound, allowed)
            mean = _largest_ratio(measured.mean(axis=1, keepdims=True), bound, allowed)
            before = ratios.get(measure, (0.0, 0.0))
            ratios[measure] = max(before[0], single), max(before[1], mean)
    return ratios


def _largest_ratio(measured: FloatArray, bound: FloatArray, allowed: FloatArray) -> float:
    default = np.where(measured <= allowed, 0.0, np.inf)
    ratio = np.divide(measured, bound, out=default, where=bound > 0)
    return float(np.max(np.where((ratio > 1) & (measured <= allowed), 1.0, np.maximum(ratio, 0.0))))
