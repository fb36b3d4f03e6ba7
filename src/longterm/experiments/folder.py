"""The folder of an experiment, or of an arena: what was asked for, a file for each finished job, what came out.

manifest.json     the specification, the versions, the seeds: written first, not changed once a job is done
runs/STEM.json    one for each finished job, whole or not there at all: readable JSON with a checksum
timings.json      seconds for each job; the only file that differs from one run to the next
summary.json      the last round of every curve

Numbers are written with as many digits as it takes to read the same float64 again: the same numbers, the same bytes.
The record of a job that was cut short, changed, or written for something else is not read: it counts as missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from longterm.errors import InputError
from longterm.experiments.catalogue import names_only
from longterm.experiments.jobs import Job, jobs_of
from longterm.experiments.spec import ExperimentSpec, as_json
from longterm.experiments.spec_files import spec_of, table_of
from longterm.storage.files import write_atomically

FORMAT = 1
"""Of the records of jobs."""


class HasStem(Protocol):
    """A job: whatever has a file of its own."""

    @property
    def stem(self) -> str:
        """The name of its file, without the ending."""


J = TypeVar("J", bound=HasStem)


class JobFolder:
    """A folder that holds what the jobs of one specification found."""

    kind, made_by = "experiment", "longterm"
    """What it is the folder of, and which commands write one, in words."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.runs = self.path / "runs"

    @property
    def manifest(self) -> dict[str, Any]:
        """What the folder was made for."""
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
        """Raise if a specification that was read is none."""

    def begin(self, spec: Mapping[str, Any], versions: Mapping[str, str], jobs: Sequence[HasStem]) -> None:
        """Begin the folder, or go on with it; refuse one that has results of something else."""
        wanted: dict[str, Any] = {"spec": dict(spec), "seeds": list(spec["seeds"]), "versions": dict(versions)}
        made = (self.path / "manifest.json").exists()
        if made and not any(self.runs.glob("*.json")):
            made = self.manifest == wanted  # a mistake in the specification that was mended before any job was done
        elif made:
            found = self.manifest
            was, now = ({**spec, "command": ""} for spec in (found["spec"], wanted["spec"]))
            if grows(was, now) and found["versions"] == wanted["versions"]:
                made = False  # the manifest is written anew; what was played is kept
                self.forget_sums()
            elif was != now:  # however it was asked for
                what = f"holds another {self.kind}: {differences(was, now)}"
                raise InputError(str(self.path), what, "Give another folder (--out), or delete this one")
            if found["versions"] != wanted["versions"] and self.unfinished(jobs):
                what = f"was begun with other versions: {differences(found['versions'], wanted['versions'])}"
                raise InputError(str(self.path), what, "Go on with those, give another folder, or delete this one")
        elif self.runs.exists() or (self.path / "summary.json").exists():
            what = "has results but no manifest.json"
            raise InputError(str(self.path), what, "Give another folder (--out), or delete this one")
        self._make(self.runs)
        for leftover in [*self.path.glob("*.partial"), *self.runs.glob("*.partial")]:
            leftover.unlink(missing_ok=True)
        if not made:
            self.write_json("manifest.json", wanted)

    def forget_sums(self) -> None:
        """Delete what is about all learners together, once there are more of them."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process at a time works in a folder; the lock goes with the process, however it ends."""
        self._make(self.path)
        with (self.path / ".lock").open("w") as file:
            try:
                import fcntl
            except ImportError:  # no such locks on this system
                yield
                return
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                what = "another process is at work in this folder"
                raise InputError(str(self.path), what, "Wait for it, or give another folder (--out)") from error
            yield

    def unfinished(self, jobs: Sequence[J]) -> list[J]:
        """The jobs whose files are not there, or damaged."""
        return [job for job in jobs if self.read(job) is None]

    def read(self, job: HasStem) -> dict[str, Any] | None:
        """What a job found; None where there is no sound file of it."""
        return read_record(self.runs / f"{job.stem}.json", job.stem)

    def require(self, job: HasStem) -> dict[str, Any]:
        """What a job found; an InputError where there is no sound file of it."""
        content = self.read(job)
        if content is None:
            what = f"runs/{job.stem}.json is missing or damaged"
            raise InputError(str(self.path), what, "Run the same specification into it again: only this is computed")
        return content

    def keep(self, content: Mapping[str, Any], seconds: float) -> None:
        """Write what a job found, and how long that took."""
        stem = content["job"]
        write_atomically(self.runs / f"{stem}.json", encode(content))
        self.write_json("timings.json", {**self.timings, stem: round(seconds, 3)})

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """A file for people and other programs."""
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        write_atomically(self.path / name, f"{text}\n".encode())

    @property
    def timings(self) -> dict[str, float]:
        """Seconds that each job took, by its stem."""
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


class ResultFolder(JobFolder):
    """A folder that holds the results of one experiment."""

    kind, made_by = "experiment", "`longterm run` or `reproduce`"

    @property
    def spec(self) -> ExperimentSpec:
        """The specification it was made for; what it names is not imported."""
        with names_only():
            return spec_of(self.manifest["spec"])

    def check(self, spec: Mapping[str, Any]) -> None:
        spec_of(spec)

    def forget_sums(self) -> None:
        (self.runs / f"{Job('bounds').stem}.json").unlink(missing_ok=True)

    def open_for(self, spec: ExperimentSpec, versions: Mapping[str, str]) -> None:
        """Begin the folder, or go on with it."""
        self.begin(table_of(spec), versions, self._jobs(spec))

    def missing(self, spec: ExperimentSpec) -> list[Job]:
        """The jobs whose files are not there, or damaged."""
        return self.unfinished(self._jobs(spec))

    def _jobs(self, spec: ExperimentSpec) -> list[Job]:
        return [Job("problem"), *jobs_of(spec)]


def grows(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether all that differs is that learners or problems have come in addition.

    Examples
    --------
    >>> from longterm.experiments.folder import grows
    >>> grows({"learners": [1]}, {"learners": [1, 2]}), grows({"learners": [1]}, {"learners": [2]})
    (True, False)
    """
    differing = {key for key in {*was, *now} if was.get(key) != now.get(key)}
    return bool(differing) and all(
        key in ("learners", "problems") and all(one in now.get(key, []) for one in was.get(key, []))
        for key in differing
    )


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Which keys differ, in words; of learners and problems, which have come and which have gone.

    Examples
    --------
    >>> from longterm.experiments.folder import differences
    >>> old = {"rounds": 512, "problems": [{"name": "routing"}, {"name": "doubly_stochastic", "size": 4}]}
    >>> differences(old, {"rounds": 300, "problems": [{"name": "routing"}]})
    'problems without doubly_stochastic size=4; rounds was 512, now 300'
    """
    keys = sorted(key for key in {*found, *wanted} if found.get(key) != wanted.get(key))
    return "; ".join(words for key in keys for words in _apart(key, found.get(key), wanted.get(key)))


def _apart(key: str, was: Any, now: Any) -> Iterator[str]:
    gone = [one for one in was or [] if one not in (now or [])] if _is_of_tables(was) else []
    new = [one for one in now or [] if one not in (was or [])] if _is_of_tables(now) else []
    if not (gone or new):
        yield f"{key} was {_brief(was)}, now {_brief(now)}"
    if gone:
        yield f"{key} without {_listed(gone)}"
    if new:
        yield f"{key} with {_listed(new)}"


def _is_of_tables(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, Mapping) for one in value)


def _listed(tables: Sequence[Mapping[str, Any]]) -> str:
    """The first three, and how many more there are."""
    return ", ".join(map(_brief, tables[:3])) + (f" and {len(tables) - 3} more" if len(tables) > 3 else "")


def _brief(value: Any) -> str:
    if isinstance(value, Mapping) and "name" in value:  # a learner or a problem, as on the command line
        told = {"learner", "name", "role", *(key for key in value if f"{key} = " in str(value["name"]))}
        parameters = (f"{key}={_brief(value[key])}" for key in value if key not in told)
        return " ".join([str(value["name"]), *parameters])
    text = "left out" if value in (None, []) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= 100 else f"{text[:97]}…"


def encode(content: Mapping[str, Any]) -> bytes:
    """The bytes of a record."""
    text = as_json(content)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"format":{FORMAT},"sha256":"{digest}",\n"content":{text}}}\n'.encode()


def decode(data: bytes) -> dict[str, Any] | None:
    """What was encoded; None where these are not exactly the bytes of a record."""
    try:
        content = json.loads(data)["content"]
        return content if encode(content) == data else None
    except (ValueError, KeyError, TypeError, RecursionError):  # UnicodeDecodeError is a ValueError
        return None


def read_record(path: Path, stem: str) -> dict[str, Any] | None:
    """The record of this job in a file; None where there is no sound one."""
    try:
        content = decode(path.read_bytes())
    except OSError:
        return None
    return content if content is not None and content.get("job") == stem else None
