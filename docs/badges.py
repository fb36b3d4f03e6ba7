"""Write the README's badges from pyproject.toml: python docs/badges.py.

They are files of the repository, so they are true without a network.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "_static" / "badges"
CHARACTER = 6.4
"""The mean width of a character, in pixels."""
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {value}">
<rect width="{width}" height="20" rx="3" fill="#555"/>
<rect x="{left}" width="{right}" height="20" rx="3" fill="#0061a0"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14">{label}</text><text x="{start}" y="14">{value}</text>
</g>
</svg>
"""


def badges() -> dict[str, str]:
    """Return the badges by name, as SVG."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    values = {
        "python": project["requires-python"].replace(">=", "≥ "),
        "licence": project["license"],
        "types": "mypy --strict",
    }
    return {label: _badge(label, value) for label, value in values.items()}


def _badge(label: str, value: str) -> str:
    left, right = (round(CHARACTER * len(text)) + 14 for text in (label, value))
    return SVG.format(label=label, value=value, width=left + right, left=left, right=right, start=left + 6)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in badges().items():
        (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")
