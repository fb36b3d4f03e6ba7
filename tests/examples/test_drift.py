"""A flexible load on an invented year; a model that drifts, on a small cut of rows."""

import csv
import gzip
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="examples need the extra `experiments`")
pytest.importorskip("tyro", reason="examples need the extra `experiments`")

import drift_in_models
import flexible_load
from longterm.errors import DataError


def numbers(text, label):
    """Those behind a label of a table."""
    return [float(word) for word in re.search(rf"^{label} +(.*)$", text, re.M)[1].replace("%", "").split()]


def write_year(folder, days=45):
    """Dear and dirty evenings, sun at noon: a good plan runs at noon."""
    rng = np.random.default_rng(0)
    with gzip.open(folder / flexible_load.FILE, "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["hour", "load", "solar", "price", "carbon"])
        for _ in range(days):
            clouds = rng.uniform(0.3, 1.0)
            for hour in range(1, 25):
                evening = 16 <= hour <= 21
                sun = 800 * clouds * max(0.0, np.sin(np.pi * (hour - 6) / 12))
                writer.writerow([hour, 0.4 + 0.3 * evening, sun, 0.5 if evening else 0.2, 0.2 if evening else 0.12])


@pytest.mark.slow
def test_a_flexible_load_on_an_invented_year(tmp_path, capsys, monkeypatch):
    pytest.importorskip("cvxpy", reason="hindsight of this example needs it")
    write_year(tmp_path)
    monkeypatch.setenv("LONGTERM_DATA", str(tmp_path))
    flexible_load.main(energy=6.0, out=tmp_path)
    text = capsys.readouterr().out
    names = ("evenly over the day", "hedged cuts", "hindsight, a plan a day")
    even, cuts, best = (numbers(text, name) for name in names)
    assert best[0] <= cuts[0] < even[0], "money: nobody beats hindsight, and learning pays"
    assert cuts[2] < 0.8 * even[2], "and so does the carbon budget, which cloudy days cannot keep"
    assert best[-1] <= 1.0 + 1e-3
    assert (tmp_path / "flexible_load.png").stat().st_size > 10_000
    assert "CityLearn 2022" in text


def test_without_data_a_synthetic_year_has_days_with_sun_and_expensive_evenings(tmp_path):
    year = flexible_load.read(tmp_path, panels=2.0)
    assert year.source == "synthetic"
    assert year.price.shape == year.carbon.shape == year.net.shape == (365, 24)
    assert year.price[:, 19].mean() > 1.5 * year.price[:, 3].mean()
    assert (year.net[:, 12] < 0).any()
    assert year.carbon.min() > 0


@pytest.mark.slow
def test_a_model_that_drifts_on_a_small_cut(tmp_path, capsys, monkeypatch):
    def missing():
        raise DataError("elec2", "is not here", "Download it")

    monkeypatch.setattr(drift_in_models, "load_elec2", missing)
    drift_in_models.main(rows=400, out=tmp_path)
    text = capsys.readouterr().out
    fixed = numbers(text, "hindsight, one model")[0]
    assert fixed < np.log(2)
    for name in ("hedged cuts", "hedged restarts, T", "projected OGD"):
        loss, above, broken = numbers(text, name)
        assert loss > fixed, "not as good as hindsight in 400 rows"
        assert above == pytest.approx(100 * (loss / fixed - 1), abs=0.1)
        assert broken < 0.01
    assert (tmp_path / "drift_in_models.png").stat().st_size > 10_000


@pytest.mark.slow
def test_on_elec2_those_that_follow_beat_the_best_fixed_model(tmp_path, capsys):
    if drift_in_models.read(1).name != "ELEC2":
        pytest.skip("ELEC2 is not here")
    drift_in_models.main(rows=600, out=tmp_path)
    text = capsys.readouterr().out
    fixed = numbers(text, "hindsight, one model")[0]
    for name in ("Ader, T", "hedged cuts, path = 100"):
        assert numbers(text, name)[0] < fixed
