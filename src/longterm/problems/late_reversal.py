"""The one-dimensional problem on which the printed Theorem 1 is false."""

from __future__ import annotations

from longterm import _validate as validate
from longterm.constraints import ElasticNetBudget
from longterm.losses import Linear
from longterm.problems.problem import Problem
from longterm.sets import Box


def late_reversal(radius: float = 1.0, gradient_bound: float = 1.0, epsilon: float = 1e-3) -> Problem:
    """B = [−R, R], linear losses, and g(x) = ε (|x| − R), which is never positive on B: λ stays 0.

    With the stream `LateReversal` the learner is pushed to one end, left there until its steps have
    become small, and then needs 2 T^β rounds to walk to the other. `docs/theory.md` tells the story.
    """
    radius = validate.positive_scalar("radius", radius)
    epsilon = validate.positive_scalar("epsilon", epsilon)
    constraint = ElasticNetBudget(1, budget=epsilon * radius, l1=epsilon, l2=0.0)
    return Problem(Box.cube(1, -radius, radius), Linear(1, gradient_bound), constraint, name="late reversal")
