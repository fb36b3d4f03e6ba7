"""Data, learners and mistakes of one's own, on the command line."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

from longterm import __version__
from longterm.cli import main
from longterm.data import from_frame, load_mapped, load_table
from longterm.errors import DataError
from longterm.pacing import Auctions

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
    ],
)
def test_did_you_mean(capsys, folder, words, meant):
    with contextlib.suppress(SystemExit):  # of the parser
        assert main(words) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_an_arena_grows_and_a_bug_is_one_line(capsys, folder):
    first = [*ARENA, "--learners", "aogd", "--problems", "doubly_stochastic size=3"]
    assert main(first) == 0
    folder_runs = Path("a/runs")
    before = {path.name: path.read_bytes() for path in folder_runs.glob("*.json")}
    assert main([*ARENA, "--add", f"{folder}:build", f"{folder}:bad"]) == 0
    shown = capsys.readouterr()
    assert "round 17: ZeroDivisionError: oops" in shown.err
    assert f"{folder}:bad on 'doubly-stochastic p=3'" in shown.err
    assert all((folder_runs / name).read_bytes() == content for name, content in before.items())
    learners = json.loads(Path("a/manifest.json").read_text())["spec"]["learners"]
    assert [one["learner"] for one in learners] == ["aogd", f"{folder}:build", f"{folder}:bad"]


def test_a_run_grows_and_takes_a_csv(capsys, folder, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 2))
    lines = "".join(f"C{n},{a:.6f},{50 * b:.6f},{'yes' if a > 0 else 'no'}\n" for n, (a, b) in enumerate(rows))
    (tmp_path / "own.csv").write_text(f"who,a,b,bought\n{lines}")
    loaded = load_mapped("own.csv", "bought", drop=["who"])
    assert np.array_equal(loaded.labels, np.where(np.round(rows[:, 0], 6) > 0, 1.0, -1.0))
    table = load_table("own.csv", "bought", drop=["who"], scale=True)
    assert table.columns == ("a", "b")
    assert repr(table) == "Labelled('own.csv', 60 rows, 2 features, 2 classes)"
    assert np.array_equal(table.features, loaded.features / np.abs(loaded.features).max(axis=0))
    with pytest.raises(DataError, match=r"'who' has 60 different values in 60 rows.*drop=who"):
        load_table("own.csv", "bought")
    common = ["--workers", "1", "--no-report", "--out", "r"]
    problem = ["--problem", "budgeted_logistic data=own.csv label=bought drop=who budget=2"]
    assert main(["run", *problem, "--learners", "aogd", "--sequences", "1", *common]) == 0
    assert "engine numpy" in capsys.readouterr().err
    assert main(["run", "--add", f"{folder}:build", *common]) == 0
    assert f"{folder}:build" in capsys.readouterr().out
    assert main(["run", "--add", f"{folder}:bad", *common]) == 2
    told = capsys.readouterr().err
    assert "seed 0, round 17: ZeroDivisionError: oops" in told
    assert "The others are kept" in told


def test_frames_are_refused_in_words():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match=r"no columns that may be the label.*Name it"):
        from_frame(pandas.DataFrame({"a": [1, 2], "b": [0, 1]}))
    with pytest.raises(DataError, match="did you mean 'bought'"):
        from_frame(pandas.DataFrame({"a": [1, 2], "bought": [0, 1]}), "bougt")
    with pytest.raises(DataError, match=r"line 3: column 'a' is empty[.]"):
        from_frame(pandas.DataFrame({"a": [1, None], "label": [0, 1]}))
    with pytest.raises(DataError, match="3 different labels"):
        from_frame(pandas.DataFrame({"a": [1, 2, 3], "label": [0, 1, 2]}))


def test_auctions_of_ones_own(tmp_path):
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
