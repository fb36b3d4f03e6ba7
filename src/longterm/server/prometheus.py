"""Figures and counts in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from longterm.errors import missing_extra
from longterm.server.history import LIMITS, Counts

try:
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
except ImportError as error:
    raise missing_extra("/metrics needs prometheus-client", "metrics") from error

CONTENT_TYPE = CONTENT_TYPE_LATEST
_GAUGES = {
    "spent": "Money spent, in the object's unit",
    "held": "Money held for open rounds",
    "limit": "The limit of the money",
    "plan": "Money that an even spender would have spent by now",
    "overshoot": "Money spent above the limit",
    "price": "The price of a unit of money, or a learner's multiplier",
    "open": "Open rounds or holds",
    "late": "Leases past their end whose holders have not reported; their money counts until they are released",
    "coverage": "The share of outcomes inside their interval",
    "target": "The nominal coverage",
    "violation": "The signed violation of a learner's constraint",
}
_COUNTERS = {"requests": "Rounds that were opened", "refused": "Requests refused for lack of money"}


def exposition(figures: Mapping[str, Mapping[str, Any] | None], totals: Counts) -> bytes:
    """Return the text that Prometheus reads.

    Parameters
    ----------
    figures : mapping
        The figures of `metrics()`, by the name of the object; None for an object that does not answer.
    totals : Counts
        The counts of all workers.

    Returns
    -------
    bytes
    """
    registry = CollectorRegistry()
    registry.register(_Collector(figures, totals))
    return generate_latest(registry)


class _Collector:
    """The families of metrics, made when they are read."""

    def __init__(self, figures: Mapping[str, Mapping[str, Any] | None], totals: Counts) -> None:
        self._up = {name: found is not None for name, found in figures.items()}
        self._figures = {name: found for name, found in figures.items() if found is not None}
        self._totals = totals

    def collect(self) -> Iterator[Any]:
        """Return the families."""
        up = GaugeMetricFamily("longterm_up", "1 if the database answers for the object", labels=("object",))
        for name, is_up in self._up.items():
            up.add_metric((name,), is_up)
        yield up
        for key, about in _GAUGES.items():
            gauge = GaugeMetricFamily(f"longterm_{key}", about, labels=("object", "part"))
            for name, found in self._figures.items():
                given = found.get(key, {})
                for part, value in (given if isinstance(given, dict) else {"": given}).items():
                    gauge.add_metric((name, part), value)
            yield gauge
        for key, about in _COUNTERS.items():
            counter = CounterMetricFamily(f"longterm_{key}", about, labels=("object",))
            for name, found in self._figures.items():
                counter.add_metric((name,), found.get(key, self._totals["refused", name] if key == "refused" else 0))
            yield counter
        yield self._counted("calls", "Calls by path, object and status", ("call", "object", "status"))
        yield self._counted("actions", "Actions chosen", ("object", "action"))
        yield self._latencies()

    def _counted(self, key: str, about: str, labels: tuple[str, ...]) -> Any:
        counter = CounterMetricFamily(f"longterm_{key}", about, labels=labels)
        for (kind, *values), number in sorted(self._totals.items()):
            if kind == key:
                counter.add_metric(values, number)
        return counter

    def _latencies(self) -> Any:
        family = HistogramMetricFamily("longterm_call_seconds", "Time of a call", labels=("call", "object"))
        limits = [*map(str, LIMITS), "+Inf"]
        for call, name in sorted({labels[1:3] for labels in self._totals if labels[0] == "seconds"}):
            numbers = [self._totals["seconds", call, name, str(place)] for place in range(len(limits))]
            buckets = list(zip(limits, accumulate(numbers), strict=True))
            family.add_metric((call, name), buckets, sum_value=self._totals["seconds", call, name, "sum"])
        return family
