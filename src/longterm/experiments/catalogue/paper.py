"""The D that the A-OGD paper states for its two experiments: one too small, one larger than need be."""

from __future__ import annotations

import numpy as np

from longterm.constraints import DoublyStochastic, ElasticNetBudget
from longterm.errors import InputError
from longterm.problems import Problem


def papers_constraint_bound(problem: Problem) -> float:
    """√p on p × p doubly-stochastic matrices (true: p + 1), √d R + R²/2 under a budget (true: max(ρ, (√d − 1) R)).

    Examples
    --------
    >>> from longterm.problems import doubly_stochastic
    >>> from longterm.experiments.catalogue.paper import papers_constraint_bound
    >>> papers_constraint_bound(doubly_stochastic(4)), doubly_stochastic(4).constants.constraint_bound
    (2.0, 5.0)
    """
    constraint, R = problem.constraint, problem.constants.radius
    if isinstance(constraint, DoublyStochastic):
        return float(problem.dimension**0.25)
    if isinstance(constraint, ElasticNetBudget):
        return float(constraint.l1 * np.sqrt(problem.dimension) * R + constraint.l2 * R**2 / 2)
    what = f"the paper states no D for {problem.name!r}"
    raise InputError("constraint_bound", what, "Give 'exact', or a number")
