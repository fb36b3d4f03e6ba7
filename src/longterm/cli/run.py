"""longterm run: a comparison of one's own. longterm report: figures and a page from folders that are there."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from longterm.cli.common import BackendOptions, table, write_report
from longterm.errors import InputError
from longterm.experiments import (
    ExperimentSpec,
    learner_of_words,
    load_result,
    problem_of_words,
    read_spec,
    run_experiment,
)
from longterm.experiments.spec import EngineChoice


@dataclass(frozen=True)
class RunCommand:
    """Compare learners on a problem: what a TOML file says, what options say, or both (options win).

    A learner or a problem is a name of the catalogue, then its parameters as key=value; a list of values becomes a
    grid, one curve for each. `longterm catalogue` shows the names. Every run is kept as soon as it is done: stopped and
    started again, the command computes only what is missing.

    A name with a colon, module:function, is imported: a specification from a stranger, a manifest.json too, is code.

    try:
      longterm run mine.toml
      longterm run mine.toml --rounds 500 --sequences 3 --out quick
      longterm run --problem "budgeted_logistic data=sample budget=3" --learners "aogd beta=[0.5,0.75]" aftrl
      longterm run results/dsm/manifest.json --out again
      longterm run --add mine:build --out results/dsm
    """

    spec: tyro.conf.Positional[Path | None] = None
    """A TOML file (docs/experiments.md shows one), or the manifest.json of a result folder."""
    problem: str | None = None
    """For example "doubly_stochastic size=5"."""
    learners: tuple[str, ...] = ()
    """For example aogd "mahdavi_ogd multipliers=each name='Convex OGD'"."""
    add: tuple[str, ...] = ()
    """Learners in addition to those of the file, or of the folder that --out names: what was played is not again."""
    rounds: int | None = None
    """T. Left out: what the file says, else the rows of the data set."""
    sequences: int | None = None
    """Seeds 0, 1, … of so many random sequences. Left out: what the file says, else 10."""
    seeds: tuple[int, ...] = ()
    """Or the seeds themselves."""
    record: int | None = None
    """About how many rounds are kept. Left out: what the file says, else 40."""
    engine: EngineChoice | None = None
    """numpy, jax, or auto: jax where it is installed, the runs are long, and all parts are this library's."""
    name: str | None = None
    """Of the experiment."""
    title: str | None = None
    """Of its figures."""
    out: Path | None = None
    """The result folder. Left out: that of a manifest.json which is run as it is, else results/NAME."""
    report: bool = True
    """Draw figures and write report.html."""
    workers: Annotated[BackendOptions, tyro.conf.arg(name="")] = field(default_factory=BackendOptions)

    def specification(self) -> ExperimentSpec:
        """What the file and the options say together."""
        given: dict[str, Any] = {
            "problem": None if self.problem is None else problem_of_words(self.problem),
            "learners": tuple(map(learner_of_words, self.learners)) or None,
            "seeds": self.seeds or (None if self.sequences is None else self.sequences),
        }
        if self.seeds and self.sequences is not None:
            raise InputError("seeds", "were given, and --sequences too", "Give one of the two")
        given |= {key: getattr(self, key) for key in ("rounds", "record", "engine", "name", "title")}
        given = {key: value for key, value in given.items() if value is not None}
        path = self.spec
        if path is None and self.add and self.out is not None and not given:
            path = self.out / "manifest.json"
        added = tuple(map(learner_of_words, self.add))
        if path is not None:
            read = read_spec(path)
            if added:
                there = {one.name for one in read.learners}
                given["learners"] = (*given.get("learners", read.learners), *(a for a in added if a.name not in there))
            return replace(read, **(given | {"command": ""} if given else {}))
        if added:
            given["learners"] = (*given.get("learners", ()), *added)
        for needed in ("problem", "learners"):
            if needed not in given:
                raise InputError(needed, "is missing", f"Give a TOML file, or --{needed}; longterm run --help has both")
        return ExperimentSpec(**given)

    def _own_folder(self) -> Path | None:
        """Where a manifest was read and nothing else was asked for: its own folder, so that its page is made anew."""
        if self.spec is None or self.spec.name != "manifest.json":
            return None
        as_it_is = RunCommand(self.spec, report=self.report, workers=self.workers)
        return self.spec.parent if self == as_it_is else None

    def run(self) -> None:
        """Run it, and show the table."""
        spec = self.specification()
        folder = self.out or self._own_folder() or _folder(spec.name)
        result = run_experiment(spec, folder, backend=self.workers.chosen)
        sys.stdout.write(f"{table(result)}results  {folder}\n\n")
        if self.report:
            write_report([result], [folder], folder / "report.html", result.title)


def _folder(name: str) -> Path:
    """results/NAME, which is not to lead anywhere else."""
    if name in ("", "..") or name != Path(name).name or "\\" in name:
        raise InputError("name", f"{name!r} cannot be the name of a folder", "Give another name, or a folder (--out)")
    return Path("results") / name


@dataclass(frozen=True)
class ReportCommand:
    """Draw the figures and write the page of experiments that have been run.

    try:
      longterm report results/dsm results/sample --out results/report.html

    Results are only read: no module that a manifest names is imported, so the folders of others run no code here.
    """

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """Result folders."""
    out: Path = Path("report.html")
    """The page."""
    title: str = "Online convex optimisation with long-term constraints"
    """Its title."""

    def run(self) -> None:
        """Write them."""
        if not self.folders:
            raise InputError("folders", "is empty", "Give result folders, results/dsm for example")
        write_report([load_result(folder) for folder in self.folders], self.folders, self.out, self.title)
