"""The learner that we recommend to begin with, for a problem."""

from __future__ import annotations

from typing import Any

from longterm.errors import InputError
from longterm.learners.cuts.hedged_cuts import HedgedCuts
from longterm.learners.ftrl.penalised_ftrl import PenalisedFTRL
from longterm.learners.interface.learner import Learner
from longterm.problems import Problem
from longterm.problems.constraints.prox import PenaltyProx

REMEMBERED, BANK = 64, 0.1
"""The settings of hedged cuts for limits that keep arriving, and for slack that offsets violations."""


def default_learner(problem: Problem, *, returning: bool = False, offsetting: bool = False) -> Learner[Any]:
    """Return the recommended learner for a problem, by the first row that applies.

    =============================================  ====================================
    the problem                                    the learner
    =============================================  ====================================
    `offsetting`                                   ``HedgedCuts(bank=0.1)``
    g changes, and `returning`                     ``HedgedCuts(remembered=64)``
    g is a fixed budget whose prox is a formula    ``PenalisedFTRL``
    any other                                      ``HedgedCuts``
    =============================================  ====================================

    Parameters
    ----------
    problem : Problem
        Gives the set, the constraint and the constants.
    returning : bool
        True if the limits of a changing constraint return or keep arriving, some decision satisfies all of them, and
        every violated round costs.
    offsetting : bool
        True if slack in some rounds may offset violations in others, and only the long-term violation counts.

    Returns
    -------
    Learner
        A `HedgedCuts` or a `PenalisedFTRL`, made for the problem.

    Examples
    --------
    >>> from longterm import default_learner
    >>> from longterm.problems import doubly_stochastic
    >>> type(default_learner(doubly_stochastic(3))).__name__
    'HedgedCuts'
    """
    if returning and offsetting:
        remedy = (
            "Set only one of them. Remembered half-spaces must hold in every round, so nothing can offset a violation"
        )
        raise InputError("returning", "is given together with offsetting", remedy)
    if offsetting:
        return HedgedCuts.for_problem(problem, bank=BANK)
    if problem.constraint.parameters:
        return HedgedCuts.for_problem(problem, remembered=REMEMBERED if returning else 0)
    if isinstance(problem.constraint.prox(problem.enclosing_set), PenaltyProx):
        return PenalisedFTRL.for_problem(problem)
    return HedgedCuts.for_problem(problem)
