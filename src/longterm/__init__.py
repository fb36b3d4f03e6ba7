"""Online convex optimisation with long-term constraints.

Decisions are made round after round; the constraint must hold in the long run and may be broken on the
way. Start with `run`, a problem, a learner and a stream.
"""

from longterm.engines import compare, run
from longterm.errors import (
    AlreadyToldError,
    BrokenBoundError,
    BrokenBoundWarning,
    ExpiredTokenError,
    InputError,
    JournalError,
    LongtermError,
    NonFiniteError,
    ScheduleError,
    SkippedTokenError,
    SnapshotError,
    StreamEndedError,
    TokenError,
    UnknownTokenError,
    WindowFullError,
)
from longterm.facts import Constants, Counterexample, challenge
from longterm.feedback import Feedback, observe
from longterm.learners import AOGD, Learner
from longterm.live import LiveLearner, LiveState, Token
from longterm.problems import Problem, budgeted_logistic, doubly_stochastic, late_reversal, two_dimensional
from longterm.trace import Trace

__version__ = "0.1.0.dev0"

__all__ = [
    "AOGD",
    "AlreadyToldError",
    "BrokenBoundError",
    "BrokenBoundWarning",
    "Constants",
    "Counterexample",
    "ExpiredTokenError",
    "Feedback",
    "InputError",
    "JournalError",
    "Learner",
    "LiveLearner",
    "LiveState",
    "LongtermError",
    "NonFiniteError",
    "Problem",
    "ScheduleError",
    "SkippedTokenError",
    "SnapshotError",
    "StreamEndedError",
    "Token",
    "TokenError",
    "Trace",
    "UnknownTokenError",
    "WindowFullError",
    "budgeted_logistic",
    "challenge",
    "compare",
    "doubly_stochastic",
    "late_reversal",
    "observe",
    "run",
    "two_dimensional",
]
