"""Online convex optimisation with long-term constraints.

Decisions are made round after round; the constraint must hold in the long run and may be broken on the
way. Start with `run`, a problem, a learner and a stream.
"""

from longterm.engines import compare, run
from longterm.errors import (
    BrokenBoundError,
    BrokenBoundWarning,
    InputError,
    LongtermError,
    NonFiniteError,
    ScheduleError,
    StreamEndedError,
)
from longterm.facts import Constants, Counterexample, challenge
from longterm.feedback import Feedback, observe
from longterm.learners import AOGD, Learner, ProjectedOGD
from longterm.problems import (
    Problem,
    budgeted_logistic,
    covariance,
    doubly_stochastic,
    late_reversal,
    two_dimensional,
)
from longterm.trace import Trace

__version__ = "0.1.0.dev0"

__all__ = [
    "AOGD",
    "BrokenBoundError",
    "BrokenBoundWarning",
    "Constants",
    "Counterexample",
    "Feedback",
    "InputError",
    "Learner",
    "LongtermError",
    "NonFiniteError",
    "Problem",
    "ProjectedOGD",
    "ScheduleError",
    "StreamEndedError",
    "Trace",
    "budgeted_logistic",
    "challenge",
    "compare",
    "covariance",
    "doubly_stochastic",
    "late_reversal",
    "observe",
    "run",
    "two_dimensional",
]
