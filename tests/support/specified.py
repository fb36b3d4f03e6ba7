"""Specifications of every learner of the catalogue and every rule, as files store them.

`python tests/support/specified.py` writes them to tests/storage/golden/specifications.json. After a release a change of
that file locks users out of what they stored, so it is changed by adding lines only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from longterm import LongtermError
from longterm.catalogue import lookup as catalogue
from longterm.money import (
    EXP3IX,
    Budget,
    Ceiling,
    DualMirrorDescent,
    EntropicDual,
    EuclideanDual,
    ExcessHold,
    ExponentialWeights,
    FirstPricePacer,
    FixedMixture,
    HedgeDual,
    LinearUCB,
    PlannedMirrorDescent,
    PlannedPrice,
    PriceHistory,
    PrimalDual,
    ReturnOnSpend,
    ThompsonSampling,
)
from longterm.money.choosing.beliefs import LinearBelief
from longterm.money.pacing.landscapes import LostPrices, SeenPrices, WonOrLost
from longterm.storage.specification import specification

GOLDEN = Path(__file__).parents[1] / "storage" / "golden" / "specifications.json"
HORIZON = 64


def learners() -> Iterator[tuple[str, Any]]:
    """Yield every learner with each of its variants on the first and the last problem of the package that it plays."""
    scenarios = {name: entry.build(**entry.arena) for name, entry in catalogue.problems().items() if not entry.data}
    for name, entry in catalogue.learners().items():
        for variant in entry.variants or ({},):
            played = {}
            for problem, scenario in scenarios.items():
                try:
                    played[problem] = entry.learner(scenario.problem, HORIZON, variant)
                except LongtermError:
                    continue
            words = " ".join([name, *(f"{key}={value}" for key, value in variant.items())])
            chosen = played if name == "projected_ogd" else dict([*played.items()][:1] + [*played.items()][-1:])
            # Learners that a test made are in the catalogue of its process, too.
            ours = ((problem, one) for problem, one in chosen.items() if type(one).__module__.startswith("longterm."))
            yield from ((f"{words} / {problem}", learner) for problem, learner in ours)


def rules() -> Iterator[tuple[str, Any]]:
    """Yield every rule of the choosers and pacers, with every slot."""
    budget = Budget(limit=10.0, largest=1.0)
    prior = LinearBelief.prior(2, 1, np.ones(2), np.ones(2))
    primals = {
        "EXP3IX": EXP3IX(2),
        "ExponentialWeights": ExponentialWeights(2),
        "FixedMixture": FixedMixture((0.5, 0.5)),
        "LinearUCB": LinearUCB(2, 2),
        "ThompsonSampling": ThompsonSampling(2, 2, level_scale=0.15, drift=0.1, learn_costs=True),
        "ThompsonSampling with a prior": ThompsonSampling(2, 2, prior=prior),
    }
    for name, primal in primals.items():
        yield f"rule {name}", PrimalDual(primal, EntropicDual(start=0.5), budget, 100)
    for dual in (HedgeDual(), EuclideanDual(), EntropicDual(start=0.5), PlannedPrice()):
        yield f"rule {type(dual).__name__}", PrimalDual(ThompsonSampling(2, 2), dual, budget, 100)
    yield "rule Ceiling", PrimalDual(ThompsonSampling(2, 2), PlannedPrice(), Ceiling(0.1, largest=1.0))
    yield "holds", ExcessHold(share=0.1)
    bids = np.array([0.0, 0.5, 1.0])
    history = PriceHistory(np.array([0.1, 0.3]), np.array([1.0, 2.0]), mean_value=0.5)
    yield "pacer mirror descent", DualMirrorDescent(10.0, 100, step=0.1, start=0.5)
    yield "pacer planned", PlannedMirrorDescent(10.0, 100, step=0.1, start=0.5, history=history)
    yield "pacer return on spend", ReturnOnSpend(1.5, 100, largest_value=1.0, largest_bid=1.0)
    for landscape in (SeenPrices(bids), LostPrices(bids), WonOrLost(bids)):
        rule = FirstPricePacer(10.0, 100, landscape, start=0.5, step=0.1)
        yield f"pacer first price, {type(landscape).__name__}", rule


def specifications() -> dict[str, Any]:
    """Return all of them by name."""
    return {name: specification(made) for made_of in (learners(), rules()) for name, made in made_of}


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(specifications().items())]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stdout.write(f"{len(lines)} specifications in {GOLDEN}\n")
