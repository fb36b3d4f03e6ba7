"""Make the picture of the demo's page: python docs/screenshot.py [SECONDS] writes docs/_static/demo.png.

It starts `longterm serve --demo`, waits until there is something to see, and asks Chromium for a picture.
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

PICTURE = Path(__file__).parent / "_static" / "demo.png"
WIDTH, HEIGHT = 1440, 1000


def main(seconds: float) -> None:
    """Write the picture after so many seconds of invented requests."""
    with tempfile.TemporaryDirectory() as profile, in_process("--demo") as (url, _):
        time.sleep(seconds)
        with chromium(Path(profile)) as driver:
            open_at(driver, f"{url}/", WIDTH, HEIGHT)
            driver.execute_script("document.querySelector('button[data-seconds=\"900\"]').click()")
            time.sleep(5)
            picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    PICTURE.write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main(float((*sys.argv[1:], 120.0)[0]))
