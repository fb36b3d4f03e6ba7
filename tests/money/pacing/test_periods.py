"""The money of a pacer with a period is that of a plain model, whatever the clock does."""

import random
from datetime import datetime
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from clocks import ManualClock
from longterm.errors import LongtermError
from longterm.money import (
    DualMirrorDescent,
    FirstPricePacer,
    LivePacer,
    PlannedMirrorDescent,
    PriceHistory,
    ReturnOnSpend,
)
from longterm.money.pacing.landscapes import LostPrices

HISTORY = PriceHistory(prices=[0.2, 0.5, 1.0], counts=[5, 3, 2], mean_value=0.5)
RULES = {
    "mirror": lambda: DualMirrorDescent(budget=20.0, horizon=200, step=0.1, start=0.5, mirror="euclidean"),
    "planned": lambda: PlannedMirrorDescent(20.0, 200, 0.02, 1.0, HISTORY),
    "return": lambda: ReturnOnSpend(target=1.2, horizon=200, largest_value=2.0, largest_bid=2.0, budget=20.0),
    "first price": lambda: FirstPricePacer(20.0, 200, LostPrices(np.linspace(0.0, 1.5, 8)), 0.5, 0.1),
}
CALLS = {"bid": 9, "settle": 7, "skip": 1, "correct": 3, "move": 5, "back": 1, "reset": 0.5, "open": 0.5}
MAX_AGE = 3600.0
MOVES = (1.0, 600.0, 5000.0, 40_000.0, 90_000.0, 700_000.0, 3_000_000.0)


class Model:
    """Payments by period, in fractions. The last four periods count, and a clock set back further begins none."""

    def __init__(self, period, zone, clock):
        self.period, self.zone, self.clock = period, ZoneInfo(zone), clock
        self.sums = {}
        self.total, self.bids = Fraction(0), {}
        self.closed = {}

    def label(self):
        day = datetime.fromtimestamp(self.clock.wall(), self.zone).date()
        if self.period == "week":
            return tuple(day.isocalendar()[:2])
        return (day.year, day.month, day.day) if self.period == "day" else (day.year, day.month)

    def turn(self):
        """Close the bids that are too old, which count in full, in the period that begins now."""
        label = max(self.label(), min(self.sums, default=()))
        self.sums.setdefault(label, Fraction(0))
        self.sums = {one: self.sums[one] for one in sorted(self.sums)[-4:]}
        self.present = label
        for number, (amount, opened) in list(self.bids.items()):
            if opened < self.clock.wall() - MAX_AGE:
                del self.bids[number]
                self.pay(number, amount)

    def pay(self, number, paid):
        before = self.closed.get(number, Fraction(0))
        self.closed[number] = paid
        self.sums[self.present] = max(self.sums[self.present] + paid - before, Fraction(0))
        self.total += max(paid - before, Fraction(0))

    def figures(self):
        self.turn()
        held = sum((amount for amount, _ in self.bids.values()), Fraction(0))
        return self.sums[self.present], self.total, held


@pytest.mark.parametrize("period", ["day", "week", "month"])
@pytest.mark.parametrize("kind", RULES)
def test_a_clock_that_jumps_moves_money_between_periods_as_a_plain_model_says(kind, period, tmp_path):
    for seed in range(3):
        dice, clock = random.Random(f"{kind} {period} {seed}"), ManualClock()
        options = {"period": period, "timezone": "Europe/Berlin", "max_age": MAX_AGE, "clock": clock}
        path = tmp_path / f"{seed}.db"
        if seed:
            live = LivePacer.open(path, RULES[kind](), durability="relaxed", **options)
        else:
            live = LivePacer(RULES[kind](), **options)
        model, tokens = Model(period, "Europe/Berlin", clock), {}
        for _ in range(150):
            name = dice.choices(list(CALLS), list(CALLS.values()))[0]
            if name == "move":
                clock.advance(dice.choice(MOVES))
            elif name == "back":
                clock.step(-dice.choice(MOVES))
            elif name == "open" and seed:
                live.close()
                live = LivePacer.open(path, RULES[kind](), durability="relaxed", **options)
            model.turn()
            if name == "bid":
                bid = live.bid(dice.random())
                model.bids[bid.token.number] = Fraction(bid.amount), clock.wall()
                tokens[bid.token.number] = bid
            elif name in ("settle", "skip", "correct") and tokens:
                number = dice.choice(list(tokens)[-8:])
                cost = dice.randrange(65) / 64
                is_open = number in model.bids
                try:
                    if name == "correct":
                        live.correct(str(tokens[number]), cost)
                    elif name == "skip":
                        live.skip(tokens[number])
                        cost = 0.0
                    else:
                        cost *= tokens[number].amount
                        live.settle(tokens[number], cost, price=0.5, won=cost > 0)
                except LongtermError:
                    assert is_open == (name == "correct")
                else:
                    assert is_open == (name != "correct")
                    model.bids.pop(number, None)
                    model.pay(number, Fraction(cost))
            elif name == "reset":
                spent = dice.choice([0.0, 2.5])
                live.reset(spent)
                model.sums[model.present] = Fraction(spent)
            figures = live.metrics()
            found = figures["spent"], figures["total"], figures["held"]
            assert found == pytest.approx(tuple(map(float, model.figures())), abs=1e-9), (name, seed)
        live.close()
