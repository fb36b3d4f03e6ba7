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


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1e-6, 1.0, 1e6]), st.sampled_from([0, 3, 60])), min_size=40, max_size=120),
    st.floats(0.001, 0.5),
    st.floats(0.1, 1.0),
    st.integers(0, 5),
    st.booleans(),
)
def test_excess_of_late_costs_stays_below_its_bound(costs, share, step, warm_up, declared):
    """Requests stay open while others cost; each keeps its hold, capped by the worst case that it declares, if any."""
    holds, waiting, paid, most_late = ExcessHold(share, step, warm_up), [], [], 0
    for cost, late in costs:
        waiting.append((len(paid), cost, holds.predict("m", largest=cost if declared else 1e6)))
        while len(waiting) > late:
            paid_before, cost, held = waiting.pop(0)
            most_late = max(most_late, len(paid) - paid_before)
            holds.update("m", cost, held=held)
            paid.append(cost)
            proved = share * sum(paid) + max(paid) * (1 / step + most_late)
            assert holds.excess("m") <= min(holds.bound("m"), proved) * (1 + 1e-9) + 1e-300


def test_a_hundred_open_requests_at_a_small_hold():
    """Thirty costs of nearly 0, then 100 requests that are open together and cost 1: D = 99."""
    holds = ExcessHold(share=0.02)
    for _ in range(30):
        holds.update("m", 1e-6)
    open_holds = [holds.predict("m", largest=1.0) for _ in range(100)]
    for held in open_holds:
        holds.update("m", 1.0, held=held)
    assert holds.excess("m") == pytest.approx(100, rel=1e-5)
    on_time = 0.02 * 100 + 1 / 0.1
    assert holds.excess("m") <= holds.bound("m") <= on_time + 99 * 1.0


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
