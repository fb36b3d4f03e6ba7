"""Projected OGD: Zinkevich 2003, and Hazan, Agarwal and Kale 2007.

With a_t = ‖x_t − x*‖² and x* in X, projecting onto X does not increase distances to it, so

    f_t(x_t) − f_t(x*) ≤ (a_t − a_{t+1})/(2η_t) − (σ/2) a_t + (η_t/2) G².

Summed over t, with a_t ≤ Δ² and 1/η_t − 1/η_{t−1} ≥ 0: for η_t = Δ/(G√t) and σ = 0 the first part is at most
Δ²/(2η_T) = ΔG√T/2 and the second (ΔG/2) Σ 1/√t ≤ ΔG√T. For η_t = 1/(σt) the first part vanishes, and
Σ 1/t ≤ 1 + ln T. G bounds the gradients of the losses only. Every x_t is feasible: the violation is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from longterm import _validate as validate
from longterm._arrays import FloatArray
from longterm._validate import Hyper
from longterm.bounds.base import Bound, horizons
from longterm.errors import InputError
from longterm.theory.facts import Constants


def zinkevich(
    constants: Constants, rounds: ArrayLike, *, diameter: Hyper | None = None, exact_sums: bool = False
) -> Bound:
    """(3/2) ΔG√T for `ProjectedOGD.convex`; Δ the diameter of B, or the smaller one that the learner was given.

    `exact_sums` adds Σ 1/√t up instead of bounding it by 2√T.

    >>> from longterm.problems import two_dimensional
    >>> from longterm.bounds import zinkevich
    >>> float(zinkevich(two_dimensional().constants, 100).regret)
    60.0
    """
    wide = np.asarray(constants.diameter if diameter is None else validate.positive("diameter", diameter))
    T = horizons(rounds)
    sums = _partial_sums(T, 0.5) if exact_sums else 2 * np.sqrt(T)
    per_unit = 0.5 * (np.sqrt(T) + sums) * constants.loss_gradient_bound
    return _feasible(np.multiply.outer(per_unit, wide))


def hazan_agarwal_kale(constants: Constants, rounds: ArrayLike, *, exact_sums: bool = False) -> Bound:
    """(G²/(2σ)) (1 + ln T) for `ProjectedOGD.strongly_convex`; `exact_sums` puts Σ 1/t for 1 + ln T."""
    sigma = constants.strong_convexity
    if sigma <= 0:
        raise InputError("constants", "strong_convexity is 0", "Use zinkevich for losses that are only convex")
    T = horizons(rounds)
    sums = _partial_sums(T, 1.0) if exact_sums else 1 + np.log(T)
    return _feasible(constants.loss_gradient_bound**2 / (2 * sigma) * sums)


def _partial_sums(T: FloatArray, power: float) -> FloatArray:
    """Σ_{t≤T} t^−power for each horizon."""
    totals = np.cumsum(np.arange(1, int(T.max()) + 1) ** -power)
    return np.asarray(totals[T.astype(np.int64) - 1])


def _feasible(regret: FloatArray) -> Bound:
    return Bound(regret, np.zeros_like(regret))
