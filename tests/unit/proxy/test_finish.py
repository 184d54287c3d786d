"""The end of an exchange: end hooks of all chains run once, innermost first, and none keeps the line from the log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.chain import Chain
from dataplane.chain.filter import Filter
from dataplane.exchange import Exchange
from dataplane.http.heads import Head
from dataplane.proxy.ends import finish


def chain(name: str, seen: list[str]) -> SimpleNamespace:
    return SimpleNamespace(chain=Chain([Filter(name, end=lambda x: seen.append(name))]))


def ended(x: Exchange) -> list[float]:
    lines: list[float] = []
    context: Any = SimpleNamespace(clock=lambda: 5.0, observers=(lambda x, seconds: lines.append(seconds),))
    assert finish(x, context) == 5.0
    return lines


def test_from_the_backend_reference_outward() -> None:
    seen: list[str] = []
    x = Exchange(None, b"GET", b"/", Head(b"\r\n"), started=2.0)
    x.target_plan, x.policies, x.listener = (chain(name, seen) for name in ("target", "route", "gateway"))
    assert ended(x) == [3.0] and x.ended
    assert seen == ["target", "route", "gateway"]


def test_a_hook_with_a_bug_costs_nobody_else_anything(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    def broken(x: Exchange) -> None:
        raise ValueError

    x = Exchange(None, b"GET", b"/", Head(b"\r\n"), started=2.0)
    x.policies = SimpleNamespace(chain=Chain([Filter("broken", end=broken)]))
    x.listener = chain("gateway", seen)
    assert ended(x) == [3.0]
    assert seen == ["gateway"] and "end hook failed" in caplog.text


def test_an_observer_with_a_bug_keeps_no_other_from_the_exchange(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[float] = []

    def broken(x: Exchange, seconds: float) -> None:
        raise ValueError

    context: Any = SimpleNamespace(clock=lambda: 5.0, observers=(broken, lambda x, seconds: seen.append(seconds)))
    assert finish(Exchange(None, b"GET", b"/", Head(b"\r\n"), started=2.0), context) == 5.0
    assert seen == [3.0] and "observer failed" in caplog.text
