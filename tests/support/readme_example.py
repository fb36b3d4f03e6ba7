"""Run the README's examples against whatever is installed: python readme_example.py README.md. Needs no test tools."""

import contextlib
import io
import re
import sys
from pathlib import Path

if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    for code, wanted in re.findall(r"```python\n([^`]*)```\n\n((?:    [^\n]*\n)+)", text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), {})
        if printed.getvalue().split() != wanted.split():
            sys.exit(f"printed {printed.getvalue()!r}, the README says {wanted!r}")
    sys.stdout.write("the README's examples print what it says\n")
