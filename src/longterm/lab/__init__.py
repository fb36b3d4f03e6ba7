"""The laboratory: experiments, the arena, and reports (extra `experiments`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longterm.lab.experiments.backends import Backend
    from longterm.lab.experiments.execute import run_experiment
    from longterm.lab.experiments.load import load_result, summary_of
    from longterm.lab.experiments.result import Curve, Remark, Result
    from longterm.lab.experiments.spec import ExperimentSpec, LearnerSpec, ProblemSpec
    from longterm.lab.experiments.spec_tables import parse_learner, parse_problem, read_spec, spec_of, table_of
    from longterm.lab.report.experiment import write_page
    from longterm.lab.report.figures import write_figures

__all__ = [
    "Backend",
    "Curve",
    "ExperimentSpec",
    "LearnerSpec",
    "ProblemSpec",
    "Remark",
    "Result",
    "load_result",
    "parse_learner",
    "parse_problem",
    "read_spec",
    "run_experiment",
    "spec_of",
    "summary_of",
    "table_of",
    "write_figures",
    "write_page",
]

_MODULES = {
    "Backend": "longterm.lab.experiments.backends",
    "Curve": "longterm.lab.experiments.result",
    "ExperimentSpec": "longterm.lab.experiments.spec",
    "LearnerSpec": "longterm.lab.experiments.spec",
    "ProblemSpec": "longterm.lab.experiments.spec",
    "Remark": "longterm.lab.experiments.result",
    "Result": "longterm.lab.experiments.result",
    "load_result": "longterm.lab.experiments.load",
    "parse_learner": "longterm.lab.experiments.spec_tables",
    "parse_problem": "longterm.lab.experiments.spec_tables",
    "read_spec": "longterm.lab.experiments.spec_tables",
    "run_experiment": "longterm.lab.experiments.execute",
    "spec_of": "longterm.lab.experiments.spec_tables",
    "summary_of": "longterm.lab.experiments.load",
    "table_of": "longterm.lab.experiments.spec_tables",
    "write_figures": "longterm.lab.report.figures",
    "write_page": "longterm.lab.report.experiment",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: some need an extra."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
