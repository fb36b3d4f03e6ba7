"""A clock that tests move."""

from dataclasses import dataclass, field

from longterm.storage import Clock

START = 1_800_000_000.0
"""A Friday in January 2027, 08:00 UTC."""


@dataclass(frozen=True)
class ManualClock(Clock):
    """A clock that stands still until it is moved. Several may share one list of times."""

    times: list[float] = field(default_factory=lambda: [START, 1000.0], hash=False, compare=False)
    """Wall time and monotonic time."""

    def wall(self) -> float:
        return self.times[0]

    def monotonic(self) -> float:
        return self.times[1]

    def of_server(self, seconds: float) -> float:
        return self.times[0]

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.times[0] += seconds
        self.times[1] += seconds

    def step(self, seconds: float) -> None:
        """Set the wall time forward or back, as NTP or a suspended machine does."""
        self.times[0] += seconds
