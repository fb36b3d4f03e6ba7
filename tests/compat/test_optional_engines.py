"""Engines and file formats are optional: without one its adapter can be imported, and says which extra to install."""

import sys
from importlib import import_module

import pytest

CALLS = {
    "ray": ("ray", "longterm.compat.ray", lambda module: module.executor()),
    "spark": ("pyspark.sql.streaming", "longterm.compat.spark", lambda m: m.decide(None, key="k", learner=None)),
    "parquet": ("pyarrow", "longterm.data", lambda module: module.read_batches("rows.parquet", "y")),
}


@pytest.mark.parametrize("extra", CALLS)
def test_a_missing_engine_names_its_extra(extra, monkeypatch):
    package, name, call = CALLS[extra]
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, name if name != "longterm.data" else "longterm.data.batches", raising=False)
    module = import_module(name)
    with pytest.raises(ImportError, match=rf"longterm\[{extra}\]"):
        call(module)
