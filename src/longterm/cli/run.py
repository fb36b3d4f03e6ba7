"""The commands that run experiments, and what they share: who does the work, the table on the terminal, the report.

longterm reproduce   the paper's experiments
longterm run         a comparison of one's own
longterm report      figures and a page from folders that are there
longterm arena       every learner on every problem, and who comes out best
"""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from longterm import _validate as validate
from longterm.errors import InputError, did_you_mean
from longterm.experiments import (
    Backend,
    ExperimentSpec,
    Result,
    learner_of_words,
    load_result,
    problem_of_words,
    read_spec,
    run_experiment,
)
from longterm.experiments.arena import Preference, arena_of, league, run_arena
from longterm.experiments.arena.league import Violation, league_text, write_tables
from longterm.experiments.arena.run import with_learners
from longterm.experiments.arena.spec import ROUNDS, SEQUENCES, League
from longterm.experiments.paper import BETA, OF_THE_PAPER, WITH_A_BUDGET, Options, paper_spec
from longterm.experiments.spec import EngineChoice, slug


@dataclass(frozen=True)
class BackendOptions:
    """Who does the work."""

    workers: int | None = None
    """Processes on this machine. Left out: one for each core."""
    backend: str = "loky"
    """loky: processes on this machine; dask: a cluster; or a name that was registered with joblib."""
    scheduler: str | None = None
    """Address of the Dask scheduler, tcp://host:8786 for example (with --backend dask)."""
    register: str | None = None
    """A function that registers another backend with joblib first, for example ray.util.joblib:register_ray."""

    @property
    def chosen(self) -> Backend:
        """As the experiments want it."""
        if self.workers is not None:
            validate.count("workers", self.workers)
        return Backend(self.backend, self.workers, self.scheduler, self.register)


def table(result: Result) -> str:
    """The last round of each curve, mean and deviation over the sequences."""
    columns = [measure.removesuffix("_violation").replace("_", "-") for measure in result.measures]
    widest = max(len(curve.name) for curve in result.curves) + 2
    lines = [result.title, " " * widest + "".join(f"{column:>22}" for column in columns)]
    for curve in result.curves:
        cells = (curve.last(m) for m in result.measures)
        lines.append(f"{curve.name:<{widest}}" + "".join(f"{cell:>22}" for cell in cells))
    for remark in result.remarks:
        lines += textwrap.wrap(f"{remark.verdict}: {remark.text}", 118, initial_indent="  ", subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def write_report(results: Sequence[Result], folders: Sequence[Path], page: Path, title: str) -> None:
    """Figures into each folder, and one page for all of them."""
    from longterm.report import write_figures, write_page

    for result, folder in zip(results, folders, strict=True):
        figures = folder / "figures"
        figures.mkdir(parents=True, exist_ok=True)
        write_figures(result, figures)
        sys.stdout.write(f"figures  {figures}\n")
    again = shlex.join(["longterm", "report", *map(str, folders), "--out", str(page), "--title", title])
    sys.stdout.write(f"report   {write_page(results, page, title=title, command=again)}\n")


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


NAMES = (*OF_THE_PAPER, "sample", "all")


@dataclass(frozen=True)
class ReproduceCommand:
    """Run the experiments of Jenatton, Huang and Archambeau (2016), draw their figures and write a report.

      dsm      Figures 1 and 2: doubly-stochastic matrices, T = 1000 (seconds)
      ijcnn1   Figures 3 and 4, left: sparse classification, 49,990 rows (downloaded)
      covtype  Figures 3 and 4, right: the same on 581,012 rows (a few minutes)
      sample   the same on 6,000 rows that come with the package (no network)
      all      dsm, ijcnn1 and covtype

    Beside the paper's curves, set up as the paper does, stand fair ones. Every run is kept as soon as it is done:
    stopped and started again, the command computes only what is missing.

    try:
      longterm reproduce dsm sample
      longterm reproduce all --workers 2
      longterm reproduce covtype --sequences 3 --rho 5 --out results-rho5
      longterm reproduce ijcnn1 --learners convex-a-ogd convex-ogd --beta 0.5 --out results-beta
    """

    experiments: tyro.conf.Positional[tuple[str, ...]]
    """Which: dsm, ijcnn1, covtype, sample, all."""
    sequences: int = 10
    """Random sequences to average over."""
    rounds: int | None = None
    """T. Left out, as in the paper: 1000, or as many as there are rows."""
    beta: float = BETA
    """A-OGD's trade-off in (0, 1): larger favours the constraint, smaller (down to 1/2) the regret."""
    rho: float | None = None
    """The budget of sparse classification. Left out: chosen so that 30 % of the offline solution are not zero."""
    learners: tuple[str, ...] = ()
    """Only these curves, by name: convex-a-ogd, strongly-convex-a-ogd, convex-ogd, convex-mirror-prox, …"""
    out: Path = Path("results")
    """Folder for the results: one folder in it for each experiment, and report.html."""
    report: bool = True
    """Draw figures and write report.html."""
    workers: Annotated[BackendOptions, tyro.conf.arg(name="")] = field(default_factory=BackendOptions)

    def run(self) -> None:
        """Run them, one after the other."""
        for one in self.experiments:
            if one not in NAMES:
                what = f"{one!r} is not known{did_you_mean(one, NAMES)}"
                raise InputError("experiments", what, f"Choose from {', '.join(NAMES)}")
        names = list(dict.fromkeys(n for one in self.experiments for n in (OF_THE_PAPER if one == "all" else (one,))))
        if not names:
            raise InputError("experiments", "is empty", f"Choose from {', '.join(NAMES)}")
        if self.rho is not None and not set(names) & set(WITH_A_BUDGET):
            raise InputError("rho", "no experiment here has a budget", f"Choose one of {list(WITH_A_BUDGET)} with it")
        specs = [paper_spec(name, self._options(name, names)) for name in names]
        results, folders = [], [self.out / spec.name for spec in specs]
        for spec, folder in zip(specs, folders, strict=True):
            results.append(run_experiment(spec, folder, backend=self.workers.chosen))
            sys.stdout.write(f"{table(results[-1])}results  {folder}\n\n")
        if self.report:
            title = "Online convex optimisation with long-term constraints: the paper's experiments"
            write_report(results, folders, self.out / "report.html", title)

    def _options(self, name: str, names: list[str]) -> Options:
        """Those that concern this experiment: some have no budget, and not all have the same curves."""
        curves = {one: [slug(curve.name) for curve in paper_spec(one).curves] for one in names}
        wanted = tuple(one for one in self.learners if slug(one) in curves[name] or not _some_has(slug(one), curves))
        if self.learners and not wanted:
            what = f"{name!r} has none of {list(self.learners)}"
            raise InputError("learners", what, f"Leave that experiment out, or choose from {curves[name]} too")
        rho = self.rho if name in WITH_A_BUDGET else None
        return Options(self.sequences, self.rounds, self.beta, rho, wanted)


def _some_has(curve: str, curves: Mapping[str, Sequence[str]]) -> bool:
    return any(curve in names for names in curves.values())


@dataclass(frozen=True)
class ArenaCommand:
    """Let every learner play every problem that it is able to, and rank them by a trade-off of your choice.

    Every learner sees the same sequences. Slopes in T come from T/16, T/4 and T rounds: learners that need the horizon
    are run for each, the others once. A learner that refuses a problem is listed with its reason.

    The score: [v]₊/([v]₊ + s) for the regret and for the violation of a learner on a problem, where s is the median of
    what is positive among all that played it; (1 − weight) times the first plus weight times the second; the mean over
    the problems, ½ for one that it cannot play. 0 is best, ½ the middle of the field. Another --weight or --violation
    ranks again without playing again.

    Every match is kept as soon as it is done: stopped and started again, the command plays only what is missing.

    try:
      longterm arena --out arena
      longterm arena --out arena --weight 0.9 --violation hard
      longterm arena --out arena --add mine:build
      longterm arena --out small --learners aogd aftrl mine:build --problems routing "doubly_stochastic size=5"
      longterm arena --out drift --league drift
      longterm arena --out unseen --held-out 20260101
      longterm arena --out arena --backend dask --scheduler tcp://host:8786
    """

    out: Path = Path("arena")
    """Folder for the matches, the tables and the page."""
    learners: tuple[str, ...] = ()
    """Only these, each with its parameters: "aogd beta=0.5", or module:function. Left out: the whole catalogue."""
    add: tuple[str, ...] = ()
    """These in addition, mine:build for example: to what is in the folder already, else to the whole catalogue."""
    problems: tuple[str, ...] = ()
    """Only these, each with its parameters. Left out: the whole catalogue."""
    rounds: int = ROUNDS
    """T, the number of rounds."""
    sequences: int = SEQUENCES
    """Random sequences to average over."""
    league: League = "static"
    """Problems with one best decision, or those whose best decision moves."""
    held_out: int | None = None
    """The held-out half: variants of the problems, and sequences, drawn from this seed, that no tuning has seen."""
    weight: float = 0.5
    """The share of violation in the score: 0 ranks by regret alone, 1 by violation alone."""
    violation: Violation = "long-term"
    """Which: long-term (the largest of the Σ g_j), signed (Σ max g_j), hard (Σ [max g_j]₊), squared, or largest."""
    report: bool = True
    """Draw the figures and write arena.html."""
    workers: Annotated[BackendOptions, tyro.conf.arg(name="")] = field(default_factory=BackendOptions)

    def run(self) -> None:
        """Play, rank, print, write."""
        preference = Preference(self.weight, self.violation)
        spec = arena_of(
            self.learners,
            self.problems,
            rounds=self.rounds,
            sequences=self.sequences,
            league=self.league,
            held_out=self.held_out,
        )
        if self.add:
            spec = with_learners(spec, self.add, self.out if not self.learners else None)
        found = run_arena(spec, self.out, backend=self.workers.chosen)
        standings = league(found, preference)
        write_tables(found, standings, preference, self.out)
        sys.stdout.write(f"{league_text(found, standings, preference)}tables   {self.out}\n")
        if self.report:
            from longterm.report.arena import write_arena_page, write_frontiers

            write_frontiers(found, preference.measure, self.out / "figures")
            page = write_arena_page(found, standings, preference, self.out / "arena.html")
            sys.stdout.write(f"figures  {self.out / 'figures'}\nreport   {page}\n")
