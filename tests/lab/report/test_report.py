"""Figures and page, without a browser: what is in them is what the result has."""

import base64
import dataclasses
import hashlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from longterm.errors import InputError
from longterm.lab import write_figures, write_page
from longterm.lab.experiments.remarks import remarks_on
from longterm.lab.experiments.result import MEASURES
from longterm.lab.report.axes import last_decade_slope, panels
from longterm.lab.report.experiment_page import chart_data
from longterm.lab.report.figures import draw_linear, draw_log_log
from longterm.lab.report.names import problem_facts
from longterm.lab.report.page_tables import regret_table, violation_table
from longterm.lab.report.style import COLOURS, curve_style, dashes, publication_style
from results import HOSTILE, dsm, hostile, many, sample

SMALL = (3, 200, 2)


@pytest.fixture
def plt():
    with publication_style() as plt:
        yield plt


def means_drawn(axis):
    return [line.get_ydata() for line in axis.get_lines() if len(line.get_ydata()) > 2]


def alone(result):
    """Return the result with one curve, one sequence and one round."""
    first = result.curves[0]
    one = dataclasses.replace(
        first, measures={m: v[-1:, :1] for m, v in first.measures.items()}, bounds={}, printed_bounds={}
    )
    gap = result.certified_gap[-1:, :1]
    return dataclasses.replace(result, rounds=result.rounds[-1:], seeds=(0,), curves=(one,), certified_gap=gap)


# Figures


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [hostile, pytest.param(lambda: many(20), marks=pytest.mark.cross), lambda: alone(dsm(*SMALL))],
    ids=["odd", "many", "one"],
)
def test_figures_of_any_result(make, tmp_path):
    paths = write_figures(make(), tmp_path / "new" / "folder")
    assert len(set(paths)) == 6
    assert {path.suffix for path in paths} == {".pdf", ".svg", ".png"}
    starts = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}
    for path in paths:
        assert path.parent == tmp_path / "new" / "folder"
        assert path.read_bytes().startswith(starts[path.suffix])


@pytest.mark.slow
@pytest.mark.parametrize("figures", [False, pytest.param(True, marks=pytest.mark.cross)], ids=["page", "figures, too"])
def test_the_same_result_gives_the_same_bytes(tmp_path, figures):
    """The second one is written by another process with another hash seed."""
    script = "import sys; from results import dsm; from longterm.lab import write_figures, write_page;"
    script += "write_page(dsm(3, 200, 2), sys.argv[1] + '/page.html');"
    script += "write_figures(dsm(3, 200, 2), sys.argv[1])" if figures else ""
    paths = [write_page(dsm(*SMALL), tmp_path / "here" / "page.html")]
    paths += write_figures(dsm(*SMALL), tmp_path / "here") if figures else []
    there = tmp_path / "there"
    where = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    settings = os.environ | {"PYTHONPATH": where, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", script, str(there)], check=True, env=settings)
    assert sorted(path.name for path in paths) == sorted(path.name for path in there.iterdir())
    for path in paths:
        assert path.read_bytes() == (there / path.name).read_bytes(), path.name


def test_a_result_draws_itself(plt):
    result = dsm(*SMALL)
    figure = result.plot(["hard_violation", "regret"], band="range", size=(6.0, 2.0))
    first = figure.axes[0]
    drawn = [line.get_ydata() for line in first.lines if len(line.get_ydata()) == len(result.rounds)]
    for values, curve in zip(drawn, result.curves, strict=True):
        np.testing.assert_allclose(values, curve.mean("hard_violation"))
    assert [text.get_text() for text in first.get_legend().get_texts()] == [curve.name for curve in result.curves]
    assert figure.get_size_inches().tolist() == [6.0, 2.0]
    assert len(first.collections) == len(result.curves)
    assert result.plot(["regret"], band="none", axes=[first]) is figure
    with pytest.raises(InputError, match="are not recorded"):
        result.plot(["speed"])


@pytest.mark.slow
def test_every_curve_and_bound_is_drawn(plt):
    result = dsm(*SMALL)
    drawing = draw_log_log(plt, result)
    groups = panels(result)
    assert groups[:2] == [("regret",), ("signed_violation", "hard_violation")]  # g ≥ 0 everywhere
    for axis, group in zip(drawing.axes, groups, strict=True):
        drawn = means_drawn(axis)
        for curve in result.curves:
            assert any(np.array_equal(curve.mean(group[0]), line) for line in drawn), curve.name
            for bounds in (curve.bounds, curve.printed_bounds):
                assert all(any(np.array_equal(bounds[m], line) for line in drawn) for m in group if m in bounds)
        assert axis.get_xscale() == axis.get_yscale() == "log"


@pytest.mark.slow
def test_no_data_is_lost_where_sums_are_negative_or_zero(plt):
    result = sample(150, 3)
    drawing = draw_log_log(plt, result)
    signed = drawing.axes[1]
    assert panels(result)[1] == ("signed_violation", "long_term_violation")  # one constraint
    assert signed.get_yscale() == "symlog"
    low, high = signed.get_ylim()
    for curve in result.curves:
        mean = curve.mean("signed_violation")
        assert mean.min() < 0
        assert any(np.array_equal(mean, line) for line in means_drawn(signed))
        assert low < mean.min()
        assert mean.max() < high
    hard = drawing.axes[2]
    assert hard.get_yscale() == "symlog"  # A-OGD's hard violation is 0, which no logarithm shows
    assert hard.get_ylim()[0] < 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "make"),
    [
        (draw_log_log, dsm),
        pytest.param(draw_linear, dsm, marks=pytest.mark.cross),
        pytest.param(draw_log_log, sample, marks=pytest.mark.cross),
        (draw_linear, lambda: sample(500, 4)),
        pytest.param(draw_log_log, lambda: many(12), marks=pytest.mark.cross),
        pytest.param(draw_linear, lambda: many(12), marks=pytest.mark.cross),
    ],
    ids=["log-log, dsm", "linear, dsm", "log-log, sample", "linear, sample", "log-log, many", "linear, many"],
)
def test_nothing_overlaps(plt, draw, make):
    result = make()
    drawing = draw(plt, result)
    drawing.canvas.draw()
    boxes = [axis.get_tightbbox() for axis in drawing.axes]
    legend = drawing.legends[0].get_window_extent()
    assert len(drawing.legends[0].get_texts()) > len(result.curves)
    for k, box in enumerate(boxes):
        assert not box.overlaps(legend)
        assert not any(box.overlaps(other) for other in boxes[:k])
    page = drawing.bbox
    assert page.x0 <= legend.x0
    assert legend.x1 <= page.x1
    assert legend.y0 >= page.y0


def test_the_logged_sum_has_a_panel_and_a_plot(plt, tmp_path):
    plain = sample(150, 3)
    curves = tuple(
        dataclasses.replace(c, measures={**c.measures, "logged_violation": c.measures["signed_violation"] / 10})
        for c in plain.curves
    )
    result = dataclasses.replace(plain, curves=curves)
    assert len(draw_linear(plt, plain).axes) == 2
    _, signed, logged = draw_linear(plt, result).axes
    for axis, measure in ((signed, "signed_violation"), (logged, "logged_violation")):
        for curve in result.curves:
            assert any(np.array_equal(curve.mean(measure), line) for line in means_drawn(axis))
    assert panels(result)[-1] == ("logged_violation",)
    page = Page(write_page(result, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert sum(given.get("class") == "plot" for _, given in page.tags) == 3
    assert "Σ g(xₜ) over t = 8, 16, 32, …, T" in "".join(page.text)


def test_slopes_by_hand():
    t = np.array([1, 5, 10, 20, 50, 100])
    assert last_decade_slope(t, 3 * t**0.5) == pytest.approx(0.5)
    assert last_decade_slope(t, np.where(t < 10, 1e9, -2.0 * t)) == pytest.approx(1.0)  # only the last decade counts
    assert last_decade_slope(t, 0.0 * t) is None
    assert last_decade_slope(t[-2:], 1.0 * t[-2:]) is None


def luminance(colour):
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_have_contrast_and_styles_do_not_repeat():
    css = (Path(write_page.__code__.co_filename).parent / "page.css").read_text()
    light, dark = re.findall(r"--panel: (#[0-9a-f]{6})", css)
    for on_light, on_dark in COLOURS:
        assert contrast(on_light, light) >= 3
        assert contrast(on_dark, dark) >= 3
    for panel, block in zip((light, dark), re.findall(r":root \{(.*?)\}", css, re.DOTALL), strict=True):
        for name in ("text", "quiet", "accent", "good", "bad"):
            (colour,) = re.findall(rf"--{name}: (#[0-9a-f]{{6}})", block)
            assert contrast(colour, panel) >= 4.5, name
    assert len({curve_style(k) for k in range(56)}) == 56
    # Among many curves no markers are drawn: then colour and line alone tell them apart.
    assert len({(curve_style(k).colour, dashes(k, "own")) for k in range(56)}) == 56


# Tables and page


class Page(HTMLParser):
    """Cells by table caption and row, headings, ids, scripts."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.ids, self.scripts, self.tags, self.text = [], [], [], [], []
        self.inside, self.row = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag not in ("meta", "input"):
            self.inside.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "tr":
            self.row = []
        if tag == "td":
            value = given.get("data-value")
            self.row.append(None if value is None else float(value))
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside.remove(tag)
        if tag == "tr" and self.row:
            self.tables[-1][1].append(self.row)

    def handle_data(self, data):
        if self.inside and self.inside[-1] == "caption":
            self.tables.append((data, []))
        if self.inside and self.inside[-1] == "script":
            self.scripts[-1] += data
        elif "style" not in self.inside:
            self.text.append(data)


def first_table(text, caption):
    return next(rows for full, rows in Page(text).tables if full.startswith(caption))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    results = [dsm(*SMALL), sample(150, 3), hostile(), hostile(), many(12)]
    path = write_page(results, tmp_path_factory.mktemp("page") / "deep" / "report.html", title=HOSTILE)
    return path.read_text(encoding="utf-8")


def test_the_tables_have_the_numbers_of_the_result(written):
    result = dsm(*SMALL)
    regret = first_table(written, "Regret after 200 rounds")
    violation = first_table(written, "Violation after 200 rounds")
    for row, curve in zip(regret, result.curves, strict=True):
        mean, read_off, bound, ratio, printed, slope, gap = row
        assert mean == curve.measures["regret"][-1].mean()
        assert read_off == curve.read_off.get("regret")
        assert bound == (curve.bounds["regret"][-1] if curve.bounds else None)
        assert printed == (curve.printed_bounds["regret"][-1] if curve.printed_bounds else None)
        assert ratio == (mean / bound if curve.bounds else None)
        assert slope == pytest.approx(last_decade_slope(result.rounds, curve.mean("regret")))
        assert gap == result.certified_gap[-1].max()
    for row, curve in zip(violation, result.curves, strict=True):
        assert row[0] == curve.mean("signed_violation")[-1]
        assert row[6] == curve.mean("hard_violation")[-1]
        assert row[-2:] == [curve.mean(m)[-1] for m in ("squared_violation", "long_term_violation")]


def test_tables_of_rounds_have_the_numbers_of_the_result(written):
    result = dsm(*SMALL)
    rows = first_table(written, "Hard violation, ")
    at = np.searchsorted(result.rounds, [1, 10, 100, 200])
    assert rows == [curve.mean("hard_violation")[at].tolist() for curve in result.curves]


def test_slack_is_marked():
    result = sample(150, 3)
    assert "below 0" in [cell.content for _, cells in violation_table(result).rows for cell in cells]
    assert [cell.best for _, cells in regret_table(result).rows for cell in cells].count(True) == 1


def test_the_figure_has_all_curves_and_all_rounds():
    result = sample(150, 3)
    data = chart_data(result)
    assert data["rounds"] == result.rounds.tolist()
    for drawn, curve in zip(data["curves"], result.curves, strict=True):
        for measure in MEASURES:
            np.testing.assert_allclose(drawn["mean"][measure], curve.mean(measure), rtol=1e-6)
            np.testing.assert_allclose(drawn["std"][measure], curve.std(measure), rtol=1e-6)
            np.testing.assert_allclose(drawn["least"][measure], curve.measures[measure].min(axis=1), rtol=1e-6)
            np.testing.assert_allclose(drawn["most"][measure], curve.measures[measure].max(axis=1), rtol=1e-6)
            np.testing.assert_allclose(drawn["sequences"][measure], curve.measures[measure].T, rtol=1e-6)
    odd = chart_data(hostile())["curves"][0]
    assert odd["bounds"]["regret"] == [1.0, None, None, 1e30]


def test_the_page_is_self_contained_and_escapes_everything(written):
    page = Page(written)
    assert not [tag for tag, given in page.tags if "src" in given or tag in ("link", "iframe", "img", "b")]
    assert all(given["href"].startswith("#") for tag, given in page.tags if tag == "a")
    assert all(given["href"][1:] in page.ids for tag, given in page.tags if tag == "a")
    assert len(page.ids) == len(set(page.ids))
    own = [script for script, (_, given) in zip(page.scripts, _scripts(page), strict=True) if "type" not in given]
    assert len(own) == 1
    (policy,) = [given["content"] for tag, given in page.tags if given.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    for script in own:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    assert "".join(page.text).count(HOSTILE) > 20
    assert "alert('x')" not in "".join(own)


def _scripts(page):
    return [(tag, given) for tag, given in page.tags if tag == "script"]


def test_the_page_has_remarks_commands_and_facts(written):
    text = "".join(Page(written).text)
    result = dsm(*SMALL)
    for remark in result.remarks:
        assert remark.text in text
    assert result.command in text
    for name, value in problem_facts(result.problem):
        assert name in text
        assert value in text
    assert "R, radius of the enclosing set" in text
    assert "seeds 0–1" in text
    assert "seeds 3, 5, 9" in text


def test_the_certificate_describes_the_gap():
    result = dsm(*SMALL)
    assert "closed form" in remarks_on(result, {})[-1].text
    half = dataclasses.replace(result, certified_gap=result.certified_gap + 5e-7)
    assert "the relative gap is at most 5e-07. The true regret exceeds" in remarks_on(half, {})[-1].text
    assert "no certificate" in remarks_on(hostile(), {})[-1].text


def test_a_page_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="results"):
        write_page([], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_pages_are_small(tmp_path):
    """Even fifty learners: the single sequences are left out before the page grows heavy."""
    assert write_page(alone(dsm(*SMALL)), tmp_path / "one.html").stat().st_size < 150_000
    assert write_page(many(50), tmp_path / "fifty.html").stat().st_size < 1_500_000
