"""Files in batches: the model of one pass in memory, whatever the files, the batches and the kills."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from longterm.errors import DataError, InputError

pandas = pytest.importorskip("pandas")
arrow = pytest.importorskip("pyarrow")
pytest.importorskip("numba", reason="linear models need the extra `linear`")

from longterm.data import learn_files, read_batches  # noqa: E402
from longterm.linear_model import BudgetLinearClassifier, BudgetLinearLearner, BudgetLinearRegressor  # noqa: E402

ROWS, COLUMNS = 6000, ["a", "b", "c", "d"]


def frame(rows=ROWS):
    rng = np.random.default_rng(0)
    made = pandas.DataFrame(rng.normal(size=(rows, 4)), columns=COLUMNS)
    made["d"] = made["d"] > 0
    made["sign"] = np.where(made.a - 2 * made.b + rng.normal(size=rows) > 0, 1, -1)
    made["name"] = np.where(made.sign > 0, "yes", "no")
    made["target"] = 100 + 3 * made.a + 0.1 * rng.normal(size=rows)
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files: Parquet with small groups, a CSV, and Parquet with one group; columns of three types."""
    folder, whole = tmp_path_factory.mktemp("files"), frame()
    whole[:2500].to_parquet(folder / "a.parquet", row_group_size=700)
    whole[2500:4100].to_csv(folder / "b.csv.gz", index=False, float_format="%.17g")
    whole[4100:].astype({"a": "float64[pyarrow]", "name": "category"}).to_parquet(folder / "c.parquet")
    return [folder / name for name in ("a.parquet", "b.csv.gz", "c.parquet")]


def others(label):
    return [name for name in ("sign", "name", "target") if name != label]


@pytest.mark.parametrize("skip", [0, 1, 699, 700, 2499, 2500, 2501, 4100, 5999, 6000])
def test_batches_are_the_rows_in_order(files, skip):
    whole = frame()
    batches = list(read_batches(files, "name", drop=others("name"), skip=skip, batch_rows=512))
    assert [batch.before for batch in batches] == list(
        skip + np.cumsum([0, *(len(batch.labels) for batch in batches)])[:-1]
    )
    features = np.concatenate([np.empty((0, 4)), *(batch.features for batch in batches)])
    np.testing.assert_array_equal(features, whole[COLUMNS].to_numpy(dtype=float)[skip:])
    assert [name for batch in batches for name in batch.labels] == whole["name"].tolist()[skip:]


def test_a_folder_is_its_files(files):
    assert sum(len(batch.labels) for batch in read_batches(files[0].parent, "sign", drop=others("sign"))) == ROWS


MODELS = {
    "learner": (lambda: BudgetLinearLearner(4, budget=3.0), "sign", lambda m, X, y: m.learn(X, y)),
    "regression": (lambda: BudgetLinearLearner(4, loss="squared"), "target", lambda m, X, y: m.learn(X, y)),
    "classifier": (
        lambda: BudgetLinearClassifier(max_features=2, random_state=0),
        "name",
        lambda m, X, y: m.partial_fit(X, y, classes=["no", "yes"]),
    ),
    "regressor": (
        lambda: BudgetLinearRegressor(budget=2.0, random_state=0),
        "target",
        lambda m, X, y: m.partial_fit(X, y),
    ),
}


def weights(model):
    return (model.coef_, model.intercept_) if hasattr(model, "coef_") else (model.weights, model.intercept)


def assert_same_model(one, other):
    for ours, theirs in zip(weights(one), weights(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", MODELS)
def test_the_weights_are_those_of_one_pass_in_memory(files, kind, tmp_path):
    make, label, learn = MODELS[kind]
    whole, in_memory = frame(), make()
    learn(in_memory, whole[COLUMNS].to_numpy(dtype=float), whole[label].to_numpy())
    options = {"drop": others(label), "out": tmp_path / "model", "progress": None}
    seen = []
    model = learn_files(make(), files, label, **options | {"progress": lambda done, total: seen.append((done, total))})
    assert seen[-1] == (ROWS, None)  # a CSV file does not say how many rows it has
    assert_same_model(model, in_memory)
    assert_same_model(type(model).load(tmp_path / "model"), in_memory)
    before = (tmp_path / "model").stat().st_mtime_ns
    assert_same_model(learn_files(make(), files, label, **options), in_memory)  # nothing is left to learn
    assert (tmp_path / "model").stat().st_mtime_ns == before
    # stopped anywhere, with other batches, then with more files
    options["out"] = tmp_path / "stopped"

    def stop(done, total):
        if done >= 3000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_files(make(), files[:2], label, **options | {"progress": stop}, batch_rows=333, save_every=1000)
    saved = type(model).load(options["out"])
    assert 1000 <= (saved.rounds if kind in ("learner", "regression") else saved.n_rounds_) < 3000
    learn_files(make(), files[:2], label, **options)
    assert_same_model(learn_files(make(), files, label, **options, batch_rows=100), in_memory)


def test_a_file_of_another_model_is_refused(files, tmp_path):
    out = tmp_path / "model"
    options = {"drop": others("sign"), "out": out, "progress": None}
    learn_files(BudgetLinearLearner(4, budget=3.0), files[:1], "sign", **options)
    before = out.read_bytes()
    with pytest.raises(InputError, match=r"holds a model with budget = 3.0, not 4.0"):
        learn_files(BudgetLinearLearner(4, budget=4.0), files, "sign", **options)
    with pytest.raises(DataError, match=r"ends after 1600 rows in all, and 2500 are to be skipped"):
        learn_files(BudgetLinearLearner(4, budget=3.0), files[1:2], "sign", **options)
    assert out.read_bytes() == before


def refused(folder, table, match, label="y", line=None, **options):
    table.to_parquet(folder / "bad.parquet")
    table.to_csv(folder / "bad.csv", index=False)
    for name in ("bad.parquet", "bad.csv"):
        with pytest.raises((DataError, InputError), match=match) as error:
            list(read_batches(folder / name, label, **options))
        if line is not None:
            assert error.value.line == line + (name == "bad.csv")


def test_bad_files_are_refused_with_the_file_and_the_row(tmp_path):
    good = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
    refused(tmp_path, good.assign(a=[1.0, None, 3.0]), "column 'a' is (empty|nan)", line=2)
    refused(tmp_path, good.assign(a=[1.0, 2.0, np.inf]), "column 'a' is inf", line=3)
    refused(tmp_path, good, r"has no column 'Y' \(did you mean 'y'\?\)", label="Y")
    refused(tmp_path, good, "has no column 'b'", drop="b")
    refused(tmp_path, good.assign(y=[0, None, 1]), "column 'y' is (empty|nan)", line=2)
    refused(tmp_path, good, "skip: is -1", skip=-1)
    refused(tmp_path, good, "4 are to be skipped", skip=4)
    refused(tmp_path, good.assign(a=["Bern", "Rome", "Rome"]), "column 'a' holds (large_)?string, not numbers")
    (tmp_path / "late.csv").write_text("a,y\n" + "1,0\n" * 2**21 + "Rome,1\n")  # after the first block
    with pytest.raises(DataError, match=r"late\.csv: cannot be read .*Rome"):
        sum(len(batch.labels) for batch in read_batches(tmp_path / "late.csv", "y"))
    for name, text in (("cut.parquet", b"PAR1 cut"), ("empty.csv", b""), ("ragged.csv", b"a,y\n1,2\n1,2,3\n")):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(DataError, match=f"{name}: cannot be read"):
            list(read_batches(tmp_path / name, "y"))
    (tmp_path / "rows.txt").write_text("a,y")
    with pytest.raises(DataError, match="does not end in"):
        read_batches(tmp_path / "rows.txt", "y")
    with pytest.raises(DataError, match="does not exist"):
        read_batches(tmp_path / "no.csv", "y")
    good.rename(columns={"a": "b"}).to_csv(tmp_path / "other.csv", index=False)
    good.to_csv(tmp_path / "good.csv", index=False)
    with pytest.raises(DataError, match=r"other\.csv: differs from good\.csv in the columns \['a', 'b'\]"):
        read_batches([tmp_path / "good.csv", tmp_path / "other.csv"], "y")


def test_labels_that_do_not_fit_the_model_are_refused(tmp_path):
    out = tmp_path / "model"
    one = pandas.DataFrame({"a": [1.0, 2.0], "y": ["no", "no"], "z": [0.5, 1.5]})
    one.to_parquet(tmp_path / "one.parquet")
    for model, label, match in (
        (BudgetLinearClassifier(random_state=0), "y", r"has the labels \['no'\] only"),
        (BudgetLinearRegressor(random_state=0), "y", "column 'y' holds text"),
        (object(), "y", "cannot learn in batches"),
    ):
        with pytest.raises((DataError, InputError), match=match):
            learn_files(model, tmp_path / "one.parquet", label, drop={"y", "z"} - {label}, out=out)
    many = pandas.DataFrame({"a": np.arange(200.0), "y": np.arange(200)})
    many.to_parquet(tmp_path / "many.parquet")
    with pytest.raises(DataError, match="more than 100 different labels"):
        learn_files(BudgetLinearClassifier(random_state=0), tmp_path / "many.parquet", "y", out=out)
    assert not out.exists()


@pytest.mark.slow
def test_the_command_is_killed_and_continues(tmp_path, capsys):
    pytest.importorskip("tyro", reason="the command line is of the extra `experiments`")
    from longterm.cli import main

    frame(100_000).to_parquet(tmp_path / "rows.parquet", row_group_size=20_000)
    words = [
        "fit",
        str(tmp_path / "rows.parquet"),
        "--label",
        "name",
        "--drop",
        "sign",
        "target",
        "--max-features",
        "2",
    ]
    words += ["--save-every", "1000", "--out"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen([sys.executable, "-m", "longterm", *words, str(killed)], stdout=said, stderr=said)
        while not killed.exists() and process.poll() is None:
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, (tmp_path / "said").read_text()
    assert 0 < BudgetLinearClassifier.load(killed).n_rounds_ < 100_000
    assert main([*words, str(killed)]) == 0
    assert main([*words, str(whole)]) == 0
    assert killed.read_bytes() == whole.read_bytes()
    printed = capsys.readouterr().out
    assert "2 of 4 features, 100,000 rounds" in printed
    assert f"model  {whole}" in printed
    assert main([*words, str(whole), "--loss", "squared"]) == 2  # the file holds a classifier
