"""What can go wrong, said so that the reader knows what to do next.

Every message names the argument, the round where there is one, and the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def kind_of(value: object) -> str:
    """What a value is, with its article, for messages.

    Examples
    --------
    >>> from longterm.errors import kind_of
    >>> kind_of([1]), kind_of(3), kind_of(int)
    ('a list', 'an int', 'the class int')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{'an' if type(value).__name__[0].lower() in 'aeiou' else 'a'} {type(value).__name__}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A question to put behind "is not known", or nothing where no known name is near.

    Examples
    --------
    >>> from longterm.errors import did_you_mean
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


class LongtermError(Exception):
    """Base of everything this library raises on purpose. It travels between processes with all that it says."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _travelled, (type(self), self.args, self.__dict__)


def _travelled(kind: type[LongtermError], args: tuple[Any, ...], attributes: dict[str, Any]) -> LongtermError:
    """As it was raised elsewhere: pickle would call the class with the message alone."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InputError(LongtermError, ValueError):
    """An argument cannot be used. Nothing was changed.

    Parameters
    ----------
    argument, what, remedy : str
        The name of the offending argument, what is wrong with it, and what to do about it.
    round : int, optional
        The round t ≥ 1 it was meant for; None outside a run.
    trace : Trace, optional
        Where a run was stopped, its trace up to the round before, ready for ``resume=``.
    """

    def __init__(self, argument: str, what: str, remedy: str, *, round: int | None = None, trace: Any = None) -> None:
        self.argument = argument
        self.what = what
        self.remedy = remedy
        self.round = round
        self.trace = trace
        place = "" if round is None else f" in round {round}"
        super().__init__(f"{argument}{place}: {what}. {remedy}.")


class NonFiniteError(InputError):
    """A number that must be finite is NaN or infinite."""


class BrokenBoundError(InputError):
    """A value exceeds the bound that was declared for it, so no theorem covers the run."""


class StreamEndedError(InputError):
    """A stream had fewer rounds than were asked for."""


class ScheduleError(InputError):
    """A schedule fails one of the conditions C1–C3 that the theory asks for."""


class DataError(LongtermError):
    """A data file is missing, damaged, malformed or not what it should be. No part of it was kept.

    Parameters
    ----------
    file : str or pathlib.Path
        The file.
    reason, remedy : str
        What is wrong with it, and what to do about it.
    line : int, optional
        The line to blame, counted from 1.
    """

    def __init__(self, file: object, reason: str, remedy: str, *, line: int | None = None) -> None:
        self.file = str(file)
        self.line = line
        self.reason = reason
        self.remedy = remedy
        place = "" if line is None else f", line {line}"
        super().__init__(f"{file}{place}: {reason}. {remedy}.")


class BrokenBoundWarning(UserWarning):
    """A declared bound was exceeded, and the user chose to go on."""


class OverspentWarning(UserWarning):
    """A pacer was charged more than what was left. It is recorded; nothing more is bid."""


class HorizonWarning(UserWarning):
    """More requests come than a rule was made for. Its caps still hold."""


class AssumptionWarning(UserWarning):
    """A theorem's assumption does not hold for these hyper-parameters; the run goes on without the theorem."""


class CompileCacheWarning(UserWarning):
    """Compiled kernels cannot be kept on disk: they are compiled anew in every process."""


class TokenError(InputError):
    """A token that a live learner cannot use. Nothing was changed."""

    def __init__(self, number: int, what: str, remedy: str) -> None:
        self.number = number
        super().__init__("token", what, remedy, round=number or None)  # 0: it has no number


class UnknownTokenError(TokenError):
    """A token that this learner never gave out."""


class AlreadyToldError(TokenError):
    """The feedback of this token has been taken already; it counts once."""


class SkippedTokenError(TokenError):
    """A token that was given up by `skip`."""


class ExpiredTokenError(TokenError):
    """A token older than `expire_after`, the age that the learner was made for."""


class WindowFullError(LongtermError, RuntimeError):
    """As many rounds are in flight as were allowed, so no new one can be asked for."""


class InUseError(LongtermError, RuntimeError):
    """An object that is in the middle of a call was called again. The second call changed nothing."""

    def __init__(self, what: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(f"{what}. {remedy}.")


class SnapshotError(LongtermError):
    """A file that cannot be used. Neither the file nor any learner was changed.

    Attributes
    ----------
    path : the file.
    reason : in a word or two: "truncated", "corrupted", "foreign", "newer", "another learner", "missing", …
    remedy : what to do about it.
    """

    def __init__(self, path: Any, reason: str, what: str, remedy: str) -> None:
        self.path = path
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{path} ({reason}): {what}. {remedy}.")


class JournalError(SnapshotError):
    """A journal that cannot be read, or cannot be written to."""
