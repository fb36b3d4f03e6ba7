"""The command `longterm reproduce`: the paper's experiments."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from longterm._base.messages import did_you_mean
from longterm.cli.backend import BackendOptions
from longterm.cli.options import NameList, OptionalFloat, OptionalInt
from longterm.cli.output import run_and_print, write_report
from longterm.errors import InputError
from longterm.lab.experiments.paper_experiments import BETA, OF_THE_PAPER, Options, paper_specs
from longterm.play.engines.selection import EngineChoice

NAMES = (*OF_THE_PAPER, "sample", "all")


@dataclass(frozen=True)
class ReproduceCommand:
    """Run the experiments of Jenatton, Huang and Archambeau (2016), draw their figures and write a report.

      dsm      Figures 1 and 2: doubly-stochastic matrices, T = 1000 (seconds)
      ijcnn1   Figures 3 and 4, left: sparse classification, 49,990 rows (downloaded)
      covtype  Figures 3 and 4, right: the same on 581,012 rows (a few minutes)
      sample   the same on 6,000 rows that come with the package (no network)
      all      dsm, ijcnn1 and covtype

    The paper's curves use the settings of the paper. Curves with correct constants are added. If the command is
    interrupted, run it again: finished runs are not repeated.

    for example:
      longterm reproduce dsm sample
      longterm reproduce all --workers 2
      longterm reproduce covtype --sequences 3 --rho 5 --out results-rho5
      longterm reproduce ijcnn1 --learners a-ogd ogd-mahdavi-et-al-2012 --out results-2
    """

    experiments: tyro.conf.Positional[NameList]
    """One or more of dsm, ijcnn1, covtype, sample, all."""
    sequences: int = 10
    """The number of random sequences."""
    rounds: OptionalInt = None
    """The number of rounds. Default: as in the paper, 1000 or the number of rows."""
    beta: float = BETA
    """A-OGD's β in (0, 1). A larger β lowers the violation. A smaller β, down to 1/2, lowers the regret."""
    rho: OptionalFloat = None
    """The budget of sparse classification. Default: as in the paper, where 30 % of the coefficients are not 0."""
    engine: EngineChoice = "auto"
    """numpy, jax, or auto: jax if it is installed and the runs are long."""
    learners: NameList = ()
    """Run only these curves: a-ogd, a-ogd-strongly-convex, ogd-mahdavi-et-al-2012, mirror-prox, …"""
    out: Path = Path("results")
    """The folder for the results: one folder for each experiment, and report.html."""
    report: bool = True
    """Draw the figures and write report.html."""
    workers: Annotated[BackendOptions, tyro.conf.arg(name="")] = field(default_factory=BackendOptions)

    def run(self) -> None:
        """Run the experiments one after the other."""
        for one in self.experiments:
            if one not in NAMES:
                what = f"{one!r} is not known{did_you_mean(one, NAMES)}"
                raise InputError("experiments", what, f"Choose from {', '.join(NAMES)}")
        names = list(dict.fromkeys(n for one in self.experiments for n in (OF_THE_PAPER if one == "all" else (one,))))
        if not names:
            raise InputError("experiments", "is empty", f"Choose from {', '.join(NAMES)}")
        options = Options(self.sequences, self.rounds, self.beta, self.rho, self.engine, self.learners)
        specs = paper_specs(names, options)
        folders = [self.out / spec.name for spec in specs]
        backend = self.workers.chosen
        results = [run_and_print(spec, folder, backend) for spec, folder in zip(specs, folders, strict=True)]
        if self.report:
            title = "Online convex optimisation with long-term constraints: the paper's experiments"
            write_report(results, folders, self.out / "report.html", title)
