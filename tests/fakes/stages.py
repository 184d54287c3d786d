"""Stages of tests, and a proxy whose route has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataplane.chain.filter import STEP, Env, Filter, Row
from dataplane.chain.streaming import transforming
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.streams import Outlet, Stage
from tests.carriers import Carrier, Run
from tests.fakes.policy_run import served

OUTER, MIDDLE, INNER = "csrf", "buffer", "header_modifiers"
"""Three rows of the registry, in their order, in whose place the tests put steps of their own."""
POLICIES = "csrf: {}, buffer: {request: {}}, headerModifiers: {request: {set: [{name: x-a, value: '1'}]}}"


def proxy_with(carrier: Carrier, more: str = "", **steps: Filter | Callable[[Env], Filter | None]) -> Run:
    """A proxy whose route has these steps; `more`: policies beside them."""

    def row(of: Row) -> Row:
        if of.name not in (OUTER, MIDDLE, INNER):
            return of
        step = steps.get(of.name)
        return Row(of.name, lambda _, env: step(env) if callable(step) else step, STEP, "test")

    return carrier.proxy(served(f"policies: {{{POLICIES}{more}}}"), rows=tuple(map(row, ROWS)))


def both(transform: Callable[[bytes, bool], bytes]) -> Filter:
    """The same function on requests and responses."""
    hook = transforming(lambda x: transform)
    return Filter("test", request_stream=hook, response_stream=hook)


def upper(data: bytes, end: bool) -> bytes:
    return data.upper()


def ending(name: bytes) -> Filter:
    """Says at the end of the content that it was there."""
    return both(lambda data, end: data + name if end else data)


class Noting:
    """A stage that notes what it is told, and gives when the test says so. `passes`: it hands on at once, too."""

    def __init__(self, passes: bool = False) -> None:
        self.told: list[Any] = []
        self.passes = passes
        self.outlet: Any = None

    def __call__(self, x: Exchange, outlet: Outlet) -> Stage:
        self.outlet = outlet
        return self

    def content(self, data: bytes, end: bool) -> None:
        self.told.append((data, end))
        if self.passes:
            self.outlet.content(data, end)

    def pause(self) -> None:
        self.told.append("pause")
        self.outlet.pause()

    def resume(self) -> None:
        self.told.append("resume")
        self.outlet.resume()

    def cancel(self) -> None:
        self.told.append("cancel")

    @property
    def given(self) -> bytes:
        return b"".join(each[0] for each in self.told if isinstance(each, tuple))


class Minding(Noting):
    """The same, for trailers too."""

    def trailers(self, lines: bytes) -> None:
        self.told.append(lines)
        if self.passes:
            self.outlet.trailers(lines)
