"""Counts for Prometheus, in its text format."""

from __future__ import annotations

from collections import Counter, defaultdict

__all__ = ["Metrics"]

#: Upper ends of the latency histogram, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

HELP = {
    "rank1_asks_total": "Suggestions handed out.",
    "rank1_tells_total": "Reports stored, or answered again.",
    "rank1_conflicts_total": "Requests and reports that contradict what is on record.",
    "rank1_storage_errors_total": "Requests that the storage failed.",
}


class Metrics:
    """All of it happens in the event loop, so nothing needs a lock.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.add("rank1_asks_total")
    >>> print(metrics.text({"pending": 3}).splitlines()[2])
    rank1_asks_total 1
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter(dict.fromkeys(HELP, 0))
        self._statuses: Counter[str] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, name: str, count: int = 1) -> None:
        """Count something."""
        self._counts[name] += count

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._statuses[f'{{route="{route}",method="{method}",status="{status}"}}'] += 1
        places = self._buckets.setdefault(route, [0] * (len(BUCKETS) + 1))
        for place, end in enumerate(BUCKETS):
            if seconds <= end:
                places[place] += 1
                break
        else:
            places[-1] += 1
        self._seconds[route] += seconds

    def text(self, gauges: dict[str, int]) -> str:
        """The whole document."""
        lines: list[str] = []

        def head(name: str, kind: str, about: str) -> None:
            lines.extend([f"# HELP {name} {about}", f"# TYPE {name} {kind}"])

        for name, about in HELP.items():
            head(name, "counter", about)
            lines.append(f"{name} {self._counts[name]}")
        for name, value in gauges.items():
            head(f"rank1_{name}", "gauge", f"Now {name}.")
            lines.append(f"rank1_{name} {value}")
        head("rank1_requests_total", "counter", "Requests answered.")
        lines += [f"rank1_requests_total{label} {n}" for label, n in self._statuses.items()]
        head("rank1_request_seconds", "histogram", "Time from a request to its answer.")
        for route, places in self._buckets.items():
            total = 0
            for end, count in zip((*BUCKETS, "+Inf"), places, strict=True):
                total += count
                lines.append(f'rank1_request_seconds_bucket{{route="{route}",le="{end}"}} {total}')
            lines.append(f'rank1_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'rank1_request_seconds_count{{route="{route}"}} {total}')
        return "\n".join(lines) + "\n"
