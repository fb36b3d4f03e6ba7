"""Running an arena into a folder: only matches without a record are run.

A match runs one learner on one problem for all sequences at once, which takes little longer than one sequence.
A learner that needs the horizon is run once for each horizon.

comparator, problem   x*_t at the recorded rounds of every sequence
match                 measures, bounds and needs of one learner on one problem, or the reason why it was refused
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from longterm._base.progress import reporter
from longterm.catalogue.lookup import find_problem
from longterm.catalogue.scenarios import Scenario
from longterm.data.locations import path
from longterm.data.registry import DATA_SETS
from longterm.errors import DataError, InputError
from longterm.lab.arena.arena_spec import ArenaJob, ArenaSpec, arena_jobs, problem_name
from longterm.lab.arena.results import ArenaResult, load_arena
from longterm.lab.experiments.backends import Backend, open_backend
from longterm.lab.experiments.execute import versions
from longterm.lab.experiments.folder import JobFolder
from longterm.lab.experiments.jobs import (
    RECORDED,
    as_lists,
    comparator_record,
    describe_stop,
    learner_of,
    scenario_of,
    single_threaded,
)
from longterm.lab.experiments.spec import LearnerSpec, as_json
from longterm.lab.experiments.spec_tables import add_learners
from longterm.learners import Learner
from longterm.learners.interface.needs import Need
from longterm.play import run
from longterm.theory.bounds import HARD, SIGNED


class ArenaFolder(JobFolder):
    """The folder of one arena."""

    kind, made_by = "arena", "`longterm arena`"
    files = ("manifest.json", "timings.json", "league.csv", "matches.csv")


def run_arena(
    spec: ArenaSpec, folder: str | Path, *, backend: Backend | None = None, out: TextIO | None = None
) -> ArenaResult:
    """Run the matches of a specification that have no record in the folder yet.

    An interrupted arena continues where it stopped and ends with the same files, byte for byte; only timings.json
    differs. Problems without their data are left out and run once the data are there.

    Parameters
    ----------
    spec : ArenaSpec
        The learners, problems and sequences.
    folder : str or pathlib.Path
        The folder of the records. It is created if it does not exist.
    backend : Backend, optional
        The engine that runs the matches. Default: processes of this machine, one for each core.
    out : text stream, optional
        The stream for progress. Default: stderr.

    Returns
    -------
    ArenaResult
        Its `without_data` names the problems that were left out, with a remedy.

    Examples
    --------
    >>> import io, tempfile
    >>> from longterm.lab.arena import arena_of, run_arena
    >>> from longterm.lab.experiments.backends import Backend
    >>> spec = arena_of(["aogd", "mirror_prox"], ["doubly_stochastic size=3"], rounds=64, sequences=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     arena = run_arena(spec, folder, backend=Backend(workers=1), out=io.StringIO())
    >>> [(match.learner, match.anytime) for match in arena.matches]
    [('A-OGD', True), ('Mirror prox', False)]
    """
    results, without_data, lines = ArenaFolder(folder), problems_without_data(spec), out or sys.stderr
    jobs = arena_jobs(spec, [one for one in spec.problems if problem_name(one) not in without_data])
    with results.opened(spec.table(), versions("numpy"), jobs):
        # A match that stopped with an error is run again, since the error may have been corrected.
        todo = [job for job in jobs if (results.read(job) or {"failed": True}).get("failed")]
        with reporter("auto", "arena", unit="jobs", lines=lines) as report, open_backend(backend or Backend()) as do:
            for done, (content, seconds) in enumerate(do(work, [(spec, job) for job in todo]), start=1):
                results.store((content, seconds))
                if content.get("failed"):
                    lines.write(f"{content['refused']}\n")
                report(done, len(todo))
        return load_arena(spec, results, without_data)


def with_learners(spec: ArenaSpec, words: Sequence[str], folder: Path | None) -> ArenaSpec:
    """Return the arena, or the one in `folder` if there is one, with learners added from the command line."""
    if folder is not None and (folder / "manifest.json").exists():
        spec = ArenaSpec.of_table(ArenaFolder(folder).manifest["spec"])
    return replace(spec, learners=add_learners(spec.learners, words))


def problems_without_data(spec: ArenaSpec) -> dict[str, str]:
    """Return the problems whose data are missing, each with the remedy; nothing is downloaded."""
    found = {}
    for problem in spec.problems:
        data = problem.parameters.get("data", find_problem(problem.name).data)
        try:
            if data in DATA_SETS:  # a table of the user is found when it is read
                path(str(data))
        except DataError as missing:
            found[problem_name(problem)] = str(missing)
    return found


def work(spec: ArenaSpec, job: ArenaJob) -> tuple[dict[str, Any], float]:
    """Return the record of a job and the processor time of its rounds, in seconds."""
    with single_threaded():
        scenario = scenario_of(job.problem.name, as_json(spec.parameters(job.problem)))
        content, seconds = _comparator(spec, scenario) if job.learner is None else _match(spec, job.learner, scenario)
    return {"job": job.stem, **content}, seconds


def _comparator(spec: ArenaSpec, scenario: Scenario) -> tuple[dict[str, Any], float]:
    begin = time.thread_time()
    _, record = comparator_record(scenario, spec.recorded, spec.seeds, path=scenario.path)
    constants = scenario.problem.constants
    return {
        **record,
        "about": scenario.problem.name,
        "dimension": scenario.problem.dimension,
        "constraints": scenario.problem.constraint.count,
        "constraint_bound": constants.constraint_bound,
        "loss_range": constants.loss_range,
        "facts": dict(scenario.facts),
    }, time.thread_time() - begin


def _match(spec: ArenaSpec, entrant: LearnerSpec, scenario: Scenario) -> tuple[dict[str, Any], float]:
    seconds = 0.0
    runs: dict[str, Any] = {}
    needs: list[str] = []
    broken: set[str] = set()
    for T in reversed(spec.horizons):  # the longest first: a learner that refuses it is refused
        try:
            learner = learner_of(scenario, entrant, T)
            rounds = [t for t in spec.recorded if t <= T]
            broken.update(learner.broken_assumptions(scenario.problem))
            begin = time.thread_time()
            trace = run(scenario.problem, learner, scenario.stream, T, seeds=spec.seeds, record=rounds, progress=None)
        except Exception as refused:
            if not isinstance(refused, InputError):  # an error in a user's learner must not stop the arena
                where = f"{entrant.name} on {scenario.problem.name!r}"
                return {"refused": f"{where}{describe_stop(refused)}", "failed": True}, 0.0
            if not runs:
                return {"refused": str(refused)}, 0.0
            return {"runs": runs, "needs": needs, "too_short": str(refused), **_noted(broken)}, seconds
        needs = sorted(need.name for need in learner.effective_needs)
        seconds = seconds or time.thread_time() - begin
        measures = as_lists({name: getattr(trace, name) for name in RECORDED})
        runs[str(T)] = {"rounds": rounds, "measures": measures, "bounds": _bounds(learner, scenario, rounds)}
        if Need.HORIZON not in learner.needs:
            break
    return {"runs": runs, "needs": needs, **_noted(broken)}, seconds


def _noted(broken: set[str]) -> dict[str, list[str]]:
    return {"warnings": sorted(broken)} if broken else {}


def _bounds(learner: Learner[Any], scenario: Scenario, rounds: Sequence[int]) -> Mapping[str, Any]:
    """Return the theorem's bounds, if the theorem is about the comparator of this problem.

    A theorem on the hard violation compares with an x* that is feasible in every round. It does not apply where the
    comparator is feasible in expectation; theorems on signed sums hold there in expectation.
    """
    if scenario.path is not None:
        return {}  # theorems are about one decision, or about paths of another length
    found = learner.bound(scenario.problem, rounds)
    is_hard = HARD in found or (HARD in learner.promises and SIGNED not in found)  # or known after the run only
    if scenario.facts.get("benchmark") in ("in expectation", "on average") and is_hard:
        return {}
    return as_lists(found)
