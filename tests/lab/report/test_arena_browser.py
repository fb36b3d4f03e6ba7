"""The arena's page in a real browser: it loads alone, ranks again as the reader wishes, and nothing overflows."""

import io

import pytest

from browser import chromium, open_at, requested
from longterm.lab import Backend
from longterm.lab.arena import Preference, arena_of, league, run_arena
from longterm.lab.report.arena_page import write_arena_page

WebDriverWait = pytest.importorskip(
    "selenium.webdriver.support.ui", reason="the browser test needs selenium"
).WebDriverWait

pytestmark = pytest.mark.slow

SIZES = {"phone": (360, 800), "desktop": (1440, 900)}
READY = "return [...document.querySelectorAll('.plot')].every(plot => plot.querySelector('svg .frame'))"
OUTSIDE = """const scrolls = e => e && (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)
                 || scrolls(e.parentElement));
             return [...document.querySelectorAll('section, section *')]
                 .filter(e => e.getBoundingClientRect().right > innerWidth + 0.5 && !scrolls(e.parentElement))
                 .map(e => e.outerHTML.slice(0, 80))"""
SET = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event(arguments[2]))"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    learners = [
        "aogd",
        "quadratic_penalty_ogd",
        "yu_lee_lee",
        "projected_ogd",
        "coldq",
        "aogd beta=0.5 name='<b>&x</b>'",
    ]
    spec = arena_of(learners, ["expert_advice", "switching_constraints"], rounds=256, sequences=2)
    return run_arena(spec, tmp_path_factory.mktemp("arena"), backend=Backend(workers=1), out=io.StringIO())


@pytest.fixture(scope="module")
def page(arena, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "arena.html"
    return write_arena_page(arena, league(arena), Preference(), path).as_uri()


def ready(driver):
    WebDriverWait(driver, 10).until(lambda d: d.execute_script(READY))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_is_self_contained_and_fits(driver, page, size, scheme):
    open_at(driver, page, *SIZES[size], scheme)
    ready(driver)
    for closed in driver.find_elements("css selector", "details"):
        driver.execute_script("arguments[0].open = true", closed)
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert requested(driver) == {page}
    assert driver.execute_script("return document.documentElement.scrollWidth") <= SIZES[size][0]
    assert driver.execute_script(OUTSIDE) == []
    assert driver.find_elements("css selector", "main b") == []  # a name does not become markup
    ticks = (
        "return [...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('.tick[text-anchor=end]').length)"
    )
    assert min(driver.execute_script(ticks)) >= 2


def shown(driver):
    rows = driver.find_elements("css selector", ".league tbody tr")
    return [
        (row.find_element("css selector", "th").text, row.find_elements("css selector", "td")[1].text) for row in rows
    ]


@pytest.mark.parametrize("preference", [Preference(0.0), Preference(0.9, "hard"), Preference(1.0, "largest")])
def test_the_league_is_ranked_again(driver, page, arena, preference):
    open_at(driver, page, *SIZES["desktop"])
    ready(driver)
    driver.execute_script(SET, driver.find_element("css selector", ".violation"), preference.measure, "change")
    driver.execute_script(SET, driver.find_element("css selector", ".weight"), str(preference.weight), "input")
    found = shown(driver)
    wanted = [(one.learner, f"{one.score:.3f}") for one in league(arena, preference)]
    assert sorted(found) == sorted(wanted)
    assert [score for _, score in found] == [score for _, score in wanted]
    heads = driver.find_elements("css selector", ".league thead tr:nth-child(2) th")
    driver.execute_script("arguments[0].click()", next(head for head in heads if head.text == "score"))
    assert [score for _, score in shown(driver)] == [score for _, score in wanted]  # sorted by what is shown now


def frontier(matches, measure):
    """The matches that no other beats in regret and violation, the smallest violation first."""
    found = []
    for match in sorted(matches, key=lambda one: (one.lost(measure), one.mean("regret"))):
        if not found or match.mean("regret") < found[-1].mean("regret"):
            found.append(match)
    return found


def test_the_frontier_follows_the_violation(driver, page, arena):
    open_at(driver, page, *SIZES["desktop"])
    ready(driver)
    for measure in ("hard_violation", "long_term_violation"):
        driver.execute_script(SET, driver.find_element("css selector", ".violation"), measure, "change")
        for problem, id in (("expert advice", "expert-advice"), ("switching constraints", "switching-constraints")):
            best = [match.learner for match in frontier(arena.on_problem(problem), measure)]
            text = driver.find_element("css selector", f"#{id} .best").text
            assert text.startswith(f"{best[0]} has the smallest violation")
            assert all(name in text for name in best)
            named = driver.find_elements("css selector", f"#{id} .names .name")
            assert {one.text for one in named} <= set(best)
            assert len(named) >= min(2, len(best))


def test_a_marked_learner_is_highlighted(driver, page):
    open_at(driver, page, *SIZES["desktop"])
    ready(driver)
    driver.execute_script(SET, driver.find_element("css selector", ".mark"), "A-OGD", "change")
    marked = "return arguments[0].drawn.points.filter(p => p.marked).map(p => p.name)"
    for plot in driver.find_elements("css selector", ".plot"):
        assert driver.execute_script(marked, plot) == ["A-OGD"]
        assert len(plot.find_elements("css selector", ".point.marked")) == 1
    assert driver.current_url.endswith("mark=A-OGD")
    assert [row.text for row in driver.find_elements("css selector", "tr.marked th")] == ["A-OGD"]


def test_letters_keep_their_size_in_print(driver, page):
    open_at(driver, page, 1440, 900)
    ready(driver)
    boxes = "return [...document.querySelectorAll('.plot svg')].map(svg => svg.getAttribute('viewBox'))"
    before = driver.execute_script(boxes)
    driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert set(driver.execute_script(boxes)) == {"0 0 680 330"}  # CSS pixels: A4 has room for 688
    driver.execute_script("dispatchEvent(new Event('afterprint'))")
    assert driver.execute_script(boxes) == before
