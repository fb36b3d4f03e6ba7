"""[g]₊ in the place of g, for learners that are told of violations only."""

from __future__ import annotations

from longterm._arrays import column, like, namespace, resolution
from longterm._validate import Hyper
from longterm.learners.feedback import Feedback


def positive_part(feedback: Feedback, constraint_bound: Hyper) -> Feedback:
    """The same round with [g]₊ for g = max_j g_j; its gradient is 0 where g ≤ 1e-9 D.

    Learners often stand on the boundary, where rounding would otherwise decide, in a batch and in a single run
    differently. A gradient that is left out there costs the theorems 1e-9 D at most.
    """
    xp, g = namespace(feedback.constraint), feedback.constraint
    tolerance = resolution(g) * like(constraint_bound, g)
    return feedback._replace(
        constraint=xp.maximum(g, 0.0),
        constraint_gradient=xp.where(column(g > tolerance), feedback.constraint_gradient, 0.0),
    )
