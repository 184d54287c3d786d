"""What is measured, and what the product must hold. Ratios are `peer / product` of the same round: above 1, the product
is cheaper (or faster)."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.load import Shape
from benchmarks.proxies import GENERAL, STREAM, TARGET, VARIED


@dataclass(frozen=True, slots=True)
class Bar:
    """What the median ratio against one peer must be at least, or at most; and what we aim at."""

    peer: str
    least: float = 0.0
    most: float = float("inf")
    aim: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of load. `measured`: a field of `load.Sample`."""

    name: str
    title: str
    shape: Shape
    unit: str = "request"
    measured: str = "microseconds"
    events: bool = False
    """Units are events of streams, not requests."""
    bars: tuple[Bar, ...] = ()
    general: bool = False
    """Also measure the product's general path."""


CASES = (
    Case(
        "get",
        "Small GET, 32 connections: CPU per request",
        Shape(TARGET, 32),
        general=True,
        bars=(
            Bar("nginx", least=0.48, aim=0.65),
            Bar("envoy", least=1.7, aim=2.5),
            Bar("aiohttp", least=4.5, aim=6.0),
            Bar(GENERAL, most=2.5),
        ),
    ),
    Case(
        "varied",
        "The same, every request and answer with headers of its own",
        Shape(VARIED, 32, varied=True),
        bars=(Bar("nginx", least=0.48, aim=0.55), Bar("envoy", least=1.75, aim=2.0)),
    ),
    Case(
        "post",
        "POST 1 KB, 32 connections: CPU per request",
        Shape(TARGET, 32, body=1024),
        bars=(Bar("nginx", least=0.45, aim=0.65),),
    ),
    Case(
        "sse",
        "Streams of 100 events, 64 connections: CPU per event",
        Shape(STREAM, 64),
        unit="event",
        events=True,
        bars=(Bar("envoy", least=1 / 1.3),),
    ),
    Case("latency", "Small GET, 1 connection: median latency", Shape(TARGET, 1), measured="p50"),
)
IDLE = "idle"
"""Name of the one measurement that is no load: memory per idle connection."""
