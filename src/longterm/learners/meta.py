"""How a learner weighs its experts: by what following each of them instead would have cost.

A rule sees ℓ_k = ⟨n_t, x^k_t − x_t⟩, so Σ_k p_k ℓ_k = 0, and keeps a few numbers for each expert.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from longterm import _validate as validate
from longterm._arrays import Array, FloatArray, dot, namespace

MetaName = Literal["adahedge", "adapt-ml-prod"]
"""The rules that can be named."""


class Meta(ABC):
    """A rule on the probability simplex, with `fields` numbers of memory for each expert."""

    fields: int

    @abstractmethod
    def start(self, losses: Array) -> Array:
        """The memory before round 1, shape (..., K, fields), for losses of this shape (..., K)."""

    @abstractmethod
    def weights(self, memory: Array) -> Array:
        """p, shape (..., K), from memory of shape (..., K, fields)."""

    @abstractmethod
    def update(self, memory: Array, losses: Array) -> Array:
        """The memory after a round with losses ℓ of shape (..., K)."""

    @abstractmethod
    def regret(self, memory: FloatArray, experts: int) -> FloatArray:
        """At most this much was lost against the best expert, from the memory after the run."""


@dataclass(frozen=True, eq=False)
class AdaHedge(Meta):
    """AdaHedge: α_t = ln K/Γ_{t−1}, Γ the sum of mixability gaps so far (de Rooij, van Erven, Grünwald, Koolen 2014).

    δ_t = (1/α_t) ln Σ_k p_k e^{−α_tℓ_k} ≥ 0,  Γ_t = Γ_{t−1} + δ_t,  p_{t+1,k} ∝ e^{−α_{t+1}L_k}. While Γ = 0, α = ∞: p is
    uniform on the smallest L_k and δ_t = min L_{t−1} − min L_t. It loses at most 2Γ_T to the best expert.
    Kept: L_k − min L, p_k, and (the same for all k) Γ and Φ_α(L) − min L, which both rounds that touch it need.

    Examples
    --------
    >>> import numpy as np
    >>> from longterm.learners.meta import AdaHedge
    >>> rule, memory = AdaHedge(), AdaHedge().start(np.zeros(2))
    >>> memory = rule.update(memory, np.array([-1.0, 1.0]))
    >>> rule.weights(memory).round(4), float(rule.regret(memory, 2))  # Γ = 1: α = ln 2, weights as 1 : 2^−2
    (array([0.8, 0.2]), 2.0)
    """

    fields: int = 4

    def start(self, losses: Array) -> Array:
        xp = namespace(losses)
        zero = xp.zeros_like(losses)
        return xp.stack([zero, zero + 1 / losses.shape[-1], zero, zero], axis=-1)

    def weights(self, memory: Array) -> Array:
        return memory[..., 1]

    def update(self, memory: Array, losses: Array) -> Array:
        xp = namespace(memory)
        behind, weights, gap, soft = memory[..., 0], memory[..., 1], memory[..., :1, 2], memory[..., :1, 3]
        if losses.shape[-1] == 1:
            return memory
        losses = losses - dot(weights, losses)[..., None]  # 0 but for rounding
        total = behind + losses
        least = xp.min(total, axis=-1, keepdims=True)
        behind = total - least
        # −δ = Φ_α(L + ℓ) − Φ_α(L), both with the α of this round.
        lost = soft - least - self._soft(behind, gap)[1]
        gap = gap + xp.maximum(lost, xp.zeros_like(lost))
        powers, soft = self._soft(behind, gap)
        weights = powers / xp.sum(powers, axis=-1, keepdims=True)
        one = xp.ones_like(total)
        return xp.stack([behind, weights, gap * one, soft * one], axis=-1)

    @staticmethod
    def _soft(behind: Array, gap: Array) -> tuple[Array, Array]:
        """e^{−α(L − min L)} with α = ln K/Γ, and −(1/α) ln of their sum; where Γ = 0, which are 0, and 0."""
        xp, log = namespace(behind), float(np.log(behind.shape[-1]))
        started = gap > 0
        powers = xp.exp(-log / xp.where(started, gap, xp.ones_like(gap)) * behind)
        powers = xp.where(started, powers, xp.astype(behind <= 0, behind.dtype))
        return powers, gap * (-1 / log) * xp.log(xp.sum(powers, axis=-1, keepdims=True))

    def regret(self, memory: FloatArray, experts: int) -> FloatArray:
        return np.asarray(2 * memory[..., 0, 2])


@dataclass(frozen=True, eq=False)
class AdaptMLProd(Meta):
    """Adapt-ML-Prod (Gaillard, Stoltz, van Erven 2014): a regret to expert k of order √(ln K Σ ℓ_k²), its own losses.

    With r_k = −ℓ_k/reach in [−1, 1], e_k = min(½, √(ln K/(1 + Σ r_k²))): w_k ← (w_k(1 + e_kr_k))^{e_k'/e_k} and
    p_k ∝ e_k w_k. Kept: ln w_k (from w_k = 1) and Σ r_k².
    """

    reach: float
    """|ℓ_k| ≤ reach: ΔG_f."""
    fields: int = 2

    def __post_init__(self) -> None:
        validate.remember(self, reach=validate.positive_scalar("reach", self.reach))

    def start(self, losses: Array) -> Array:
        zero = namespace(losses).zeros_like(losses)
        return namespace(losses).stack([zero, zero], axis=-1)

    def _rates(self, squares: Array) -> Array:
        xp = namespace(squares)
        log = float(np.log(max(squares.shape[-1], 2)))
        return xp.minimum(xp.sqrt(log / (1 + squares)), 0.5 * xp.ones_like(squares))

    def weights(self, memory: Array) -> Array:
        xp = namespace(memory)
        powers = xp.log(self._rates(memory[..., 1])) + memory[..., 0]
        powers = xp.exp(powers - xp.max(powers, axis=-1, keepdims=True))
        return powers / xp.sum(powers, axis=-1, keepdims=True)

    def update(self, memory: Array, losses: Array) -> Array:
        xp = namespace(memory)
        gains, rates = -losses / self.reach, self._rates(memory[..., 1])
        squares = memory[..., 1] + gains * gains
        logs = (memory[..., 0] + xp.log1p(rates * gains)) * self._rates(squares) / rates
        return xp.stack([logs, squares], axis=-1)

    def regret(self, memory: FloatArray, experts: int) -> FloatArray:
        """(√Σr² + 1)(√ln K + B/√ln K) + 2(ln K + B), B = ln(1 + (K/2e)(1 + ln(T + 1))), for the best k; T ≥ Σ r²."""
        log, squares = np.log(max(experts, 2)), memory[..., 1]
        more = np.log(1 + experts / (2 * np.e) * (1 + np.log1p(squares.max(axis=-1, keepdims=True) + 1)))
        each = np.sqrt(1 + squares) * (np.sqrt(log) + more / np.sqrt(log)) + 2 * (log + more)
        return np.asarray(self.reach * each.max(axis=-1))
