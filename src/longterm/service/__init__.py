"""Learners in a service: ask and tell in any order, state in a database, fleets of learners."""

from longterm.service.accounts import Balance
from longterm.service.fleet import Fleet
from longterm.service.intervals import LiveInterval, LiveIntervals
from longterm.service.learner import LiveLearner
from longterm.service.lease import Lease
from longterm.service.ledger import Ledger
from longterm.service.spending import LeasedAccount, SharedAccount
from longterm.service.state import LiveState
from longterm.service.tokens import Token

__all__ = [
    "Balance",
    "Fleet",
    "Lease",
    "LeasedAccount",
    "Ledger",
    "LiveInterval",
    "LiveIntervals",
    "LiveLearner",
    "LiveState",
    "SharedAccount",
    "Token",
]
