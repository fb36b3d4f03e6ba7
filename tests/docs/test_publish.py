"""A published site has stable, latest and numbered folders, and the list that the version switcher reads."""

import json
import runpy
from pathlib import Path

publish = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "publish.py"))["publish"]


def built(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_text(text, encoding="utf-8")
    (folder / ".doctrees").mkdir(exist_ok=True)
    return folder


def folders(site: Path) -> list[str]:
    return [one["folder"] for one in json.loads((site / "versions.json").read_text(encoding="utf-8"))]


def test_releases_fill_stable_and_the_list(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    publish(built(tmp_path / "html", "before"), site, "0.1.0", release=False)
    assert folders(site) == ["latest"]
    assert "latest/" in (site / "index.html").read_text(encoding="utf-8")
    publish(built(tmp_path / "html", "old"), site, "0.9.0", release=True)
    publish(built(tmp_path / "html", "new"), site, "0.10.0", release=True)
    publish(built(tmp_path / "html", "development"), site, "0.10.0", release=False)
    assert folders(site) == ["stable", "latest", "0.10.0", "0.9.0"]
    read = {name: (site / name / "index.html").read_text(encoding="utf-8") for name in folders(site)}
    assert read == {"stable": "new", "latest": "development", "0.10.0": "new", "0.9.0": "old"}
    assert not (site / "latest" / ".doctrees").exists()
    listed = [(site / name / "_static" / "published.js").read_text(encoding="utf-8") for name in folders(site)]
    assert all('"folder": "0.10.0"' in text for text in listed)
    assert "stable/" in (site / "index.html").read_text(encoding="utf-8")
