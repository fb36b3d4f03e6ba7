"""A real browser without a window, for pages that must work in one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Chromium with an empty profile, driven by the chromedriver beside it; skips in words where there is none.

    The driver's path is passed on, so that selenium looks for none and downloads none.
    """
    webdriver = pytest.importorskip("selenium.webdriver", reason="the browser test needs selenium")
    from selenium.webdriver.chrome.service import Service

    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    driver_path = shutil.which("chromedriver")
    if browser is None or driver_path is None:
        pytest.skip("the browser test needs chromium and chromedriver on the path (Debian: chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=driver_path))
    try:
        yield driver
    finally:
        driver.quit()


def open_at(driver: Any, address: str, width: int, height: int, scheme: str = "light") -> None:
    """Load a page in a window of this size, with the logs emptied of what came before."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    preferred = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preferred})
    driver.get("about:blank")
    driver.get_log("performance")
    driver.get_log("browser")
    driver.get(address)


def requested(driver: Any) -> set[str]:
    """Every address asked for since the page was opened, but for data inside it."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    return {address for address in asked if not address.startswith(("data:", "blob:"))}
