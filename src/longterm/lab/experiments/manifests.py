"""Differences between the specification in a folder's manifest and the one to run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_LISTED = 3
MAX_CHARACTERS = 100


def only_adds(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether the new specification differs only by additional learners or problems.

    Examples
    --------
    >>> from longterm.lab.experiments.manifests import only_adds
    >>> only_adds({"learners": [1]}, {"learners": [1, 2]}), only_adds({"learners": [1]}, {"learners": [2]})
    (True, False)
    """
    differing = {key for key in {*old, *new} if old.get(key) != new.get(key)}
    return bool(differing) and all(
        key in ("learners", "problems") and all(one in new.get(key, []) for one in old.get(key, []))
        for key in differing
    )


def describe_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the keys that differ and how; of learners and problems, those removed and added.

    Examples
    --------
    >>> from longterm.lab.experiments.manifests import describe_differences
    >>> old = {"rounds": 512, "problems": [{"name": "routing"}, {"name": "doubly_stochastic", "size": 4}]}
    >>> describe_differences(old, {"rounds": 300, "problems": [{"name": "routing"}]})
    'problems without doubly_stochastic size=4; rounds was 512, now 300'
    """
    keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    return "; ".join(part for key in keys for part in _describe(key, old.get(key), new.get(key)))


def _describe(key: str, old: Any, new: Any) -> Iterator[str]:
    removed = [one for one in old or [] if one not in (new or [])] if _is_list_of_tables(old) else []
    added = [one for one in new or [] if one not in (old or [])] if _is_list_of_tables(new) else []
    if not (removed or added):
        yield f"{key} was {_brief(old)}, now {_brief(new)}"
    if removed:
        yield f"{key} without {_list_briefly(removed)}"
    if added:
        yield f"{key} with {_list_briefly(added)}"


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, Mapping) for one in value)


def _list_briefly(tables: Sequence[Mapping[str, Any]]) -> str:
    more = f" and {len(tables) - MAX_LISTED} more" if len(tables) > MAX_LISTED else ""
    return ", ".join(map(_brief, tables[:MAX_LISTED])) + more


def _brief(value: Any) -> str:
    if isinstance(value, Mapping) and "name" in value:  # a learner or a problem, as on the command line
        in_name = {"learner", "name", "role", *(key for key in value if f"{key} = " in str(value["name"]))}
        parameters = (f"{key}={_brief(value[key])}" for key in value if key not in in_name)
        return " ".join([str(value["name"]), *parameters])
    text = "left out" if value in (None, []) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 3]}…"
