"""What a theorem gives."""

from __future__ import annotations

from typing import NamedTuple

from longterm._arrays import FloatArray


class Bound(NamedTuple):
    """What a theorem promises at each horizon."""

    regret: FloatArray
    """Upper bound on Σ f_t(x_t) − f_t(x*)."""
    violation: FloatArray
    """Upper bound on the violation that the theorem speaks of, for A-OGD the signed Σ g(x_t)."""
