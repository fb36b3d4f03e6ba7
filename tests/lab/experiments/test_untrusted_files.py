"""Results from a stranger: reading them runs no code, fills no memory, and says what is wrong in a line."""

import csv
import io
import json
import sys
from contextlib import suppress

import pytest

from longterm.cli import main
from longterm.errors import InputError
from longterm.lab import load_result, read_spec
from longterm.lab.arena.league_tables import to_csv
from longterm.lab.experiments.spec import MAX_SEEDS
from longterm.lab.experiments.spec_tables import spec_of
from small_experiment import SMALL, TABLE, quietly


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "small"
    quietly(SMALL, folder)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    monkeypatch.setattr("longterm.lab.write_figures", lambda *of: [])  # they take seconds, and see no manifest
    copy = tmp_path / "small"
    (copy / "runs").mkdir(parents=True)
    for file in [*made.glob("*.json"), *made.glob("runs/*.json")]:
        (copy / file.relative_to(made)).write_bytes(file.read_bytes())
    return copy


def rewritten(folder, change):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest["spec"])
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_a_report_imports_nothing_that_a_manifest_names(folder, tmp_path, monkeypatch, capsys):
    module = tmp_path / "evil_module.py"
    module.write_text("from pathlib import Path\nPath(__file__).with_name('ran').touch()\nbuild = print\n")
    monkeypatch.syspath_prepend(tmp_path)

    def change(spec):
        spec["problem"] = {"name": "evil_module:build"}
        for learner in spec["learners"]:
            learner["learner"] = "evil_module:build"

    rewritten(folder, change)
    assert main(["report", str(folder), "--out", str(tmp_path / "page" / "report.html")]) == 0
    assert len(load_result(folder).curves) == 3
    assert not (tmp_path / "ran").exists()
    assert "evil_module" not in sys.modules
    with suppress(InputError):  # `print` builds no learner; what plays does import it, as --help says
        read_spec(folder / "manifest.json")
    assert (tmp_path / "ran").exists()
    sys.modules.pop("evil_module", None)
    capsys.readouterr()


@pytest.mark.parametrize(("command", "words"), [("report", "runs no code"), ("run", "like a program")])
def test_help_says_which_commands_import(command, words, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert words in " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize("name", ["manifest.json", "timings.json", "runs/problem.json"])
def test_deeply_nested_json_is_refused(folder, tmp_path, capsys, name):
    for text in ("[" * 200_000, '{"spec":' * 100_000):
        (folder / name).write_text(text)
        status = main(["report", str(folder), "--out", str(tmp_path / "report.html")])
        said = capsys.readouterr().err
        assert status == (0 if name == "timings.json" else 2)
        assert "Traceback" not in said
        assert name == "timings.json" or (len(said.splitlines()) == 1 and len(said) < 1000)
    (tmp_path / "spec.json").write_text("[" * 200_000)
    assert main(["run", str(tmp_path / "spec.json")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("key", "value"), [("seeds", 100_000_000_000), ("seeds", 10**30), ("record", 10**12), ("rounds", 10**19)]
)
def test_absurd_counts_are_refused(folder, tmp_path, capsys, key, value):
    with pytest.raises(InputError, match=f"{key}: .*(were requested[.] Ask for|and) at most"):
        spec_of({**TABLE, key: value})
    rewritten(folder, lambda spec: spec.update({key: value}))
    assert main(["report", str(folder), "--out", str(tmp_path / "report.html")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_absurd_grids_and_sequences(capsys):
    learner = {"learner": "aogd", "beta": [k / 1000 for k in range(1, 900)], "theta": list(range(900))}
    with pytest.raises(InputError, match="curves were requested"):
        spec_of({**TABLE, "learners": [learner]})
    for command in (["reproduce", "dsm"], ["arena", "--learners", "aogd"]):
        assert main([*command, "--sequences", "100000000000"]) == 2
        assert f"at most {MAX_SEEDS}" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=cmd|"/c calc"!A1'])
def test_no_cell_is_a_formula(word):
    rows = list(csv.DictReader(io.StringIO(to_csv([{"learner": word, "loss": -1.5, "none": None}]).decode())))
    assert rows == [{"learner": f"'{word}".replace("\r", " "), "loss": "-1.5", "none": ""}]
