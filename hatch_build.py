"""What the package index shows: links and images of the README, which are relative in a clone, made absolute.

Hatchling calls `CustomMetadataHook` when it builds. The address of the repository stands in pyproject.toml, under
`tool.hatch.metadata.hooks.custom`, and nowhere else. While it is empty, nothing is linked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # the tests read this file without the build tools
    MetadataHookInterface = object

ROOT = Path(__file__).parent


class CustomMetadataHook(MetadataHookInterface):
    """Give the package its README and its links."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the fields that are declared dynamic."""
        address = self.config.get("address", "")
        version = re.search(r'__version__ = "(.+)"', (ROOT / "src" / "longterm" / "__init__.py").read_text())[1]
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_address(readme, address, version)}
        metadata["urls"] = links(address, version)


def links(address: str, version: str) -> dict[str, str]:
    """Return the links of the project's page."""
    if not address:
        return {}
    return {
        "Source": address,
        "Documentation": f"{address}/blob/v{version}/docs/start.md",
        "Changelog": f"{address}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }


def with_address(readme: str, address: str, version: str) -> str:
    """Return the README with absolute links to files and images of this version."""
    if not address:
        return readme
    image = re.sub(r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)", rf"![\1]({address}/raw/v{version}/\2)", readme)
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)", rf"[\1]({address}/blob/v{version}/\2)", image)
