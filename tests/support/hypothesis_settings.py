"""How many examples a property is tried on."""

from hypothesis import settings

MOST = settings.get_profile("longterm").max_examples


def examples(count: int) -> settings:
    """So many in `make test-all`, and the same share of them as of the usual number in `make test` and `make quick`."""
    return settings(max_examples=max(1, count * settings.default.max_examples // MOST))
