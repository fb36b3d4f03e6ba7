"""The interactive page: its rounds are those of the library, and it works at every width, offline."""

from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pytest

from browser import chromium, open_at, requested
from longterm import AOGD, HedgedCuts, hindsight, run
from longterm.learners import MahdaviOGD
from longterm.problems import two_dimensional
from longterm.problems.streams import Replay
from longterm.theory import theorem_1
from longterm.theory.paper import theorem_1_as_printed

PAGE = Path(__file__).parents[2] / "docs" / "_static" / "play" / "index.html"
PROBLEM = two_dimensional()
ROUNDS = 150
PLAY = """
const [kind, beta, rounds] = arguments, targets = makeTargets(kind, rounds, [0.8, 0.3], [0.3, -0.7]);
const found = Object.fromEntries(Object.entries(LEARNERS).map(
  ([name, build]) => [name, playRounds(build({beta, rounds}), targets)]));
return {targets, found};
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.mark.parametrize(
    ("kind", "beta"), [("random", 0.67), ("reversal", 0.5), ("alternating", 0.9), ("circle", 0.67)]
)
def test_the_rounds_are_those_of_the_library(driver, kind, beta):
    open_at(driver, PAGE.as_uri(), 1200, 900)
    played = driver.execute_script(PLAY, kind, beta, ROUNDS)
    stream = Replay([np.asarray(played["targets"])])
    learners = {
        "A-OGD": AOGD.for_problem(PROBLEM, beta=beta),
        "OGD (Mahdavi et al. 2012)": MahdaviOGD.for_problem(PROBLEM, horizon=ROUNDS),
        "Hedged cuts": HedgedCuts.for_problem(PROBLEM),
    }
    assert set(played["found"]) == set(learners)
    for name, learner in learners.items():
        trace = run(PROBLEM, learner, stream, ROUNDS, record=range(1, ROUNDS + 1))
        ours = played["found"][name]
        best = hindsight.best(trace)
        np.testing.assert_allclose(ours["regret"], trace.regret(best), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ours["violation"], trace.signed_violation, rtol=1e-9, atol=1e-9)
        if "multiplier" in trace.reports:
            np.testing.assert_allclose(ours["multiplier"], trace.multiplier, rtol=1e-9, atol=1e-9)
        else:
            assert ours["multiplier"] == [None] * ROUNDS


@pytest.mark.parametrize("beta", [0.5, 0.8])
def test_the_bounds_are_those_of_the_library(driver, beta):
    open_at(driver, PAGE.as_uri(), 1200, 900)
    for printed, theorem in ((False, theorem_1), (True, theorem_1_as_printed)):
        found = driver.execute_script("return theorem1(1000, arguments[0], arguments[1])", beta, printed)
        wanted = theorem(PROBLEM.constants, 1000, beta)
        assert found["regret"] == pytest.approx(float(wanted.regret), rel=1e-12)
        assert found["violation"] == pytest.approx(float(wanted.violation), rel=1e-12)


def test_the_shortest_horizon_is_that_of_the_library(driver):
    open_at(driver, PAGE.as_uri(), 1200, 900)
    shortest = driver.execute_script("return shortestHorizon()")
    MahdaviOGD.for_problem(PROBLEM, horizon=shortest)
    with pytest.raises(ValueError, match=f"at least {shortest}"):
        MahdaviOGD.for_problem(PROBLEM, horizon=shortest - 1)


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_answers_and_asks_for_nothing_else(driver, width, scheme):
    open_at(driver, PAGE.as_uri(), width, 900, scheme)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    before = driver.execute_script("return traces['A-OGD'].violation.at(-1)")
    move = "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
    driver.execute_script(f"{move} s.dispatchEvent(new Event('input'))", "beta", "0.9")
    assert driver.execute_script("return traces['A-OGD'].violation.at(-1)") < before
    driver.execute_script(f"{move} s.dispatchEvent(new Event('change'))", "stream", "reversal")
    driver.execute_script("document.getElementById('bounds').click()")
    assert driver.execute_script("return document.querySelectorAll('#regret polyline').length") == 5
    assert all(address.startswith(PAGE.parents[1].as_uri()) for address in requested(driver))
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
    texts = driver.execute_script("return [...document.querySelectorAll('.charts svg')].map((one) => one.textContent)")
    assert all("round t" in text for text in texts)
    links = driver.execute_script("return [...document.querySelectorAll('a')].map((one) => one.href)")
    assert links
    assert all(Path(unquote(urlparse(link).path)).exists() for link in links)  # in a clone, as here
