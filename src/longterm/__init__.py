"""Online convex optimisation with long-term constraints.

Decisions are made round after round; the constraint must hold in the long run and may be broken on the
way. Start with `run`, a problem, a learner and a stream.
"""

from longterm.engines import compare, run
from longterm.errors import (
    AssumptionWarning,
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
from longterm.learners import (
    AOGD,
    DecayingMarginAOGD,
    DoublingAOGD,
    Learner,
    MahdaviOGD,
    MirrorProx,
    NoViolationAOGD,
    NoViolationMahdaviOGD,
    NoViolationMirrorProx,
)
from longterm.problems import Problem, budgeted_logistic, doubly_stochastic, late_reversal, two_dimensional
from longterm.slater import SlaterPoint, find_slater_point
from longterm.trace import Trace

__version__ = "0.1.0.dev0"

__all__ = [
    "AOGD",
    "AssumptionWarning",
    "BrokenBoundError",
    "BrokenBoundWarning",
    "Constants",
    "Counterexample",
    "DecayingMarginAOGD",
    "DoublingAOGD",
    "Feedback",
    "InputError",
    "Learner",
    "LongtermError",
    "MahdaviOGD",
    "MirrorProx",
    "NoViolationAOGD",
    "NoViolationMahdaviOGD",
    "NoViolationMirrorProx",
    "NonFiniteError",
    "Problem",
    "ScheduleError",
    "SlaterPoint",
    "StreamEndedError",
    "Trace",
    "budgeted_logistic",
    "challenge",
    "compare",
    "doubly_stochastic",
    "find_slater_point",
    "late_reversal",
    "observe",
    "run",
    "two_dimensional",
]
