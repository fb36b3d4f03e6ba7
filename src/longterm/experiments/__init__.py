"""Experiments: from a specification to a folder of results, on one machine or many.

ExperimentSpec, LearnerSpec, ProblemSpec     specifications
read_spec, spec_of, table_of                 specifications as TOML and plain tables
paper.paper_spec                             the paper's experiments
run_experiment, Backend                      run the jobs that are missing
load_result, Result                          results
"""

from longterm.experiments.backends import Backend
from longterm.experiments.execute import run_experiment
from longterm.experiments.load import load_result, summary_of
from longterm.experiments.result import Curve, Remark, Result
from longterm.experiments.spec import ExperimentSpec, LearnerSpec, ProblemSpec
from longterm.experiments.spec_tables import parse_learner, parse_problem, read_spec, spec_of, table_of

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
]
