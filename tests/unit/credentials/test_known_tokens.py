"""The memory of verified tokens has bounds, and the oldest go first."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.credentials import known_tokens
from dataplane.credentials.known_tokens import KnownTokens

ANY: Any = (0.0, None, None, {})


def test_what_a_policy_remembers() -> None:
    """4,096 tokens; none of more than 8 KiB; 8 MiB of all."""
    tokens = KnownTokens()
    for number in range(4097):
        tokens.remember(b"%d" % number, ANY)
    assert len(tokens.entries) == 4096 and b"0" not in tokens.entries and b"1" in tokens.entries
    tokens = KnownTokens()
    tokens.remember(b"x" * 8193, ANY)
    for number in range(1024):
        tokens.remember(b"%08192d" % number, ANY)
    assert len(tokens.entries) == 1024
    tokens.remember(b"x", ANY)
    assert len(tokens.entries) == 1024 and b"%08192d" % 0 not in tokens.entries and b"%08192d" % 1 in tokens.entries


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COUNT", 3), ("LONGEST", 50), ("BYTES", 100)):
        monkeypatch.setattr(known_tokens, name, value)


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 2, 3, 4], [2, 3, 4]),  # as many as there may be
        ([40, 41, 42], [41, 42]),
        ([40, 41, 20, 50], [20, 50]),  # as many bytes
        ([51, 1], [1]),  # too long to remember
        ([1, 2, 1, 3, 4], [1, 3, 4]),  # one that was verified again is new
    ],
)
def test_bounds(small: None, sizes: list[int], left: list[int]) -> None:
    tokens = KnownTokens()
    for size in sizes:
        tokens.remember(b"x" * size, ANY)
    assert [len(sent) for sent in tokens.entries] == left


def test_what_is_forgotten_makes_room(small: None) -> None:
    tokens = KnownTokens()
    for _ in range(9):
        tokens.remember(b"x" * 50, ANY)
        tokens.forget(b"x" * 50)
        tokens.forget(b"never there")
    tokens.remember(b"a" * 50, ANY)
    tokens.remember(b"b" * 50, ANY)
    assert len(tokens.entries) == 2 and repr(tokens) == "KnownTokens(2)"
