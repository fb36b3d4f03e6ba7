"""Code of the guide to several machines that needs an engine: `test_pages.py` does not run it."""

import ast
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "beyond_one_machine.md"


def block_of_page(word, only=False):
    """Return the code of the guide that has this word: the block, or only the statement."""
    blocks = re.findall(
        r"^```(?:python|{code-block} python)\n(.*?)^```",
        PAGE.read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    (block,) = [one for one in blocks if word in one]
    statements = [ast.unparse(one) for one in ast.parse(block).body]
    return "\n".join(one for one in statements if word in one) if only else block
