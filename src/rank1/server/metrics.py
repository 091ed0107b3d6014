"""Metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

import rank1

__all__ = ["Metrics"]

#: Upper bounds of the latency histogram, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

disable_created_metrics()  # type: ignore[no-untyped-call]  # times of creation


class Metrics:
    """The metrics of one application.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.asks.inc()
    >>> "rank1_asks_total 1.0" in metrics.text({"pending": 3})
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        build = Gauge(
            "rank1_build", "The version that runs.", ("version",), registry=self._registry
        )
        build.labels(rank1.__version__).set(1)
        self.commits = self._counter("commits", "Transactions committed.")
        self.asks = self._counter("asks", "Suggestions handed out.")
        self.records = self._counter("records", "Exposures stored, or answered again.")
        self.fallbacks = self._counter("fallbacks", "Units that saw a client's fallback.")
        self.tells = self._counter("tells", "Reports stored, or answered again.")
        self.conflicts = self._counter("conflicts", "Contradictions of what is on record.")
        self.storage_errors = self._counter("storage_errors", "Requests that failed in storage.")
        self.webhooks = self._counter("webhooks", "Tries to send a webhook.", "result")
        self._requests = self._counter(
            "requests", "Requests answered.", "route", "method", "status"
        )
        self._seconds = Histogram(
            "rank1_request_seconds",
            "Time from a request to its answer.",
            ("route",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._gauges: dict[str, Gauge] = {}

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"rank1_{name}", about, labels, registry=self._registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, gauges: Mapping[str, int]) -> str:
        """Return all metrics, including these gauges, in Prometheus's text format."""
        for name, value in gauges.items():
            if name not in self._gauges:
                found = Gauge(f"rank1_{name}", f"Now {name}.", registry=self._registry)
                self._gauges[name] = found
            self._gauges[name].set(value)
        return generate_latest(self._registry).decode()
