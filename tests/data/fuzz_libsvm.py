"""Fuzzed lines of LIBSVM's format: the library reads what a slow reference reads, and refuses what that refuses.

    python tests/data/fuzz_libsvm.py [lines] [seed]

Lines come in files of a few to a few dozen, and blocks of a few bytes to all of the file, so that every line meets
every kind of neighbour.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from longterm.data import DataError, files, read_libsvm

BLANKS, DIGITS = " \t\r\v\f", "0123456789"


# --- the reference: character by character, from the grammar alone --------------------------------------------


def number_at(line, place):
    """Where the number that begins here ends; None if there is none."""
    if line[place : place + 1] in ("+", "-"):
        place += 1
    whole = place
    while line[place : place + 1] and line[place] in DIGITS:
        place += 1
    digits = place - whole
    if line[place : place + 1] == ".":
        place += 1
        fraction = place
        while line[place : place + 1] and line[place] in DIGITS:
            place += 1
        digits += place - fraction
    if digits == 0:
        return None
    if line[place : place + 1] in ("e", "E"):
        mark = place
        place += 1
        if line[place : place + 1] in ("+", "-"):
            place += 1
        power = place
        while line[place : place + 1] and line[place] in DIGITS:
            place += 1
        if place == power:
            return mark
    return place


def reference(line, limit):
    """(label, entries) of a row, None for an empty line; a ValueError for a wrong one."""
    place = 0

    def skipped(place):
        while place < len(line) and line[place] in BLANKS:
            place += 1
        return place

    place = skipped(place)
    if place == len(line):
        return None
    label, place = number(line, place)
    entries, before = [], 0
    while True:
        after = skipped(place)
        if after == len(line):
            return label, entries
        if after == place:
            raise ValueError("no blank")
        place = after
        while place < len(line) and line[place] in DIGITS:
            place += 1
        if place == after or line[place : place + 1] != ":":
            raise ValueError("no index")
        index = int(line[after:place])
        if not before < index <= limit:
            raise ValueError("index out of order or range")
        value, place = number(line, place + 1)
        entries.append((index, value))
        before = index


def number(line, place):
    end = number_at(line, place)
    if end is None:
        raise ValueError("no number")
    value = float(line[place:end])
    if abs(value) == float("inf"):
        raise ValueError("not finite")
    return value, end


# --- lines ----------------------------------------------------------------------------------------------------

WORDS = ["1", "-1", "+1", "0", "2.5", ".5", "5.", "1e3", "1E-3", "-.5e+1", "007", "1e-400", "-0"]
WRONG = [
    "1e400",
    "3.",
    "+3",
    "1e1",
    "1_000",
    "٣",
    "\u00a0",
    "nan",
    "inf",
    "0x1",
    "",
    ".",
    "e",
    "1e",
    "--1",
    "1.5.2",
    "1-2",
    "#",
    "1d3",
]
PIECES = [" ", "  ", "\t", "\r", "\v", "\f", "\x1c", "\x00", ":", "::", ",", "e", ".", "-", "+", "_", "7", "\xff"]


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


def fuzzed_line(rng, share):
    words = [pick(rng, WORDS)]
    index = 0
    for _ in range(int(rng.integers(0, 5))):
        index += int(rng.integers(1, 4))
        words.append(f"{index}:{pick(rng, WORDS)}")
    line = pick(rng, ["", "", "", " ", "\t "]) + pick(rng, [" ", " ", "  ", "\t"]).join(words)
    line += pick(rng, ["", "", "", " ", "\r", " \t"])
    if rng.random() < share:  # something is wrong, or looks so
        how = rng.integers(4)
        if how == 0:
            place = int(rng.integers(len(line) + 1))
            line = line[:place] + pick(rng, PIECES) + line[place:]
        elif how == 1:
            place = int(rng.integers(len(line)))
            line = line[:place] + line[place + 1 :]
        elif how == 2:
            words[int(rng.integers(len(words)))] = pick(rng, WRONG) + pick(rng, ["", ":5", ":"])
            line = " ".join(words)
        else:
            line += f" {pick(rng, [index, 0, index + 1, 9, 10, 2**31])}:{pick(rng, WORDS + WRONG)}"
    return line if rng.random() > 0.03 else pick(rng, ["", " ", "\r"])


def main(count, seed):
    rng = np.random.default_rng(seed)
    done = refused = accepted = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        while done < count:
            share = pick(rng, [0.0, 0.03, 0.3])
            lines = [fuzzed_line(rng, share) for _ in range(pick(rng, [1, 2, 5, 40]))]
            files.BLOCK = pick(rng, [1, 7, 30, 200, 4 * 2**20])
            encoding = pick(rng, ["utf-8", "utf-8", "latin-1"])
            data = "\n".join(lines).encode(encoding, errors="replace") + pick(rng, [b"", b"\n"])
            path.write_bytes(data)
            accepted_here = compared(path, data.decode("latin-1").split("\n"))
            done, accepted, refused = done + len(lines), accepted + accepted_here, refused + (not accepted_here)
    sys.stdout.write(f"{done} lines, {accepted} rows read, {refused} files refused, no difference\n")
    return 0


def compared(path, lines):
    """How many rows were read; the first wrong line is the one that is named."""
    rows, wrong = [], None
    for at, line in enumerate(lines, start=1):
        try:
            rows.append(reference(line, 9))
        except ValueError:
            wrong = at
            break
    rows = [row for row in rows if row is not None]
    refusal = None
    try:
        features, labels = read_libsvm(path, features=9)
    except DataError as error:
        refusal = error
    if refusal is not None:
        assert refusal.line == wrong, f"{refusal} against line {wrong} of {lines!r}"
        assert wrong is not None or not rows, f"{refusal} though {lines!r} are rows"
        return 0
    assert wrong is None, f"line {wrong} of {lines!r} was read"
    expected = np.zeros((len(rows), 9))
    for at, (_, entries) in enumerate(rows):
        for index, value in entries:
            expected[at, index - 1] = value
    np.testing.assert_array_equal(features.toarray(), expected)
    np.testing.assert_array_equal(labels, [label for label, _ in rows])
    return len(rows)


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*arguments[:1] or [20_000], *arguments[1:2] or [0]))
