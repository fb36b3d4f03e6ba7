"""A numerical solver for any convex losses and constraints, with a certified gap.

1. **Smooth phase** (`smooth_steps`). It finds a point x. For every μ ≥ 0 and y in X = {g ≤ 0} ∩ B, by convexity,

       F(y) ≥ F(x) + ⟨r, y − x⟩ + ½ S‖y − x‖² + ⟨μ, g(x)⟩,      r = ∇F(x) + Σ_j μ_j ∇g_j(x),

   where S = tσ with the declared σ. The minimum over B is known: by the support function if S = 0, otherwise at
   Π_B(x − r/S). Any μ is valid, and the best is searched for.
2. **Cutting planes** (`cutting_planes`), for functions with kinks.

The gap is valid at any time. It can stay large in many dimensions, where a few planes are not enough.
"""

from __future__ import annotations

from longterm._base.arrays import FloatArray
from longterm.hindsight.base import Solution
from longterm.hindsight.cutting_planes import run_cutting_planes
from longterm.hindsight.search import Search
from longterm.hindsight.smooth_steps import run_projected_gradients, run_slsqp
from longterm.problems import Problem
from longterm.problems.streams.base import Block


def solve_numerically(problem: Problem, block: Block, start: FloatArray | None, relative_gap: float) -> Solution | None:
    """Return the best decision of a problem with a fixed constraint, or None if no feasible point is found.

    The search stops at gap ≤ relative_gap · |loss|, or when it runs out of steps. `start` is the first iterate.
    """
    search = Search(problem, block, relative_gap)
    for x in (start, problem.enclosing_set.centre):
        if x is not None:
            search.visit(x)
    for phase in (run_projected_gradients, run_slsqp, run_cutting_planes):
        if not search.done:
            phase(search)
    return search.solution()
