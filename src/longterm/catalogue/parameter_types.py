"""Types of the parameters that a specification can set, and the values that fit them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

_NAMES: dict[Any, str] = {
    float: "a number",
    int: "a whole number",
    str: "text",
    bool: "true or false",
    Mapping: "a table",
    dict: "a table",
    list: "a list",
}


def is_plain(hint: Any) -> bool:
    """Return whether a specification can express the type: a number, text, a boolean, a choice, or None of these."""
    if _is_union(hint):
        return any(is_plain(one) for one in get_args(hint) if one is not NoneType)
    return get_origin(hint) is Literal or hint in (float, int, str, bool, Any)


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value from a specification has the type that a builder asks for."""
    if _is_union(hint):
        plain = [one for one in get_args(hint) if one is NoneType or is_plain(one)]
        return any(fits(value, one) for one in (plain if is_plain(hint) else get_args(hint)))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint in (None, NoneType):
        return value is None
    if hint in (float, int):
        return isinstance(value, (int, float) if hint is float else int) and not isinstance(value, bool)
    kind = get_origin(hint) if get_origin(hint) in (list, dict, Mapping) else hint
    return isinstance(value, kind) if isinstance(kind, type) else True


def describe_type(hint: Any) -> str:
    """Return the type in words, for an error message."""
    if _is_union(hint):
        return " or ".join(describe_type(one) for one in get_args(hint) if is_plain(one))
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(json.dumps(one) for one in get_args(hint))
    return _NAMES.get(get_origin(hint) or hint, str(hint))


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)
