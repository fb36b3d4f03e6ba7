"""The folder of an experiment or an arena.

manifest.json     the specification, the versions and the seeds: written first, unchanged once a job is finished
runs/STEM.json    one record for each finished job
timings.json      seconds for each job; the only file that differs between two runs
summary.json      the last round of every curve
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from longterm._base.files import remove_abandoned, sync_folder, try_lock
from longterm.catalogue.lookup import names_only
from longterm.errors import InputError
from longterm.lab.experiments.jobs import Job, all_jobs
from longterm.lab.experiments.manifests import describe_differences, only_adds
from longterm.lab.experiments.records import encode_record, read_record, write_file, write_json
from longterm.lab.experiments.spec import ExperimentSpec
from longterm.lab.experiments.spec_tables import spec_of, table_of


class HasStem(Protocol):
    """A job with a file of its own."""

    @property
    def stem(self) -> str:
        """The name of its file, without the suffix."""


J = TypeVar("J", bound=HasStem)


class JobFolder:
    """A folder with the results of the jobs of one specification."""

    kind, made_by = "experiment", "longterm"
    """The kind of specification, and the commands that write such a folder, for error messages."""
    files: tuple[str, ...] = ("manifest.json", "timings.json", "summary.json")

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.runs = self.path / "runs"

    @property
    def manifest(self) -> dict[str, Any]:
        """The content of manifest.json, validated."""
        try:
            made: dict[str, Any] = json.loads((self.path / "manifest.json").read_text(encoding="utf-8"))
            with names_only():
                self.check(made["spec"])
        except FileNotFoundError as error:
            what = f"has no manifest.json, so it is not the folder of an {self.kind}"
            raise InputError(str(self.path), what, f"Give a folder that {self.made_by} wrote") from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            remedy = "Delete the folder, or use another"
            raise InputError(str(self.path), f"its manifest.json cannot be read ({error})", remedy) from error
        return made

    def check(self, spec: Mapping[str, Any]) -> None:
        """Raise if a specification from a manifest is not valid."""

    @contextmanager
    def opened(self, spec: Mapping[str, Any], versions: Mapping[str, str], jobs: Sequence[HasStem]) -> Iterator[None]:
        """Lock the folder and write its manifest; raise if it holds the results of another specification.

        If the block raises before a job is finished, a new folder is removed again.
        """
        existed = self.path.exists()
        self._make(self.path)
        with self._locked():
            is_new = self._begin(spec, versions, jobs)
            try:
                yield
            finally:
                if is_new and not any(self.runs.glob("*.json")):
                    self._remove(with_folder=not existed)

    def _begin(self, spec: Mapping[str, Any], versions: Mapping[str, str], jobs: Sequence[HasStem]) -> bool:
        """Prepare the folder for these jobs, and return whether its manifest is new."""
        wanted: dict[str, Any] = {"spec": dict(spec), "seeds": list(spec["seeds"]), "versions": dict(versions)}
        current = (self.path / "manifest.json").exists()
        if current and not any(self.runs.glob("*.json")):
            current = self.manifest == wanted  # no job is finished, so the specification may have been corrected
        elif current:
            found = self.manifest
            old, new = ({**one, "command": ""} for one in (found["spec"], wanted["spec"]))  # the command may differ
            if only_adds(old, new) and found["versions"] == wanted["versions"]:
                current = False  # finished jobs stay; the manifest is written again
            elif old != new:
                what = f"holds another {self.kind}: {describe_differences(old, new)}"
                raise InputError(str(self.path), what, "Give another folder (--out), or delete this one")
            if found["versions"] != wanted["versions"] and self.unfinished(jobs):
                what = f"was written by other versions: {describe_differences(found['versions'], wanted['versions'])}"
                raise InputError(str(self.path), what, "Use those versions, give another folder, or delete this one")
        elif self.runs.exists() or (self.path / "summary.json").exists():
            what = "contains results but no manifest.json"
            raise InputError(str(self.path), what, "Give another folder (--out), or delete this one")
        if self.runs.is_symlink():
            raise InputError(str(self.runs), "is a symbolic link", "Remove it, or give another folder (--out)")
        self._make(self.runs)
        for name in self.files:
            remove_abandoned(self.path / name)
        for job in self.unfinished(jobs):
            remove_abandoned(self.runs / f"{job.stem}.json")
        if not current:
            write_json(self.path / "manifest.json", wanted)
        return not current

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold a lock of the operating system on the folder itself; it ends with the process."""
        if not hasattr(os, "O_DIRECTORY"):  # Windows does not open folders
            yield
            return
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if not try_lock(descriptor):
                what = "another process is writing to this folder"
                raise InputError(str(self.path), what, "Wait for it, or give another folder (--out)")
            yield
        finally:
            os.close(descriptor)

    def unfinished(self, jobs: Sequence[J]) -> list[J]:
        """Return the jobs without a valid record."""
        return [job for job in jobs if self.read(job) is None]

    def read(self, job: HasStem) -> dict[str, Any] | None:
        """Return the record of a job, or None if there is no valid one."""
        return read_record(self.runs / f"{job.stem}.json", job.stem)

    def require(self, job: HasStem) -> dict[str, Any]:
        """Return the record of a job; raise if there is no valid one."""
        content = self.read(job)
        if content is None:
            what = f"runs/{job.stem}.json is missing or damaged"
            raise InputError(
                str(self.path),
                what,
                "Run the same specification into this folder again. Only the missing run is computed",
            )
        return content

    def store(self, *records: tuple[Mapping[str, Any], float]) -> None:
        """Write the records of jobs, each with its seconds."""
        for content, _ in records:
            write_file(self.runs / f"{content['job']}.json", encode_record(content), sync=False)
        sync_folder(self.runs)
        taken = {content["job"]: round(seconds, 3) for content, seconds in records}
        write_json(self.path / "timings.json", {**self.timings, **taken}, sync=False)

    @property
    def timings(self) -> dict[str, float]:
        """The seconds that each job took, by its stem."""
        try:
            made: dict[str, float] = json.loads((self.path / "timings.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return made if isinstance(made, dict) else {}

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(str(folder), f"cannot be made ({error})", "Give another folder (--out)") from error

    def _remove(self, *, with_folder: bool) -> None:
        """Remove the files of a folder without results, and the folder itself."""
        for name in self.files:
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody else's files stay
            self.runs.rmdir()
            if with_folder:
                self.path.rmdir()


class ResultFolder(JobFolder):
    """The folder of one experiment."""

    kind, made_by = "experiment", "`longterm run` or `reproduce`"

    @property
    def spec(self) -> ExperimentSpec:
        """The specification in the manifest; the names in it are not imported."""
        with names_only():
            return spec_of(self.manifest["spec"])

    def check(self, spec: Mapping[str, Any]) -> None:
        spec_of(spec)

    def read(self, job: HasStem) -> dict[str, Any] | None:
        """Return the record of a job, or None if there is no valid one. A run without bounds is of an old version."""
        content = super().read(job)
        is_old = content is not None and "measures" in content and "bounds" not in content
        return None if is_old else content

    def opened_for(self, spec: ExperimentSpec, versions: Mapping[str, str]) -> AbstractContextManager[None]:
        """Lock the folder for an experiment, as `opened`."""
        return self.opened(table_of(spec), versions, all_jobs(spec, self.read(Job("problem"))))
