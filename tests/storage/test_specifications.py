"""Specifications name public things only, and stay as files have them."""

import json
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

import specified
import zoo
from longterm import AOGD, LiveLearner
from longterm._base.registered import registered
from longterm.errors import DatabaseError
from longterm.problems import two_dimensional
from longterm.storage.specification import difference, specification

FUNCTIONS = {
    "common_mean",
    "correlation",
    "doubly_stochastic",
    "elastic_net",
    "first_and_others",
    "full_decomposition",
    "psd_in_ball",
}
"""The registered names of the package's functions."""


def objects_in(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] * isinstance(value, dict) + [found for item in inner for found in objects_in(item)]


def require_alike(stored: Any, made: Any, place: str) -> None:
    """Compare numbers up to rounding and arrays by their shape, since constants are computed."""
    if isinstance(stored, dict) and isinstance(made, dict):
        assert list(stored) == list(made), place
        for key in stored:
            if key != "sha256":
                require_alike(stored[key], made[key], f"{place}.{key}")
    elif isinstance(stored, list) and isinstance(made, list):
        assert len(stored) == len(made), place
        for old, new in zip(stored, made, strict=True):
            require_alike(old, new, place)
    elif isinstance(stored, float):
        assert made == pytest.approx(stored, rel=1e-9, abs=1e-12), place
    else:
        assert (type(stored), stored) == (type(made), made), place


def test_specifications_are_as_files_have_them():
    """A renamed field, class or function makes a difference here. It would lock users out of what they stored."""
    stored, made = json.loads(specified.GOLDEN.read_text()), specified.specifications()
    assert sorted(made) == sorted(stored), "write the file again: python tests/support/specified.py"
    for name, value in made.items():
        require_alike(stored[name], json.loads(json.dumps(value)), name)


def test_specifications_name_public_things_only():
    made = specified.specifications() | {name: specification(game[2]) for name, game in zoo.games().items()}
    for name, value in made.items():
        for part in objects_in(value):
            assert not any(key.startswith("_") for key in part), name
            assert not part.get("class", "").startswith("_"), name
            assert part.get("method", "project") == "project", name
            own = {"<lambda>", "onto_half_space"}  # functions of the zoo
            assert part.get("function", "elastic_net") in FUNCTIONS | own, name


def test_what_is_derived_or_private_is_left_out():
    @dataclass
    class Rule:
        rate: float
        checked: str = "yesterday"
        _cache: dict[str, float] = field(init=False, default_factory=dict)

    assert specification(Rule(0.5)) == {"class": "Rule", "rate": 0.5}


def test_plain_classes_are_described_by_their_constructor():
    class Rule:
        def __init__(self, rate, steps):
            self._rate, self.steps, self.rounds, self._cache = rate, steps, 7, {}

    assert specification(Rule(0.5, [1, 2])) == {"class": "Rule", "rate": 0.5, "steps": [1, 2]}
    assert specification(Rule(0.5, object())) == {"class": "Rule", "rate": 0.5, "steps": {"class": "object"}}


def test_functions_are_named_without_their_module():
    def mine(x, by):
        return x / by

    assert specification(mine) == {"function": "mine"}
    assert specification(partial(registered("half")(mine), by=2)) == {"function": "half", "by": 2}
    assert specification(partial(mine, 1)) == {"function": "half", "arguments": [1]}


def test_differences_in_words():
    assert difference({"holds": "worst"}, {"holds": "worst"}, "") is None
    assert difference([1, [2]], [1, [3]], "sizes") == "sizes[1][0] was 2, is 3"
    assert difference({"rule": specification(np.inf)}, {"rule": 1.0}, "") == "rule was 'inf', is 1.0"
    one, other = ({"class": name, "rate": 0.5} for name in ("Rule", "Law"))
    assert difference({"rule": one}, {"rule": other}, "") == "rule was Rule(rate=0.5), is Law(rate=0.5)"
    assert difference({"rule": one}, {"rule": one | {"rate": 0.6}}, "") == "rule.rate was 0.5, is 0.6"
    step = {"class": "Dual", "step": 0.1}
    old, new = {"dual": step, "horizon": 10}, {"dual": step | {"step": 0.2}, "horizon": 20}
    assert difference({"rule": old}, {"rule": new}, "") == "rule.horizon was 10, is 20; rule.dual.step was 0.1, is 0.2"
    assert len(difference({"a": list(range(10_000))}, {"a": 1}, "")) < 350


def test_an_object_of_another_kind_of_learner_is_refused_in_words(tmp_path):
    problem = two_dimensional()
    LiveLearner.open(tmp_path / "s.db", AOGD.for_problem(problem), problem).close()
    other = AOGD.for_problem(problem, steps="strongly convex")
    with pytest.raises(DatabaseError, match=r"learner\.schedule was ConvexSchedule\(.*\), is StronglyConvex.*\("):
        LiveLearner.open(tmp_path / "s.db", other, problem)
