"""Catalogue entries of the problems in `longterm.catalogue.scenarios`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from longterm.catalogue import scenarios
from longterm.catalogue.entries import Prepared, ProblemEntry
from longterm.catalogue.scenarios import Scenario, labelled_rows
from longterm.data.encoder import Missing
from longterm.hindsight.offline_logistic import choose_budget, least_log_loss

NONZERO_SHARE = 0.3
"""The share of non-zero coordinates for which the paper chooses the budget."""


def budgeted_logistic(
    data: str = "sample",
    budget: float | None = None,
    share: float = NONZERO_SHARE,
    l1: float = 1.0,
    l2: float = 1.0,
    label: str = "",
    drop: str = "",
    scale: bool = True,
    missing: Missing = "refuse",
) -> Scenario:
    """Return logistic regression with l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget on rows drawn with replacement: Figures 3 and 4.

    Parameters
    ----------
    data : str
        A data set's name, or the path of a table.
    budget : float, optional
        Default: it is chosen such that `share` of the offline solution's coordinates are non-zero.
    share : float
        The share of non-zero coordinates.
    l1, l2 : float
        The weights of the two norms.
    label : str
        In a table of your own, the column of the labels.
    drop : str
        Columns to leave out, separated by commas: customer,date.
    scale : bool
        Divide each column by its largest absolute value.
    missing : str
        The treatment of empty cells.

    Returns
    -------
    Scenario
    """
    if budget is None:
        rows = labelled_rows(data, label, drop, scale, missing)
        budget = choose_budget(rows.features, rows.labels, share, l1=l1, l2=l2, progress=None).budget
    return scenarios.budgeted_logistic(data, budget, l1, l2, label, drop, scale, missing)


def prepare_budgeted_logistic(
    data: str = "sample",
    budget: float | None = None,
    share: float = NONZERO_SHARE,
    l1: float = 1.0,
    l2: float = 1.0,
    **reading: Any,
) -> Prepared:
    """Choose the budget, where none is given, and solve the offline problem."""
    rows = labelled_rows(data, **reading)
    table, weights = (rows.features, rows.labels), {"l1": l1, "l2": l2}
    offline = (
        choose_budget(*table, share, **weights, progress=None)
        if budget is None
        else least_log_loss(*table, budget, **weights)
    )
    facts = {
        "budget_chosen": budget is None,
        "offline_loss": offline.loss,
        "offline_gap": offline.gap,
        "offline_nonzeros": offline.count,
        "offline_unused_budget": offline.slack,
    }
    return Prepared({"budget": offline.budget}, facts)


Draw = Callable[[np.random.Generator], float]


def _real(low: float, high: float) -> Draw:
    return lambda rng: round(float(rng.uniform(low, high)), 3)


def _integer(low: int, high: int) -> Draw:
    return lambda rng: int(rng.integers(low, high + 1))


VARY: Mapping[str, Mapping[str, Draw]] = {
    "doubly_stochastic": {"size": _integer(4, 10)},
    "budgeted_logistic": {"budget": _real(0.1, 1.5)},
    "covariance": {"size": _integer(4, 9), "floor": _real(0.05, 0.3)},
    "consensus": {"agents": _integer(3, 7), "spread": _real(0.1, 0.4)},
    "expert_advice": {"experts": _integer(5, 14), "cap": _real(0.2, 0.6)},
    "noisy_doubly_stochastic": {"size": _integer(4, 9), "noise": _real(0.2, 0.8)},
    "online_linear_program": {"instance": _integer(1, 10**6), "dimension": _integer(2, 5)},
    "power_allocation": {"devices": _integer(3, 8)},
    "fair_logistic": {"budget": _real(4.0, 20.0)},
    "switching_constraints": {"instance": _integer(1, 10**6), "dimension": _integer(2, 5)},
    "job_scheduling": {"servers": _integer(6, 17)},
    "turning_half_plane": {"turns": _real(0.5, 6.0)},
    "drifting_targets": {"dimension": _integer(2, 8), "turns": _real(1.0, 6.0)},
}
"""The parameters that differ in a held-out variant of each problem, and their distributions."""
DATA = {"power_allocation": "elec2", "fair_logistic": "a9a"}
"""The data sets that do not come with the package."""
DRIFTING = ("turning_half_plane", "drifting_targets")


def _entry(name: str, build: Callable[..., Scenario]) -> ProblemEntry:
    drawn = VARY.get(name, {})

    def vary(rng: np.random.Generator) -> Mapping[str, Any]:
        return {parameter: draw(rng) for parameter, draw in drawn.items()}

    if name == "budgeted_logistic":
        return ProblemEntry(name, budgeted_logistic, prepare_budgeted_logistic, arena={"budget": 0.3}, vary=vary)
    return ProblemEntry(name, build, data=DATA.get(name), drifts=name in DRIFTING, vary=vary)


PROBLEMS = tuple(_entry(name, build) for name, build in scenarios.SCENARIOS.items())
