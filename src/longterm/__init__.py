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
from longterm.fleet import Fleet
from longterm.learners import (
    AFTRL,
    AOGD,
    LEWA,
    FeasibleOnlineADM,
    Learner,
    NetworkedSaddlePoint,
    OneProjectionSGD,
    OnlineADM,
    PenalisedFTRL,
    ProximalAOGD,
    Restarted,
    StronglyConvexAFTRL,
)
from longterm.problems import Problem, budgeted_logistic, consensus, doubly_stochastic, late_reversal, two_dimensional
from longterm.trace import Trace

__version__ = "0.1.0.dev0"

__all__ = [
    "AFTRL",
    "AOGD",
    "LEWA",
    "BrokenBoundError",
    "BrokenBoundWarning",
    "Constants",
    "Counterexample",
    "FeasibleOnlineADM",
    "Feedback",
    "Fleet",
    "InputError",
    "Learner",
    "LongtermError",
    "NetworkedSaddlePoint",
    "NonFiniteError",
    "OneProjectionSGD",
    "OnlineADM",
    "PenalisedFTRL",
    "Problem",
    "ProximalAOGD",
    "Restarted",
    "ScheduleError",
    "StreamEndedError",
    "StronglyConvexAFTRL",
    "Trace",
    "budgeted_logistic",
    "challenge",
    "compare",
    "consensus",
    "doubly_stochastic",
    "late_reversal",
    "observe",
    "run",
    "two_dimensional",
]
