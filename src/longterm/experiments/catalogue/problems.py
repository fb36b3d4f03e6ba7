"""The problems that can be named: the ready-made games, and what has to be found out before one of them is built."""

from __future__ import annotations

from typing import Any

from longterm.data import load_mapped
from longterm.experiments.catalogue.base import Prepared, ProblemEntry
from longterm.hindsight import Offline, choose_budget, least_log_loss
from longterm.problems import games
from longterm.problems.games import Game

DATA = {"power_allocation": "elec2", "fair_logistic": "a9a"}
"""What games read that does not come with the package."""
SHARE = 0.3
"""Of the offline solution's coordinates, those that the paper wants not to be zero."""


def budgeted_logistic(
    data: str = "sample", budget: float | None = None, share: float = SHARE, l1: float = 1.0, l2: float = 1.0
) -> Game:
    """Logistic regression with l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget on rows drawn with replacement: Figures 3 and 4.

    Left out, the budget is chosen so that `share` of the offline solution's coordinates are not zero.
    """
    chosen = _offline(data, None, share, l1, l2).budget if budget is None else budget
    return games.budgeted_logistic(data, chosen, l1, l2)


def prepare_budgeted_logistic(
    data: str = "sample", budget: float | None = None, share: float = SHARE, l1: float = 1.0, l2: float = 1.0
) -> Prepared:
    """Choose the budget, where none is given, and solve offline."""
    offline = _offline(data, budget, share, l1, l2)
    facts = {
        "budget_chosen": budget is None,
        "offline_loss": offline.loss,
        "offline_gap": offline.gap,
        "offline_nonzeros": offline.count,
        "offline_unused_budget": offline.slack,
    }
    return Prepared({"budget": offline.budget}, facts)


def rows_of_data(data: str = "sample", **others: Any) -> int:
    """How many rows there are."""
    return len(load_mapped(data).labels)


def _offline(data: str, budget: float | None, share: float, l1: float, l2: float) -> Offline:
    rows = load_mapped(data)
    if budget is None:
        return choose_budget(rows.features, rows.labels, share, l1=l1, l2=l2, progress=None)
    return least_log_loss(rows.features, rows.labels, budget, l1=l1, l2=l2)


PROBLEMS = tuple(
    ProblemEntry(name, budgeted_logistic, prepare_budgeted_logistic, arena={"budget": 0.3}, length=rows_of_data)
    if name == "budgeted_logistic"
    else ProblemEntry(name, build, data=DATA.get(name))
    for name, build in games.GAMES.items()
)
"""Ours."""
