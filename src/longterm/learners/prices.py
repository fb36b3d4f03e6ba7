"""What a unit of violation costs, from the violation so far: the derivative of a potential Φ (Sinha, Vaze 2024).

A method that charges f_t + w_t [g_t]₊ with w_t = Φ'(Q)/V, Q = Σ_{s≤t} [g_s(x_s)]₊, has

    V Σ Δf_t + Φ(Q) − Φ(0) ≤ V · (regret of the charged losses),

because Φ is convex: Φ(Q_t) − Φ(Q_{t−1}) ≤ Φ'(Q_t) [g_t(x_t)]₊, and a feasible x* is charged nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from longterm import _validate as validate
from longterm._arrays import Array, namespace

LARGEST_EXPONENT = 40.0
"""Within T ≤ 10^16 rounds of a covered run the exponent stays below; a run that no theorem covers must not overflow."""


class Price(ABC):
    """w as a function of Q and of the horizon T."""

    @abstractmethod
    def at(self, violation: Array, horizon: Array) -> Array:
        """w, shaped as the violation is."""


@dataclass(frozen=True, eq=False)
class ExponentialPrice(Price):
    """Φ(Q) = exp(ωQ/s_g) − 1 with ω = 1/(2√T), for f_t/s_f: w = (s_f/s_g) ω exp(ωQ/s_g).

    >>> import numpy as np
    >>> from longterm.learners.prices import ExponentialPrice
    >>> price = ExponentialPrice(loss_scale=6.0, constraint_scale=2.0)
    >>> float(price.at(np.asarray(0.0), np.asarray(9.0)))  # 3 · 1/6
    0.5
    """

    loss_scale: float
    constraint_scale: float

    def __post_init__(self) -> None:
        validate.remember(
            self,
            loss_scale=validate.positive_scalar("loss_scale", self.loss_scale),
            constraint_scale=validate.positive_scalar("constraint_scale", self.constraint_scale),
        )

    def at(self, violation: Array, horizon: Array) -> Array:
        xp, omega = namespace(violation), 0.5 / horizon**0.5
        exponent = xp.minimum(omega * violation / self.constraint_scale, LARGEST_EXPONENT)
        return self.loss_scale / self.constraint_scale * omega * xp.exp(exponent)


@dataclass(frozen=True, eq=False)
class QuadraticPrice(Price):
    """Φ(Q) = Q² and V = 8G_g² (1 + ln T)/σ: w = 2Q/V = Qσ/(4G_g² (1 + ln T))."""

    constraint_gradient_bound: float
    strong_convexity: float

    def __post_init__(self) -> None:
        G_g = validate.positive_scalar("constraint_gradient_bound", self.constraint_gradient_bound)
        sigma = validate.positive_scalar("strong_convexity", self.strong_convexity)
        validate.remember(self, constraint_gradient_bound=G_g, strong_convexity=sigma)

    def at(self, violation: Array, horizon: Array) -> Array:
        logarithm = 1 + namespace(violation).log(horizon)
        return violation * self.strong_convexity / (4 * self.constraint_gradient_bound**2 * logarithm)
