"""What a header block means for this hop."""

from __future__ import annotations

import pytest

from dataplane.http.h1.request_head import RequestHead, read
from dataplane.http.h1.request_line import Named
from dataplane.http.messages import Peer

PEER = Peer("192.0.2.1", local=b"192.0.2.9:8080")


def understood(*lines: bytes, version: bytes = b"HTTP/1.1", absolute: bytes = b"") -> RequestHead | str:
    block = b"\r\n" + b"".join(line + b"\r\n" for line in lines)
    return read(b"GET / " + version, block, version, Named(authority=absolute), PEER, 100)


def good(*lines: bytes, version: bytes = b"HTTP/1.1", absolute: bytes = b"") -> RequestHead:
    head = understood(*lines, version=version, absolute=absolute)
    assert isinstance(head, RequestHead), head
    return head


def test_plain_headers_pass_as_they_are_with_ours_behind() -> None:
    head = good(b"Host: A.test", b"X-One:  1 ")
    assert head.headers == (
        b"\r\nHost: A.test\r\nX-One:  1 \r\n"
        b"x-forwarded-for: 192.0.2.1\r\nx-forwarded-proto: http\r\nx-forwarded-host: a.test\r\n"
    )
    assert head.low == head.headers.lower()
    assert (head.meaning.host, head.meaning.authority) == (b"a.test", b"a.test")
    assert (head.meaning.keep, head.meaning.has_body, head.meaning.has_id) == (True, False, False)


@pytest.mark.parametrize(
    ("lines", "version", "keep"),
    [
        ((), b"HTTP/1.1", True),
        ((b"Connection: close",), b"HTTP/1.1", False),
        ((b"Connection: Keep-Alive",), b"HTTP/1.1", True),
        ((b"Connection: x, Close",), b"HTTP/1.1", False),
        ((b"Connection: keep-alive", b"Connection: close"), b"HTTP/1.1", False),
        ((), b"HTTP/1.0", False),
        ((b"Connection: keep-alive",), b"HTTP/1.0", True),
        ((b"Connection: keep-alive, close",), b"HTTP/1.0", False),
    ],
)
def test_persistence(lines: tuple[bytes, ...], version: bytes, keep: bool) -> None:
    assert good(b"Host: a", *lines, version=version).meaning.keep is keep


@pytest.mark.parametrize(
    ("sent", "forwarded"),
    [
        ((), b"192.0.2.1"),
        ((b"1.1.1.1",), b"1.1.1.1, 192.0.2.1"),
        ((b" 1.1.1.1 , 2.2.2.2 ", b"3.3.3.3"), b"1.1.1.1 , 2.2.2.2, 3.3.3.3, 192.0.2.1"),
        ((b"",), b"192.0.2.1"),
        ((b"1.1.1.1", b"", b" \t", b"2.2.2.2"), b"1.1.1.1, 2.2.2.2, 192.0.2.1"),
    ],
)
def test_the_peer_is_appended_to_the_addresses_that_came(sent: tuple[bytes, ...], forwarded: bytes) -> None:
    head = good(b"Host: a", *(b"X-Forwarded-For: " + value for value in sent))
    assert head.low.count(b"x-forwarded-for:") == 1
    assert b"\r\nx-forwarded-for: " + forwarded + b"\r\n" in head.headers


def test_what_connection_names_goes_and_what_it_may_not_name_stays() -> None:
    head = good(b"Host: a", b"Connection: X-Hop, Host, Content-Length, X-Request-Id", b"X-Hop: 1", b"X-Request-Id: r")
    assert b"x-hop" not in head.low
    assert b"connection" not in head.low
    assert b"\r\nhost: a\r\n" in head.low
    assert head.meaning.has_id


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), "BadRequest"),
        ((b"Host: a", b"Host: a"), "BadRequest"),
        ((b"Host: a b",), "BadRequest"),
        ((b"Host: a", b"Content-Length: 1", b"Transfer-Encoding: chunked"), "BadRequest"),
        ((b"Host: a", b"Content-Length: 1", b"Content-Length: 1"), "BadRequest"),
        ((b"Host: a", b"Content-Length: +1"), "BadRequest"),
        ((b"Host: a", b"Transfer-Encoding: gzip"), "BadRequest"),
        ((b"Host: a", b"Transfer-Encoding: gzip, chunked"), "CodingNotImplemented"),
        ((b"Host: a", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), "BadRequest"),
        ((b"Host: a", b"Expect: 200-ok"), "ExpectationFailed"),
        ((b"Host: a", b"Bad Name: 1"), "BadRequest"),
        ((b"Host: a", b" folded"), "BadRequest"),
        ((b"Host: a", b"X: a\rb"), "BadRequest"),
        ((b"Host: a", b"X: a\x00b"), "BadRequest"),
        ((b"Host: a", b"Transfer-Encoding: ,chunked"), "BadRequest"),
        ((b"Host: a", *[b"X: 1"] * 100), "HeadersTooLarge"),
        ((b"Host:a", *[b"X:"] * 100), "HeadersTooLarge"),
        ((*[b"X:"] * 100,), "BadRequest"),
        ((*[b"X:"] * 101,), "HeadersTooLarge"),
    ],
)
def test_refusals(lines: tuple[bytes, ...], reason: str) -> None:
    assert understood(*lines) == reason


def test_an_old_client_sends_no_chunks() -> None:
    """Its version has none, and others on the way may not see them (RFC 9112 6.1)."""
    assert understood(b"Host: a", b"Transfer-Encoding: chunked", version=b"HTTP/1.0") == "BadRequest"


def test_absolute_form_and_host_must_agree() -> None:
    assert good(b"Host: a", absolute=b"A").meaning.host == b"a"
    assert understood(b"Host: a", absolute=b"b") == "BadRequest"


def test_an_old_client_without_host_gets_one() -> None:
    assert b"\r\nhost: 192.0.2.9:8080\r\n" in good(version=b"HTTP/1.0").headers
    assert b"\r\nhost: a.test\r\n" in good(version=b"HTTP/1.0", absolute=b"a.test").headers


@pytest.mark.parametrize(("absolute", "host"), [(b"", b""), (b"A.test:80", b"a.test"), (b"a b", b"")])
def test_the_host_that_is_routed_by_where_an_old_client_sent_none(absolute: bytes, host: bytes) -> None:
    assert good(version=b"HTTP/1.0", absolute=absolute).meaning.host == host


def test_what_is_shown_of_a_head_has_no_credentials() -> None:
    assert "secret" not in repr(good(b"Host: a", b"Authorization: Bearer secret"))


def test_framing() -> None:
    assert good(b"Host: a", b"Content-Length: 5").meaning.framing.length == 5
    assert good(b"Host: a", b"Transfer-Encoding: Chunked").meaning.framing.chunked
    assert good(b"Host: a", b"Expect: 100-Continue", b"Content-Length: 1").meaning.framing.expects
    assert good(b"Host: a", b"Connection: upgrade", b"Upgrade: websocket").meaning.framing.upgrade == b"websocket"
    assert good(b"Host: a", b"Connection: upgrade", b"Upgrade: h2c, x").meaning.framing.upgrade == b""
    assert good(b"Host: a", b"Upgrade: websocket").meaning.framing.upgrade == b""


def test_so_many_short_headers_may_come() -> None:
    assert good(b"Host:a", *[b"X:"] * 99).meaning.host == b"a"
