"""The report in a real browser: it loads, asks for nothing, answers clicks, and nothing overflows."""

import numpy as np
import pytest

from browser import chromium, open_at, requested
from longterm.report import write_page
from longterm.report.scales import scale_of
from results import dsm, hostile, many, sample

ActionChains = pytest.importorskip("selenium.webdriver", reason="the browser test needs selenium").ActionChains
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait

pytestmark = pytest.mark.slow

SIZES = {"phone": (360, 800), "desktop": (1440, 900)}
READY = "return [...document.querySelectorAll('.plot')].every(plot => plot.data && plot.querySelector('.scatterlayer'))"
VISIBLE = "return arguments[0].data.filter(t => t.meta.mean && t.visible).map(t => t.meta.curve)"


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    results = [dsm(8, 200, 3), sample(150, 3), hostile(), many(12)]
    return write_page(results, tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.fixture
def figure(driver, page):
    open_at(driver, page, *SIZES["desktop"])
    return driver.find_element("css selector", "#dsm figure.chart")


def plots(figure):
    return figure.find_elements("css selector", ".plot")


def axes(driver, plot):
    return driver.execute_script("const l = arguments[0]._fullLayout; return [l.xaxis.type, l.yaxis.type]", plot)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_loads_alone_and_fits(driver, page, size, scheme):
    open_at(driver, page, *SIZES[size], scheme)
    WebDriverWait(driver, 10).until(lambda d: d.execute_script(READY))
    for closed in driver.find_elements("css selector", "details"):
        driver.execute_script("arguments[0].open = true", closed)
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert requested(driver) == {page}
    width = SIZES[size][0]
    assert driver.execute_script("return innerWidth") == width
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    # Not even inside a section: what is wider stands in a box that scrolls.
    outside = driver.execute_script(
        """const scrolls = e => e && (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)
               || scrolls(e.parentElement));
           return [...document.querySelectorAll('section, section *')]
               .filter(e => e.getBoundingClientRect().right > innerWidth + 0.5 && !scrolls(e.parentElement))
               .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert outside == []


def test_the_page_follows_the_scheme(driver, page):
    colours = {}
    for scheme in ("light", "dark"):
        open_at(driver, page, *SIZES["desktop"], scheme)
        colours[scheme] = driver.execute_script(
            "return [getComputedStyle(document.body).backgroundColor,"
            " document.querySelector('.plot').data.find(t => t.meta.mean).line.color]"
        )
    assert colours["light"][0] != colours["dark"][0]
    assert colours["light"][1] != colours["dark"][1]


def test_a_press_in_the_legend_hides_and_shows_a_curve(driver, figure):
    entry = figure.find_elements("css selector", ".legend button")[1]
    every = list(range(6))
    assert [driver.execute_script(VISIBLE, plot) for plot in plots(figure)] == [every, every]
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    assert [driver.execute_script(VISIBLE, plot) for plot in plots(figure)] == [[0, 2, 3, 4, 5]] * 2
    drawn = "return arguments[0].querySelectorAll('.scatterlayer .trace').length"
    fewer = driver.execute_script(drawn, plots(figure)[0])
    entry.click()
    assert [driver.execute_script(VISIBLE, plot) for plot in plots(figure)] == [every, every]
    assert driver.execute_script(drawn, plots(figure)[0]) > fewer


def test_linear_and_logarithmic_axes(driver, figure):
    assert [axes(driver, plot) for plot in plots(figure)] == [["log", "log"]] * 2
    for kind, wanted in (("linear", ["linear", "linear"]), ("log", ["log", "log"])):
        figure.find_element("xpath", f".//label[input[@value='{kind}']]").click()
        assert [axes(driver, plot) for plot in plots(figure)] == [wanted] * 2


def test_the_measure_is_chosen_for_each_plot(driver, figure):
    result = dsm(8, 200, 3)
    plot = plots(figure)[0]
    last = "return arguments[0].data.filter(t => t.meta.mean).map(t => t.y[t.y.length - 1])"
    for measure in ("regret", "squared_violation", "long_term_violation"):
        figure.find_element("css selector", f".plot-box option[value='{measure}']").click()
        wanted = [curve.mean(measure)[-1] for curve in result.curves]
        assert driver.execute_script(last, plot) == pytest.approx(wanted, rel=1e-6)
        assert "After 200 rounds: Convex A-OGD" in plot.get_attribute("aria-label")
    assert driver.execute_script(last, plots(figure)[1]) == pytest.approx(
        [curve.mean("signed_violation")[-1] for curve in result.curves], rel=1e-6
    )


def test_negative_sums_are_all_drawn(driver, page):
    open_at(driver, page, *SIZES["desktop"])
    plot = driver.find_elements("css selector", "#covtype-sample .plot")[1]
    result = sample(150, 3)
    assert axes(driver, plot) == ["log", "linear"]  # logarithmic on both sides of zero, with ticks that say so
    drawn = driver.execute_script("return arguments[0].data.filter(t => t.meta.mean).map(t => t.y)", plot)
    for values, curve in zip(drawn, result.curves, strict=True):
        mean, threshold = curve.mean("signed_violation"), scale_of(result, "signed_violation").threshold
        assert np.all(mean < 0)
        folded = np.where(-mean <= threshold, mean / threshold, -1 - np.log10(-mean / threshold))
        np.testing.assert_allclose(values, folded, atol=1e-6)
    ticks = driver.execute_script("return arguments[0]._fullLayout.yaxis.ticktext", plot)
    assert "0" in ticks
    assert any(tick.startswith("−") for tick in ticks)


def test_names_do_not_become_markup(driver, page):
    open_at(driver, page, *SIZES["desktop"])
    WebDriverWait(driver, 10).until(lambda d: d.execute_script(READY))
    assert len(driver.find_elements("css selector", "body > script:not([type])")) == 2
    assert driver.find_elements("css selector", "main b, main script:not([type='application/json'])") == []


def test_the_command_is_copied(driver, figure):
    granted = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": granted})
    driver.find_element("css selector", "#dsm button.copy").click()
    copied = driver.execute_async_script(
        """const [done] = arguments, button = document.querySelector('#dsm button.copy');
           const wait = () => button.textContent === 'Copied' ? navigator.clipboard.readText().then(done)
               : button.textContent === 'Selected' ? done(getSelection().toString()) : setTimeout(wait, 20);
           wait()"""
    )
    assert copied == dsm(8, 200, 3).command


def test_hovering_tells_round_mean_and_deviation(driver, figure):
    surface = figure.find_element("css selector", ".plot .nsewdrag")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", surface)
    ActionChains(driver).move_to_element_with_offset(surface, 30, 10).perform()
    WebDriverWait(driver, 5).until(lambda d: d.find_elements("css selector", ".hoverlayer .legend text"))
    told = " ".join(text.text for text in figure.find_elements("css selector", ".hoverlayer text"))
    assert "round" in told
    assert "±" in told
    assert "Convex mirror prox" in told
