"""Data, learners and mistakes of one's own, on the command line."""

import contextlib
import gzip
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from longterm import __version__, problems
from longterm.catalogue import scenarios
from longterm.cli import main
from longterm.data import from_frame, load_table
from longterm.data.named_rows import load_mapped
from longterm.errors import DataError, InputError
from longterm.lab import load_result
from longterm.money import Auctions, best_in_hindsight, synthetic_auctions

MINE = '''
from longterm import AOGD


def build(problem, rounds, beta: float = 0.5):
    """Mine."""
    return AOGD.for_problem(problem, beta=beta)


class Bad(AOGD):
    def update(self, state, feedback):
        if int(state.round.max()) == 17:
            raise ZeroDivisionError("oops")
        return super().update(state, feedback)


def bad(problem, rounds):
    """With a bug in round 17."""
    made = AOGD.for_problem(problem)
    return Bad(made.enclosing_set, made.schedule)
'''
ARENA = ["arena", "--out", "a", "--rounds", "64", "--sequences", "2", "--workers", "1", "--no-report"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGTERM_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"mine_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(MINE)
    return name


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"longterm {__version__}\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["aren"], "'arena'"),
        (["run", "--problem", "budgeted_logistc", "--learners", "aogd"], "'budgeted_logistic'"),
        (["run", "--problem", "doubly_stochastic sise=3", "--learners", "aogd"], "'size'"),
        (["run", "--problem", "doubly_stochastic", "--learners", "agod"], "'aogd'"),
        (["run", "--problem", "doubly_stochastic", "--learners", "json:dmups"], "'dumps'"),
    ],
)
def test_did_you_mean(capsys, folder, words, meant):
    with contextlib.suppress(SystemExit):  # of the parser
        assert main(words) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_learners_are_added_to_an_arena_and_an_error_is_one_line(capsys, folder):
    first = [*ARENA, "--learners", "aogd", "--problems", "doubly_stochastic size=3"]
    assert main(first) == 0
    folder_runs = Path("a/runs")
    before = {path.name: path.read_bytes() for path in folder_runs.glob("*.json")}
    assert main([*ARENA, "--add", f"{folder}:build", f"{folder}:bad"]) == 0
    shown = capsys.readouterr()
    assert "round 17: ZeroDivisionError: oops" in shown.err
    assert f"{folder}:bad on 'doubly-stochastic p=3'" in shown.err
    assert "0 of 3 matches were refused" in shown.out
    assert f"stopped with an error: {folder}:bad on" in shown.out
    assert "refused every problem" not in shown.out
    assert all((folder_runs / name).read_bytes() == content for name, content in before.items())
    learners = json.loads(Path("a/manifest.json").read_text())["spec"]["learners"]
    assert [one["learner"] for one in learners] == ["aogd", f"{folder}:build", f"{folder}:bad"]


@pytest.mark.slow
def test_learners_are_added_to_a_run_on_a_csv(capsys, folder, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 2))
    lines = "".join(f"C{n},{a:.6f},{50 * b:.6f},{'yes' if a > 0 else 'no'}\n" for n, (a, b) in enumerate(rows))
    (tmp_path / "own.csv").write_text(f"who,a,b,bought\n{lines}")
    loaded = load_mapped("own.csv", "bought", drop=["who"])
    assert np.array_equal(loaded.labels, np.where(np.round(rows[:, 0], 6) > 0, 1.0, -1.0))
    table = load_table("own.csv", "bought", drop=["who"], scale=True)
    assert table.columns == ("a", "b")
    assert repr(table) == "Labelled('own.csv', 60 rows, 2 features, no = −1, yes = +1)"
    assert np.array_equal(table.features, loaded.features / np.abs(loaded.features).max(axis=0))
    with pytest.raises(DataError, match=r"'who' has 60 different values in 60 rows.*drop='who'"):
        load_table("own.csv", "bought")
    common = ["--workers", "1", "--no-report", "--out", "r"]
    problem = ["--problem", "budgeted_logistic data=own.csv label=bought drop=who budget=2"]
    assert main(["run", *problem, "--learners", "aogd", "--sequences", "1", *common]) == 0
    assert "engine numpy" in capsys.readouterr().err
    before = {path.name: path.read_bytes() for path in Path("r/runs").glob("*.json")}
    again = shlex.split(load_result("r").command)[1:]  # as its page prints it
    assert again == ["run", "r/manifest.json"]
    Path("r/summary.json").unlink()
    assert main([*again, "--workers", "1", "--no-report"]) == 0
    assert Path("r/summary.json").exists()
    assert {path.name: path.read_bytes() for path in Path("r/runs").glob("*.json")} == before
    assert not Path("results").exists()
    assert main(["run", "--add", f"{folder}:build", *common]) == 0
    assert f"{folder}:build" in capsys.readouterr().out
    assert main(["run", "--add", f"{folder}:bad", *common]) == 2
    told = capsys.readouterr().err
    assert "seed 0, round 17: ZeroDivisionError: oops" in told
    assert "The others are kept" in told


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_compressed_tables_that_fill_the_memory_are_refused(tmp_path, end, monkeypatch):
    file = tmp_path / "bomb.csv.gz"
    with gzip.open(file, "wb", 1) as stream:
        stream.write(f"a,label{end}1,0{end}".encode())
        for _ in range(20):
            stream.write(b"1" * 2**20)
    with pytest.raises(DataError, match="the line is longer than 16777216 bytes"):
        load_table(file)
    file.write_bytes(gzip.compress(f"a,label{end}1,0{end}2,1{end}".encode() * 1000))
    with pytest.raises(DataError, match="holds more than 5000 bytes"):
        load_table(file, max_bytes=5000)
    file.write_bytes(gzip.compress(f"a,label{end}1,0{end}2,1{end}".encode()))
    assert load_table(file).features.tolist() == [[1.0], [2.0]]

    def none_left(*_, **__):
        raise MemoryError

    monkeypatch.setattr("pandas.read_csv", none_left)
    with pytest.raises(DataError, match="does not fit into the memory"):
        load_table(file)


def test_the_size_of_compressed_parquet_is_checked_first(tmp_path):
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    file = tmp_path / "zeros.parquet"
    parquet.write_table(arrow.table({"a": np.zeros(1000), "label": np.arange(1000) % 2}), file)
    with pytest.raises(DataError, match="holds more than 15999 bytes"):
        load_table(file, max_bytes=15_999)
    assert load_table(file, max_bytes=16_000).features.shape == (1000, 1)


def test_invalid_frames_are_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match=r"no columns that may be the label.*Name it"):
        from_frame(pandas.DataFrame({"a": [1, 2], "b": [0, 1]}))
    with pytest.raises(DataError, match="did you mean 'bought'"):
        from_frame(pandas.DataFrame({"a": [1, 2], "bought": [0, 1]}), "bougt")
    with pytest.raises(DataError, match=r"line 3: column 'a' is empty[.]"):
        from_frame(pandas.DataFrame({"a": [1, None], "label": [0, 1]}))
    with pytest.raises(DataError, match="3 different labels"):
        from_frame(pandas.DataFrame({"a": [1, 2, 3], "label": [0, 1, 2]}))


def test_empty_cells_are_refused_left_out_or_filled(tmp_path):
    file = tmp_path / "gaps.csv"
    file.write_text("age,plan,left\n30,basic,no\n,team,yes\n50,,yes\n40,team,\n")
    with pytest.raises(DataError, match=r"line 3: column 'age' is empty, and 2 more rows.*missing=drop.*missing=fill"):
        load_table(file, "left")
    assert load_table(file.with_name("gaps.csv"), "left", drop=["age"], missing="fill").columns == (
        "plan=basic",
        "plan=missing",
        "plan=team",
    )
    filled = load_table(file, "left", missing="fill")
    assert filled.features[:, 0].tolist() == [30, 40, 50]  # the row without a label is left out, and so is its age
    with pytest.raises(DataError, match="1 different labels"):
        load_table(file, "left", missing="drop")
    with pytest.raises(InputError, match="'zero' is not known"):
        load_table(file, "left", missing="zero")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (",age,left\n0,30,no\n1,40,yes\n", "has no name"),
        ("age,left\n30,no\ninf,yes\n", "line 3: column 'age' is inf"),
        ("age,left\n30,né\n40,yes\n", "is not UTF-8.*Save it as UTF-8"),
    ],
)
def test_columns_without_features_are_reported(tmp_path, text, told):
    file = tmp_path / "odd.csv"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(DataError, match=told):
        load_table(file, "left")


def test_frames_of_other_kinds(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [30, 40], "since": pandas.to_datetime(["2025-01-01", "2025-02-01"]), "y": [0, 1]})

    class Polars:
        def to_pandas(self):
            return frame.drop(columns="since")

    assert from_frame(Polars()).columns == ("age",)
    with pytest.raises(DataError, match="'since' has dates"):
        from_frame(frame)
    with pytest.raises(InputError, match="is a dict, not a data frame"):
        from_frame({"age": [30]})


def test_semicolons_and_decimal_commas(tmp_path):
    file = tmp_path / "german.csv"
    file.write_text("alter;preis;y\n30;1,5;0\n40;2,25;1\n")
    assert load_table(file).features.tolist() == [[30, 1.5], [40, 2.25]]


def test_parquet(tmp_path, capsys, monkeypatch):
    pandas = pytest.importorskip("pandas")
    file = tmp_path / "own.parquet"
    file.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "fastparquet", None)
    assert main(["run", "--problem", f"budgeted_logistic data={file} budget=1", "--learners", "aogd"]) == 2
    assert "pip install 'longterm[parquet]'" in capsys.readouterr().err
    monkeypatch.undo()
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"age": [30, 40], "plan": ["basic", "team"], "y": [0, 1]}).to_parquet(file)
    assert load_table(file).columns == ("age", "plan=basic", "plan=team")


def test_fair_logistic_on_a_users_table(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("age,sex,plan,left\n30,f,a,no\n40,m,b,yes\n20,f,b,yes\n60,m,a,no\n")
    scenario = scenarios.fair_logistic(str(file), sensitive="sex", label="left", scale=False)
    male = np.array([0.0, 1.0, 0.0, 1.0])
    rows = load_table(file, "left", drop=["sex"]).features
    direct = problems.fair_logistic(rows, male, 10.0, 0.01)
    x = np.linspace(0.1, 0.3, 3)
    assert np.array_equal(scenario.problem.constraint.values(x), direct.constraint.values(x))
    assert scenario.facts["sensitive"] == "sex=m"
    with pytest.raises(InputError, match="Name it, for example sensitive=sex"):
        scenarios.fair_logistic(str(file), label="left")
    with pytest.raises(InputError, match="did you mean 'sex'"):
        scenarios.fair_logistic(str(file), sensitive="sec", label="left")
    file.write_text("age,plan,left\n30,a,no\n40,b,yes\n20,c,yes\n")
    with pytest.raises(InputError, match="'plan' has 3 values"):
        scenarios.fair_logistic(str(file), sensitive="plan", label="left")


def test_auctions_from_a_users_file(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("worth,price,click\n0.5,3,1\n0.25,2,0\n")
    auctions = Auctions.from_csv(log, values="worth")
    assert (auctions.values.tolist(), auctions.prices.tolist(), auctions.clicks.tolist()) == (
        [0.5, 0.25],
        [3, 2],
        [1, 0],
    )
    with pytest.raises(DataError, match=r"no column 'value'.*there are"):
        Auctions.from_csv(log)
    log.write_text("value,price\n0.5,three\n")
    with pytest.raises(DataError, match="line 2: price is 'three', not a number"):
        Auctions.from_csv(log)


@pytest.mark.slow
def test_pacing_from_the_command_line(tmp_path, capsys):
    log = tmp_path / "log.csv"
    made = synthetic_auctions(400, seed=0)
    lines = "".join(f"{value},{price}\n" for value, price in zip(made.values, made.prices, strict=True))
    log.write_text(f"pCTR,market price\n{lines}")
    columns = ["--values", "pCTR", "--prices", "market price"]
    assert main(["pace", str(log), *columns, "--budget", "2000"]) == 0
    shown = capsys.readouterr().out
    assert "360 auctions after 40 that set the first bid; budget 2,000" in shown
    best = best_in_hindsight(made.values[40:], made.prices[40:], 2000.0)
    assert f"{best.objective:.5g}" in shown
    assert main(["pace", str(log), *columns, "--clicks", "nope"]) == 2
    assert "no column 'nope'" in capsys.readouterr().err
    assert main(["pace", str(log)]) == 2
    assert "no column 'value'" in capsys.readouterr().err
    log.write_text(f"pCTR,market price\n{lines}0.003,\n")
    assert main(["pace", str(log), *columns, "--missing", "refuse"]) == 2
    assert "1 of 401 rows have an empty cell, first row 401" in capsys.readouterr().err
    words = [sys.executable, "-m", "longterm", "pace", str(log), *columns]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == f"longterm: {log}: 1 of 401 rows have an empty cell and are left out\n"
    assert main(["pace", "--auctions", "400"]) == 0
    assert "Synthetic auctions" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["[" * 5000, "9" * 6000])
def test_absurd_parameters_are_refused_in_one_line(capsys, word):
    assert main(["run", "--problem", "doubly_stochastic size=2", "--learners", f"aogd beta={word}"]) == 2
    told = capsys.readouterr().err
    assert "cannot be read" in told
    assert len(told) < 400
