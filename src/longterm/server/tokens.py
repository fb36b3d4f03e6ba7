"""Who may call: tokens with a name, an expiry and permissions. The settings file holds hashes, never secrets."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from longterm.errors import InputError, LongtermError

SHORTEST_TOKEN = 16
HASH = "sha256:"
"""The beginning of a hash. Tokens are long and random, so that one round of SHA-256 cannot be inverted by guessing."""


class ForbiddenError(LongtermError):
    """A token that is valid, but not for this call."""


@dataclass(frozen=True)
class Caller:
    """Someone who showed a valid token, or a process of this machine where no token is needed.

    Parameters
    ----------
    name : str
        For the logs.
    spend : frozenset of str, optional
        Objects, and accounts as ``ledger/account``, whose money may be spent; None: all.
    read : bool
        May read the figures of all objects.
    admin : bool
        May change limits, correct and reset.
    """

    name: str
    spend: frozenset[str] | None = None
    read: bool = True
    admin: bool = True

    def require_some(self, name: str) -> None:
        """Raise a ForbiddenError unless the token may spend from an object with this name, or from accounts of it."""
        if self.spend is not None and name not in {place.partition("/")[0] for place in self.spend}:
            raise self._forbidden(f"spend from {name!r}", f"add {name!r} to the list spend")

    def require_spend(self, name: str, account: str | None = None, *, is_named: bool = True) -> None:
        """Raise a ForbiddenError unless the token may spend from this object, or from this account of a ledger.

        The error has the account only if the request named it.
        """
        place = name if account is None else f"{name}/{account}"
        if self.spend is None or name in self.spend or place in self.spend:
            return
        if is_named:
            raise self._forbidden(f"spend from {place!r}", f"add {place!r} to the list spend")
        raise self._forbidden(f"spend from the account of this key of {name!r}", "add the account to the list spend")

    def require_read(self) -> None:
        """Raise a ForbiddenError unless the token may read figures."""
        if not self.read:
            raise self._forbidden("read figures", "set read = true")

    def require_admin(self) -> None:
        """Raise a ForbiddenError unless the token may administer."""
        if not self.admin:
            raise self._forbidden("administer", "set admin = true")

    def _forbidden(self, what: str, remedy: str) -> ForbiddenError:
        text = f"the token {self.name!r} may not {what}. To allow it, {remedy} in its table of the service file."
        return ForbiddenError(text)


LOCAL = Caller("this machine")
"""The caller where no token is needed."""
MASTER = Caller("LONGTERM_TOKEN")
"""The caller that shows the token of the environment. It may do everything."""


@dataclass(frozen=True)
class KnownToken:
    """A token of the service's file.

    Parameters
    ----------
    caller : Caller
        Whoever shows it.
    hashes : tuple of str
        Of the secrets that are valid. Two are for the time in which one replaces the other.
    expires : float
        Seconds since 1970.
    """

    caller: Caller
    hashes: tuple[str, ...]
    expires: float = float("inf")


class Tokens:
    """All tokens of a service.

    Parameters
    ----------
    master : str
        The token of the environment; "" for none.
    known : iterable of KnownToken
        The tokens of the file.
    """

    def __init__(self, master: str = "", known: Iterable[KnownToken] = ()) -> None:
        self._by_hash = {digest: one for one in known for digest in one.hashes}
        if master:
            self._by_hash[hash_of(master)] = KnownToken(MASTER, (hash_of(master),))

    def __bool__(self) -> bool:
        return bool(self._by_hash)

    def caller(self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Caller | tuple[str, str]:
        """Return who makes a request, or what is wrong and the remedy."""
        if self:
            given = hash_of(_given_token(headers))
            found = next((one for digest, one in self._by_hash.items() if hmac.compare_digest(digest, given)), None)
            if found is None:
                return "the token is missing or wrong", "Send Authorization: Bearer <token>"
            if time.time() > found.expires:
                return f"the token {found.caller.name!r} has expired", "Ask the operator for a new one"
            return found.caller
        host = headers.get(b"host", b"").decode("latin-1")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        client = scope.get("client")
        if client is None or not is_loopback(client[0]) or not is_loopback(name):
            return "only this machine may call", "Start the server with LONGTERM_TOKEN, or with tokens in its file"
        return LOCAL


def hash_of(token: str | bytes) -> str:
    """Return the hash of a token, as the service's file has it."""
    content = token.encode() if isinstance(token, str) else token
    return HASH + hashlib.sha256(content).hexdigest()


def is_hash(text: Any) -> bool:
    """Return whether this is a hash of a token, as `hash_of` makes it."""
    if not isinstance(text, str) or not text.startswith(HASH):
        return False
    digits = text.removeprefix(HASH)
    return len(digits) == 64 and not set(digits) - set("0123456789abcdef")


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(32)


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether a host is this machine only: localhost, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_token(token: str, host: str, *, in_file: bool = False) -> str:
    """Return the token of a server on this address. Raise an InputError if it needs one, or a longer one."""
    if not token and not in_file and not is_loopback(host):
        what = f"{host} can be reached by other machines, and there is no token"
        remedy = "Set LONGTERM_TOKEN to a long random text, add a [tokens.NAME] to the file, or use 127.0.0.1"
        raise InputError("host", what, remedy)
    if token and len(token) < SHORTEST_TOKEN:
        remedy = f"Use at least {SHORTEST_TOKEN} characters: longterm token makes one"
        raise InputError("LONGTERM_TOKEN", f"has {len(token)} characters", remedy)
    return token


def _given_token(headers: Mapping[bytes, bytes]) -> bytes:
    scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""
