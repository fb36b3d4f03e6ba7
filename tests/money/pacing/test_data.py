"""Logs and histories, and what the page prints."""

import numpy as np
import pytest

from longterm import InputError
from longterm.errors import DataError
from longterm.money import Auctions, PriceHistory, synthetic_auctions


def test_bad_arrays_are_refused():
    with pytest.raises(InputError, match="values"):
        Auctions([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match="prices: is negative in auction 2"):
        Auctions([0.1, 0.1], [1, -1])
    with pytest.raises(InputError, match="prices"):
        PriceHistory([2.0, 1.0], [1, 1], 0.1)
    with pytest.raises(InputError, match="counts"):
        PriceHistory([0.0, 1.0], [1, 0], 0.1)


def test_clicks_are_optional_and_lines_with_an_empty_cell_are_left_out(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("value,price,clicked\n0.1,5,1\n0.2,,0\n0.3,7,0\n")
    with pytest.warns(UserWarning, match="1 of 3 rows have an empty cell"):
        log = Auctions.from_csv(path)
    assert (log.prices.tolist(), log.clicks.tolist()) == ([5.0, 7.0], [0.0, 0.0])
    with pytest.warns(UserWarning, match="empty cell"):
        assert Auctions.from_csv(path, clicks="clicked").clicks.tolist() == [1.0, 0.0]
    with pytest.raises(DataError, match="has no column 'nope'"):
        Auctions.from_csv(path, clicks="nope")
    for missing in ("NA", "nan", "NULL", "None", "n/a"):  # as pandas reads them
        path.write_text(f"value,price\n0.1,{missing}\n0.3,7\n")
        with pytest.warns(UserWarning, match="1 of 2 rows have an empty cell"):
            assert Auctions.from_csv(path).prices.tolist() == [7.0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"value,price\n0.1,1_000\n", "price is '1_000', not a number"),
        (b"value,price\n0.1,inf\n", "price is 'inf', not a number"),
        (b"value;price\n0.1;5\n", "has one column, 'value;price'. Separate columns by commas"),
        ("value,price,café\n".encode("latin-1"), "is not UTF-8"),
        (b"value,price\n", "has no auctions"),
    ],
)
def test_bad_files_are_named(tmp_path, content, reason):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason):
        Auctions.from_csv(path)


def test_synthetic_logs_are_seeded_and_look_like_the_real_one():
    log, again = synthetic_auctions(5000, seed=1), synthetic_auctions(5000, seed=1)
    assert np.array_equal(log.prices, again.prices)
    assert not np.array_equal(log.prices, synthetic_auctions(5000, seed=2).prices)
    assert np.corrcoef(log.prices, log.values)[0, 1] > 0.2
    assert 30 < log.prices.mean() < 80
    assert 0.002 < log.values.mean() < 0.006


def test_auctions_of_a_data_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"worth": [0.5, None, 0.7], "price": [3, 4, 5], "click": [0, 1, 1]})
    with pytest.warns(UserWarning, match="1 of 3 rows"):
        log = Auctions.from_frame(frame, values="worth")
    assert (log.values.tolist(), log.prices.tolist(), log.clicks.tolist()) == ([0.5, 0.7], [3.0, 5.0], [0.0, 1.0])
    with pytest.raises(DataError, match="first row 2"):
        Auctions.from_frame(frame, values="worth", missing="refuse")
    with pytest.raises(DataError, match="no column 'value'"):
        Auctions.from_frame(frame)
    with pytest.raises(InputError, match="'fill' is not known"):
        Auctions.from_frame(frame, values="worth", missing="fill")
    with pytest.raises(DataError, match="not all numbers"):
        Auctions.from_frame(frame.assign(worth=["a", "b", "c"]), values="worth")
