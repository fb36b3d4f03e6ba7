from hypothesis import HealthCheck, settings

settings.register_profile(
    "longterm", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("longterm")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: runs of a hundred thousand rounds; leave out with -m 'not slow'")
