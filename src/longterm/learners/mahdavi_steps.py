"""The constant steps of Mahdavi, Jin and Yang (2012), Theorem 4, for a horizon T that is known.

With r = max ‖x_1 − x‖ over B (the article's R) and m multipliers,

    a = r √((m + 1) G² + 2 m D²),   η = r²/(a √T),   δ ≥ (m + 1) G² + 2 δ² η².

η steps both x and λ, and ηδ is the weight of the penalty: θ = ηδ and μ = η in the words of `longterm.theory.schedules`.

The article asks for δ ≥ (m + 1) G² + 2 m δ² η². Its m is not needed: what the proof bounds is
‖g(x_t) − ηδλ_t‖² ≤ 2 ‖g(x_t)‖² + 2 η²δ² ‖λ_t‖², and only the first norm grows with m. A real δ exists if and only if
8 (m + 1) G² η² ≤ 1; the article prints 2√2 η (m + 1) ≤ 1, which lost G.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longterm import _validate as validate
from longterm.errors import InputError
from longterm.theory.facts import ROUNDING, Constants
from longterm.theory.schedules import ConstantSchedule

DeltaRule = Callable[[float, float], float]
"""From (m + 1) G² and η to δ."""


def smallest_root(need: float, eta: float) -> float:
    """The smallest δ with δ = (m + 1) G² + 2 δ² η². It falls to (m + 1) G² as T grows.

    Parameters
    ----------
    need, eta : float
        (m + 1) G² and η.

    Returns
    -------
    float
        δ.

    Examples
    --------
    >>> from longterm.learners.mahdavi_steps import smallest_root
    >>> smallest_root(3.0, 1 / 6)  # δ = 3 + δ²/18: 18 δ = 54 + δ²
    3.8038475772933684
    """
    discriminant = 1 - 8 * need * eta**2
    if discriminant < -ROUNDING:
        raise InputError(
            "eta",
            f"δ = (m + 1) G² + 2 δ² η² has no real root: 8 (m + 1) G² η² = {8 * need * eta**2:.6g} is above 1",
            "Take a smaller η, which means a longer horizon",
        )
    # The textbook root (1 − √…)/(4η²) subtracts two nearly equal numbers when η is small; this is the same number.
    return float(2 * need / (1 + np.sqrt(max(discriminant, 0.0))))


def twice(need: float, eta: float) -> float:
    """δ = 2 (m + 1) G², the article's simple choice. It is large enough exactly where a real root exists.

    Parameters
    ----------
    need, eta : float
        (m + 1) G² and η, which does not matter here.

    Returns
    -------
    float
        δ.
    """
    return 2 * need


def tuned_steps(constants: Constants, horizon: int, count: int, delta: DeltaRule) -> ConstantSchedule:
    """θ = ηδ, η and μ = η for `count` multipliers and `horizon` rounds.

    >>> from longterm.problems import two_dimensional
    >>> from longterm.learners.mahdavi_steps import smallest_root, tuned_steps
    >>> steps = tuned_steps(two_dimensional().constants, 1000, 1, smallest_root)
    >>> round(steps.eta, 6), round(steps.theta / steps.eta, 6)
    (0.009481, 8.011539)
    """
    T, r, G = validate.dimension("horizon", horizon), constants.radius, constants.gradient_bound
    eta = r**2 / (scale(constants, count) * np.sqrt(T))
    try:
        chosen = delta((count + 1) * G**2, eta)
    except InputError as error:
        raise InputError(
            "horizon", f"{T} rounds are too few: {error.what}", f"Give at least {smallest_horizon(constants, count)}"
        ) from None
    return ConstantSchedule(theta=eta * chosen, eta=eta, mu=eta, gradient_bound=G)


def scale(constants: Constants, count: int) -> float:
    """The article's a = r √((m + 1) G² + 2 m D²): the regret is at most a √T."""
    square = (count + 1) * constants.gradient_bound**2 + 2 * count * constants.constraint_bound**2
    return float(constants.radius * np.sqrt(square))


def smallest_horizon(constants: Constants, count: int) -> int:
    """The smallest T for which δ exists: 8 (m + 1) G² r⁴/(a² T) ≤ 1."""
    need = (count + 1) * constants.gradient_bound**2
    return max(1, int(np.ceil(8 * need * constants.radius**4 / scale(constants, count) ** 2 * (1 - ROUNDING))))
