"""Restarts: a theorem for each stretch, added up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.bounds.base import Bound


def restarted(theorem: Callable[[ArrayLike], Bound], every: int, rounds: ArrayLike) -> Bound:
    """⌊T/n⌋ times the bound for n rounds, and once that for the T mod n rounds that are left.

    `theorem` gives the learner's own bound from a horizon. The regret is that against the best decision of each
    stretch; against any fixed one it is no larger.

    >>> from longterm.learners import PenalisedFTRL, Restarted
    >>> from longterm.problems import budgeted_logistic
    >>> from longterm.bounds import penalised_ftrl, restarted
    >>> problem = budgeted_logistic([[3.0, 4.0, 0.0, 0.0]], budget=1.5)
    >>> learner = Restarted(PenalisedFTRL.for_problem(problem), every=1000)
    >>> bound = restarted(lambda n: penalised_ftrl(learner.learner, problem.constants, n), learner.every, 10_500)
    >>> [round(float(part), 1) for part in bound]
    [2511.9, 48.4]
    """
    horizons, n = validate.horizons("rounds", rounds), validate.count("every", every)
    whole, left = theorem(np.asarray(n)), theorem(np.maximum(horizons % n, 1))

    def total(one: FloatArray, rest: FloatArray) -> FloatArray:
        axes = (1,) * (rest.ndim - horizons.ndim)
        stretches, remains = (h.reshape(h.shape + axes) for h in (horizons // n, horizons % n > 0))
        return np.asarray(stretches * one + remains * rest)

    return Bound(total(whole.regret, left.regret), total(whole.violation, left.violation))
