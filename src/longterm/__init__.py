"""Online convex optimisation with long-term constraints.

Each round the learner makes a decision. The constraint must hold in the long run and may be violated on the
way. Start with `run`, a problem, a learner and a stream.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longterm.engines.comparison import Comparison
    from longterm.engines.loop import compare, run
    from longterm.engines.trace import Trace
    from longterm.errors import InputError, LongtermError
    from longterm.learners import AOGD, Feedback, HedgedCuts, Learner, observe
    from longterm.problems import Problem
    from longterm.service import Fleet, Ledger, LiveLearner, Token
    from longterm.theory import Constants, Counterexample, SlaterPoint, challenge, find_slater_point

__version__ = "0.1.0"

_SUBPACKAGES = (
    "autodiff",
    "calibration",
    "compat",
    "constraints",
    "data",
    "decisions",
    "engines",
    "errors",
    "experiments",
    "hindsight",
    "learners",
    "linear_model",
    "losses",
    "pacing",
    "problems",
    "projections",
    "report",
    "server",
    "service",
    "sets",
    "storage",
    "streams",
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
    "find_slater_point",
    "observe",
    "run",
]


_EXPORTS = {
    "AOGD": "learners",
    "Comparison": "engines",
    "Constants": "theory",
    "Counterexample": "theory",
    "Feedback": "learners",
    "Fleet": "service",
    "HedgedCuts": "learners",
    "InputError": "errors",
    "Learner": "learners",
    "Ledger": "service",
    "LiveLearner": "service",
    "LongtermError": "errors",
    "Problem": "problems",
    "SlaterPoint": "theory",
    "Token": "service",
    "Trace": "engines",
    "challenge": "theory",
    "compare": "engines",
    "find_slater_point": "theory",
    "observe": "learners",
    "run": "engines",
}


def __getattr__(name: str) -> Any:
    """Import subpackages and names lazily, so that `longterm --help` stays fast."""
    if name in _SUBPACKAGES:
        return import_module(f"longterm.{name}")
    if name in _EXPORTS:
        found = globals()[name] = getattr(import_module(f"longterm.{_EXPORTS[name]}"), name)
        return found
    raise AttributeError(f"module 'longterm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBPACKAGES, "__version__"})
