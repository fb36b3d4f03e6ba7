"""Tables of the user: columns that cannot be features, limits on memory, and encoders for new rows."""

import gzip
import zipfile

import numpy as np
import pytest

from longterm.data import encoder, from_frame, load_table, reading, tables
from longterm.errors import DataError, ManyFeaturesWarning

pd = pytest.importorskip("pandas")


def labelled(**columns):
    rows = len(next(iter(columns.values())))
    return pd.DataFrame({**columns, "label": np.arange(rows) % 2})


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ([[1], [2], [3], [4]], "cells of type list"),
        ([{"a": 1}] * 4, "cells of type dict"),
        (pd.period_range("2025-01", periods=4, freq="M"), "has dates"),
        (pd.date_range("2025-01-01", periods=4), "has dates"),
        (["2025-01-01", "2025-01-02", "2025-01-01", "2025-02-01"], "has dates"),
        (["31.12.2024 10:30", "01.01.2025 09:00"] * 2, "has dates"),
        ([1 + 2j, 2.0, 3.0, 4.0], "complex numbers"),
    ],
)
def test_columns_that_cannot_be_features_are_refused(column, told):
    with pytest.raises(DataError, match=f"column 'x' .*{told}.*drop='x'"):
        from_frame(labelled(x=column))


def test_columns_of_the_same_name_are_refused():
    frame = pd.DataFrame([[1, 2, 0], [3, 4, 1]], columns=["a", "a", "label"])
    with pytest.raises(DataError, match="two columns 'a'"):
        from_frame(frame)
    assert from_frame(frame, drop=["a"]).features.shape == (2, 0)


def test_one_column_to_leave_out_may_be_a_text():
    frame = pd.DataFrame({"id": ["a", "b"], "age": [30, 50], "y": [0, 1]})
    assert from_frame(frame, drop="id").columns == from_frame(frame, drop=["id"]).columns == ("age",)


def test_words_that_look_like_numbers_or_versions_are_text():
    rows = from_frame(labelled(x=["1.2.3", "mon", "2025", "10"]))
    assert rows.columns == ("x=1.2.3", "x=10", "x=2025", "x=mon")


def test_many_values_warn_before_they_are_refused():
    words = [f"w{k}" for k in range(60)]
    with pytest.warns(ManyFeaturesWarning, match="60 different values in 180 rows"):
        assert from_frame(labelled(x=words * 3)).features.shape == (180, 60)
    with pytest.raises(DataError, match="60 different values in 60 rows"):
        from_frame(labelled(x=words))


def test_encoded_features_that_fill_the_memory_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(encoder, "MAX_FEATURE_BYTES", 8 * 4 * 3 - 1)
    with pytest.raises(DataError, match="3 features of 4 rows"):
        from_frame(labelled(x=["a", "b", "c", "a"]))
    assert from_frame(labelled(x=["a", "b", "a", "b"])).features.shape == (4, 2)


def test_an_encoder_turns_new_rows_into_the_same_features():
    frame = pd.DataFrame({"age": [30, 50, None], "plan": ["basic", None, "team"], "y": [0, 1, 1]})
    rows = from_frame(frame, scale=True, missing="fill")
    np.testing.assert_array_equal(rows.encoder.transform(frame), rows.features)
    new = pd.DataFrame({"plan": ["gold", "team", None], "other": 1, "age": [100, None, 25]})
    # The median of the ages is 40, and "gold" was not seen.
    np.testing.assert_array_equal(rows.encoder.transform(new), [[2.0, 0, 0, 0], [0.8, 0, 0, 1], [0.5, 0, 1, 0]])
    with pytest.raises(DataError, match=r"lacks the columns \['age'\]"):
        rows.encoder.transform(new.drop(columns="age"))
    strict = from_frame(pd.DataFrame({"age": [30, 50], "y": [0, 1]}))
    with pytest.raises(DataError, match="line 3: column 'age' is empty"):
        strict.encoder.transform(pd.DataFrame({"age": [1.0, None]}))
    with pytest.raises(DataError, match="'age' does not contain numbers"):
        strict.encoder.transform(pd.DataFrame({"age": ["old"]}))


def test_archives_that_pandas_would_unpack_without_a_limit_are_refused(tmp_path):
    file = tmp_path / "rows.csv.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("rows.csv", "a,label\n1,0\n2,1\n")
    with pytest.raises(DataError, match=r"is a \.zip archive.*Decompress it"):
        load_table(file)


def test_a_small_csv_cannot_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MIN_LIMIT", 10_000)
    file = tmp_path / "rows.csv.gz"
    file.write_bytes(gzip.compress(b"a,label\n" + b"1,0\n2,1\n" * 2000))
    with pytest.raises(DataError, match="holds more than 10000 bytes"):
        load_table(file)
    assert load_table(file, max_bytes=20_000).features.shape == (4000, 1)
    monkeypatch.setattr(tables, "MAX_COLUMNS", 3)
    file.write_bytes(gzip.compress(b"a,b,c,label\n1,1,1,0\n"))
    with pytest.raises(DataError, match="more than 3 columns"):
        load_table(file)


def test_small_parquet_files_cannot_fill_the_memory(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "rows.parquet"
    label = np.arange(1000) % 2
    parquet.write_table(arrow.table({"a": [[1.0] * 100] * 1000, "label": label}), file)
    with pytest.raises(DataError, match="'a' has lists or records"):
        load_table(file)
    long = "x" * 100_000
    parquet.write_table(arrow.table({"a": [long + str(k % 2) for k in label], "label": label}), file)
    rows = load_table(file, max_bytes=10_000_000)  # the text takes 100 MB if every cell has its own
    assert rows.features.shape == (1000, 2)
