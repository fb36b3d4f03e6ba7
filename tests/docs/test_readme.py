"""The README's examples print what it says they print."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"```python\n([^`]*)```\n\n((?:    [^\n]*\n)+)", README.read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("code_and_output", EXAMPLES, ids=lambda example: example[0].splitlines()[-1][:40])
def test_example(code_and_output):
    code, wanted = code_and_output
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue().split() == wanted.split()


def test_the_first_example_is_short():
    code, _ = EXAMPLES[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
