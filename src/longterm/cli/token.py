"""The command `longterm token`: a random token for callers of a service, and the table with its hash."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import tyro

from longterm.errors import InputError
from longterm.server.tokens import hash_of, new_token


@dataclass(frozen=True)
class TokenCommand:
    """Make a random token for a caller, and print its table for the service file.

    The token is printed once, and the file contains only its hash. To replace a token, add the new hash to the list,
    give the caller the new token, and remove the old hash later.

    for example:
      longterm token gateway
    """

    name: tyro.conf.Positional[str]
    """The name of the caller in the service file and in the access log."""

    def run(self) -> None:
        """Print the token and the table."""
        if not self.name.isprintable() or not 0 < len(self.name) <= 60:
            raise InputError("name", "is not a name", "Give 1 to 60 printable characters")
        token = new_token()
        sys.stdout.write(f"The token, which is not stored: {token}\n\n")
        sys.stdout.write(f'[tokens.{json.dumps(self.name)}]\nhashes = ["{hash_of(token)}"]\n')
        sys.stdout.write('spend = []        # objects such as "models", accounts such as "money/search"\n')
        sys.stdout.write("read = false      # figures, metrics and the page\n")
        sys.stdout.write("admin = false     # change limits, correct, reset\n")
