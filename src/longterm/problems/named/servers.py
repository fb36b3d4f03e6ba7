"""Job scheduling on servers: arriving jobs must be completed in the long run."""

from __future__ import annotations

import numpy as np

from longterm._base import validate
from longterm._base.arrays import FloatArray
from longterm.errors import InputError
from longterm.problems.constraints import Affine, VaryingAffine
from longterm.problems.losses import Linear
from longterm.problems.problem import Problem
from longterm.problems.sets import Box


def speeds_of_servers(servers: int) -> FloatArray:
    """Return the speeds h of n servers, evenly spaced from ½ to 3/2 jobs per round.

    Parameters
    ----------
    servers : int
        n.
    """
    n = validate.dimension("servers", servers)
    if n < 2:
        raise InputError("servers", "is 1, which leaves nothing to schedule", "Give at least 2")
    return np.linspace(0.5, 1.5, n)


def mean_of_arrivals(servers: int) -> Affine:
    """Return E g(x) = n/2 − ⟨h, x⟩ of `job_scheduling`, for the benchmark `InExpectation`.

    Parameters
    ----------
    servers : int
        n.

    Examples
    --------
    >>> from longterm.problems.named.servers import mean_of_arrivals
    >>> mean_of_arrivals(3).matrix, mean_of_arrivals(3).limit
    (array([[-0.5, -1. , -1.5]]), array([-1.5]))
    """
    h = speeds_of_servers(servers)
    return Affine(-h[None], np.array([-len(h) / 2]))


def job_scheduling(servers: int = 12) -> Problem:
    """Return f_t(x) = ⟨prices of the round, x⟩ on [0, 1]^n and g_t(x) = ω_t − ⟨h, x⟩ with ω_t arriving jobs.

    Server i runs at rate x_i, completes h_i x_i jobs and pays the price of its zone. Yu, Neely and Wei (2017) use
    concave h_i, prices of New York and Poisson arrivals. Here h is linear, so that comparators are linear programs, and
    prices and arrivals are simulated (`streams.resources.JobsAndPrices`). ω_t is binomial, B(n, ½), with mean n/2.

    The benchmarks differ: x must complete n/2 jobs to be feasible in expectation, and nearly n to be feasible in every
    round. R = √n/2, Δ = √n, G = max(√n, ‖h‖), F = n, D = n. x = 1 is a Slater point in expectation with slack n/2.

    Parameters
    ----------
    servers : int
        n.

    Examples
    --------
    >>> from longterm.problems.named.servers import job_scheduling
    >>> c = job_scheduling(4).constants
    >>> c.diameter, c.loss_gradient_bound, c.loss_range, c.constraint_bound
    (2.0, 2.0, 4.0, 4.0)
    """
    h = speeds_of_servers(servers)
    n = len(h)
    constraint = VaryingAffine(n, 1, row_norm=float(np.linalg.norm(h)), limit_bound=float(n))
    loss = Linear(n, float(np.sqrt(n)))
    exact = {"constraint_bound": float(n)}
    return Problem(Box.cube(n, 0.0, 1.0), loss, constraint, name=f"jobs for {n} servers", declared=exact)
