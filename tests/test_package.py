"""Facts about the package itself."""

import ast
import contextlib
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import longterm

ROOT = Path(longterm.__file__).parent
PINS = Path(__file__).parents[1] / "constraints.txt"
IMPORT_EVERYTHING_OF_THE_CORE = """
import importlib, pkgutil, sys
allowed = {"longterm", "numpy", "scipy", "array_api_compat"}
of_extras = ("longterm.lab.", "longterm.play.engines.compiled", "longterm.problems.autodiff")
of_extras += ("longterm.play.fleet.jax_rows",)
of_extras += ("longterm.play.engines.device_", "longterm.__main__", "longterm.cli")
of_extras += ("longterm.linear_model", "longterm.compat.litellm_router")
of_extras += ("longterm.compat.",)
of_extras += ("longterm._base.compiling", "longterm.server.")

class OnlyAllowed:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in allowed and top not in sys.stdlib_module_names and not top.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"{name} is not a dependency of the core")
        return None

sys.meta_path.insert(0, OnlyAllowed())
import longterm
for module in pkgutil.walk_packages(longterm.__path__, "longterm."):
    if not module.name.startswith(of_extras):
        importlib.import_module(module.name)
import numpy as np
from longterm.problems import doubly_stochastic
problem = doubly_stochastic(2)
from longterm.problems.streams import RandomPermutations
longterm.run(problem, longterm.AOGD.for_problem(problem), RandomPermutations(2), 10)
print(sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - {"__main__"}))
"""


def test_the_core_needs_numpy_scipy_and_array_api_compat_only():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING_OF_THE_CORE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "matplotlib" not in done.stdout
    assert "longterm" in done.stdout


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "py.typed").exists()


def test_every_public_name_exists():
    for name in longterm.__all__:
        assert getattr(longterm, name) is not None


def test_pins_serve_every_python_that_the_package_does():
    """Of what is installed here in the pinned version: none wants a later patch of Python, as soupsieve 4.1 did."""
    pins = [Requirement(line) for line in PINS.read_text().splitlines() if not line.startswith("#")]
    assert all(len(pin.specifier) == 1 and str(pin.specifier).startswith("==") for pin in pins)
    lacking = {}
    for pin in pins:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found = metadata.metadata(pin.name)
            if pin.specifier.contains(found["Version"], prereleases=True):
                wanted = SpecifierSet(found.get("Requires-Python") or "")
                lacking |= {pin.name: str(wanted)} if not wanted.contains("3.11.0") else {}
    assert lacking == {}


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of each module, by its path in the package without `.py`."""
    files = sorted(ROOT.rglob("*.py"))
    return {file.relative_to(ROOT).as_posix()[:-3]: ast.parse(file.read_text(encoding="utf-8")) for file in files}


def test_a_public_name_has_one_path():
    """The top level repeats a few names. Every other name is in one namespace, which is not private."""
    paths: dict[str, list[str]] = {}
    for path, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__" and path != "__init__":
                for name in ast.literal_eval(node.value):
                    paths.setdefault(name, []).append(path)
    assert {name: where for name, where in paths.items() if len(where) > 1} == {}
    assert [where for where in paths.values() if any(part.startswith("_") for part in where[0].split("/")[:-1])] == []
    assert set(longterm.__all__) <= {*paths, *vars(longterm.errors)}


def test_names_of_classes_and_modules_say_one_thing():
    """A class name occurs once. A module name repeats only where the folder explains it."""
    trees = [node for tree in modules().values() for node in ast.walk(tree)]
    classes = Counter(node.name for node in trees if isinstance(node, ast.ClassDef))
    names = Counter(path.rpartition("/")[2] for path in modules())
    assert [name for name, times in classes.items() if times > 1] == []
    assert len([name for name, times in names.items() if times > 1 and name not in ("base", "__init__")]) <= 8
