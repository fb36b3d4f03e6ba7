"""Bounds of hedged cuts, as numbers (proofs: `docs/proofs/hedged_cuts.md`).

An expert whose step in round t has the length h_t moves at most min(h_t, Δ) in B. With H the sum of these lengths over
all rounds and experts, H₂ that of their squares, R the radius of B and P the path of the comparator,

    A = K(R² + 2ΔP) + 2ΔH  (+ Δ² ln T if an expert with steps 1/(σt) shares its gradient with others)
    Σ [g_t(x_t)]₊² ≤ Q,   Σ [g_t(x_t)]₊ ≤ √(TQ),   Q = G_g²A, or (L√(A + H₂) + G_g√H₂)² for several constraints    (b)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from longterm._base.arrays import FloatArray
from longterm.problems import Problem
from longterm.problems.constants import Constants
from longterm.theory.bounds import HARD, LONG_TERM, SQUARED


class Travel(NamedTuple):
    """H and H₂ of some experts."""

    lengths: FloatArray
    squares: FloatArray

    def __add__(self, other: Travel) -> Travel:  # type: ignore[override]
        return Travel(self.lengths + other.lengths, self.squares + other.squares)


def travel_of_factors(factors: FloatArray, diameter: float, T: FloatArray, log_sum: FloatArray) -> Travel:
    """Return the travel with steps c_kΔ/√S_t: Σ ‖n_t‖/√S_t ≤ √(Tℓ_T), ℓ_T = Σ ‖n_t‖²/S_t."""
    return Travel(factors.sum() * diameter * np.sqrt(T * log_sum), (factors**2).sum() * diameter**2 * log_sum)


def travel_of_decay(c: Constants, sigma: FloatArray, T: FloatArray) -> Travel:
    """Return the travel with steps 1/(σt): h_t ≤ min(ρ/t, Δ), ρ = G_f/σ."""
    step, diameter = c.loss_gradient_bound / sigma, c.diameter
    late = np.maximum(T / np.maximum(step / diameter, 1.0), 1.0)
    lengths = np.minimum(diameter * T, step * (1 + np.log(late)))
    return Travel(lengths, np.minimum(diameter**2 * T, 2 * step * np.minimum(step, diameter)))


def joint_bound(problem: Problem, constraints: int) -> float:
    """Return L with ‖Σ_j v_j ∇g_j‖ ≤ L‖v‖."""
    return problem.constants.constraint_gradient_bound if constraints == 1 else problem.joint_gradient_bound


def violation_bounds(
    problem: Problem, L: float, experts: int, travel: Travel, T: FloatArray, *, path: float, shared: bool, bank: bool
) -> Mapping[str, FloatArray]:
    """Return (b). `shared`: an expert with steps 1/(σt) is one of several. `bank`: for the long-term violation."""
    c = problem.constants
    A = experts * (c.radius**2 + 2 * c.diameter * path) + 2 * c.diameter * travel.lengths
    if shared:
        A = A + c.diameter**2 * np.log(np.maximum(T, 1))
    squared = L**2 * A
    if problem.constraint.count > 1:
        squares = travel.squares
        squared = (L * np.sqrt(A + squares) + c.constraint_gradient_bound * np.sqrt(squares)) ** 2
    violation = np.sqrt(T * squared)
    return {LONG_TERM: violation} if bank else {HARD: violation, SQUARED: squared}


def fixed_bounds(
    problem: Problem, L: float, first: float, bank: FloatArray, tolerance: float, T: FloatArray, limited: FloatArray
) -> Mapping[str, FloatArray]:
    """Return (c): γ_1 + 2 tolerance L Δ √T + D N, for a fixed g with N = `limited`, and the squared violation's bound.

    `tolerance` · Δ/√t is the distance that the cuts leave in all but N rounds. With a bank β > 1 the first term is the
    larger of γ_1 and D(1 − 1/β), which slack can buy at once. Then only the long-term violation is bounded.
    """
    c, unit = problem.constants, tolerance * L * problem.constants.diameter
    at_once = np.maximum(first, c.constraint_bound * (1 - 1 / np.maximum(bank, 1.0)))
    violation = at_once + 2 * unit * np.sqrt(T) + c.constraint_bound * limited
    squared = first**2 + unit**2 * (1 + np.log(np.maximum(T, 1))) + c.constraint_bound**2 * limited
    return {HARD: violation, LONG_TERM: violation, SQUARED: squared}


def memory_bounds(
    problem: Problem, remembered: int, rows: FloatArray, slack: float, T: FloatArray
) -> Mapping[str, FloatArray]:
    """Return (d): G_gΔ (n + E) + 2 slack G_gΔ √(M T), for M remembered half-spaces, where `rows` is n + E.

    n is the number of half-spaces in memory after the run, and E counts those that were lost and the rounds whose cuts
    were not met. In the other rounds x exceeds a remembered half-space by at most slack √M Δ/√t.
    """
    c = problem.constants
    unit = c.constraint_gradient_bound * c.diameter
    violation = unit * (rows + 2 * slack * np.sqrt(remembered * T))
    return {HARD: violation, SQUARED: c.constraint_bound * violation}
