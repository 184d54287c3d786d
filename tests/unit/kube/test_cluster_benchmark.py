"""The benchmark on an API server ends also where a route is never served."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks import cluster


class Answers:
    """As a connection to a proxy, which answers these one after the other; each takes a second of the given clock."""

    def __init__(self, statuses: Iterator[int]) -> None:
        self._statuses = statuses
        self.status = 0
        self.asked = 0
        self.clock = 0.0

    def request(self, method: str, path: str) -> None:
        assert (method, path) == ("GET", "/new")
        self.asked += 1

    def getresponse(self) -> Answers:
        self.status = next(self._statuses)
        self.clock += 1.0
        return self

    def read(self) -> bytes:
        return b""


def first_answer(monkeypatch: pytest.MonkeyPatch, answers: Answers) -> tuple[float, int]:
    monkeypatch.setattr(cluster, "time", SimpleNamespace(perf_counter=lambda: answers.clock))
    return cluster.first_answer(cast(http.client.HTTPConnection, answers), "new")


def test_what_is_wrong_before_the_first_answer_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(iter([404, 503, 404, 500, 302]))
    assert first_answer(monkeypatch, answers) == (5000.0, 2)


def test_a_route_that_never_comes_is_an_error_with_what_was_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 90.0)
    answers = Answers(status for _ in range(1000) for status in (404, 404))
    with pytest.raises(cluster.NoAnswer, match=r"route new is not served after 91 s: 91 requests, the last 404"):
        first_answer(monkeypatch, answers)
    assert answers.asked == 91
