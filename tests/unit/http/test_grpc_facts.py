"""What a gateway knows of gRPC: rows of gRPC's own documents, and bounds beside them."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.chain.replies import REPLIES
from dataplane.http import grpc


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        (b"application/grpc", grpc.GRPC),
        (b"application/grpc+proto", grpc.GRPC),
        (b"application/grpc+json", grpc.GRPC),
        (b"Application/GRPC ; charset=utf-8", grpc.GRPC),
        (b"application/grpc;x=application/grpc-web", grpc.GRPC),
        (b"application/grpc-web", grpc.WEB),
        (b"application/grpc-web+proto", grpc.WEB),
        (b"application/grpc-web-text", grpc.WEB_TEXT),
        (b"application/grpc-Web-Text+proto;q=1", grpc.WEB_TEXT),
        (b"application/grpcx", grpc.NOT_GRPC),
        (b"application/grpc-webs", grpc.NOT_GRPC),
        (b"text/plain; application/grpc", grpc.NOT_GRPC),
        (b"application/json", grpc.NOT_GRPC),
        (b"", grpc.NOT_GRPC),
    ],
)
def test_kinds(content_type: bytes, kind: int) -> None:
    assert grpc.kind(content_type) == kind


@pytest.mark.parametrize(
    ("status", "code"),
    {
        400: 13,
        401: 16,
        403: 7,
        404: 12,
        413: 8,
        429: 8,
        431: 8,
        500: 13,
        502: 14,
        503: 14,
        504: 4,
        408: 4,
        417: 13,
        501: 13,
        505: 13,
    }.items(),
)
def test_status_of_our_own_answers(status: int, code: int) -> None:
    assert grpc.status_of(status) == code


def test_no_answer_of_ours_is_a_success() -> None:
    assert all(grpc.status_of(reply.status) != grpc.OK for reply in REPLIES.values())


@pytest.mark.parametrize(
    ("value", "code"),
    {
        b"0": 0,
        b"16": 16,
        b"99": 99,
        b"4294967295": 4294967295,
        **dict.fromkeys([b"", b"-1", b"1 ", b"12345678901", "²".encode()]),
    }.items(),
)
def test_given_status(value: bytes, code: int | None) -> None:
    assert grpc.given_status(value) == code


@pytest.mark.parametrize(
    ("value", "seconds"),
    {
        b"1H": 3600,
        b"2M": 120,
        b"30S": 30,
        b"1500m": 1.5,
        b"20u": 20e-6,
        b"7n": 7e-9,
        b"0S": 0,
        b"99999999H": 99999999 * 3600,
    }.items(),
)
def test_timeouts(value: bytes, seconds: float) -> None:
    assert grpc.timeout(value) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value", [b"", b"S", b"1", b"1s", b"1h", b"-1S", b"+1S", b"1.5S", b" 1S", b"1S ", b"123456789S", b"1SS", b"1_0S"]
)
def test_malformed_timeouts(value: bytes) -> None:
    assert grpc.timeout(value) is None


@given(st.text())
def test_a_message_is_one_plain_line_and_means_the_same(text: str) -> None:
    encoded = grpc.message(text.encode())
    assert all(0x20 <= byte < 0x7F for byte in encoded)
    assert unquote_to_bytes(encoded).decode() == text


def test_trailers_only() -> None:
    assert grpc.trailers_only(b"application/grpc+proto", grpc.PERMISSION_DENIED, "nö\r\nx: y".encode()) == (
        b"content-type: application/grpc+proto\r\ngrpc-status: 7\r\ngrpc-message: n%C3%B6%0D%0Ax: y\r\n"
    )
    assert grpc.trailers_only(b"application/grpc", 0, b"") == b"content-type: application/grpc\r\ngrpc-status: 0\r\n"
