"""Make the pictures of the demo's page: python docs/screenshot.py [SECONDS] writes docs/_static/demo_*.png.

It starts `longterm serve --demo`, waits until there is something to see, and asks Chromium for two charts of the
router. They are as wide as a phone, so a phone shows them at full size and a wide page side by side.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from browser import chromium, open_at
from servers import in_process

FOLDER = Path(__file__).parent / "_static"
OBJECT = "models"
CHARTS = {"Money": "demo_spending.png", "Actions": "demo_models.png"}
"""The file of each chart, by the beginning of its title."""
PLACE = """
const charts = [...document.querySelectorAll(`section[data-object="${arguments[0]}"] figure`)];
const {x, y, width, height} = charts.find((one) => one.textContent.startsWith(arguments[1])).getBoundingClientRect();
return {x: x + scrollX - 8, y: y + scrollY - 8, width: width + 16, height: height + 16, scale: 1};
"""
WIDTH = 390


def main(seconds: float) -> None:
    """Write the pictures after so many seconds of invented requests."""
    with tempfile.TemporaryDirectory() as profile, in_process("--demo") as (url, _):
        time.sleep(seconds)
        with chromium(Path(profile)) as driver:
            open_at(driver, f"{url}/", WIDTH, 900)
            driver.execute_script("document.querySelector('button[data-seconds=\"900\"]').click()")
            time.sleep(5)
            for title, file in CHARTS.items():
                place = driver.execute_script(PLACE, OBJECT, title)
                asked = {"format": "png", "clip": place, "captureBeyondViewport": True}
                picture = driver.execute_cdp_cmd("Page.captureScreenshot", asked)["data"]
                (FOLDER / file).write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main(float((*sys.argv[1:], 120.0)[0]))
