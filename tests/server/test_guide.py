"""The guide: its file is valid, and its calls print what it says."""

import contextlib
import io
import re
from pathlib import Path

from servers import in_thread

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "service.md").read_text(encoding="utf-8")


def test_the_calls_of_the_guide(tmp_path):
    (file,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    code, wanted = re.search(
        r"```python\n(from longterm\.server.*?)```\n\n((?:    [^\n]*\n)+)", PAGE, re.DOTALL
    ).groups()
    printed = io.StringIO()
    with in_thread(tmp_path, file) as url, contextlib.redirect_stdout(printed):
        names = {}
        exec(compile(code.replace("http://127.0.0.1:8000", url), "service.md", "exec"), names)
        names["client"].close()
    assert printed.getvalue().split() == wanted.split()
