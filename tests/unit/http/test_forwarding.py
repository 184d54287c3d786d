"""Forwarding headers: what a request says of its client, beside what the client may say itself."""

from __future__ import annotations

import pytest

from dataplane.http.forwarding import chain, lines

FOR, PROTO, HOST = b"x-forwarded-for: a, b\r\n", b"x-forwarded-proto: http\r\n", b"x-forwarded-host: a.test\r\n"


@pytest.mark.parametrize(
    ("low", "authority", "ours"),
    [
        (b"\r\nhost: a\r\n", b"a.test", FOR + PROTO + HOST),
        (b"\r\nhost: a\r\n", b"", FOR + PROTO),
        (b"\r\nx-forwarded-proto: https\r\n", b"a.test", FOR + HOST),
        (b"\r\nx-forwarded-host: b\r\n", b"a.test", FOR + PROTO),
        (b"\r\nx-forwarded-host: b\r\nx-forwarded-proto: https\r\n", b"a.test", FOR),
        (b"\r\nx-forwarded-port: 1\r\n", b"a.test", FOR + PROTO + HOST),
        (b"\r\nx-forwarded-port: 1\r\n", b"", FOR + PROTO),
        (b"\r\nx: x-forwarded-proto: https\r\n", b"a.test", FOR + PROTO + HOST),
    ],
)
def test_what_a_client_was_allowed_to_say_stays_as_it_said_it(low: bytes, authority: bytes, ours: bytes) -> None:
    assert lines(authority, b"a, b", b"http", low) == ours


@pytest.mark.parametrize(
    ("sent", "value"), [([], b"p"), ([b"a"], b"a, p"), ([b"", b"a, b", b"", b"c"], b"a, b, c, p"), ([b""], b"p")]
)
def test_the_peer_comes_last(sent: list[bytes], value: bytes) -> None:
    assert chain(sent, b"p") == value
