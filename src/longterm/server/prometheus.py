"""Figures and counts in the format of Prometheus."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from longterm import __version__
from longterm._base.extras import missing_extra
from longterm.server.history import LIMITS, Counts

try:
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
except ImportError as error:
    raise missing_extra("/metrics needs prometheus-client", "metrics") from error

CONTENT_TYPE = CONTENT_TYPE_LATEST
_MONEY = {
    "spent": "Money spent, in the present period if there is one",
    "held": "Money held for open rounds",
    "limit": "The limit of the money",
    "plan": "Money that an even spender would have spent by now",
    "overshoot": "Money spent above the limit",
}
_GAUGES = {
    "goal": "1 for a limit that is meant to be reached: a ceiling for each request, or a floor",
    "price": "The price of a unit of money in reward, or a learner's multiplier",
    "open": "Open rounds or holds",
    "late": "Leases past their end whose holders have not reported",
    "coverage": "The share of outcomes inside their interval",
    "target": "The nominal coverage",
    "violation": "The signed violation of a learner's constraint",
    "share": "The share of a router's recent requests that a model answered",
    "untried": "The requests since a router's model had an outcome",
    "alert": "The models of a router with this alert: unspent money, untried for long, costs above their bounds",
}


def exposition(
    figures: Mapping[str, Mapping[str, Any] | None], totals: Counts | None, units: Mapping[str, str] | None = None
) -> bytes:
    """Return the text that Prometheus reads.

    Parameters
    ----------
    figures : mapping
        The figures of `metrics()`, by the name of the object; None for an object that does not answer.
    totals : Counts or None
        The counts of all workers. Without them their counters are left out: 0 would look like a restart.
    units : mapping, optional
        The unit of the money of objects, by name.

    Returns
    -------
    bytes
    """
    registry = CollectorRegistry()
    registry.register(_Collector(figures, totals, units or {}))
    return generate_latest(registry)


class _Collector:
    """The families of metrics, made when they are read."""

    def __init__(
        self, figures: Mapping[str, Mapping[str, Any] | None], totals: Counts | None, units: Mapping[str, str]
    ) -> None:
        self._up = {name: found is not None for name, found in figures.items()}
        self._figures = {name: found for name, found in figures.items() if found is not None}
        self._has_totals, self._totals, self._units = totals is not None, totals or Counts(), units

    def collect(self) -> Iterator[Any]:
        """Return the families."""
        info = GaugeMetricFamily("longterm_build_info", "The version that runs", labels=("version", "python"))
        info.add_metric((__version__, platform.python_version()), 1)
        yield info
        up = GaugeMetricFamily("longterm_up", "1 if the database answers for the object", labels=("object",))
        for name, is_up in self._up.items():
            up.add_metric((name,), is_up)
        yield up
        for key, about in _MONEY.items():
            yield self._money(GaugeMetricFamily(f"longterm_{key}", about, labels=("object", "part", "unit")), key)
        spent = CounterMetricFamily("longterm_spent", "Money ever spent", labels=("object", "part", "unit"))
        yield self._money(spent, "total")
        for key, about in _GAUGES.items():
            gauge = GaugeMetricFamily(f"longterm_{key}", about, labels=("object", "part"))
            for name, found in self._figures.items():
                for part, value in _parts(found.get(key, {})):
                    gauge.add_metric((name, part), value)
            yield gauge
        yield self._of_objects("requests", "Rounds or holds that were opened", ("calls", "hold", "200"))
        yield self._of_objects("refused", "Requests refused for lack of money", ("refused",))
        yield self._counted("calls", "Requests by path, object and status", ("call", "object", "status"))
        yield self._counted("actions", "Actions chosen", ("object", "action"))
        yield self._latencies()

    def _money(self, family: Any, key: str) -> Any:
        """Return a family with a figure of the objects that have it."""
        for name, found in self._figures.items():
            for part, value in _parts(found.get(key, {})):
                family.add_metric((name, part, self._units.get(name, "")), value)
        return family

    def _of_objects(self, key: str, about: str, counted: tuple[str, ...]) -> Any:
        """Return a counter of every object: its own figure, or else what the workers counted."""
        counter = CounterMetricFamily(f"longterm_{key}", about, labels=("object",))
        kind, *rest = counted
        for name, found in self._figures.items():
            labels = (kind, rest[0], name, rest[1]) if rest else (kind, name)
            if key in found or self._has_totals:
                counter.add_metric((name,), found.get(key, self._totals[labels]))
        return counter

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


def _parts(given: Any) -> list[tuple[str, float]]:
    """Return a figure by part; one without parts has the part ""."""
    return list(given.items()) if isinstance(given, dict) else [("", given)]
