"""Holds: the identity of the theorem, random and adversarial costs."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longterm.errors import InputError
from longterm.money import ExcessHold


@given(st.lists(st.floats(0, 1e6), max_size=60), st.floats(0.001, 0.5), st.floats(0.01, 1.0))
def test_excess_stays_below_its_bound(costs, share, step):
    holds = ExcessHold(share, step)
    for cost in costs:
        holds.update("m", cost)
        assert holds.predict("m") >= 0.0
        assert holds.excess("m") <= holds.bound("m") * (1 + 1e-9)


def test_excess_is_the_share_of_the_money():
    rng, holds = np.random.default_rng(0), ExcessHold(0.05, 0.05, warm_up=0)
    costs = rng.lognormal(size=20_000)
    for cost in costs:
        holds.update("m", float(cost))
    assert holds.excess("m") == pytest.approx(0.05 * costs.sum(), rel=0.12)


def test_worst_case_until_warm():
    holds = ExcessHold(0.02, warm_up=2)
    assert holds.predict("m", largest=3.0) == 3.0
    with pytest.raises(InputError, match="largest"):
        holds.predict("m")
    holds.update("m", 1.0)
    assert holds.predict("m", largest=3.0) == 3.0
    holds.update("m", 1.0)
    assert holds.predict("m", largest=3.0) < 1.1
    assert holds.predict("m", largest=0.5) == 0.5


def test_saved_holds_go_on_the_same():
    holds, rng = ExcessHold(0.05, warm_up=3), np.random.default_rng(1)
    for cost in rng.lognormal(size=20):
        holds.update("a", float(cost))
        holds.update(("b", 2), 2.0 * float(cost))
    again = pickle.loads(pickle.dumps(holds))
    for one in (holds, again):
        one.update(("b", 2), 5.0)
    assert again.predict(("b", 2)) == holds.predict(("b", 2))
    assert again.bound("a") == holds.bound("a")


@pytest.mark.parametrize("settings", [{"share": 1.0}, {"share": 0.0}, {"step": 1.5}, {"warm_up": -1}, {"warm_up": "3"}])
def test_wrong_settings_are_refused(settings):
    with pytest.raises(InputError):
        ExcessHold(**settings)
