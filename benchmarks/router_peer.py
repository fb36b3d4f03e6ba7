"""Routers with one interface for `benchmarks/router.py`: ours, and ParetoBandit where it is installed.

route(x) returns the number of a model; settle(reward, cost) reports the outcome of that request.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec

import numpy as np

from longterm.money import Router

PEER = find_spec("pareto_bandit") is not None
TOKEN_PRICES = {
    "meta-llama/llama-3.1-8b-instruct": (0.1, 0.1),
    "mistralai/mistral-large-2512": (0.5, 1.5),
    "google/gemini-2.5-pro": (1.25, 10.0),
    "google/gemini-2.5-flash": (0.3, 2.5),
}
"""Dollars for a million tokens of prompts and of answers. The peer takes prices by token, we take them by request."""
BURN_IN = 20
"""The peer sends this many requests to a new model first, as in its own experiment."""


class Ours:
    """`Router.for_models` with its defaults."""

    name = "longterm"

    def __init__(self, prices: dict[str, float], ceiling: float, features: int, seed: int) -> None:
        self.models = list(prices)
        self.prices = dict(prices)
        self.router = Router.for_models(prices, per_request=ceiling, features=features, seed=seed)

    def route(self, x: np.ndarray) -> int:
        """Return the model that answers."""
        self.open = self.router.route(x)
        return self.models.index(self.open.model)

    def settle(self, reward: float, cost: float) -> None:
        """Report the outcome of the last request."""
        self.router.settle(self.open, reward, cost)

    def teach(self, x: np.ndarray, rewards: np.ndarray, costs: np.ndarray) -> None:
        """Report the outcomes of all models on a labelled request."""
        self.router.teach(x, dict(zip(self.models, rewards, strict=True)), dict(zip(self.models, costs, strict=True)))

    def scale_price(self, model: str, factor: float) -> None:
        """Announce a new price, as a multiple of the first one."""
        self.router.set_prices({model: factor * self.prices[model]})

    def add_model(self, model: str, price: float, factor: float) -> None:
        """Use one more model."""
        self.models.append(model)
        self.router.add_model(model, factor * price)


class Peer:
    """ParetoBandit with the settings of its paper: priors from 8,374 prompts, or a cold start."""

    name = "ParetoBandit"

    def __init__(self, prices: dict[str, float], ceiling: float, features: int, seed: int, *, cold: bool) -> None:
        from pareto_bandit.budget_pacer import BudgetPacer
        from pareto_bandit.config import BEST_K3_HPARAMS, BEST_K3_TABULA_RASA_HPARAMS
        from pareto_bandit.feature_service import FeatureService
        from pareto_bandit.router import BanditRouter
        from pareto_bandit.storage import EphemeralContextStore

        logging.getLogger("pareto_bandit").setLevel(logging.ERROR)
        np.random.seed(seed)  # noqa: NPY002 (the peer draws from it)
        settings = BEST_K3_TABULA_RASA_HPARAMS if cold else BEST_K3_HPARAMS
        self.models = list(prices)
        self.burn_in = 0
        self.router = BanditRouter.create(
            model_registry={
                name: {"model_id": name, "display_name": name, **_tokens(name, price=price)}
                for name, price in prices.items()
            },
            feature_service=FeatureService.for_precomputed(features),
            context_store=EphemeralContextStore(),
            priors="none" if cold else "warmup",
            prior_n_effective=settings["prior_n_effective"],
            alpha=settings["alpha"],
            forgetting_factor=settings["forgetting_factor"],
            cost_penalty=0.0,  # as in the experiments of its paper: the pacer sets the price
            budget_pacer=BudgetPacer(ceiling),
        )

    def route(self, x: np.ndarray) -> int:
        """Return the model that answers."""
        self.x = x
        if self.burn_in:
            return len(self.models) - 1
        model, self.open = self.router.route(x)
        return self.models.index(model)

    def settle(self, reward: float, cost: float) -> None:
        """Report the outcome of the last request."""
        if self.burn_in:
            self.burn_in -= 1
            self.router.update(self.models[-1], self.x, reward)
            self.router.budget_pacer.observe(cost)
            return
        self.open.cost_usd = cost
        self.router.process_feedback(self.open.request_id, reward=reward)

    def scale_price(self, model: str, factor: float) -> None:
        """Announce a new price, as a multiple of the first one."""
        self.router.update_model_pricing(model, **_tokens(model, factor))

    def add_model(self, model: str, price: float, factor: float) -> None:
        """Use one more model."""
        self.models.append(model)
        self.burn_in = BURN_IN
        self.router.register_model(model, speed="fast", **_tokens(model, factor))


def _tokens(model: str, factor: float = 1.0, price: float = 0.0) -> dict[str, float]:
    """Return prices by token: those of the model if they are known, else in proportion to its price by request."""
    prompt, answer = TOKEN_PRICES.get(model, (1e3 * price, 1e3 * price))
    return {"input_cost_per_m": factor * prompt, "output_cost_per_m": factor * answer}
