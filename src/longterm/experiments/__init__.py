"""Experiments: from a specification to a folder of results, on one machine or many.

ExperimentSpec, LearnerSpec, ProblemSpec     what to run
read_spec, spec_of, table_of                 the same as TOML and plain tables
paper.paper_spec                             the paper's experiments
run_experiment, Backend                      run what is missing
load_result, Result                          what was found
"""

from longterm.experiments.jobs import Backend
from longterm.experiments.result import Curve, Remark, Result
from longterm.experiments.run import load_result, run_experiment, summary_of
from longterm.experiments.spec import ExperimentSpec, LearnerSpec, ProblemSpec
from longterm.experiments.spec_files import learner_of_words, problem_of_words, read_spec, spec_of, table_of

__all__ = [
    "Backend",
    "Curve",
    "ExperimentSpec",
    "LearnerSpec",
    "ProblemSpec",
    "Remark",
    "Result",
    "learner_of_words",
    "load_result",
    "problem_of_words",
    "read_spec",
    "run_experiment",
    "spec_of",
    "summary_of",
    "table_of",
]
