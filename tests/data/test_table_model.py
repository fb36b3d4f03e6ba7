"""A model with the encoder of its table: raw frames in, labels of the file out, one file; identifiers are reported."""

import warnings

import numpy as np
import pandas as pd
import pytest

from longterm.data import TableModel, from_frame, load_table
from longterm.errors import DataError, IdentifierWarning, InputError, SnapshotError
from longterm.linear_model import BudgetLinearClassifier


def customers(n=200):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.gamma(2, 2e4, n),
            "plan": rng.choice(["basic", "pro", "team"], n),
        }
    )
    frame["churned"] = np.where(frame["plan"].eq("basic") & (frame["age"] > 40), "yes", "no")
    return frame


def test_a_saved_model_predicts_from_raw_frames_in_the_labels_of_the_file(tmp_path):
    customers().to_csv(tmp_path / "customers.csv", index=False)
    rows = load_table(tmp_path / "customers.csv", "churned")
    assert sorted(set(rows.labels)) == ["no", "yes"]
    np.testing.assert_array_equal(rows.signs, np.where(rows.labels == "yes", 1.0, -1.0))
    model = rows.fit(BudgetLinearClassifier(random_state=0))
    model.save(tmp_path / "model")
    assert model.to_bytes() == (tmp_path / "model").read_bytes()
    again = TableModel.load(tmp_path / "model")
    new = customers(300)[200:].drop(columns="churned")[["plan", "income", "age"]].assign(other="ignored")
    assert again.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    assert (again.predict(new) == customers(300)["churned"][200:]).mean() > 0.8
    assert "plan=basic" in str(again.summary())
    again.partial_fit(new[:9], ["no"] * 9)
    with pytest.raises(DataError, match="lacks the columns"):
        again.predict(new.drop(columns="age"))


@pytest.mark.parametrize("labels", [[0, 1], [1.0, 2.0], [False, True], ["b", "a"]])
def test_classes_are_what_the_table_says(labels):
    frame = customers(60).assign(churned=np.resize(labels, 60))
    model = TableModel.from_bytes(from_frame(frame, "churned").fit(BudgetLinearClassifier(random_state=0)).to_bytes())
    assert model.classes_.tolist() == sorted(labels)
    assert set(model.predict(frame)) <= set(labels)


def test_other_bytes_models_and_rows_are_refused():
    rows = from_frame(customers(60), "churned")
    data = rows.fit(BudgetLinearClassifier(random_state=0)).to_bytes()
    for wrong in (b"", data[:-1], BudgetLinearClassifier().fit(rows.features, rows.labels).to_bytes()):
        with pytest.raises(SnapshotError):
            TableModel.from_bytes(wrong)
    with pytest.raises(InputError, match="cannot be stored"):
        TableModel(rows.encoder, object()).to_bytes()


@pytest.mark.parametrize(
    ("name", "values", "is_identifier"),
    [
        ("customer", np.arange(200) * 7 + 100_000, True),
        ("order_id", np.arange(200.0), True),
        ("age", np.arange(200) % 70, False),
        ("amount", np.arange(200) + 0.5, False),
    ],
)
def test_a_column_of_numbers_that_looks_like_an_identifier_is_named(name, values, is_identifier):
    frame = customers().assign(**{name: values})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from_frame(frame, "churned")
    assert [repr(name) in str(one.message) for one in caught if one.category is IdentifierWarning] == (
        [True] if is_identifier else []
    )
