"""Online convex optimisation with long-term constraints.

Decisions are made round after round; the constraint must hold in the long run and may be broken on the
way. Start with `run`, a problem, a learner and a stream.
"""

from longterm.engines import compare, run
from longterm.errors import (
    AlreadyToldError,
    AssumptionWarning,
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
from longterm.fleet import Fleet
from longterm.learners import (
    AFTRL,
    AOGD,
    LEWA,
    DecayingMarginAOGD,
    DoublingAOGD,
    FeasibleOnlineADM,
    Learner,
    MahdaviOGD,
    MirrorProx,
    NetworkedSaddlePoint,
    NoViolationAOGD,
    NoViolationMahdaviOGD,
    NoViolationMirrorProx,
    OneProjectionSGD,
    OnlineADM,
    PenalisedFTRL,
    ProjectedOGD,
    ProximalAOGD,
    Restarted,
    StronglyConvexAFTRL,
)
from longterm.live import LiveLearner, LiveState, Token
from longterm.problems import (
    Problem,
    budgeted_logistic,
    consensus,
    covariance,
    doubly_stochastic,
    late_reversal,
    two_dimensional,
)
from longterm.slater import SlaterPoint, find_slater_point
from longterm.trace import Trace

__version__ = "0.1.0.dev0"

__all__ = [
    "AFTRL",
    "AOGD",
    "LEWA",
    "AlreadyToldError",
    "AssumptionWarning",
    "BrokenBoundError",
    "BrokenBoundWarning",
    "Constants",
    "Counterexample",
    "DecayingMarginAOGD",
    "DoublingAOGD",
    "ExpiredTokenError",
    "FeasibleOnlineADM",
    "Feedback",
    "Fleet",
    "InputError",
    "JournalError",
    "Learner",
    "LiveLearner",
    "LiveState",
    "LongtermError",
    "MahdaviOGD",
    "MirrorProx",
    "NetworkedSaddlePoint",
    "NoViolationAOGD",
    "NoViolationMahdaviOGD",
    "NoViolationMirrorProx",
    "NonFiniteError",
    "OneProjectionSGD",
    "OnlineADM",
    "PenalisedFTRL",
    "Problem",
    "ProjectedOGD",
    "ProximalAOGD",
    "Restarted",
    "ScheduleError",
    "SkippedTokenError",
    "SlaterPoint",
    "SnapshotError",
    "StreamEndedError",
    "StronglyConvexAFTRL",
    "Token",
    "TokenError",
    "Trace",
    "UnknownTokenError",
    "WindowFullError",
    "budgeted_logistic",
    "challenge",
    "compare",
    "consensus",
    "covariance",
    "doubly_stochastic",
    "find_slater_point",
    "late_reversal",
    "observe",
    "run",
    "two_dimensional",
]
