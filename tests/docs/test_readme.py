"""The README's examples print what they say they print, and the README stays short."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from same_output import assert_same_output

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```python\n([^`]*)```\n\n((?:    [^\n]*\n)+)")
IN_README = EXAMPLE.findall(README)


def lines_of(code: str) -> list[str]:
    return [line for line in code.splitlines() if line.strip() and not line.startswith(("import", "from"))]


def test_there_are_examples_of_seven_lines():
    assert len(IN_README) == 4
    assert [code for code, _ in IN_README if len(lines_of(code)) > 7] == []


def test_the_readme_is_short():
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^    .*$", "", prose, flags=re.MULTILINE)  # what the examples print, and commands
    assert len(prose.split()) <= 900


@pytest.mark.slow
@pytest.mark.parametrize("code_and_output", IN_README, ids=lambda example: example[0].splitlines()[-1][:40])
def test_example(code_and_output):
    code, wanted = code_and_output
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert_same_output(printed.getvalue(), wanted)
