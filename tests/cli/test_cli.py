"""The command `longterm`: what it prints, what it writes, and what it says to mistakes."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from longterm.cli import COMMANDS as COMMAND_NAMES
from longterm.cli import main

pytest.importorskip("tyro", reason="the command line is of the extra `experiments`")
pytest.importorskip("joblib", reason="experiments need the extra `experiments`")

QUICK = ["--rounds", "40", "--sequences", "2", "--workers", "1"]
OWN = ["run", "--problem", "doubly_stochastic size=3", "--learners", "aogd", *QUICK]
DOCS = Path(__file__).parents[2] / "docs" / "guides" / "experiments.md"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGTERM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LONGTERM_DATA", raising=False)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # no processes to start: who does the work has tests of its own


@pytest.fixture
def reports(monkeypatch):
    """Replace figures and pages, which have their own tests, by a list of the calls."""
    asked = []
    room = vars(import_module("longterm.lab"))
    write_figures = lambda result, folder: asked.append((result.name, Path(folder))) or []  # noqa: E731

    def write_page(results, path, title, command):
        words = shlex.split(command)
        assert words[:2] == ["longterm", "report"]
        assert (words[-4:], len(words)) == (["--out", str(path), "--title", title], len(results) + 6)
        asked.append((title, [r.name for r in results], path))
        return path

    monkeypatch.setitem(room, "write_figures", write_figures)
    monkeypatch.setitem(room, "write_page", write_page)
    return asked


@pytest.mark.slow
def test_reproduce_writes_results_figures_and_one_page(reports, capsys):
    assert main(["reproduce", "dsm", "sample", "--learners", "a-ogd", *QUICK, "--rho", "5"]) == 0
    printed = capsys.readouterr().out
    assert "A-OGD" in printed
    assert "certified" in printed
    for name in ("dsm", "sample"):
        summary = json.loads(Path(f"results/{name}/summary.json").read_text())
        assert list(summary["curves"]) == ["A-OGD"]
        assert (name, Path(f"results/{name}/figures")) in reports
    assert summary["problem"]["budget"] == 5
    assert reports[-1][1:] == (["dsm", "sample"], Path("results/report.html"))


@pytest.mark.slow
def test_each_experiment_runs_the_curves_that_it_has(reports):
    words = ["--learners", "A-OGD", "a-ogd-strongly-convex", "--rho", "5", *QUICK]
    assert main(["reproduce", "dsm", "sample", *words]) == 0
    for name, curves in (("dsm", ["A-OGD", "A-OGD, strongly convex"]), ("sample", ["A-OGD"])):
        assert sorted(json.loads(Path(f"results/{name}/summary.json").read_text())["curves"]) == curves
    words[1:3] = ["a-ogd", "a-ogd-strongly-convex"]  # the same in other words goes on in the same folder
    assert main(["reproduce", "dsm", "sample", *words]) == 0


@pytest.mark.slow
def test_a_page_that_cannot_be_written_is_an_error(capsys, monkeypatch):
    monkeypatch.setattr("longterm.lab.write_figures", lambda *of: [])
    Path("plain").touch()
    assert main([*OWN, "--out", "mine", "--no-report"]) == 0
    assert main(["report", "mine", "--out", "plain/report.html"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("longterm: [Errno")


def test_all_means_the_papers_three_experiments(reports, capsys):
    assert main(["reproduce", "all", *QUICK, "--executor", "nothing"]) == 2
    assert main(["reproduce", "all", "sample", "--sequences", "0"]) == 2
    assert "sequences: 0 is not a whole number" in capsys.readouterr().err


@pytest.mark.slow
def test_run_report_and_the_manifest_again(reports, capsys):
    words = ["run", "--problem", "doubly_stochastic size=3", "--learners", "aogd beta=[0.5,0.75]", *QUICK]
    assert main([*words, "--engine", "numpy", "--name", "mine"]) == 0
    assert main(["run", "results/mine/manifest.json", "--out", "again", "--no-report", "--workers", "1"]) == 0
    assert Path("again/summary.json").read_bytes() == Path("results/mine/summary.json").read_bytes()
    assert [what[0] for what in reports] == ["mine", "mine"]
    assert main(["report", "again", "results/mine", "--out", "both.html", "--title", "Both"]) == 0
    assert reports[-1] == ("Both", ["mine", "mine"], Path("both.html"))
    assert main(["run", "results/mine/manifest.json", "--rounds", "50", "--out", "again"]) == 2
    assert "rounds was 40, now 50" in capsys.readouterr().err


def test_data(capsys, monkeypatch, tmp_path):
    assert main(["data", "list"]) == 0
    assert re.search(r"ijcnn1 +49,990 +22  no", capsys.readouterr().out)
    assert main(["data", "path", "ijcnn1"]) == 2
    told = r"longterm: ijcnn1.bz2: is not here. Run longterm data fetch ijcnn1, or download https://\S+ and put it"
    assert re.search(told, capsys.readouterr().err)
    (tmp_path / "ijcnn1.bz2").write_bytes(b"")
    monkeypatch.setenv("LONGTERM_DATA", str(tmp_path))
    for action in ("path", "fetch"):
        assert main(["data", action, "ijcnn1"]) == 0
        assert capsys.readouterr().out == f"{tmp_path / 'ijcnn1.bz2'}\n"
    assert main(["data", "path", "mnist"]) == 2
    assert main(["data", "fetch"]) == 2
    assert main(["reproduce", "ijcnn1", *QUICK, "--no-report"]) == 2  # an empty file is not the data set
    said = capsys.readouterr().err
    assert "ijcnn1.bz2" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["run", "nothing.toml"], "cannot be read"),
        (["run", "--problem", "knapsack", "--learners", "aogd"], "problem.name: 'knapsack' is not known"),
        (["run", "--problem", "doubly_stochastic", "--learners", "aogd beta"], "is not key=value"),
        (["run", "--problem", "doubly_stochastic size='3", "--learners", "aogd"], "cannot be read"),
        (["reproduce"], "experiments: is empty"),
        (["reproduce", "dms"], "experiments: 'dms' is not known (did you mean 'dsm'?). Choose from dsm, ijcnn1"),
        (["reproduce", "dsm", "--rho", "3"], "none of the chosen experiments has a budget"),
        (["reproduce", "dsm", "--learners", "adam"], "'adam' is not a curve"),
        (["report"], "folders: is empty"),
        (["report", "nowhere"], "is not the folder of an experiment"),
        (["reproduce", "dsm", "--executor", "nothing"], "executor: 'nothing' cannot be used"),
        (["reproduce", "dsm", "--workers", "0"], "workers: 0 is not"),
        (["reproduce", "sample", "--rho", "nan"], "problem.budget: nan is neither"),
        (["reproduce", "dsm", "sample", "--learners", "mirror-prox"], "'sample' has none of"),
        ([*OWN, "--name", "../elsewhere"], "name: '../elsewhere' cannot be the name of a folder"),
        ([*OWN, "--name", ""], "name: '' cannot be the name of a folder"),
        ([*OWN, "--out", "plain/file"], "plain/file: cannot be made"),
        (
            ["run", "--problem", "budgeted_logistic share=1", "--learners", "aogd", *QUICK],
            "share: 1.0 is outside (0, 1). Give the share",
        ),
    ],
)
def test_mistakes_are_one_message_and_exit_code_2(words, match, capsys):
    Path("plain").touch()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert match in said
    assert said.splitlines()[-1].startswith("longterm: ")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words",
    [
        ["bogus"],
        ["reproduce", "dsm", "--rounds", "many"],
    ],
)
def test_invalid_words_exit_with_2(words, capsys):
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2


@pytest.mark.parametrize(
    "command", [[], ["reproduce"], ["run"], ["report"], ["data"], ["data", "fetch"], ["catalogue"]]
)
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([*command, "--help"])
    assert left.value.code == 0
    printed = capsys.readouterr().out
    assert "longterm" in printed
    if command not in ([], ["data"]):
        assert "for example:" in printed


def test_the_list_of_commands_imports_none_of_them():
    code = (
        "import sys; from longterm.cli import parse; from contextlib import suppress\n"
        "with suppress(SystemExit): parse(['--help'])\n"
        "print(sorted({'tyro', 'rich', 'cvxpy', 'pandas', 'longterm.lab.experiments'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    done = subprocess.run([sys.executable, "-m", "longterm"], capture_output=True, text=True, check=True)
    assert all(f"  {name} " in done.stdout for name in COMMAND_NAMES)


def test_the_catalogue_is_shown(capsys):
    assert main(["catalogue"]) == 0
    printed = capsys.readouterr().out
    assert "aogd(steps='convex', beta=" in printed
    assert "budgeted_logistic(data='sample'" in printed
    assert main(["catalogue", "budgeted_logistic"]) == 0
    assert re.search(r"drop: text.*\n +Columns to leave out, separated by commas", capsys.readouterr().out)


@pytest.mark.parametrize(("line", "wanted"), [("longterm ar", "arena"), ("longterm run --lea", "--learners")])
def test_bash_completes_commands_and_options(line, wanted, capsys):
    bash = shutil.which("bash") or pytest.skip("needs bash")
    with pytest.raises(SystemExit):
        main(["--completion", "bash"])
    words = line.split()
    script = (
        capsys.readouterr().out
        + f"""
COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
$(complete -p longterm | sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo ${{COMPREPLY[@]}}
"""
    )
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True)
    assert wanted in done.stdout.split(), done.stderr


def test_help_fits_the_terminal(monkeypatch, capsys):
    for columns in (80, 110):
        monkeypatch.setenv("COLUMNS", str(columns))
        for command in ("run", "reproduce", "arena", "report", "catalogue"):
            with pytest.raises(SystemExit):
                main([command, "--help"])
            printed = capsys.readouterr().out
            assert max(map(len, printed.splitlines())) <= max(columns, 86)  # the longest example command


@pytest.mark.parametrize("command", [["catalogue"], ["run", "--problem", "doubly_stochastic", "--rounds", "30"]])
def test_a_terminal_that_is_not_utf8_gets_replacements(tmp_path, command):
    options = ["--learners", "aogd", "--sequences", "2", "--workers", "1", "--no-report"] if command[0] == "run" else []
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    words = [sys.executable, "-m", "longterm", *command, *options]
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode("ascii")
    assert b"?" in done.stdout  # in place of ± or Greek letters


def test_engines_are_chosen_by_reproduce_as_its_message_says(tmp_path, capsys):
    words = ["reproduce", "dsm", "--rounds", "20", "--sequences", "1", "--workers", "1", "--no-report"]
    assert main([*words, "--out", str(tmp_path / "auto")]) == 0
    assert "--engine chooses" in capsys.readouterr().err
    assert main([*words, "--engine", "numpy", "--out", str(tmp_path / "numpy")]) == 0
    assert "--engine chooses" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [["reproduce", "dsm"], ["arena"], ["run", "--problem", "doubly_stochastic"]])
def test_no_sequences_are_refused_with_a_number_that_would_do(command, capsys, tmp_path):
    learners = ["--learners", "aogd", "--rounds", "64"] if command[0] == "run" else []
    assert main([*command, *learners, "--sequences", "0", "--out", str(tmp_path / "out")]) == 2
    assert "1 or more" in capsys.readouterr().err


def test_an_interrupt_and_a_missing_extra_have_messages(monkeypatch, capsys):
    import longterm.cli.output as module

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_experiment", stop)
    assert main(["reproduce", "dsm"]) == 130
    assert "the same command continues" in capsys.readouterr().err

    def missing(*arguments, **options):
        raise ImportError("experiments need joblib: pip install 'longterm[experiments]'")

    monkeypatch.setattr(module, "run_experiment", missing)
    assert main(["reproduce", "dsm"]) == 2
    assert "pip install 'longterm[experiments]'" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tyro", None)
    assert main(["data", "list"]) == 2
    assert "tyro: pip install 'longterm[experiments]'" in capsys.readouterr().err


BLOCKS = re.findall(r"```(\w+)\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
PAGES = [DOCS, DOCS.parent / "beyond_one_machine.md", DOCS.parents[1] / "tutorials" / "reproduce.md"]
COMMANDS = [
    line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("longterm ")
]
NEEDS_MORE = re.compile(r"\ball\b|ijcnn1|dask|ray|executor")
"""The network, minutes, or a cluster: these are only parsed here. The data's have a test above."""


def test_every_command_of_the_docs_parses(monkeypatch):
    from longterm.cli import parse

    assert len(COMMANDS) >= 12
    for line in COMMANDS:
        parse(shlex.split(line, comments=True)[1:])


@pytest.mark.slow
def test_the_commands_of_the_docs_run(reports, capsys):
    (mine, *_) = [block for kind, block in BLOCKS if kind == "toml"]
    assert "rounds = 2000" in mine
    Path("mine.toml").write_text(mine.replace("rounds = 2000", "rounds = 100"))
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="longterm fit reads Parquet")
    rows = pandas.DataFrame(np.random.default_rng(0).normal(size=(500, 3)), columns=list("abc"))
    Path("data").mkdir(exist_ok=True)
    rows.assign(y=rows["a"] > rows["b"]).to_parquet("data/rows.parquet")
    for line in COMMANDS:
        if not NEEDS_MORE.search(line):
            words = []
            for word in shlex.split(line, comments=True)[1:]:
                words += sorted(map(str, Path().glob(word))) if "*" in word else [word]
            options = {"reproduce": QUICK, "run": ["--workers", "1"]}.get(words[0], [])
            assert main([*words, *options]) == 0, capsys.readouterr().err
    assert Path("quick/summary.json").read_bytes() == Path("again/summary.json").read_bytes()


@pytest.mark.slow
def test_the_python_of_the_docs_runs(tmp_path):
    (code,) = [block for kind, block in BLOCKS if kind == "python"]
    Path("mine.py").write_text(code)
    done = subprocess.run([sys.executable, "mine.py"], capture_output=True, text=True, check=True)
    assert "A-OGD, beta = 0.5" in done.stdout
