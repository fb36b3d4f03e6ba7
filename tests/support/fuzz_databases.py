"""Forged databases: each is refused with a DatabaseError, or goes on with sound numbers.

    python tests/storage/fuzz_databases.py [count] [seed]

Databases of live learners and choosers are changed in one to three places: a number, an entry of a header, a column of
a row, or bytes of the file. Checksums are made to fit. What opens makes 100 calls, under a limit on the memory.
"""

import json
import math
import os
import resource
import sqlite3
import struct
import sys
import tempfile
import traceback
import warnings
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from longterm import AOGD, LiveLearner
from longterm.errors import BrokenBoundWarning, DatabaseError, HorizonWarning, LongtermError
from longterm.learners import AdaptiveAFTRL
from longterm.money import (
    EXP3IX,
    Budget,
    Chooser,
    EntropicDual,
    InverseGapWeighting,
    LinearUCB,
    PrimalDual,
    RidgeRegressor,
    TableRegressor,
    ThompsonSampling,
)
from longterm.problems import two_dimensional

PROBLEM = two_dimensional()
CALLS = 100
SPARE = 512 * 2**20
"""Bytes that opening and playing may take beyond what the imports took."""
WORDS = (0, 1, -1, 7, 2**31, 2**53, 2**63 - 1, -(2**63), 1e308, -1e308, math.nan, math.inf, -math.inf, 1e-320, -0.5)


def finite(*values):
    for value in values:
        assert np.isfinite(value).all(), "a number is not finite"


class Live:
    """A live learner with open, told, skipped and expired rounds."""

    def __init__(self, make):
        self.make = make

    def open(self, path):
        options = {"max_in_flight": 40, "expire_after": 12, "durability": "relaxed"}
        return LiveLearner.open(path, self.make(), PROBLEM, **options)

    def rounds(self, live, count, *, keep_open=False):
        for i in range(count):
            token = live.ask()
            if i % 7 == 3:
                live.skip(token)
            elif not (keep_open and i % 5 == 0):
                live.tell(token, loss_parameters=[np.array([math.cos(i), math.sin(i)])])

    def prepare(self, live, played):
        self.rounds(live, played, keep_open=True)

    def play(self, live):
        for token in live.in_flight:
            live.tell(token, loss_parameters=[np.array([0.1, 0.2])])
        self.rounds(live, CALLS)
        state = live.state
        finite(state.x, state.signed_violation, state.hard_violation)
        assert state.asked == state.told + state.skipped + state.expired + state.in_flight


class Chooses:
    """A chooser with open, settled, half-settled and skipped requests."""

    def __init__(self, primal, context=()):
        self.rule = PrimalDual(primal, EntropicDual(0.2, step=0.05), Budget(80.0, 1.0), 4000, replan=True)
        self.context = context

    def open(self, path):
        return Chooser.open(path, self.rule, seed=3, expire_after=40, durability="relaxed")

    def prepare(self, chooser, count):
        for i in range(count):
            choice = chooser.act(self.context, costs=[0.0, 0.2, 0.5], bounds=[0.1, 0.3, 0.6])
            if choice.action is None:
                continue
            if i % 5 < 2:
                chooser.settle(choice, [0.2, 0.5, 0.8][choice.action], 0.05)
            elif i % 5 == 2:
                chooser.settle(choice, cost=0.1)
            elif i % 5 == 3:
                chooser.skip(choice)

    def play(self, chooser):
        before = chooser.committed
        assert (chooser.spent >= 0).all()
        for choice in list(chooser.pending.values())[:20]:
            chooser.settle(choice, rewards=[0.2, 0.5, 0.8], costs=[0.0, 0.1, 0.4])
        self.prepare(chooser, CALLS)
        finite(chooser.spent, chooser.committed, chooser.prices)
        assert (chooser.spent >= 0).all(), "negative money"
        assert (chooser.committed <= np.maximum(80.0, before) + 20 * 0.4).all(), "over the cap"


KINDS = {
    "live, a-ogd": Live(lambda: AOGD.for_problem(PROBLEM)),
    "live, adaptive": Live(lambda: AdaptiveAFTRL.for_problem(PROBLEM)),
    "chooser, thompson": Chooses(ThompsonSampling(3, 2, exploration=1.0), (1.0, 0.5)),
    "chooser, ucb": Chooses(LinearUCB(3, 2), (1.0, 0.5)),
    "chooser, exp3": Chooses(EXP3IX(3)),
    "chooser, ridge": Chooses(InverseGapWeighting(3, RidgeRegressor(2)), (1.0, 0.5)),
    "chooser, cells": Chooses(InverseGapWeighting(3, TableRegressor(2)), (1.0,)),
}


def word(rng):
    return WORDS[rng.integers(len(WORDS))]


def change_bytes(rng, data):
    """Change eight bytes to a number, flip a bit, cut, or append."""
    data, how = bytearray(data), rng.random()
    if how < 0.6 and len(data) >= 8:
        value = word(rng)
        place = int(rng.integers(len(data) - 7))
        if rng.random() < 0.7:
            place -= (place - len(data)) % 8
        packed = struct.pack("<d" if isinstance(value, float) or rng.random() < 0.3 else "<q", value)
        data[max(place, 0) : max(place, 0) + 8] = packed
    elif how < 0.85 and data:
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    elif how < 0.93:
        data = data[: rng.integers(len(data) + 1)]
    else:
        data += rng.bytes(int(rng.integers(1, 20)))
    return bytes(data)


def change_header(rng, data):
    """Change an entry of the header of packed bytes."""
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    entries = header["arrays"]
    entry = entries[rng.integers(len(entries))]
    how = rng.integers(4)
    if how == 0:
        entry[0] = f"{entry[0]}x"
    elif how == 1:
        entry[1] = ["<f8", "<i8", "<f4", "|b1", "<u8", "|O"][rng.integers(6)]
    elif how == 2:
        entry[2] = [None, [], [2**40], [0], [-1], [1, 2]][rng.integers(6)]
    else:
        entries.remove(entry)
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + data[4 + length :]


def forge(rng, path):
    connection = sqlite3.connect(path)
    try:
        how = rng.random()
        if how < 0.45:
            ((state,),) = connection.execute("SELECT state FROM longterm_objects").fetchall()
            whole = state[:-4]  # the checksum is at the end
            body = change_header(rng, whole) if rng.random() < 0.2 else change_bytes(rng, whole)
            state = body + struct.pack("<I", zlib.crc32(body))
            connection.execute("UPDATE longterm_objects SET state = ?", (state,))
        elif how < 0.8:
            table = ["longterm_rounds", "longterm_parts"][int(rng.random() < 0.3)]
            rows = connection.execute(f"SELECT number, content FROM {table}").fetchall()
            if not rows:
                return
            number, content = rows[rng.integers(len(rows))]
            column = ["content", "content", "content", "number", "status", "epoch", "opened", "changed"][
                rng.integers(8)
            ]
            if table == "longterm_parts":
                column = ["content", "number"][int(rng.random() < 0.2)]
            value = change_bytes(rng, content) if column == "content" else word(rng)
            if rng.random() < 0.1:
                connection.execute(f"DELETE FROM {table} WHERE number = ?", (number,))
            else:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE number = ?", (value, number))
        else:
            column = ["version", "changed", "kind", "specification", "state"][rng.integers(5)]
            value = [word(rng), "text", b"bytes", "[" * 5000][rng.integers(4)]
            connection.execute(f"UPDATE longterm_objects SET {column} = ?", (value,))
        connection.commit()
    except (sqlite3.Error, OverflowError, ValueError, TypeError, struct.error):
        pass  # the database refuses the value, or an earlier change left nothing to change
    finally:
        connection.close()


def forge_file(rng, path):
    data = change_bytes(rng, path.read_bytes())
    path.write_bytes(data)


def limit_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + SPARE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main(count, seed):
    rng = np.random.default_rng(seed)
    warnings.simplefilter("ignore", BrokenBoundWarning)
    warnings.simplefilter("ignore", HorizonWarning)
    found, wrong = Counter(), 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        originals = {}
        for name, kind in KINDS.items():
            for played in (3, 60):
                path = Path(folder) / f"{len(originals)}.db"
                with kind.open(path) as thing:
                    kind.prepare(thing, played)
                originals[name, played] = path
        limit_memory()
        names = list(originals)
        for i in range(count):
            name, played = names[rng.integers(len(names))]
            kind, path = KINDS[name], Path(folder) / "forged.db"
            for end in ("", "-wal", "-shm"):
                Path(f"{path}{end}").unlink(missing_ok=True)
            path.write_bytes(originals[name, played].read_bytes())
            if rng.random() < 0.25:
                forge_file(rng, path)
            else:
                for _ in range(rng.integers(1, 4)):
                    forge(rng, path)
            try:
                with kind.open(path) as thing:
                    kind.play(thing)
                found["opened"] += 1
            except DatabaseError as error:
                found[error.reason] += 1
            except LongtermError as error:  # a forged row may hold a choice or a decision that later calls refuse
                found[f"later {type(error).__name__}"] += 1
            except BaseException:
                wrong += 1
                sys.stdout.write(f"database {i}, {name}, {played} played:\n")
                traceback.print_exc(limit=-6)
    sys.stdout.write(f"{count} databases, {wrong} wrong, {dict(found)}\n")
    return wrong


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(bool(main(*(arguments + [1000, 0][len(arguments) :]))))
