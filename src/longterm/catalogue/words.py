"""Names with parameters as words: ``aogd beta=0.5``."""

from __future__ import annotations

import shlex
import tomllib
from typing import Any

from longterm.errors import InputError


def parse_words(text: str, argument: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters in the words of a command line."""
    remedy = "Give: name key=value key='two words'"
    try:
        name, *pairs = shlex.split(text)
    except ValueError as error:
        raise InputError(argument, f"{text!r} cannot be read ({error})", remedy) from error
    parameters = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InputError(argument, f"{pair!r} is not key=value", remedy)
        parameters[key] = _parse_value(value)
    return name, parameters


def _parse_value(text: str) -> Any:
    """Return a value as TOML reads it; text that is not TOML is returned as it is."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except (ValueError, RecursionError) as error:  # too many digits or brackets
        raise InputError(text[:40], f"cannot be read ({error})", "Give a number, text or a short list") from error
