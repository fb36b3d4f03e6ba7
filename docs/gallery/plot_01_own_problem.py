"""
Your own loss and constraint, three learners, a regret plot
===========================================================

Assumes the extras ``jax`` and ``experiments``. You write your functions with ``jax.numpy`` for x of shape (..., d), and JAX
computes their gradients. You declare three bounds: on the norm of a gradient, on the range of the loss, and on the value of
the constraint g.
"""

import jax.numpy as jnp
import numpy as np

from longterm import AOGD, Problem, compare, hindsight
from longterm.learners import AdaGradAOGD, QuadraticPenaltyOGD
from longterm.problems.autodiff import constraint_from_jax, loss_from_jax
from longterm.problems.sets import Box
from longterm.problems.streams import Replay

box = Box.cube(3, 0.0, 1.0)
costs = np.random.default_rng(0).uniform(0.5, 1.5, (500, 3))
loss = loss_from_jax(
    lambda x, c: jnp.sum(c * (x - 1.0) ** 2, axis=-1),
    over=box, gradient_bound=6.0, value_range=4.5, parameters={"c": (3,)}, examples=[costs],
)  # fmt: skip
budget = constraint_from_jax(lambda x: jnp.sum(x**2, axis=-1) - 1.0, over=box, gradient_bound=4.0, value_bound=2.0)
problem = Problem(box, loss, budget, name="three machines")

# %%
# All learners play the same rounds. ``hindsight.best`` finds the best fixed decision of any convex problem, and certifies
# how far it can be from the optimum.

learners = {
    "A-OGD": AOGD.for_problem(problem),
    "AdaGrad": AdaGradAOGD.for_problem(problem),
    "quadratic penalty": QuadraticPenaltyOGD.for_problem(problem),
}
played = compare(problem, learners, Replay([costs]), record=[1, 5, 20, 50, 100, 200, 350, 500])
best = hindsight.best(played)
print(played.summary(best))

# %%
figure = played.plot(best)

# %%
# Next: :doc:`/guides/choose` says which learner fits which problem. :doc:`/proofs/guarantees` lists what is proved.
