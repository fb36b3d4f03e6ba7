"""The problems that can be named: the ready-made games, and what has to be found out before one of them is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from longterm.data import Labelled
from longterm.data.own import Missing
from longterm.experiments.catalogue.base import Prepared, ProblemEntry
from longterm.hindsight import Offline, choose_budget, least_log_loss
from longterm.problems import games
from longterm.problems.games import Game, labelled_rows

DATA = {"power_allocation": "elec2", "fair_logistic": "a9a"}
"""What games read that does not come with the package."""
SHARE = 0.3
"""Of the offline solution's coordinates, those that the paper wants not to be zero."""


def budgeted_logistic(
    data: str = "sample",
    budget: float | None = None,
    share: float = SHARE,
    l1: float = 1.0,
    l2: float = 1.0,
    label: str = "",
    drop: str = "",
    scale: bool = True,
    missing: Missing = "refuse",
) -> Game:
    """Logistic regression with l1 ‖x‖₁ + ½ l2 ‖x‖² ≤ budget on rows drawn with replacement: Figures 3 and 4.

    Left out, the budget is chosen so that `share` of the offline solution's coordinates are not zero. Of a table of
    your own `label` names the column of the labels, `drop` those to leave out, with commas between them; with `scale`
    its columns are divided by their largest sizes; `missing` says what to do about empty cells.
    """
    chosen = (
        _offline(labelled_rows(data, label, drop, scale, missing), None, share, l1, l2).budget
        if budget is None
        else budget
    )
    return games.budgeted_logistic(data, chosen, l1, l2, label, drop, scale, missing)


def prepare_budgeted_logistic(
    data: str = "sample",
    budget: float | None = None,
    share: float = SHARE,
    l1: float = 1.0,
    l2: float = 1.0,
    label: str = "",
    drop: str = "",
    scale: bool = True,
    missing: Missing = "refuse",
) -> Prepared:
    """Choose the budget, where none is given, and solve offline."""
    offline = _offline(labelled_rows(data, label, drop, scale, missing), budget, share, l1, l2)
    facts = {
        "budget_chosen": budget is None,
        "offline_loss": offline.loss,
        "offline_gap": offline.gap,
        "offline_nonzeros": offline.count,
        "offline_unused_budget": offline.slack,
    }
    return Prepared({"budget": offline.budget}, facts)


def rows_of_data(
    data: str = "sample",
    label: str = "",
    drop: str = "",
    scale: bool = True,
    missing: Missing = "refuse",
    **others: Any,
) -> int:
    """How many rows there are."""
    return len(labelled_rows(data, label, drop, scale, missing).labels)


def _offline(rows: Labelled, budget: float | None, share: float, l1: float, l2: float) -> Offline:
    if budget is None:
        return choose_budget(rows.features, rows.labels, share, l1=l1, l2=l2, progress=None)
    return least_log_loss(rows.features, rows.labels, budget, l1=l1, l2=l2)


def _number(low: float, high: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: round(float(rng.uniform(low, high)), 3)


def _whole(low: int, high: int) -> Callable[[np.random.Generator], int]:
    return lambda rng: int(rng.integers(low, high + 1))


VARY: Mapping[str, Mapping[str, Callable[[np.random.Generator], float]]] = {
    "doubly_stochastic": {"size": _whole(4, 10)},
    "budgeted_logistic": {"budget": _number(0.1, 1.5)},
    "covariance": {"size": _whole(4, 9), "floor": _number(0.05, 0.3)},
    "consensus": {"agents": _whole(3, 7), "spread": _number(0.1, 0.4)},
    "expert_advice": {"experts": _whole(5, 14), "cap": _number(0.2, 0.6)},
    "noisy_doubly_stochastic": {"size": _whole(4, 9), "noise": _number(0.2, 0.8)},
    "online_linear_program": {"instance": _whole(1, 10**6), "dimension": _whole(2, 5)},
    "power_allocation": {"devices": _whole(3, 8)},
    "fair_logistic": {"budget": _number(4.0, 20.0)},
    "switching_constraints": {"instance": _whole(1, 10**6), "dimension": _whole(2, 5)},
    "job_scheduling": {"servers": _whole(6, 17)},
    "turning_half_plane": {"turns": _number(0.5, 6.0)},
    "drifting_targets": {"dimension": _whole(2, 8), "turns": _number(1.0, 6.0)},
}
"""What differs in a variant of each, for the held-out half of an arena, and how it is drawn."""
DRIFTING = ("turning_half_plane", "drifting_targets")
"""Those whose best decision moves."""


def _entry(name: str, build: Callable[..., Game]) -> ProblemEntry:
    drawn = VARY.get(name, {})

    def vary(rng: np.random.Generator) -> Mapping[str, Any]:
        return {parameter: draw(rng) for parameter, draw in drawn.items()}

    if name == "budgeted_logistic":
        return ProblemEntry(
            name, budgeted_logistic, prepare_budgeted_logistic, arena={"budget": 0.3}, vary=vary, length=rows_of_data
        )
    return ProblemEntry(name, build, data=DATA.get(name), drifts=name in DRIFTING, vary=vary)


PROBLEMS = tuple(_entry(name, build) for name, build in games.GAMES.items())
"""Those of the package."""
