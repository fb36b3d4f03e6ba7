"""Files in batches: the model of one pass in memory, whatever the files, the batches and the kills."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from longterm.errors import DataError, InputError

pandas = pytest.importorskip("pandas")
arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("numba", reason="linear models need the extra `linear`")

from longterm.data import file_table, learn_files, read_batches, row_groups  # noqa: E402
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


@pytest.mark.parametrize("skip", [0, 1, 100, 299, 300, 301, 999, 1000, 1001, 2100, 2500])
def test_wide_groups_are_read_in_slices_and_bundles(files, skip, monkeypatch):
    monkeypatch.setattr(row_groups, "READ_TOGETHER", 10_000)  # two columns of a group of 700 rows
    monkeypatch.setattr(row_groups, "SLICE_BYTES", 300 * 5 * 8)  # 300 rows of four columns and the label
    reads, read = [], row_groups._read
    monkeypatch.setattr(row_groups, "_read", lambda *given: reads.append(given[2:]) or read(*given))
    batches = list(read_batches(files[0], "name", drop=others("name"), skip=skip, batch_rows=100))
    features = np.concatenate([np.empty((0, 4)), *(batch.features for batch in batches)])
    np.testing.assert_array_equal(features, frame()[COLUMNS].to_numpy(dtype=float)[skip:2500])
    assert [name for batch in batches for name in batch.labels] == frame()["name"].tolist()[skip:2500]
    assert [batch.before for batch in batches] == list(
        skip + np.cumsum([0, *(len(batch.labels) for batch in batches)])[:-1]
    )
    assert all(len(batch.labels) <= 100 for batch in batches)
    assert all(len(columns) < 5 and end - begin <= 300 for columns, begin, end, _ in reads)


def test_batches_of_a_very_wide_table_have_fewer_rows(tmp_path, monkeypatch):
    frame(100).to_parquet(tmp_path / "rows.parquet")
    monkeypatch.setattr(file_table, "BATCH_BYTES", 7 * 4 * 8)
    sizes = [len(one.labels) for one in read_batches(tmp_path / "rows.parquet", "sign", drop=others("sign"))]
    assert sizes == [7] * 14 + [2]


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
    with pytest.raises(DataError, match=r"ends after 1600 rows in all, but 2500 rows have to be skipped"):
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
    refused(tmp_path, good, "4 rows have to be skipped", skip=4)
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


COLUMN_TYPES = {
    "text": (["a", "b"], "holds string, not numbers"),
    "dictionary of text": (arrow.array(["a", "b"]).dictionary_encode(), "holds dictionary<values=string"),
    "timestamp": (arrow.array([0, 1], arrow.timestamp("us")), r"holds timestamp\[us\], not numbers"),
    "list": ([[1.0], [2.0]], "holds list"),
    "nothing": (arrow.nulls(2), "holds null, not numbers"),
    "null": ([1, None], "column 'a' is empty"),
    "too large": ([2**60, 1], "a float cannot hold"),
    "decimal": (arrow.array([1, 2]).cast(arrow.decimal128(24, 2)), None),
    "dictionary": (arrow.array([1, 2]).dictionary_encode(), None),
    "boolean": ([False, True], None),
    "unsigned": (arrow.array([1, 2], arrow.uint64()), None),
    "half": (arrow.array(np.array([1, 2], np.float16)), None),
}


@pytest.mark.parametrize("kind", COLUMN_TYPES)
def test_types_of_arrow_are_numbers_or_refused(kind, tmp_path):
    values, match = COLUMN_TYPES[kind]
    parquet.write_table(arrow.table({"a": values, "y": [0, 1]}), tmp_path / "rows.parquet")
    if match is not None:
        with pytest.raises(DataError, match=match):
            list(read_batches(tmp_path / "rows.parquet", "y"))
        return
    (batch,) = read_batches(tmp_path / "rows.parquet", "y")
    assert batch.features.tolist() == ([[0.0], [1.0]] if kind == "boolean" else [[1.0], [2.0]])


LABEL_TYPES = {
    "decimal": (arrow.array([0, 1]).cast(arrow.decimal128(24, 2)), [0.0, 1.0]),
    "boolean": ([False, True], [False, True]),
    "text": (arrow.array(["no", "yes"], arrow.string_view()), ["no", "yes"]),
    "dictionary": (arrow.array(["no", "yes"]).dictionary_encode(), ["no", "yes"]),
    "timestamp": (arrow.array([0, 1], arrow.timestamp("us")), None),
    "bytes": ([b"no", b"yes"], None),
    "list": ([[0], [1]], None),
}


@pytest.mark.parametrize("kind", LABEL_TYPES)
def test_labels_are_numbers_booleans_or_text(kind, tmp_path):
    values, labels = LABEL_TYPES[kind]
    parquet.write_table(arrow.table({"a": [1.0, 2.0], "y": values}), tmp_path / "rows.parquet")
    if labels is None:
        with pytest.raises(DataError, match="Give labels that are numbers, booleans or text"):
            list(read_batches(tmp_path / "rows.parquet", "y"))
        return
    (batch,) = read_batches(tmp_path / "rows.parquet", "y")
    assert batch.labels.tolist() == labels


def test_names_of_files_and_columns(tmp_path):
    table = pandas.DataFrame({"a.b": [1.0, 2.0], "": [3.0, 4.0], "a b": [5.0, 6.0], "y": [0, 1]})
    table.iloc[::-1].to_parquet(tmp_path / "rows.csv.parquet")  # pandas stores the index as a column
    table.to_csv(tmp_path / "ROWS.CSV", index=False)
    (tmp_path / "_metadata.parquet").write_bytes(b"")
    (tmp_path / ".hidden.csv").write_bytes(b"")
    assert [one.features.tolist() for one in read_batches(tmp_path, "y")] == [
        [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]],
        [[2.0, 4.0, 6.0], [1.0, 3.0, 5.0]],
    ]
    (tmp_path / "empty").mkdir()
    (tmp_path / "twice.csv").write_text("a,a,y\n1,2,0\n")
    for files, options, match in (
        (tmp_path / "empty", {}, r"has no \.parquet or \.csv file"),
        (tmp_path / "*.pq", {}, "matches no file"),
        ([], {}, "files: is empty"),
        (tmp_path / "twice.csv", {}, "has the column 'a' twice"),
        (tmp_path / "ROWS.CSV", {"drop": "y"}, "drop: names the label 'y'"),
        (tmp_path / "ROWS.CSV", {"drop": ["a.b", "", "a b"]}, "has no column beside 'y'"),
    ):
        with pytest.raises((DataError, InputError), match=match):
            read_batches(files, "y", **options)


def test_files_that_the_model_does_not_know_are_refused(tmp_path):
    first = frame(200)[[*COLUMNS, "name"]]
    first.to_parquet(tmp_path / "first.parquet")
    other = {
        "fewer": (first[["a", "b", "name"]], r"has other features than the model: \['c', 'd'\]"),
        "text": (first.assign(a="x"), "column 'a' holds (large_)?string"),
        "class": (first.assign(name="maybe"), "cannot be learned from row 201 on: y has classes"),
        "number": (first.assign(name=1), "cannot be learned from row 201 on"),
    }
    options = {"label": "name", "out": tmp_path / "model", "progress": None}
    learn_files(BudgetLinearClassifier(random_state=0), tmp_path / "first.parquet", **options)
    before = (tmp_path / "model").read_bytes()
    for name, (table, match) in other.items():
        path = tmp_path / f"{name}.parquet"
        table.to_parquet(path)
        files = [path] if name == "fewer" else [tmp_path / "first.parquet", path]
        with pytest.raises((DataError, InputError), match=match):
            learn_files(BudgetLinearClassifier(random_state=0), files, **options)
        assert (tmp_path / "model").read_bytes() == before
    # columns in another order are the same table
    first[["name", *COLUMNS[::-1]]].to_parquet(tmp_path / "turned.parquet")
    model = learn_files(
        BudgetLinearClassifier(random_state=0), [tmp_path / "first.parquet", tmp_path / "turned.parquet"], **options
    )
    twice = BudgetLinearClassifier(random_state=0)
    for _ in range(2):
        twice.partial_fit(first[COLUMNS].to_numpy(dtype=float), first["name"].to_numpy(), classes=["no", "yes"])
    assert_same_model(model, twice)


def test_nothing_is_learned_before_a_fault_that_can_be_seen(tmp_path):
    first = frame(200)[[*COLUMNS, "name"]]
    first.to_parquet(tmp_path / "first.parquet")
    first.assign(name=1).to_parquet(tmp_path / "number.parquet")
    first[:0].to_csv(tmp_path / "none.csv", index=False)
    seen = []
    for files, out, match in (
        (["first", "number"], "model", "column 'name' holds numbers, but text in other files"),
        (["first"], "no/model", "no is not a writable folder"),
    ):
        with pytest.raises((DataError, InputError), match=match):
            learn_files(
                BudgetLinearClassifier(random_state=0),
                [tmp_path / f"{name}.parquet" for name in files],
                "name",
                out=tmp_path / out,
                progress=lambda *given: seen.append(given),
            )
    with pytest.raises(DataError, match=r"none\.csv: has no rows"):
        learn_files(BudgetLinearRegressor(random_state=0), tmp_path / "none.csv", "a", drop="name", out=tmp_path / "m")
    assert not seen
    assert not (tmp_path / "model").exists()
    assert not (tmp_path / "m").exists()


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
    assert re.search(r"^learned [\d,]+ rows, after [\d,]+ that were learned before$", printed, re.MULTILINE)
    assert "nothing to learn" not in printed
    assert main([*words, str(whole)]) == 0
    assert "nothing to learn: the model has learned these 100,000 rows before\n" in capsys.readouterr().out
    assert killed.read_bytes() == whole.read_bytes()
    assert "2 of 4 features, 100,000 rounds" in printed
    assert f"model  {whole}" in printed
    assert main([*words, str(whole), "--loss", "squared"]) == 2  # the file holds a classifier
