"""Make decisions one at a time, and stay within a budget in the long run.

In each round a learner makes a decision. A constraint must hold in the long run, and single rounds may violate it.
Start with `run`, a problem, a learner and a stream. Routers, pacers and ledgers are in `longterm.money`, linear models
in `longterm.linear_model`, and prediction intervals in `longterm.calibration`.
"""

from typing import TYPE_CHECKING

from longterm._base.lazy import lazy_names

if TYPE_CHECKING:
    from longterm.errors import InputError, LongtermError
    from longterm.learners import AOGD, Feedback, HedgedCuts, Learner, default_learner, observe
    from longterm.money import Ledger
    from longterm.play import Fleet, LiveLearner
    from longterm.play.engines.comparison import Comparison
    from longterm.play.engines.loop import compare, run
    from longterm.play.engines.trace import Trace
    from longterm.problems import Constants, Counterexample, Problem, SlaterPoint, challenge, find_slater_point
    from longterm.storage import Token

__version__ = "0.1.0"

_SUBPACKAGES = (
    "calibration",
    "catalogue",
    "compat",
    "data",
    "errors",
    "hindsight",
    "lab",
    "learners",
    "linear_model",
    "money",
    "play",
    "problems",
    "server",
    "storage",
    "testing",
    "theory",
)
"""Subpackages that are attributes of `longterm` and are imported on first use."""

__all__ = [
    "AOGD",
    "Comparison",
    "Constants",
    "Counterexample",
    "Feedback",
    "Fleet",
    "HedgedCuts",
    "InputError",
    "Learner",
    "Ledger",
    "LiveLearner",
    "LongtermError",
    "Problem",
    "SlaterPoint",
    "Token",
    "Trace",
    "challenge",
    "compare",
    "default_learner",
    "find_slater_point",
    "observe",
    "run",
]


_EXPORTS = {
    "AOGD": "learners",
    "Comparison": "play",
    "Constants": "problems",
    "Counterexample": "problems",
    "Feedback": "learners",
    "Fleet": "play",
    "HedgedCuts": "learners",
    "InputError": "errors",
    "Learner": "learners",
    "Ledger": "money",
    "LiveLearner": "play",
    "LongtermError": "errors",
    "Problem": "problems",
    "SlaterPoint": "problems",
    "Token": "storage",
    "Trace": "play",
    "challenge": "problems",
    "compare": "play",
    "default_learner": "learners",
    "find_slater_point": "problems",
    "observe": "learners",
    "run": "play",
}

__getattr__ = lazy_names(__name__, _EXPORTS, _SUBPACKAGES)  # so that `longterm --help` stays fast


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBPACKAGES, "__version__"})
