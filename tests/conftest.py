import gc
import os
import sys
from collections.abc import Generator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "longterm", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("part", settings.get_profile("longterm"), max_examples=20)
settings.register_profile("thin", settings.get_profile("longterm"), max_examples=5)
settings.load_profile("longterm")

BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2] / "shared" / "data"
if BESIDE_THE_CHECKOUT.is_dir():  # the tests on real data look there, if no other folder is named
    os.environ.setdefault("LONGTERM_DATA", str(BESIDE_THE_CHECKOUT))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thin", action="store_true", help="of each test its first and its last case, few examples")


FIRST = (
    *("test_soak", "test_engines", "test_loop", "test_interruptions", "test_primal_dual", "test_hints", "test_report"),
    *(
        "linear_model/test_estimators",
        "test_linear_model",
        "test_drift_learners",
        "test_forged",
        "test_no_violation_runs",
    ),
    *("test_numerical", "test_stated", "test_outside", "test_site", "examples/test_routing", "test_fleet", "test_cli"),
)
"""Files that take longest go first, so that no worker waits at the end for the other."""


def pytest_configure(config: pytest.Config) -> None:
    if "not cross" in config.option.markexpr:
        settings.load_profile("thin" if config.getoption("--thin") else "part")
        compile_quickly()


def compile_quickly() -> None:
    """Most loops that JAX compiles here play 120 rounds: less is optimised, which halves the time. `make test-all` has
    them as they are. An XLA that does not know a flag ends the process, so it is named for versions that do.
    """
    try:
        known = version("jaxlib").startswith("0.10.")
    except PackageNotFoundError:
        return
    if known:
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Doctests are the package's: in the tests there are none to look for."""
    found = yield
    return [collector for collector in found if type(collector).__name__ != "DoctestModule"]


def pytest_collection_finish() -> None:
    """What is there now stays: the garbage collector need not look through it again and again.

    Pytest leaves modules in `sys.modules` that it could not import for want of an extra. They are no modules.
    """
    for module, extra in (("litellm_router", "litellm"), ("torch", "torch")):
        if find_spec(extra) is None:
            sys.modules.pop(f"longterm.compat.{module}", None)
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)  # after marks have been chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Thinned out, every test is still there: what broke shows in a minute, the whole is for `make test`."""
    place = {name: i for i, name in enumerate(FIRST)}

    def position(item: pytest.Item) -> int:
        stem = item.path.stem
        return place.get(stem, place.get(f"{item.path.parent.name}/{stem}", len(FIRST)))

    items.sort(key=position)
    if not config.getoption("--thin"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for of_one in cases.values() for item in (of_one[0], of_one[-1])}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.fixture(autouse=True)
def _close_figures():
    """Close what a test has drawn: pyplot warns about more than twenty open figures."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
