"""The report in a real browser: it loads, asks for nothing, answers clicks, and nothing overflows."""

import csv
import dataclasses
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from browser import chromium, open_at, requested
from longterm.lab import write_page
from longterm.lab.experiments.result import Remark
from longterm.lab.report.axes import scale_of
from results import dsm, hostile, many, sample

ActionChains = pytest.importorskip("selenium.webdriver", reason="the browser test needs selenium").ActionChains
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait

pytestmark = pytest.mark.slow

SIZES = {"phone": (360, 800), "desktop": (1440, 900)}
READY = "return [...document.querySelectorAll('.plot')].every(plot => plot.querySelector('svg .frame'))"
VISIBLE = "return [...arguments[0].querySelectorAll('.curve.mean')].map(c => Number(c.dataset.curve))"
MEANS = "return arguments[0].drawn.curves.filter(c => c.role === 'mean').map(c => c.y)"
TICKS = "return [...arguments[0].querySelectorAll('.tick[text-anchor=end]')].map(t => t.textContent)"


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
    return driver.execute_script("return [arguments[0].drawn.x.kind, arguments[0].drawn.y.kind]", plot)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_is_self_contained_and_fits(driver, page, size, scheme):
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
            " getComputedStyle(document.querySelector('.plot .curve.mean')).color]"
        )
    assert colours["light"][0] != colours["dark"][0]
    assert colours["light"][1] != colours["dark"][1]


def test_a_click_in_the_legend_hides_and_shows_a_curve(driver, figure):
    entry = figure.find_elements("css selector", ".legend button")[1]
    every = list(range(6))
    assert [driver.execute_script(VISIBLE, plot) for plot in plots(figure)] == [every, every]
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    assert [driver.execute_script(VISIBLE, plot) for plot in plots(figure)] == [[0, 2, 3, 4, 5]] * 2
    entry.click()
    assert [driver.execute_script(VISIBLE, plot) for plot in plots(figure)] == [every, every]


def test_linear_and_logarithmic_axes(driver, figure):
    assert [axes(driver, plot) for plot in plots(figure)] == [["log", "log"]] * 2
    for kind, wanted in (("linear", ["linear", "linear"]), ("log", ["log", "log"])):
        figure.find_element("xpath", f".//label[input[@value='{kind}']]").click()
        assert [axes(driver, plot) for plot in plots(figure)] == [wanted] * 2


def test_the_measure_is_chosen_for_each_plot(driver, figure):
    result = dsm(8, 200, 3)
    plot = plots(figure)[0]
    last = MEANS.replace("c.y)", "c.y[c.y.length - 1])")
    for measure in ("regret", "squared_violation", "long_term_violation"):
        figure.find_element("css selector", f".plot-box option[value='{measure}']").click()
        wanted = [curve.mean(measure)[-1] for curve in result.curves]
        assert driver.execute_script(last, plot) == pytest.approx(wanted, rel=1e-6)
        assert "After 200 rounds: A-OGD" in plot.get_attribute("aria-label")
    assert driver.execute_script(last, plots(figure)[1]) == pytest.approx(
        [curve.mean("signed_violation")[-1] for curve in result.curves], rel=1e-6
    )


def test_negative_sums_are_all_drawn(driver, page):
    open_at(driver, page, *SIZES["desktop"])
    plot = driver.find_elements("css selector", "#covtype-sample .plot")[1]
    result = sample(150, 3)
    assert axes(driver, plot) == ["log", "symlog"]
    ticks = driver.execute_script(TICKS, plot)
    assert "0" in ticks
    assert any(tick.startswith("−") for tick in ticks)
    # Every point stands where the scale puts it: even in the logarithm beyond the threshold, on both sides of zero.
    threshold = scale_of(result, "signed_violation").threshold
    heights = driver.execute_script(
        "return [...arguments[0].querySelectorAll('.curve.mean .stroke')].map(p => p.getAttribute('d'))", plot
    )
    for path, curve in zip(heights, result.curves, strict=True):
        mean = curve.mean("signed_violation")
        assert np.all(mean < 0)
        folded = np.where(-mean <= threshold, mean / threshold, -1 - np.log10(-mean / threshold))
        y = np.array([float(point.split()[1]) for point in re.split("[ML]", path)[1:]])
        slope, level = np.polyfit(folded, y, 1)
        assert slope < 0
        np.testing.assert_allclose(y, slope * folded + level, atol=0.2)


def test_names_do_not_become_markup(driver, page):
    open_at(driver, page, *SIZES["desktop"])
    WebDriverWait(driver, 10).until(lambda d: d.execute_script(READY))
    assert len(driver.find_elements("css selector", "body > script:not([type])")) == 1
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


def test_the_pointer_shows_round_mean_and_spread(driver, figure):
    plot = plots(figure)[0]
    surface = plot.find_element("css selector", ".surface")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    ActionChains(driver).move_to_element_with_offset(surface, 30, 10).perform()
    card = plot.find_element("css selector", ".card")
    assert card.text.startswith("round ")
    assert "Mirror prox" in card.text
    assert " to " in card.text
    figure.find_element("css selector", "option[value='deviation']").click()
    ActionChains(driver).move_to_element_with_offset(plot, 0, 0).perform()
    assert "±" in plot.find_element("css selector", ".card").text


def test_dragging_zooms_and_a_double_click_shows_all_again(driver, figure):
    plot = plots(figure)[0]
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    every = driver.execute_script(TICKS, plot)
    surface = plot.find_element("css selector", ".surface")
    ActionChains(driver).move_to_element(surface).click_and_hold().move_by_offset(90, 60).release().perform()
    assert driver.execute_script(TICKS, plot) != every
    ActionChains(driver).double_click(plot.find_element("css selector", ".surface")).perform()
    assert driver.execute_script(TICKS, plot) == every


def test_choices_are_kept_in_the_url(driver, figure, page):
    figure.find_element("xpath", ".//label[input[@value='linear']]").click()
    figure.find_element("css selector", "option[value='sequences']").click()
    figure.find_element("css selector", "input[value='bounds']").click()
    figure.find_elements("css selector", ".legend button")[2].click()
    figure.find_element("css selector", ".plot-box option[value='hard_violation']").click()
    link = driver.current_url
    drawn = [driver.execute_script("return arguments[0].innerHTML", plot) for plot in plots(figure)]
    open_at(driver, link, *SIZES["desktop"])
    again = driver.find_element("css selector", "#dsm figure.chart")
    assert [driver.execute_script("return arguments[0].innerHTML", plot) for plot in plots(again)] == drawn
    assert driver.execute_script(VISIBLE, plots(again)[0]) == [0, 1, 3, 4, 5]
    assert len(again.find_elements("css selector", ".plot-box:first-child .sequence")) == 5 * 3
    driver.find_element("css selector", "nav a[href='#covtype-sample']").click()
    # A jump within the page forgets nothing. The page puts the choices back after the jump.
    WebDriverWait(driver, 10).until(lambda driver: "dsm.axes=linear" in driver.current_url)


def test_two_runs_side_by_side_have_the_same_axes(driver, page):
    open_at(driver, f"{page}#&beside1=dsm&beside2=grid", *SIZES["desktop"])
    one, other = (driver.find_element("css selector", f"#{id}") for id in ("dsm", "grid"))
    assert one.rect["y"] == other.rect["y"]
    assert one.rect["x"] + one.rect["width"] <= other.rect["x"]
    assert not driver.find_element("css selector", "#covtype-sample").is_displayed()
    ticks = [driver.execute_script(TICKS, section.find_element("css selector", ".plot")) for section in (one, other)]
    assert ticks[0] == ticks[1]
    assert [row.text for row in other.find_elements("css selector", ".unlike")]


def saved_files(driver, folder, kind, count):
    """Return the files that the page saves. The browser makes an empty file first and renames a partial one."""

    def complete(_):
        found = sorted(folder.glob(f"*.{kind}"))
        is_done = len(found) == count and not list(folder.glob("*.crdownload"))
        return found if is_done and all(path.stat().st_size for path in found) else None

    return WebDriverWait(driver, 10).until(complete)


@pytest.mark.parametrize("kind", ["svg", "png", "csv"])
def test_figures_and_numbers_are_saved(driver, figure, tmp_path, kind):
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    figure.find_element("css selector", f"[data-save='{kind}']").click()
    saved = saved_files(driver, tmp_path, kind, 1 if kind == "csv" else 2)
    assert [path.name for path in saved] == (
        ["dsm.csv"] if kind == "csv" else [f"dsm-regret.{kind}", f"dsm-signed-violation.{kind}"]
    )
    if kind == "png":
        assert saved[0].read_bytes().startswith(b"\x89PNG")
    elif kind == "svg":
        texts = [one.text for one in ElementTree.fromstring(saved[0].read_text(encoding="utf-8")).iter() if one.text]
        assert {"Doubly-stochastic matrices: regret", "round t", "regret", "Mirror prox"} <= set(texts)
    else:
        rows = list(csv.DictReader(saved[0].read_text(encoding="utf-8").splitlines()))
        result = dsm(8, 200, 3)
        assert len(rows) == len(result.rounds) * len(result.curves)
        assert float(rows[-1]["regret max"]) == pytest.approx(result.curves[-1].measures["regret"][-1].max())


def test_saved_numbers_hold_no_formula(driver, tmp_path):
    result = dsm(3, 200, 2)
    curves = (dataclasses.replace(result.curves[0], name='=cmd|"x"'),)
    page = write_page(dataclasses.replace(result, curves=curves), tmp_path / "page.html")
    driver.get(page.as_uri())
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    driver.find_element("css selector", "[data-save='csv']").click()
    (saved,) = saved_files(driver, tmp_path, "csv", 1)
    rows = list(csv.DictReader(saved.read_text(encoding="utf-8").splitlines()))
    assert {row["curve"] for row in rows} == {'\'=cmd|"x"'}


def test_nothing_is_cropped_in_print(driver, page):
    open_at(driver, page, 1440, 900)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    paper = {"width": 688, "height": 1017, "deviceScaleFactor": 1, "mobile": False}  # A4 less 14 mm on each side
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    wide = """return [...document.querySelectorAll('.plot svg, #dsm table, #covtype-sample table')]
                  .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 200))"""
    found = driver.execute_script(wide)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert found == []


def test_a_table_wider_than_the_page_is_marked(driver, page):
    open_at(driver, page, *SIZES["phone"])
    WebDriverWait(driver, 5).until(lambda d: d.find_elements("css selector", "#dsm .scroll.wider"))
    open_at(driver, page, *SIZES["desktop"])
    assert driver.find_elements("css selector", "#covtype-sample .scroll.wider") == []


def test_ticks_do_not_overlap(driver, page):
    overlapping = """return [...document.querySelectorAll('.plot svg')].flatMap(svg => {
        const boxes = [...svg.querySelectorAll('.tick')].map(t => t.getBoundingClientRect());
        return boxes.filter((a, k) => boxes.some((b, j) => j > k
            && a.left < b.right && a.right > b.left && a.top + 2 < b.bottom && a.bottom > b.top + 2)) }).length"""
    for width in (360, 390, 820, 1440):
        open_at(driver, page, width, 900)
        WebDriverWait(driver, 10).until(lambda d: d.execute_script(READY))
        assert driver.execute_script(overlapping) == 0
        for plot in driver.find_elements("css selector", ".plot"):
            assert len(driver.execute_script(TICKS, plot)) >= 2


def test_remarks_are_unfolded_in_print(driver, tmp_path):
    remarks = tuple(Remark("note", f"Number {k}") for k in range(5))
    path = write_page(dataclasses.replace(dsm(8, 200, 3), remarks=remarks), tmp_path / "folded.html")
    open_at(driver, path.as_uri(), *SIZES["desktop"])
    opened = "return [...document.querySelectorAll('.remarks details')].map(one => one.open)"
    assert driver.execute_script(opened) == [False]
    driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert driver.execute_script(opened) == [True]
    driver.execute_script("dispatchEvent(new Event('afterprint'))")
    assert driver.execute_script(opened) == [False]
