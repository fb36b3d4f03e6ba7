"""Playing an arena into a folder: only what is missing is played."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from longterm.experiments.arena.found import Arena, load_arena
from longterm.experiments.arena.jobs import arena_jobs, work
from longterm.experiments.arena.left_out import left_out
from longterm.experiments.arena.spec import ArenaSpec, problem_name
from longterm.experiments.backends import Backend, opened
from longterm.experiments.folder import JobFolder
from longterm.experiments.progress import job_progress
from longterm.experiments.run import versions


class ArenaFolder(JobFolder):
    """A folder that holds the matches of one arena."""

    kind, made_by = "arena", "`longterm arena`"


def run_arena(
    spec: ArenaSpec, folder: str | Path, *, backend: Backend | None = None, out: TextIO | None = None
) -> Arena:
    """Play what the specification asks for and is not in the folder yet; what was found.

    Stopped and started again it goes on where it was, and ends with the same files, byte for byte; only timings.json
    differs. Problems whose data are not here are left out, and played when the data are: `Arena.left_out` says why.

    >>> import io, tempfile
    >>> from longterm.experiments.arena import arena_of, run_arena
    >>> from longterm.experiments import Backend
    >>> spec = arena_of(["aogd", "mirror_prox"], ["doubly_stochastic size=3"], rounds=64, sequences=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     arena = run_arena(spec, folder, backend=Backend(workers=1), out=io.StringIO())
    >>> [(match.learner, match.anytime) for match in arena.matches]
    [('A-OGD', True), ('Mirror prox', False)]
    """
    kept, missing_data = ArenaFolder(folder), left_out(spec)
    jobs = arena_jobs(spec, [one for one in spec.problems if problem_name(one) not in missing_data])
    with kept.locked():
        kept.begin(spec.table(), versions("numpy"), jobs)
        todo = kept.unfinished(jobs)
        by_stem = {job.stem: job for job in todo}
        with job_progress("arena", len(todo), out) as step, opened(backend or Backend()) as do:
            for content, seconds in do(work, [(spec, job) for job in todo]):
                kept.write(by_stem[content["job"]], content)
                kept.note_time(by_stem[content["job"]], seconds)
                step()
        return load_arena(spec, kept, missing_data)
