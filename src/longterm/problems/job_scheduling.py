"""Servers that must keep up with jobs on average: a constraint that is drawn anew in every round, its mean known."""

from __future__ import annotations

import numpy as np

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm.constraints import Affine, VaryingAffine
from longterm.errors import InputError
from longterm.losses import Linear
from longterm.problems.problem import Problem
from longterm.sets import Box


def speeds_of_servers(servers: int) -> FloatArray:
    """From ½ to 3/2 jobs a round, evenly: n jobs by n servers that all run."""
    n = validate.dimension("servers", servers)
    if n < 2:
        raise InputError("servers", "one has nobody to share the work with", "Give at least 2")
    return np.linspace(0.5, 1.5, n)


def mean_of_arrivals(servers: int) -> Affine:
    """E g(x) ≤ 0 for `job_scheduling`: n/2 − ⟨h, x⟩ ≤ 0, what `longterm.hindsight.InExpectation` asks for.

    >>> from longterm.problems.job_scheduling import mean_of_arrivals
    >>> mean_of_arrivals(3).matrix, mean_of_arrivals(3).offset
    (array([[-0.5, -1. , -1.5]]), array([-1.5]))
    """
    h = speeds_of_servers(servers)
    return Affine(-h[None], np.array([-len(h) / 2]))


def job_scheduling(servers: int = 12) -> Problem:
    """f_t(x) = ⟨prices of the round, x⟩ over x in [0, 1]^n, and g_t(x) = ω_t − ⟨h, x⟩, ω_t jobs having arrived.

    Server i runs at x_i, does h_i x_i jobs and pays the price of its zone; jobs must be done in the long run. Yu, Neely
    and Wei (2017) have this as their example, with concave h_i, prices of New York and Poisson arrivals; here h is
    linear (from ½ to 3/2 jobs), so that comparators are linear programs, prices (in [0, 1]) and arrivals are invented
    (`longterm.streams.JobsAndPrices`), and ω_t is binomial, B(n, ½), so that |g_t| has a bound; its mean is n/2.

    The comparators differ by much: x must do n/2 jobs to be feasible in expectation, and nearly all n to be feasible in
    every round. R = √n/2, Δ = √n, G = max(√n, ‖h‖), F = n, D = n; x = 1 is a Slater point in expectation, with n/2.

    >>> from longterm.problems import job_scheduling
    >>> c = job_scheduling(4).constants
    >>> c.diameter, c.loss_gradient_bound, c.loss_range, c.constraint_bound
    (2.0, 2.0, 4.0, 4.0)
    """
    h = speeds_of_servers(servers)
    n = len(h)
    constraint = VaryingAffine(n, 1, row_norm=float(np.linalg.norm(h)), offset_bound=float(n))
    loss = Linear(n, float(np.sqrt(n)))
    exact = {"constraint_bound": float(n)}
    return Problem(Box.cube(n, 0.0, 1.0), loss, constraint, name=f"jobs for {n} servers", declared=exact)
