"""LiteLLM's callback: the proxy's router takes its money from one account that all workers share.

The environment names the database, LONGTERM_DATABASE, and the limit in dollars, LONGTERM_LIMIT.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from litellm.integrations.custom_logger import CustomLogger

from longterm import Ledger
from longterm.compat.litellm_router import BudgetStrategy, deployment_prices
from longterm.money import Router

DATABASE = os.environ.get("LONGTERM_DATABASE", "budget.db")
LIMIT = float(os.environ.get("LONGTERM_LIMIT", "25"))
"""Dollars a day."""
UNITS = 1e8
"""Microcents in a dollar."""
USUAL = (500, 200)
"""Tokens of a usual request and of its answer."""


class Budget(CustomLogger):  # type: ignore[misc]
    """Installs the strategy in each worker, at its first request, when the proxy's router exists."""

    strategy: BudgetStrategy | None = None

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> None:
        """Install the strategy once."""
        from litellm.proxy.proxy_server import llm_router

        if self.strategy is None and llm_router is not None:
            self.strategy = install(llm_router)


def install(router: Any) -> BudgetStrategy:
    """Return a strategy that spends at most LIMIT dollars a day, and routes within each model group."""
    prices = deployment_prices(router)
    usual = np.dot(prices, USUAL)
    names = [
        f"{place} {one['model_name']}: {one['litellm_params']['model']}" for place, one in enumerate(router.model_list)
    ]
    chooser = Router.for_models(
        dict(zip(names, usual.tolist(), strict=True)), per_request=float(usual.max()), url=DATABASE, max_age=3600.0
    ).chooser
    ledger = Ledger.open(DATABASE, name="money", unit="microcent")
    if "proxy" not in ledger.accounts:  # afterwards: longterm state set budget.db money/proxy limit=…
        ledger.add_account("proxy", limit=round(LIMIT * UNITS), period="day")
    return BudgetStrategy(router, chooser, prices, ledger=ledger, account="proxy", units=UNITS).register()


budget = Budget()
