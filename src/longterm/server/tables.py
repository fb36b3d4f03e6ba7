"""Tables of the settings file: what pydantic validates, and its errors in this library's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from longterm._base.messages import did_you_mean
from longterm.catalogue.entries import Entry
from longterm.errors import InputError

T = TypeVar("T")


class Table(BaseModel):
    """A table: its fields are the keys. Unknown keys are refused, and nothing is converted but whole numbers."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _require_known_keys(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise PydanticCustomError("longterm", "is not a table", {"remedy": "Write keys below its name"})
        for key in given:
            if key not in cls.model_fields:
                detail = {"key": key, "remedy": f"Choose from {sorted(cls.model_fields)}"}
                raise PydanticCustomError("longterm", f"is not a key here{did_you_mean(key, cls.model_fields)}", detail)
        return given


B = TypeVar("B", bound=Table)


def read_table(shape: type[B], given: Any, where: str) -> B:
    """Return the validated table. Raise an InputError that names the place of the first fault below `where`."""
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    detail: Mapping[str, Any] = first.get("ctx", {})
    place = where
    for part in (*first["loc"], *([detail["key"]] if "key" in detail else [])):
        place += f"[{part}]" if isinstance(part, int) else f".{part}"
    if first["type"] == "missing":
        raise InputError(place, "is missing", "Add it; docs/reference/file_formats.md lists the keys")
    if first["type"] == "longterm":
        raise InputError(place, first["msg"], detail["remedy"])
    message = first["msg"][:1].lower() + first["msg"][1:]
    raise InputError(place, f"{first['input']!r:.60}: {message}", "Correct it, or leave it out for its default")


def at(where: str, build: Callable[..., T], *place: Any, **given: Any) -> T:
    """Call a function. Its errors name the table that the argument is in."""
    try:
        return build(*place, **given)
    except InputError as error:
        argument = error.argument if error.argument.startswith(where) else f"{where}.{error.argument}"
        raise InputError(argument, error.what, error.remedy) from error


def built(where: str, kind: Any, given: Mapping[str, Any]) -> Any:
    """Return an object of a class whose arguments are the keys of a table."""
    Entry(kind.__name__, kind).check(given, where)
    return at(where, kind, **given)


def chosen(where: str, given: Mapping[str, Any], known: Mapping[str, Any], **fixed: Any) -> Any:
    """Return an object whose class a table names under `kind`. `fixed` are arguments that are not in the file."""
    kind: Any = given.get("kind")
    if kind not in known:
        what = f"{kind!r} is not known{did_you_mean(kind, known)}" if "kind" in given else "is missing"
        raise InputError(f"{where}.kind", what, f"Choose from {sorted(known)}")
    fields = known[kind].__dataclass_fields__
    arguments = {key: value for key, value in given.items() if key != "kind"}
    return built(where, known[kind], arguments | {key: value for key, value in fixed.items() if key in fields})
