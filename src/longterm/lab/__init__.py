"""The laboratory: experiments, the arena, and reports (extra `experiments`).

Whatever runs many learners on many sequences and writes files about it belongs here. One run belongs in `play`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from longterm._base.lazy import lazy_names

if TYPE_CHECKING:
    from longterm.lab.experiments.backends import Backend
    from longterm.lab.experiments.execute import run_experiment
    from longterm.lab.experiments.load import load_result
    from longterm.lab.experiments.spec import ExperimentSpec, LearnerSpec, ProblemSpec
    from longterm.lab.experiments.spec_tables import read_spec
    from longterm.lab.report.experiment_page import write_page
    from longterm.lab.report.figures import write_figures

__all__ = [
    "Backend",
    "ExperimentSpec",
    "LearnerSpec",
    "ProblemSpec",
    "load_result",
    "read_spec",
    "run_experiment",
    "write_figures",
    "write_page",
]

_MODULES = {
    "Backend": "experiments.backends",
    "ExperimentSpec": "experiments.spec",
    "LearnerSpec": "experiments.spec",
    "ProblemSpec": "experiments.spec",
    "load_result": "experiments.load",
    "read_spec": "experiments.spec_tables",
    "run_experiment": "experiments.execute",
    "write_figures": "report.figures",
    "write_page": "report.experiment_page",
}

__getattr__ = lazy_names(__name__, _MODULES)  # some names need an extra


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
