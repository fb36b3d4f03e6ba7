"""Exceptions and warnings. Every message names the argument, the round if there is one, and the remedy."""

from __future__ import annotations

from typing import Any

__all__ = [
    "AlreadyToldError",
    "AssumptionWarning",
    "BrokenBoundError",
    "BrokenBoundWarning",
    "ClosedHoldError",
    "CompileCacheWarning",
    "DataError",
    "DatabaseError",
    "ExpiredTokenError",
    "HorizonWarning",
    "InUseError",
    "InputError",
    "LongtermError",
    "NonFiniteError",
    "OutOfBudgetError",
    "OverspentWarning",
    "RepeatedPositionError",
    "ScheduleError",
    "SkippedTokenError",
    "SnapshotError",
    "StorageError",
    "StreamEndedError",
    "TokenError",
    "UnaffordableError",
    "UnknownTokenError",
    "WindowFullError",
]


class LongtermError(Exception):
    """Base class of the library's exceptions. Pickling keeps all attributes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[LongtermError], args: tuple[Any, ...], attributes: dict[str, Any]) -> LongtermError:
    """Rebuild an exception from its attributes. Pickle alone would call the class with the message only."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InputError(LongtermError, ValueError):
    """An argument cannot be used. Nothing was changed.

    Parameters
    ----------
    argument, what, remedy : str
        The name of the argument, the fault, and how to correct it.
    round : int, optional
        The round t ≥ 1; None outside a run.
    trace : Trace, optional
        If a run was stopped: its trace up to the previous round, for ``resume=``.
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
    """A value exceeds its declared bound, so no theorem covers the run."""


class StreamEndedError(InputError):
    """A stream has fewer rounds than requested."""


class ScheduleError(InputError):
    """A schedule violates one of the conditions C1–C3."""


class UnaffordableError(InputError):
    """No allowed action is affordable at present."""


class RepeatedPositionError(InputError):
    """A message of a queue was applied before. It counts once."""


class ClosedHoldError(InputError):
    """A hold was settled with another cost, or released, before. Nothing was changed."""


class DataError(LongtermError):
    """A data file is missing, damaged, malformed or unexpected. Nothing of it was kept.

    Parameters
    ----------
    file : str or pathlib.Path
        The file.
    reason, remedy : str
        The fault, and how to correct it.
    line : int, optional
        The number of the faulty line, counted from 1.
    """

    def __init__(self, file: object, reason: str, remedy: str, *, line: int | None = None) -> None:
        self.file = str(file)
        self.line = line
        self.reason = reason
        self.remedy = remedy
        place = "" if line is None else f", line {line}"
        super().__init__(f"{file}{place}: {reason}. {remedy}.")


class BrokenBoundWarning(UserWarning):
    """A declared bound was exceeded in a run that continues on request."""


class OverspentWarning(UserWarning):
    """A pacer was charged more than its remaining budget. The charge is recorded and bidding stops."""


class HorizonWarning(UserWarning):
    """More requests come than a rule was made for. Its caps still hold."""


class AssumptionWarning(UserWarning):
    """A theorem's assumption does not hold for these hyper-parameters. The run continues without the theorem."""


class BudgetWarning(UserWarning):
    """A linear model's budget leaves nothing to predict with, or has no effect."""


class ManyFeaturesWarning(UserWarning):
    """A column of text becomes more features than usual."""


class IdentifierWarning(UserWarning):
    """A column of numbers looks like an identifier."""


class KinkWarning(UserWarning):
    """Automatic differentiation may differ from the library's analytic subgradient at a kink."""


class CompileCacheWarning(UserWarning):
    """Compiled kernels cannot be cached on disk and are compiled again in every process."""


class TokenError(InputError):
    """A token that a live learner cannot use. Nothing was changed.

    Parameters
    ----------
    number : int
        The number of the token's round. 0 if it has none.
    what, remedy : str
        The fault, and how to correct it.
    """

    def __init__(self, number: int, what: str, remedy: str) -> None:
        self.number = number
        super().__init__("token", what, remedy, round=number or None)  # 0: it has no number


class UnknownTokenError(TokenError):
    """A token that this learner did not issue."""


class AlreadyToldError(TokenError):
    """The feedback of this token was given before. Feedback counts once."""


class SkippedTokenError(TokenError):
    """A token that was cancelled by `skip`."""


class ExpiredTokenError(TokenError):
    """A token older than the learner's `expire_after`."""


class WindowFullError(LongtermError, RuntimeError):
    """The maximum number of rounds is in flight, so no new round can start."""


class OutOfBudgetError(LongtermError, RuntimeError):
    """A ledger's account cannot hold an amount. Nothing was changed.

    Parameters
    ----------
    account : str
        The account that is full: the one named, or one that it belongs to.
    amount : int
        The amount that was asked for, in the ledger's unit.
    available : int
        The largest amount that could be held.
    """

    def __init__(self, account: str, amount: int, available: int) -> None:
        self.account = account
        self.available = available
        super().__init__(
            f"account {account!r} cannot hold {amount}: {available} are available. Wait for open holds to be settled, "
            "or for its period to end, or raise its limit."
        )


class InUseError(LongtermError, RuntimeError):
    """An object was called while another call on it was running. The second call changed nothing.

    Parameters
    ----------
    what, remedy : str
        The two calls, and how to avoid that they meet.
    """

    def __init__(self, what: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(f"{what}. {remedy}.")


class StorageError(LongtermError):
    """A file or database that cannot be used. Neither it nor any object was changed.

    Parameters
    ----------
    path : str or pathlib.Path
        The file or URL.
    reason : str
        One or two words: "truncated", "corrupted", "foreign", "busy", "another definition", "missing", …
    what, remedy : str
        The fault, and how to correct it.
    """

    def __init__(self, path: Any, reason: str, what: str, remedy: str) -> None:
        self.path = path
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{path} ({reason}): {what}. {remedy}.")


class SnapshotError(StorageError):
    """A snapshot file that cannot be used."""


UNAVAILABLE = "unavailable"
"""The reason of a `DatabaseError` if the server of the database cannot be reached."""
RESTORE = "Restore a backup"
"""The remedy for a damaged database. The message adds the command."""


class DatabaseError(StorageError):
    """A database cannot be used, or cannot be used at present.

    The call that raised it has not happened, unless the connection broke while its transaction was committed.

    Parameters
    ----------
    path : str or pathlib.Path
        The file or URL.
    reason : str
        One or two words: "busy", "full", "moved", …
    what, remedy : str
        The fault, and how to correct it.
    """

    def __init__(self, path: Any, reason: str, what: str, remedy: str) -> None:
        if remedy == RESTORE:
            is_postgres = str(path).startswith(("postgresql://", "postgres://"))
            command = "pg_restore" if is_postgres else f"longterm state restore FILE {path}"
            remedy = f"{RESTORE}: {command}"
        super().__init__(path, reason, what, remedy)
