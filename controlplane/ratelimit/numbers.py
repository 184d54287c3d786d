"""What the server counts about itself, for Prometheus. Labels are of the configuration: none grows with clients."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, GCCollector, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from controlplane.ratelimit.decision import OVERRIDE, Asked
from controlplane.ratelimit.limits import Limits
from gatewright.wire.external.rate_limit_pb2 import RateLimitResponse

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
PREFIX: Final = "gatewright_ratelimit"
NO_LIMIT: Final = "none"
_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0)
_OUTCOMES: Final = {RateLimitResponse.OK: "ok", RateLimitResponse.OVER_LIMIT: "over_limit"}


class Numbers:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        text = "Descriptors decided, by the limit of the configuration that counted for them"
        self._decided = Counter(f"{PREFIX}_decisions", text, ("limit", "outcome"), registry=self.registry)
        text = "Hits of the same"
        self._hits = Counter(f"{PREFIX}_hits", text, ("limit",), registry=self.registry)
        self._failed = Counter(
            f"{PREFIX}_failures", "Requests without a decision, by cause", ("cause",), registry=self.registry
        )
        text = "Time of a decision, the store's included"
        self._seconds = Histogram(f"{PREFIX}_decision_seconds", text, registry=self.registry, buckets=_SECONDS)
        self._reloads = Counter(
            f"{PREFIX}_reloads",
            "Times that the limits were read again, by outcome",
            ("outcome",),
            registry=self.registry,
        )

    def decided(self, asked: Asked, answer: RateLimitResponse, seconds: float) -> None:
        charges = iter(asked.charges)
        for limit, status in zip(asked.limits, answer.statuses, strict=True):
            name = NO_LIMIT if limit is None else limit.path or OVERRIDE
            self._decided.labels(name, _OUTCOMES[status.code]).inc()
            if limit is not None and not limit.is_unlimited:
                self._hits.labels(name).inc(next(charges).hits)
        self._seconds.observe(seconds)

    def failed(self, cause: str) -> None:
        self._failed.labels(cause).inc()

    def reloaded(self, limits: Limits | None) -> None:
        """None: the new ones could not be read, and the old ones stay."""
        self._reloads.labels("failed" if limits is None else "ok").inc()

    def page(self) -> bytes:
        return generate_latest(self.registry)
