"""The example of docs/guides/calibration.md prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "calibration.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_says():
    [(code, printed)] = re.findall(r"```python\n([^`]*)```\n\n((?:    [^\n]*\n)+)", PAGE)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue().strip() == printed.strip()
