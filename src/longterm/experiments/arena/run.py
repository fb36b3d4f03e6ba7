"""Playing an arena into a folder: only what is missing is played.

One learner plays one problem over all sequences at once, which costs hardly more than one of them; a learner that
needs the horizon plays once for each of them.

comparator, problem   x*_t at the kept rounds of every sequence
match                 one learner on one problem: what it measured, its bounds, what it needs; or why it refused
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from longterm import hindsight
from longterm.data import DATA_SETS, path
from longterm.engines import run
from longterm.errors import DataError, InputError
from longterm.experiments.arena.results import ArenaResult, load_arena
from longterm.experiments.arena.spec import ArenaJob, ArenaSpec, arena_jobs, problem_name
from longterm.experiments.catalogue import Scenario, find_problem
from longterm.experiments.folder import JobFolder
from longterm.experiments.jobs import (
    Backend,
    assumptions_noted,
    game_of,
    learner_of,
    measures_of,
    one_thread,
    opened,
    where_it_stopped,
)
from longterm.experiments.run import versions
from longterm.experiments.spec import LearnerSpec, as_json
from longterm.experiments.spec_files import learner_of_words
from longterm.learners import Learner, Need
from longterm.progress import reporter
from longterm.theory.bounds import HARD, SIGNED


class ArenaFolder(JobFolder):
    """A folder that holds the matches of one arena."""

    kind, made_by = "arena", "`longterm arena`"


def run_arena(
    spec: ArenaSpec, folder: str | Path, *, backend: Backend | None = None, out: TextIO | None = None
) -> ArenaResult:
    """Play what the specification asks for and is not in the folder yet.

    Stopped and started again it goes on where it was, and ends with the same files, byte for byte; only timings.json
    differs. Problems whose data are not here are left out, and played when the data are.

    Parameters
    ----------
    spec : ArenaSpec
    folder : str or pathlib.Path
    backend : Backend, optional
        Who does the work; left out, processes of this machine, one for each core.
    out : text stream, optional
        Where progress goes; left out, stderr.

    Returns
    -------
    ArenaResult
        Its `without_data` says which problems were left out, and what to do about it.

    Examples
    --------
    >>> import io, tempfile
    >>> from longterm.experiments.arena import arena_of, run_arena
    >>> from longterm.experiments import Backend
    >>> spec = arena_of(["aogd", "mirror_prox"], ["doubly_stochastic size=3"], rounds=64, sequences=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     arena = run_arena(spec, folder, backend=Backend(workers=1), out=io.StringIO())
    >>> [(match.learner, match.anytime) for match in arena.matches]
    [('A-OGD', True), ('Mirror prox', False)]
    """
    kept, without_data = ArenaFolder(folder), problems_without_data(spec)
    jobs = arena_jobs(spec, [one for one in spec.problems if problem_name(one) not in without_data])
    with kept.locked():
        kept.begin(spec.table(), versions("numpy"), jobs)
        # What stopped with an error is played again: it may have been mended.
        todo = [job for job in jobs if (kept.read(job) or {"failed": True}).get("failed")]
        lines = out or sys.stderr
        with reporter("auto", "arena", unit="jobs", lines=lines) as report, opened(backend or Backend()) as do:
            for done, (content, seconds) in enumerate(do(work, [(spec, job) for job in todo]), start=1):
                kept.keep(content, seconds)
                if content.get("failed"):
                    lines.write(f"{content['refused']}\n")
                report(done, len(todo))
        return load_arena(spec, kept, without_data)


def with_learners(spec: ArenaSpec, words: Sequence[str], folder: Path | None) -> ArenaSpec:
    """The arena with more learners, named as on the command line; where `folder` has an arena already, that one."""
    added = tuple(map(learner_of_words, words))
    if folder is not None and (folder / "manifest.json").exists():
        spec = ArenaSpec.of_table(ArenaFolder(folder).manifest["spec"])
    there = {one.name for one in spec.learners}
    return replace(spec, learners=(*spec.learners, *(one for one in added if one.name not in there)))


def problems_without_data(spec: ArenaSpec) -> dict[str, str]:
    """By name, what to download where; nothing is downloaded unasked."""
    found = {}
    for problem in spec.problems:
        data = problem.parameters.get("data", find_problem(problem.name).data)
        try:
            if data in DATA_SETS:  # a file of one's own is looked for by who reads it
                path(str(data))
        except DataError as missing:
            found[problem_name(problem)] = str(missing)
    return found


def work(spec: ArenaSpec, job: ArenaJob) -> tuple[dict[str, Any], float]:
    """The record of a job, and the seconds of processor time that its rounds took: others may be at work here, too."""
    with one_thread(), assumptions_noted() as noted:
        game = game_of(job.problem.name, as_json(spec.parameters(job.problem)))
        content, seconds = _comparator(spec, game) if job.learner is None else _match(spec, job.learner, game)
    return {"job": job.stem, **content, **noted}, seconds


def _comparator(spec: ArenaSpec, game: Scenario) -> tuple[dict[str, Any], float]:
    begin = time.thread_time()
    best = hindsight.best(
        game.problem,
        game.stream,
        spec.kept,
        seeds=spec.seeds,
        benchmark=game.benchmark,
        path=game.path,
        progress=None,
    )
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


def _match(spec: ArenaSpec, who: LearnerSpec, game: Scenario) -> tuple[dict[str, Any], float]:
    seconds = 0.0
    played: dict[str, Any] = {}
    needs: list[str] = []
    for T in reversed(spec.horizons):  # the longest first: a learner that refuses it does not play
        try:
            learner = learner_of(game, who.learner, T, as_json(who.parameters))
            rounds = [t for t in spec.kept if t <= T]
            begin = time.thread_time()
            trace = run(game.problem, learner, game.stream, T, seeds=spec.seeds, record=rounds, progress=None)
        except Exception as refused:
            if not isinstance(refused, InputError):  # a bug, of a learner of one's own most likely: the rest plays on
                return {"refused": _bug(who, game, refused), "failed": True}, 0.0
            if not played:
                return {"refused": str(refused)}, 0.0
            return {"played": played, "needs": needs, "too_short": str(refused)}, seconds
        needs = sorted(need.name for need in learner.effective_needs)
        seconds = seconds or time.thread_time() - begin
        bounds = _bounds(learner, game, rounds)
        measures = {name: values.tolist() for name, values in measures_of(trace).items()}
        played[str(T)] = {"rounds": rounds, "measures": measures, "bounds": bounds}
        if Need.HORIZON not in learner.needs:
            break
    return {"played": played, "needs": needs}, seconds


def _bug(who: LearnerSpec, game: Scenario, error: Exception) -> str:
    """Who stopped where and why, with the line of code."""
    return f"{who.name} on {game.problem.name!r}{where_it_stopped(error)}"


def _bounds(learner: Learner[Any], game: Scenario, rounds: Sequence[int]) -> Mapping[str, Any]:
    """The theorem's bounds, where it is about what is compared with here.

    A theorem on the hard violation compares with x* that is feasible in every round; where the game compares with one
    that is feasible in expectation, it has nothing to say. Those on signed sums hold there in expectation.
    """
    if game.path is not None:
        return {}  # most theorems are about one decision, those about paths about another length
    found = learner.bound(game.problem, rounds)
    hard = HARD in found or (HARD in learner.promises and SIGNED not in found)  # some are bounded after the run only
    if game.facts.get("benchmark") in ("in expectation", "on average") and hard:
        return {}
    return {measure: values.tolist() for measure, values in found.items()}
