"""What workers do for an arena. One learner plays one problem over all sequences at once, which costs hardly more
than one of them; a learner that needs the horizon plays once for each of them.

comparator, problem   x*_t at the kept rounds of every sequence
match                 one learner on one problem: what it measured, its bounds, what it needs; or why it refused
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longterm.engines import run
from longterm.errors import InputError
from longterm.experiments.arena.spec import ArenaSpec, problem_name
from longterm.experiments.catalogue import Game, LearnerEntry, find_learner
from longterm.experiments.jobs import assumptions_noted, game_of, learner_of, measures_of, one_thread
from longterm.experiments.spec import LearnerSpec, ProblemSpec, as_json, slug
from longterm.learners import Learner, Need


@dataclass(frozen=True)
class ArenaJob:
    """A comparator (no learner), or a match."""

    problem: ProblemSpec
    learner: LearnerSpec | None = None

    @property
    def stem(self) -> str:
        """The name of its file, without the ending."""
        who = "comparator" if self.learner is None else slug(self.learner.name)
        return f"{slug(problem_name(self.problem))}--{who}"


def arena_jobs(spec: ArenaSpec, problems: Sequence[ProblemSpec]) -> list[ArenaJob]:
    """All jobs of these problems, problem after problem: a worker keeps the game that it has built."""
    players = (None, *spec.learners)
    return [ArenaJob(problem, learner) for problem in problems for learner in players]


def work(spec: ArenaSpec, job: ArenaJob) -> tuple[dict[str, Any], float]:
    """The record of a job, and the seconds of processor time that its rounds took: others may be at work here, too."""
    with one_thread(), assumptions_noted() as noted:
        game = game_of(job.problem.name, as_json(spec.parameters(job.problem)))
        content, seconds = _comparator(spec, game) if job.learner is None else _match(spec, job.learner, game)
    return {"job": job.stem, **content, **noted}, seconds


def _comparator(spec: ArenaSpec, game: Game) -> tuple[dict[str, Any], float]:
    begin = time.thread_time()
    best = game.best(spec.kept, spec.seeds)
    constants = game.problem.constants
    return {
        "rounds": list(spec.kept),
        "loss": best.loss.tolist(),
        "gap": best.gap.tolist(),
        "about": game.problem.name,
        "dimension": game.problem.dimension,
        "constraints": game.problem.constraint.count,
        "constraint_bound": constants.constraint_bound,
        "loss_range": constants.loss_range,
        "facts": dict(game.facts),
    }, time.thread_time() - begin


def _match(spec: ArenaSpec, who: LearnerSpec, game: Game) -> tuple[dict[str, Any], float]:
    entry, seconds = find_learner(who.learner), 0.0
    played: dict[str, Any] = {}
    needs: list[str] = []
    for T in reversed(spec.horizons):  # the longest first: a learner that refuses it does not play
        try:
            learner = learner_of(game, who.learner, T, as_json(who.parameters))
            rounds = [t for t in spec.kept if t <= T]
            begin = time.thread_time()
            trace = run(game.problem, learner, game.stream, T, seeds=spec.seeds, record=rounds, progress=None)
        except InputError as refused:
            if not played:
                return {"refused": str(refused)}, 0.0
            return {"played": played, "needs": needs, "too_short": str(refused)}, seconds
        needs = sorted(need.name for need in learner.needs)
        seconds = seconds or time.thread_time() - begin
        bounds = _bounds(entry, learner, game, rounds)
        measures = {name: values.tolist() for name, values in measures_of(trace).items()}
        played[str(T)] = {"rounds": rounds, "measures": measures, "bounds": bounds}
        if Need.HORIZON not in learner.needs:
            break
    return {"played": played, "needs": needs}, seconds


def _bounds(entry: LearnerEntry, learner: Learner[Any], game: Game, rounds: Sequence[int]) -> Mapping[str, Any]:
    """The theorem's bounds, where it is about what is compared with here.

    A theorem on the hard violation compares with x* that is feasible in every round; where the game compares with one
    that is feasible in expectation, it has nothing to say. Those on signed sums hold there in expectation.
    """
    found = {} if entry.bound is None else entry.bound(learner, game.problem, np.asarray(rounds))
    if game.facts.get("benchmark") in ("in expectation", "on average") and "hard_violation" in found:
        return {}
    return {measure: values.tolist() for measure, values in found.items()}
