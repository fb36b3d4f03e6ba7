"""A model for each group: the same bytes from pandas, Dask and Ray Data, whatever the order of rows and the types."""

import pickle
import warnings

import numpy as np
import pytest

from longterm.errors import InputError

pd = pytest.importorskip("pandas")
pytest.importorskip("numba", reason="linear models need the extra `linear`")

from longterm.data import group_fit  # noqa: E402
from longterm.linear_model import BudgetLinearClassifier, BudgetLinearRegressor  # noqa: E402
from pages import block_of_page  # noqa: E402

MODEL = BudgetLinearClassifier(passes=1, random_state=0)
FIT = group_fit(MODEL, key="shop", label="sold", order="row")


def shops(rows=200):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((rows, 2)), columns=["price", "size"])
    frame["shop"], frame["row"] = np.arange(rows) % 4, np.arange(rows)
    frame["sold"] = np.where((frame["price"] + frame["shop"] * frame["size"] > 0) | (frame["shop"] == 3), "yes", "no")
    return frame


def models(result):
    return {row.shop: (row.rows, row.model, row.error) for row in result.itertuples()}


@pytest.fixture(scope="module")
def wanted():
    found = models(pd.concat([FIT(rows) for _, rows in shops().groupby("shop")]))
    assert [len(model or b"") > 0 for _, model, _ in found.values()] == [True, True, True, False]
    assert "number of classes" in found[3][2]  # one group does not stop the others
    return found


def test_the_model_is_that_of_the_rows_in_order(wanted):
    rows = shops().query("shop == 1")
    alone = BudgetLinearClassifier(passes=1, random_state=0).fit(rows[["price", "size"]], rows["sold"])
    stored = BudgetLinearClassifier.from_bytes(wanted[1][1])
    np.testing.assert_array_equal(stored.coef_, alone.coef_)
    assert stored.feature_names_in_.tolist() == ["price", "size"]
    assert not hasattr(MODEL, "classes_")  # a copy was fitted


def test_shuffled_rows_arrow_types_and_a_pickle_change_nothing(wanted):
    shuffled = shops().sample(frac=1, random_state=0)
    assert models(shuffled.groupby("shop").apply(FIT)) == wanted
    typed = shuffled.convert_dtypes(dtype_backend="pyarrow")
    assert str(typed["price"].dtype) == "double[pyarrow]"
    assert models(typed.groupby("shop").apply(pickle.loads(pickle.dumps(FIT)))) == wanted
    assert models(FIT(shops().query("shop == 1").drop(columns="row").assign(row=range(50)))) == {1: wanted[1]}


def test_dask(wanted):
    pytest.importorskip("distributed", reason="needs the extra `dask`")
    import dask
    import dask.dataframe as dd

    with dask.config.set(scheduler="synchronous", **{"dataframe.convert-string": False}):
        frame = dd.from_pandas(shops().sample(frac=1, random_state=0), npartitions=3)
        names = {"frame": frame, "fit": FIT}
        exec(block_of_page("meta=", only=True), names)
        assert models(names["models"].compute()) == wanted


@pytest.mark.slow
@pytest.mark.cross
def test_ray_data(wanted):
    ray = pytest.importorskip("ray", reason="needs the extra `ray`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        try:
            names = {"frame": ray.data.from_pandas(shops().sample(frac=1, random_state=0)), "fit": FIT}
            exec(block_of_page("map_groups", only=True), names)
            found = names["models"].to_pandas()
        finally:
            ray.shutdown()
    found["error"] = found["error"].astype(object).where(found["error"].notna(), None)
    found["model"] = found["model"].astype(object).where(found["model"].notna(), None)
    assert models(found) == wanted


def test_targets_and_bad_arguments():
    frame = shops().assign(sold=np.arange(200.0))
    fit = group_fit(BudgetLinearRegressor(passes=1, random_state=0), key="shop", label="sold")
    (model,) = fit(frame.query("shop == 0"))["model"]
    assert BudgetLinearRegressor.from_bytes(model).n_features_in_ == 3  # without `order`, row is a feature
    with pytest.raises(InputError, match="model: is a object"):
        group_fit(object(), key="shop", label="sold")
    with pytest.raises(InputError, match="has no column 'gold'"):
        group_fit(BudgetLinearRegressor(), key="shop", label="gold")(frame)
    one = frame.query("shop == 0")
    for rows, match in (
        (one.assign(city="Rome"), "Rome"),
        (one.assign(city=[object()] * 50), "object"),
        (shops().query("shop == 0").assign(sold=["yes", 1] * 25), "not supported between"),
    ):
        (found,) = (FIT if "between" in match else fit)(rows).itertuples()
        assert found.model is None
        assert match in found.error
