"""Targets and hosts: what is matched is what goes upstream."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.http import uri
from dataplane.http.h1 import request_line
from tests.fakes.memory_proxy import MemoryProxy


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        (b"/", b"/"),
        (b"/a/./b", b"/a/b"),
        (b"/a/../b", b"/b"),
        (b"/a/..", b"/"),
        (b"/a/.", b"/a/"),
        (b"/..", b"/"),
        (b"/a/b/../../../c", b"/c"),
        (b"/a//../b", b"/a/b"),
        (b"/%7euser", b"/~user"),
        (b"/%2e%2e/x", b"/x"),
        (b"/%2f%3a", b"/%2F%3A"),
        (b"/...", b"/..."),
        (b"/.hidden", b"/.hidden"),
        (b"/a..b/..;x/", b"/a..b/..;x/"),
        (b"/%", None),
        (b"/%4", None),
        (b"/%zz", None),
        (b"/%00", None),
        (b"/a\\b", None),
        (b"/a#b", None),
        (b"/a b", None),
        (b"/\xc3\xa9", None),
        (b"/\x7f", None),
    ],
)
def test_canonical_path(path: bytes, canonical: bytes | None) -> None:
    assert uri.canonical_path(path) == canonical


HEX = "0123456789ABCDEFabcdef"
ESCAPES = [f"%{high}{low}".encode() for high in HEX for low in HEX if f"{high}{low}" != "00"]
UNRESERVED = re.compile(rb"[A-Za-z0-9._~-]").fullmatch


def one_by_one(escape: bytes) -> bytes:
    """RFC 3986 6.2.2.1 and 6.2.2.2."""
    octet = bytes.fromhex(escape[1:].decode())
    return octet if UNRESERVED(octet) else escape.upper()


@given(st.lists(st.sampled_from([*ESCAPES, b"4", b"1", b"a", b"25"]), max_size=40))
@example([*ESCAPES, b"41"])
@example([b"%25", b"41"])
def test_escapes_are_resolved_once_each_however_many_kinds_there_are(pieces: list[bytes]) -> None:
    expected = [one_by_one(piece) if piece[:1] == b"%" else piece for piece in pieces]
    assert uri.canonical_path(b"/a" + b"".join(pieces)) == b"/a" + b"".join(expected)


def test_ten_thousand_escapes_cost_as_much_as_a_copy_or_two() -> None:
    """Measured beside the same number of plain characters being looked at one by one, so on any machine."""
    began = time.thread_time()
    for _ in range(20):
        assert uri.canonical_path(b"/" + b"%61" * 10_000) == b"/" + b"a" * 10_000
    taken, began = time.thread_time() - began, time.thread_time()
    for _ in range(20):
        assert len([one_by_one(b"%61") for _ in range(10_000)]) == 10_000
    assert taken < time.thread_time() - began


@given(st.lists(st.sampled_from([b".", b"..", b"", b"a", b"%2e", b"%2E%2e", b"%2f", b"b.c"]), min_size=1, max_size=8))
def test_a_canonical_path_is_its_own_canonical_path_and_has_no_dots(segments: list[bytes]) -> None:
    canonical = uri.canonical_path(b"/" + b"/".join(segments))
    assert canonical is not None
    assert uri.canonical_path(canonical) == canonical
    assert not {b".", b".."} & set(canonical.split(b"/"))


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        (b"a.example", b"a.example"),
        (b"A.Example:8080", b"a.example"),
        (b"a.example.", b"a.example"),
        (b"a_b.example", b"a_b.example"),
        (b"127.0.0.1:1", b"127.0.0.1"),
        (b"[::1]", b"[::1]"),
        (b"[2001:DB8::0:1]:443", b"[2001:db8::1]"),
        (b"a:", b"a"),
        (b"a:65535", b"a"),
        (b"a:65536", None),
        (b"a:x", None),
        (b"", None),
        (b".", None),
        (b"a..b", None),
        (b"-a", None),
        (b"a/b", None),
        (b"u@a", None),
        (b"a,b", None),
        (b"a b", None),
        (b"[::1", None),
        (b"[::1]x", None),
        (b"[fe80::1%25eth0]", None),
        (b"::1", None),
        (b"\xc3\xa9", None),
        (b"a" * 253, b"a" * 253),
        (b"a" * 254, None),
        (b"a" * 253 + b".:65535", b"a" * 253),
        (b"[::]:", b"[::]"),
        (b"[::]:65536", None),
        (b"[::g]", None),
        (b"a.:1", b"a"),
        (b"a..:1", None),
    ],
)
def test_canonical_host(authority: bytes, host: bytes | None) -> None:
    assert uri.canonical_host(authority) == host


def test_targets_are_split() -> None:
    assert uri.split_target(b"/a/%2E/b?x=%2e&y=?") == (b"/a/b", b"x=%2e&y=?")
    assert uri.split_target(b"a") is None
    assert uri.split_target(b"/?a b") is None
    assert uri.split_absolute(b"HTTP://A.example:80/x?y") == (b"http", b"A.example:80", b"/x?y")
    assert uri.split_absolute(b"http://a?y") == (b"http", b"a", b"/?y")
    assert uri.split_absolute(b"http://a") == (b"http", b"a", b"/")
    assert uri.split_absolute(b"/x") is None
    assert uri.split_absolute(b"ftp://a/") is None


def test_hosts_too_long_to_be_good_are_not_remembered() -> None:
    before = uri.remembered_host.cache_info()
    proxy = MemoryProxy()
    for number in range(3):
        client = proxy.connect()
        client.send(b"GET / HTTP/1.1\r\nHost: %d%b\r\n\r\n" % (number, b"a" * 60_000))
        assert client.received.startswith(b"HTTP/1.1 400 ")
    assert uri.remembered_host.cache_info() == before
    longest = b".".join([b"a" * 50] * 4 + [b"a" * 49])
    assert uri.canonical_host(longest + b".:65535") == longest


PLAIN = re.compile(uri.PLAIN_PATH).fullmatch
PIECES = st.lists(
    st.sampled_from([b"/", b"a", b".", b"%41", b"%2f", b"%", b";", b"?", b" ", b"-_~!$&'()*+,=:@"]), max_size=9
)


@pytest.mark.parametrize(
    "path", [b"/", b"/a", b"/a/", b"/a/b.c", b"/v1/orders/12:cancel", b"/a.", b"/" + b"a" * 32_000]
)
def test_usual_paths_are_plain(path: bytes) -> None:
    """Else each request is read in the long way, which costs more than all the rest: CPython 3.11.2 did that."""
    assert PLAIN(path)
    found = request_line.PLAIN(b"GET %b?q=1 HTTP/1.1\r\nHost: a\r\n\r\n" % path)
    assert found is not None and found.groups() == (b"GET", path, b"?q=1")


@given(PIECES)
def test_a_plain_path_is_canonical_and_all_patterns_read_alike_on_each_interpreter(pieces: list[bytes]) -> None:
    """By patterns that give back what they took, which all interpreters read rightly."""
    path = b"".join((b"/", *pieces))
    is_plain = re.fullmatch(rb"/(?:[\w\-~!$&'()*+,=:@]|(?<!/)[./])*", path, re.ASCII) is not None
    assert (PLAIN(path) is not None) is is_plain
    assert not is_plain or uri.canonical_path(path) == path
    may_be = re.fullmatch(rb"(?:[^\x00-\x20\x7f-\xff\\#?%]|%[0-9A-Fa-f]{2})*", path) is not None
    assert (uri.canonical_path(path) is not None) is may_be
