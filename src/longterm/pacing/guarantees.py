"""What dual mirror descent promises, as numbers. The proofs are in docs/pacing.md."""

from __future__ import annotations

import numpy as np

from longterm import _validate as validate
from longterm._validate import Hyper
from longterm.errors import InputError
from longterm.pacing.mirror_descent import DualMirrorDescent


def regret_bound(pacer: DualMirrorDescent, largest_value: float, largest_cost: float) -> Hyper:
    """How far below the hindsight optimum the expected value can be, for i.i.d. requests with v ≤ v̄ and c ≤ c̄.

    Euclidean mirror, no floor, κ = 0, with ρ = budget/T ≤ c̄:

        c̄ v̄/ρ + max(π_1, v̄/ρ)²/(2η) + η T c̄²/2,

    which is O(√T) for η of order 1/√T and a budget in proportion to T.

    >>> from longterm.pacing import DualMirrorDescent, regret_bound
    >>> pacer = DualMirrorDescent(budget=5e3, horizon=10_000, step=0.02, start=1.0, mirror="euclidean")
    >>> regret_bound(pacer, largest_value=1.0, largest_cost=1.0)
    202.0
    """
    others = np.asarray(pacer.floor) + np.asarray(pacer.cost_weight)
    if pacer.mirror != "euclidean" or np.any(others > 0):
        raise InputError("pacer", "has another mirror, a floor or a cost weight", "This bound is for none of these")
    v = validate.positive_scalar("largest_value", largest_value)
    c = validate.positive_scalar("largest_cost", largest_cost)
    if np.any(np.asarray(pacer.rate) > c):
        raise InputError("largest_cost", f"{c} is below the rate {pacer.rate}", "Such a budget cannot be spent")
    ratio = v / np.asarray(pacer.rate)
    bound = (
        c * ratio
        + np.maximum(pacer.start, ratio) ** 2 / (2 * np.asarray(pacer.step))
        + np.asarray(pacer.step) * pacer.horizon * c**2 / 2
    )
    return bound if bound.ndim else float(bound)


def floor_shortfall(pacer: DualMirrorDescent, *, everything_at: float = 0.0) -> Hyper:
    """By how much the floor can be missed, for any sequence of requests whose demand allows it.

    Euclidean (π_1 − π₀)/η + ℓ, entropic ln(π_1/π₀)/η + ℓ, where at the price π₀ = `everything_at` every request
    is bought (0, for the Euclidean mirror; smallest value / largest cost in general). "Demand allows it": from
    every request to the last, all that is offered costs at least ℓ = floor/T per request on average; what it
    lacks is to be added. To be certain of a floor L, ask for one higher by this much, and leave one request's
    cost between that and the budget.

    >>> from longterm.pacing import DualMirrorDescent, floor_shortfall
    >>> pacer = DualMirrorDescent(100.0, 50, step=0.1, start=1.2, mirror="euclidean", floor=60.0, cost_weight=1.0)
    >>> round(floor_shortfall(pacer), 9)
    13.2
    """
    lowest = validate.non_negative_scalar("everything_at", everything_at)
    if pacer.mirror == "entropic" and lowest == 0:
        raise InputError("everything_at", "an entropic price never is 0", "Give smallest value / largest cost")
    start = np.asarray(pacer.start)
    way = start - lowest if pacer.mirror == "euclidean" else np.log(start / (lowest or 1.0))
    found = np.maximum(way, 0.0) / np.asarray(pacer.step) + np.asarray(pacer.floor) / pacer.horizon
    return found if found.ndim else float(found)
