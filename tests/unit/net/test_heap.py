"""Memory that was let go goes back to the system: soon, and once for all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dataplane.net import heap


def test_what_is_let_go_meanwhile_goes_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(heap, "_trim", lambda pad: given.append(pad) or 1)
    due: list[tuple[float, Callable[[], None]]] = []
    back = heap.GivesBack(lambda delay, call: due.append((delay, call)))
    for _ in range(2):
        back.asked()
        back.asked()
        ((delay, call),) = due
        due.clear()
        assert delay == heap.SOON
        call()
    assert given == [0, 0]


def test_a_library_that_cannot_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_trim", None)
    due: list[Callable[[], None]] = []
    back = heap.GivesBack(lambda _, call: due.append(call))
    for _ in range(2):
        back.asked()
        due.pop()()
    assert due == []
