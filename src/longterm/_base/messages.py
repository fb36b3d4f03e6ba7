"""Words for messages: the type of a value, a name that was meant, and warnings at the caller's line."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn and point at the first line outside of this package, however deep the call."""
    import inspect  # late: importing the package must stay fast
    import warnings

    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "longterm":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def kind_of(value: object) -> str:
    """Return the name of a value's type with its article, for messages.

    Examples
    --------
    >>> from longterm._base.messages import kind_of
    >>> kind_of([1]), kind_of(3), kind_of(int)
    ('a list', 'an int', 'the class int')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{'an' if type(value).__name__[0].lower() in 'aeiou' else 'a'} {type(value).__name__}"


def shown(value: object) -> str:
    """Return the beginning of a value's repr for a message; Python refuses to print integers of 4,300 digits."""
    try:
        return f"{value!r:.60}"
    except ValueError:
        return "a huge number"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a suggestion to append to "is not known", or "" if no known name is similar.

    Examples
    --------
    >>> from longterm._base.messages import did_you_mean
    >>> did_you_mean("agod", ["aogd", "lewa"]), did_you_mean("x", ["aogd"])
    (" (did you mean 'aogd'?)", '')
    >>> did_you_mean("doubly", ["doubly_stochastic"])
    " (did you mean 'doubly_stochastic'?)"
    """
    asked, plain = str(name).casefold(), {one.casefold(): one for one in known}
    near = [plain[one] for one in get_close_matches(asked, plain, n=1, cutoff=0.6)]
    if not near and len(asked) >= 3:  # the beginning of a name, or a word of it
        near = [one for folded, one in plain.items() if asked in folded]
    return f" (did you mean {near[0]!r}?)" if near else ""
