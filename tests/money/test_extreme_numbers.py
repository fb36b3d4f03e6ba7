"""Any numbers in any order: a call is refused or every figure stays finite, and the object opens again.

A random search: `python tests/money/test_extreme_numbers.py [SECONDS]` searches for as long as asked.
"""

import contextlib
import itertools
import logging
import math
import random
import sys
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from clocks import ManualClock
from longterm.errors import LongtermError
from longterm.money import (
    EXP3IX,
    Budget,
    Ceiling,
    Chooser,
    DualMirrorDescent,
    EntropicDual,
    EuclideanDual,
    ExcessHold,
    FirstPricePacer,
    HedgeDual,
    InverseGapWeighting,
    LinearUCB,
    LivePacer,
    PlannedMirrorDescent,
    PlannedPrice,
    PriceHistory,
    PrimalDual,
    ReturnOnSpend,
    RidgeRegressor,
    Router,
    ThompsonSampling,
)
from longterm.money.pacing.landscapes import LostPrices, SeenPrices, WonOrLost

EXTREME = (
    0.0,
    5e-324,
    1e-300,
    1e-50,
    1e-20,
    1e20,
    1e49,
    1e50,
    1.01e50,
    1e154,
    1e300,
    1.7e308,
    math.inf,
    math.nan,
    -1.0,
)
ODD = (np.float32(0.1), np.float64(1e50), np.int64(7), 10**400, np.float32(3e38), np.array(0.5), True, "1", None)


class Numbers:
    """Usual numbers, and more or fewer extreme ones."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.share = self.dice.choice([0.02, 0.2, 0.6])

    def __call__(self, low=0.05, high=2.0):
        if self.dice.random() > self.share:
            return self.dice.uniform(low, high)
        return self.dice.choice(EXTREME if self.dice.random() < 0.9 else ODD)

    def maybe(self, low=0.05, high=2.0):
        return self.dice.choice([None, self(low, high)])

    def count(self):
        return self.dice.choice([1, 10, 100, 10**9, 2**53]) if self.dice.random() < self.share else 40


def landscape(n):
    kind = n.dice.choice([LostPrices, SeenPrices, WonOrLost])
    return kind([0.0, 0.3, 0.5, n(0.6, 3.0)], n.dice.choice([1, 3]), n())


def history(n):
    return PriceHistory([n(0.1, 0.2), n(0.3, 0.5), n(0.6, 0.9)], [n(1, 9), n(1, 9), n(1, 9)], n())


PACERS = {
    "mirror descent": lambda n: DualMirrorDescent(
        n(3, 9), n.count(), n(), n(), n.dice.choice(["entropic", "euclidean"]), n.dice.choice([0.0, n()]), n()
    ),
    "calibrated": lambda n: DualMirrorDescent.calibrated(
        n(3, 9), n.count(), history(n), floor=n.dice.choice([0.0, n()])
    ),
    "planned": lambda n: PlannedMirrorDescent(n(3, 9), n.count(), n(), n(), history(n), n(), n()),
    "calibrated plan": lambda n: PlannedMirrorDescent.calibrated(n(3, 9), n.count(), history(n)),
    "first price": lambda n: FirstPricePacer(
        n(3, 9),
        n.count(),
        landscape(n),
        n(),
        n(),
        n.dice.choice(["entropic", "euclidean"]),
        n.dice.random() < 0.5,
        n(),
        n(),
        n(2, 4),
    ),
    "return": lambda n: ReturnOnSpend(
        n(),
        n.count(),
        n(),
        n(),
        n.dice.choice([None, n(3, 9)]),
        n.dice.choice(["joint", "guarded"]),
        n.dice.choice([None, landscape(n)]),
        n(),
        n.dice.choice([None, n()]),
        n.dice.choice([None, n()]),
    ),
}


def act_pacer(live, n, seen):
    """Make one random call of a pacer. Return whether the budget may be exceeded after it."""
    what = n.dice.choices(["bid", "settle", "correct", "skip", "reset", "change"], [8, 8, 2, 1, 0.5, 0.5])[0]
    bid = n.dice.choice(seen) if seen else None
    force = n.dice.random() < 0.5
    if what == "bid" or bid is None:
        seen.append(live.bid(n()))
    elif what == "settle":
        paid = n.dice.choice([0.0, bid.amount, bid.amount / 2, n()])
        live.settle(bid, paid, price=n(), won=n.dice.choice([None, True, False]), force=force)
        return paid > bid.amount
    elif what == "correct":
        live.correct(bid, n(), force=force)
        return True
    elif what == "skip":
        live.skip(bid)
    elif what == "reset":
        live.reset(n())
        return True
    else:
        live.change(budget=n(3, 9), horizon=n.dice.choice([None, n.count()]))
        return True
    return False


def primal(n):
    return n.dice.choice(
        [
            lambda: ThompsonSampling(2, 1),
            lambda: ThompsonSampling(2, 1, learn_costs=True, learn_noise=True),
            lambda: LinearUCB(2, 1),
            lambda: EXP3IX(2),
            lambda: InverseGapWeighting(2, RidgeRegressor(1)),
        ]
    )()


def dual(n):
    return n.dice.choice(
        [HedgeDual, EuclideanDual, lambda: EntropicDual(n(), step=n()), lambda: EuclideanDual(step=n()), PlannedPrice]
    )()


CHOOSERS = {
    "budget": lambda n: PrimalDual(
        primal(n), dual(n), Budget(n(3, 9), n(0.5, 2)), n.count(), replan=n.dice.random() < 0.5
    ),
    "above": lambda n: PrimalDual(primal(n), dual(n), Budget(n(3, 9), n(0.5, 2), above_cheapest=True), n.count()),
    "ceiling": lambda n: PrimalDual(
        primal(n),
        dual(n),
        Ceiling(
            n(0.1, 1), n(0.5, 2), n.dice.choice([0.0, n()]), n.dice.random() < 0.5, bank=n.dice.choice([None, n(3, 9)])
        ),
        radius=n.dice.choice([None, n()]),
    ),
    "two": lambda n: PrimalDual(
        primal(n),
        dual(n),
        [Budget(n(3, 9), n(0.5, 2)), Budget(n(1, 2), n(0.5, 2), "at least", name="use")],
        n.count(),
        slater=n(),
        stop=False,
    ),
}


def act_chooser(made, n, seen):
    """Make one random call of a chooser. Return whether a cap may be exceeded after it."""
    m, K = made.rule.setting.resources, made.rule.actions
    what = n.dice.choices(["act", "settle", "correct", "skip", "teach", "change", "add"], [8, 8, 2, 1, 1, 0.5, 0.1])[0]
    choice = n.dice.choice(seen) if seen else None
    force, d = n.dice.random() < 0.5, 0 if made.rule.primal.__class__ is EXP3IX else 1

    def vector(size):
        return [n() for _ in range(size)]

    if what == "act" or choice is None:
        costs = [vector(m) for _ in range(K)]
        bounds = n.dice.choice([None, [[n(2, 3) for _ in range(m)] for _ in range(K)]])
        choice = made.act(vector(d), costs=n.dice.choice([costs, costs, None]), bounds=bounds)
        if choice.action is not None:
            seen.append(choice)
    elif what == "settle":
        reward, cost = n.dice.choice([None, n(0, 1)]), n.dice.choice([None, vector(m)])
        made.settle(choice, reward, cost, force=force, cost_follows=n.dice.random() < 0.3)
        return True
    elif what == "correct":
        made.correct(choice, vector(m), force=force)
        return True
    elif what == "skip":
        made.skip(choice)
    elif what == "teach":
        made.teach(vector(d), [n(0, 1) for _ in range(K)], [vector(m) for _ in range(K)])
    elif what == "change":
        field = n.dice.choice(["limit", "per_request", "credit", "bank"])
        made.change({"money": {field: n(3, 9)}}, horizon=n.dice.choice([None, n.count()]))
        return True
    else:
        made.add_action()
    return False


def make_router(n, url, name):
    goal = {"per_request": n(0.1, 1), "bank": n.dice.choice([None, n(20, 90)]), "credit": n.dice.choice([0.0, n()])}
    if n.dice.random() < 0.3:
        goal = {"least_quality": n(0, 1)}
    given = {"small": n(0.1, 0.2), "large": n(0.5, 1)}
    return lambda: Router.for_models(given, features=1, url=url, **goal, **({} if url is None else {"name": name}))


def act_router(made, n, seen):
    what = n.dice.choices(["route", "settle", "skip", "teach", "change", "prices", "add"], [8, 8, 1, 1, 0.5, 0.5, 0.2])[
        0
    ]
    route, model = n.dice.choice(seen) if seen else None, n.dice.choice(["small", "large", "more"])
    if what == "route" or route is None:
        seen.append(
            made.route([n()], costs=n.dice.choice([None, {model: n()}]), bounds=n.dice.choice([None, {model: n()}]))
        )
    elif what == "settle":
        made.settle(route, n.dice.choice([None, n(0, 1)]), n.dice.choice([None, n()]))
    elif what == "skip":
        made.skip(route)
    elif what == "teach":
        made.teach([n()], {model: n(0, 1)}, {model: n()})
    elif what == "change":
        made.change(**{n.dice.choice(["per_request", "credit", "bank", "least_quality"]): n()})
    elif what == "prices":
        made.set_prices({model: n()})
    else:
        made.add_model("more", n(), largest=n.dice.choice([None, n()]))
    return True


def figures(made):
    """Return the figures of an object by name, all of them finite."""
    flat = {}
    for key, value in made.metrics().items():
        for part, number in value.items() if isinstance(value, dict) else [("", value)]:
            assert math.isfinite(number), (key, part, number)
            flat[key, part] = number
    return flat


def maker(kind, name, n, url):
    """Return a function that makes or opens the object, and the function that makes its calls."""
    if kind == "router":
        return make_router(n, url, name), act_router
    options = {"expire_after": n.dice.choice([None, 5]), "clock": ManualClock()}
    if kind in PACERS:
        rule, made = PACERS[kind](n), LivePacer
        options |= {"period": n.dice.choice([None, "day"])}
    else:
        rule, made = CHOOSERS[kind](n), Chooser
        options |= {"holds": n.dice.choice(["worst", ExcessHold(share=0.1, warm_up=3)])}
    call = act_pacer if made is LivePacer else act_chooser
    if url is None:
        return lambda: made(rule, **options), call
    following = {"durability": "relaxed", "name": name}
    return lambda: made.open(url, rule, **{**options, **following, "follow": True}), call


def search(kind, seed, url, calls=60):
    """Make random calls of one object. Every error is one of the library."""
    n, name = Numbers(f"{kind} {seed}"), f"{kind} {seed}"
    try:
        make, call = maker(kind, name, n, url)
        made = make()
    except LongtermError:
        return False
    seen = []
    is_loose = kind in ("router", "two") or (kind == "ceiling" and made.rule.budget_set.always_answers)
    for place in range(calls):
        with contextlib.suppress(LongtermError):
            is_loose = call(made, n, seen) or is_loose
        found = figures(made)
        if not is_loose:
            for (key, part), limit in found.items():
                if key == "limit" and found["held", part] + found["spent", part] > 0 and part != "use":
                    assert found["spent", part] + found["held", part] <= limit * (1 + 1e-9), (place, found)
        if url is not None and (place % 20 == 19 or place == calls - 1):
            before = found
            made.close()
            made = make()
            after = figures(made)
            wrong = {
                key: (before.get(key), after.get(key)) for key in before | after if before.get(key) != after.get(key)
            }
            # A process declares bounds of its own, and knows the models that were added in it.
            assert all(key == "alert" or part == "more" for key, part in wrong), wrong
    made.close()
    return True


KINDS = (*PACERS, *CHOOSERS, "router")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_any_numbers_are_refused_or_harmless(kind, tmp_path):
    assert sum(search(kind, seed, tmp_path / "m.db" if seed % 2 else None) for seed in range(24)) > 3


def main(seconds):
    """Search for so many seconds, and print what is wrong."""
    import traceback

    end, failures, done = time.monotonic() + seconds, {}, 0
    for seed in itertools.count(int(sys.argv[2]) if len(sys.argv) > 2 else 0):
        with TemporaryDirectory() as folder:
            for kind in sys.argv[3:] or KINDS:
                try:
                    done += search(kind, seed, Path(folder) / "m.db" if seed % 2 else None)
                except Exception as error:
                    place = traceback.extract_tb(error.__traceback__)[-1]
                    where = kind, type(error).__name__, str(place.name), place.lineno
                    if where not in failures:
                        sys.stdout.write(f"{where} {seed} {error!r:.300}\n")
                    failures[where] = failures.get(where, 0) + 1
        if time.monotonic() > end:
            break
    sys.stdout.write(f"{done} {failures}\n")


if __name__ == "__main__":
    logging.disable()  # a limit that was changed is logged at every new start
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=UserWarning)
    main(float(sys.argv[1]))
