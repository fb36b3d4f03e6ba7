"""The command `longterm run`: a comparison of learners on one problem."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from longterm.cli.backend import BackendOptions
from longterm.cli.options import IntList, NameList, OptionalFile, OptionalFolder, OptionalInt, OptionalStr
from longterm.cli.output import run_and_print, write_report
from longterm.errors import InputError
from longterm.lab import ExperimentSpec, read_spec
from longterm.lab.experiments.spec import validate_sequences
from longterm.lab.experiments.spec_tables import add_learners, parse_learner, parse_problem
from longterm.play.engines.selection import EngineChoice


@dataclass(frozen=True)
class RunCommand:
    """Compare learners on a problem. A TOML file, options or both describe the experiment; options take precedence.

    Write a learner or a problem as its name, followed by parameters as key=value. A list of values becomes a grid with
    one curve for each value. `longterm catalogue` lists the names. If the command is interrupted, run it again:
    finished runs are not repeated.

    A name with a colon, module:function, runs the code of that module. So treat a specification or manifest.json from
    a stranger like a program.

    for example:
      longterm run mine.toml
      longterm run mine.toml --rounds 500 --sequences 3 --out quick
      longterm run --problem "doubly_stochastic size=5" --learners "aogd beta=[0.5,0.75]"
      longterm run results/dsm/manifest.json --out again
      longterm run --add mine:build --out results/dsm
    """

    spec: tyro.conf.Positional[OptionalFile] = None
    """A TOML file (docs/guides/experiments.md shows one), or the manifest.json of a result folder."""
    problem: OptionalStr = None
    """The problem and its parameters, for example "doubly_stochastic size=5"."""
    learners: NameList = ()
    """The learners and parameters, such as aogd "mahdavi_ogd multipliers=each name='OGD (Mahdavi et al. 2012)'"."""
    add: NameList = ()
    """Add learners to those of the file, or to those of the folder that --out names. Finished runs are not repeated."""
    rounds: OptionalInt = None
    """The number of rounds. Default: as in the file, otherwise the number of rows of the data set."""
    sequences: OptionalInt = None
    """The number of random sequences, with the seeds 0, 1, …. Default: as in the file, otherwise 10."""
    seeds: IntList = ()
    """The seeds of the sequences, instead of --sequences."""
    record: OptionalInt = None
    """The approximate number of rounds to record. Default: as in the file, otherwise 40."""
    engine: Annotated[EngineChoice | None, tyro.conf.arg(help_behavior_hint="")] = None
    """numpy, jax, or auto: jax if it is installed, the runs are long and all parts belong to this library."""
    name: OptionalStr = None
    """The name of the experiment."""
    title: OptionalStr = None
    """The title of the figures. Default: the name of the experiment, otherwise that of the problem."""
    out: OptionalFolder = None
    """The result folder. Default: results/NAME, or the folder of a manifest.json that is run without changes."""
    report: bool = True
    """Draw the figures and write report.html."""
    workers: Annotated[BackendOptions, tyro.conf.arg(name="")] = field(default_factory=BackendOptions)

    def specification(self) -> ExperimentSpec:
        """Return the specification of the file and the options together."""
        given: dict[str, Any] = {
            "problem": None if self.problem is None else parse_problem(self.problem),
            "learners": tuple(map(parse_learner, self.learners)) or None,
            "seeds": self.seeds or (None if self.sequences is None else validate_sequences(self.sequences)),
        }
        if self.seeds and self.sequences is not None:
            raise InputError("seeds", "are given together with --sequences", "Give only one of the two")
        given |= {key: getattr(self, key) for key in ("rounds", "record", "engine", "name", "title")}
        given = {key: value for key, value in given.items() if value is not None}
        path = self.spec
        if path is None and self.add and self.out is not None and not given:
            path = self.out / "manifest.json"
        read = None if path is None else read_spec(path)
        if self.add:
            given["learners"] = add_learners(given.get("learners", read.learners if read else ()), self.add)
        if read is not None:
            return replace(read, **(given | {"command": ""} if given else {}))
        for needed in ("problem", "learners"):
            if needed not in given:
                raise InputError(
                    needed,
                    "is missing",
                    f"Give a TOML file, or --{needed}. `longterm run --help` shows examples of both",
                )
        return ExperimentSpec(**given)

    def _manifest_folder(self) -> Path | None:
        """Return the folder of a manifest that is run without changes."""
        if self.spec is None or self.spec.name != "manifest.json":
            return None
        unchanged = RunCommand(self.spec, report=self.report, workers=self.workers)
        return self.spec.parent if self == unchanged else None

    def run(self) -> None:
        """Run the experiment, print its table and write its report."""
        spec = self.specification()
        folder = self.out or self._manifest_folder() or _default_folder(spec.name)
        result = run_and_print(spec, folder, self.workers.chosen)
        if self.report:
            write_report([result], [folder], folder / "report.html", result.title)


def _default_folder(name: str) -> Path:
    """Return results/NAME; raise if the name leads out of results."""
    if name in ("", "..") or name != Path(name).name or "\\" in name:
        raise InputError("name", f"{name!r} cannot be the name of a folder", "Give another name, or a folder (--out)")
    return Path("results") / name
