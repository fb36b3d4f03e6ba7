"""Put a built site into a folder of versions: python docs/publish.py SITE [--release] (after make docs).

SITE gets the layout that the version switcher reads:

    SITE/latest/          the site of the present commit
    SITE/0.1.0/           with --release, the site of this version ...
    SITE/stable/          ... and a copy of it
    SITE/versions.json    the list of folders, newest release first; each folder has it as _static/published.js
    SITE/index.html       leads to stable, or to latest before the first release
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

BUILT = Path(__file__).parent / "_build" / "html"
REDIRECT = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}/"><a href="{0}/">{0}</a>\n'
)


def publish(built: Path, site: Path, version: str, *, release: bool) -> list[dict[str, str]]:
    """Copy the built site and rewrite the list of versions, which is returned."""
    for folder in ("latest", *((version, "stable") if release else ())):
        shutil.rmtree(site / folder, ignore_errors=True)
        shutil.copytree(built, site / folder, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo*"))
    releases = [one.name for one in site.iterdir() if re.fullmatch(r"\d+(\.\d+)+\w*", one.name)]
    releases.sort(key=lambda name: [int(part) for part in re.findall(r"\d+", name)], reverse=True)
    named = [("stable", "stable")] if (site / "stable").exists() else []
    named += [("latest", "latest"), *((name, name) for name in releases)]
    versions = [{"folder": folder, "title": title} for folder, title in named]
    (site / "versions.json").write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
    for folder, _ in named:
        (site / folder / "_static").mkdir(exist_ok=True)
        (site / folder / "_static" / "published.js").write_text(f"const PUBLISHED = {json.dumps(versions)};\n", "utf-8")
    (site / "index.html").write_text(REDIRECT.format(versions[0]["folder"]), encoding="utf-8")
    return versions


if __name__ == "__main__":
    from longterm import __version__

    parser = argparse.ArgumentParser(description="Put the built site into a folder of versions.")
    parser.add_argument("site", type=Path)
    parser.add_argument("--release", action="store_true", help="also publish it as this version and as stable")
    given = parser.parse_args()
    given.site.mkdir(parents=True, exist_ok=True)
    published = publish(BUILT, given.site, __version__, release=given.release)
    sys.stdout.write(" ".join(one["folder"] for one in published) + "\n")
