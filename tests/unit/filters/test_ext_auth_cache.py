"""What the answers of an authorization server may take in memory."""

from __future__ import annotations

from dataplane.filters.ext_auth.answer import Verdict
from dataplane.filters.ext_auth.cache import ENTRIES, Cache

HALF = 16 << 20


def verdict(size: int) -> Verdict:
    return Verdict(200, b"", b"", None, size)


def test_a_policy_keeps_32_mebibytes() -> None:
    cache, (one, two, three) = Cache(10), map(verdict, (HALF, HALF, 1))
    cache.put("one", one, 60.0)
    cache.put("two", two, 60.0)
    assert (cache.get("one", 0.0), cache.get("two", 0.0)) == (one, two)
    cache.put("three", three, 60.0)
    assert (cache.get("one", 0.0), cache.get("two", 0.0), cache.get("three", 0.0)) == (None, two, three)
    cache.put("four", one, 60.0)
    assert cache.get("two", 0.0) is None and cache.size == HALF + 1


def test_what_has_expired_takes_nothing() -> None:
    cache = Cache(10)
    cache.put("one", verdict(HALF), 60.0)
    assert cache.get("one", 60.0) is None and cache.size == 0


def test_ten_thousand_where_a_policy_does_not_say() -> None:
    assert ENTRIES == 10_000
