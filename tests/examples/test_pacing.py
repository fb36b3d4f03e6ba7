"""The pacing study: loading logs, the command, and the judged figures on the real log where it is found."""

import gzip
import json
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the figure is matplotlib's")
pytest.importorskip("tyro", reason="examples need the extra `experiments`")

from longterm import InputError
from longterm.cli import run_function
from longterm.money import DualMirrorDescent, PlannedMirrorDescent, best_in_hindsight, replay_auctions
from pacing import LOG, find_data, load_auctions, load_history, pacing
from pacing_baselines import tuned_controller


def written(folder, lines, name="log.txt"):
    path = folder / name
    path.write_text(lines, encoding="ascii")
    return path


def test_a_log_is_read(tmp_path, monkeypatch):
    lines = "0 70 0.002\n1 6 0.003\n"
    plain = load_auctions(written(tmp_path, lines))
    assert (plain.clicks.tolist(), plain.prices.tolist(), plain.values.tolist()) == ([0, 1], [70, 6], [0.002, 0.003])
    (tmp_path / LOG).write_bytes(gzip.compress(lines.encode()))
    monkeypatch.setenv("LONGTERM_DATA", str(tmp_path))
    assert load_auctions().total_price == 76


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0 70", "line 2: has 2 fields, not 3"),
        ("0 70 0.1 9", "line 2: has 4 fields"),
        ("0 x 0.1", "line 2: '0 x 0.1' is not three numbers"),
        ("2 70 0.1", "line 2: click is 2, not 0 or 1"),
        ("0 -1 0.1", "line 2: price is -1"),
        ("0 inf 0.1", "line 2: price is inf"),
        ("0 70 1.5", "line 2: predicted click rate is 1.5"),
        ("0 70 nan", "line 2: predicted click rate is nan"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, reason):
    path = written(tmp_path, f"0 70 0.002\n{line}\n0 6 0.003\n")
    with pytest.raises(InputError, match=re.escape(f"{path}, {reason}")):
        load_auctions(path)


def test_cut_off_and_missing_files(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="line 2: is cut off"):
        load_auctions(written(tmp_path, "0 70 0.002\n0 6 0.00"))
    packed = gzip.compress("".join(f"0 {k} 0.0{k}\n" for k in range(10, 99)).encode())
    cut = tmp_path / "cut.txt.gz"
    cut.write_bytes(packed[:-20])
    with pytest.raises(InputError, match=r"cut\.txt\.gz.*cut off or damaged"):
        load_auctions(cut)
    cut.write_bytes(b"not gzip at all")
    with pytest.raises(InputError, match="cut off or damaged"):
        load_auctions(cut)
    with pytest.raises(InputError, match="is empty"):
        load_auctions(written(tmp_path, ""))
    monkeypatch.setenv("LONGTERM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"Get ipinyou_2997_test.*LONGTERM_DATA"):
        find_data(LOG, tmp_path / "nothing.gz")


def test_a_history_file_is_checked(tmp_path):
    facts = {"price_counter_train": [0, 3, 1], "clk_train": 1, "imp_train": 4}
    history = load_history(written(tmp_path, json.dumps(facts)))
    assert float(history.expected_payment(2.0)) == 1.25
    assert history.mean_value == 0.25
    for bad in ("{", "[]", json.dumps({"clk_train": 1})):
        with pytest.raises(InputError, match="price_counter_train"):
            load_history(written(tmp_path, bad))


@pytest.mark.slow
def test_the_command(tmp_path, capsys):
    wanted = ["--synthetic", "3", "--rounds", "600", "--shares", "1/4", "0.125", "--out", str(tmp_path)]
    wanted += ["--shuffle", "1", "--gain", "30"]
    assert run_function(pacing, wanted) == 0
    printed = capsys.readouterr().out
    assert "best in hindsight" in printed
    assert "shuffled: 600 auctions" in printed
    assert "Profit with a floor" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pacing.pdf", "pacing.png", "pacing.svg"]


def test_the_command_says_what_is_missing(tmp_path, capsys):
    assert run_function(pacing, ["--log", str(tmp_path / "none.gz")]) == 2
    assert "LONGTERM_DATA" in capsys.readouterr().err
    for words, match in (
        (["--shares", "3/2"], "Give a fraction in (0, 1]"),
        (["--gain", "0"], "gain: 0.0"),
        (["--synthetic", "-1"], "synthetic: -1 is not a seed"),
    ):
        assert run_function(pacing, words) == 2
        assert match in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run_function(pacing, ["--help"])
    assert "price of money" in capsys.readouterr().out


@pytest.fixture(scope="module")
def real():
    try:
        return load_auctions(), load_history()
    except InputError:
        pytest.skip("the iPinYou log is not here: name its folder in LONGTERM_DATA")


@pytest.mark.slow
def test_the_real_log_is_the_one_we_mean(real):
    log, history = real
    assert (len(log), log.clicks.sum(), log.total_price) == (156_063, 530, 8_617_148)
    assert (log.prices.min(), log.prices.max()) == (0, 277)
    assert (history.counts.sum(), history.counts @ history.prices) == (312_437, 19_689_072)


@pytest.mark.cross
def test_the_judged_figures_on_the_real_log(real):
    log, history = real
    budgets = np.floor(log.total_price / np.array([2, 4, 8, 16, 32]))
    theirs = replay_auctions(tuned_controller(budgets, len(log), history), log)
    planned = replay_auctions(PlannedMirrorDescent.calibrated(budgets, len(log), history), log)
    even = replay_auctions(DualMirrorDescent.calibrated(budgets, len(log), history), log)
    for ours in (planned, even):
        assert np.all(ours.spent <= budgets)
        assert np.all(ours.spent >= 0.95 * budgets)
        assert ours.value.sum() >= theirs.value.sum()
    # Values only predict clicks: the planned pacer has 973 and the controller 974.
    assert even.clicks.sum() >= theirs.clicks.sum()
    assert planned.clicks.sum() >= 0.998 * theirs.clicks.sum()
    assert np.all(planned.value >= 0.9997 * np.maximum(theirs.value, even.value))
    # The even plan is nearly the controller's rule: level at each budget up to 0.03 %.
    assert np.all(even.value >= 0.9997 * theirs.value)
    best = np.array([best_in_hindsight(log.values, log.prices, budget).objective for budget in budgets])
    np.testing.assert_allclose(best - planned.value, [1.39, 2.53, 2.49, 3.07, 4.13], atol=0.01)
    np.testing.assert_allclose(best - even.value, [1.49, 2.58, 2.47, 3.08, 4.18], atol=0.01)


@pytest.mark.cross
@pytest.mark.parametrize("days", [0.5, 2.0])
def test_the_days_of_the_history_need_no_tuning(real, days):
    log, history = real
    budgets = np.floor(log.total_price / np.array([2, 4, 8, 16, 32]))
    theirs = replay_auctions(tuned_controller(budgets, len(log), history), log)
    planned = PlannedMirrorDescent.calibrated(budgets, len(log), history, history_days=days, tolerance=0.1)
    assert np.all(replay_auctions(planned, log).value >= 1.001 * theirs.value)


@pytest.mark.slow
def test_without_data_auctions_are_invented_and_a_csv_is_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LONGTERM_DATA", str(tmp_path))
    monkeypatch.setattr("pacing.save_figure", lambda *of: [])  # the figure has its test above
    few = ["--methods", "entropic", "--shares", "1/4", "--out", str(tmp_path)]
    assert run_function(pacing, [*few, "--rounds", "300"]) == 0
    assert "these auctions are invented" in capsys.readouterr().out
    lines = "".join(f"{3 + k % 7},{k % 5 + 1}\n" for k in range(200))
    log = written(tmp_path, f"value,price\n{lines}", "mine.csv")
    assert run_function(pacing, [*few, "--log", str(log)]) == 0
    assert "mine.csv: 180 auctions" in capsys.readouterr().out  # the first tenth is the history
