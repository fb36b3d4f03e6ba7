import os
from pathlib import Path

from hypothesis import HealthCheck, settings

settings.register_profile(
    "longterm", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("longterm")

BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2] / "shared" / "data"
if BESIDE_THE_CHECKOUT.is_dir():  # the tests on real data look there, if no other folder is named
    os.environ.setdefault("LONGTERM_DATA", str(BESIDE_THE_CHECKOUT))
