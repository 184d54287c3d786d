"""Watchers of what agents answer: what is too much is looked at no further, and what came before stays."""

from __future__ import annotations

import pytest

from dataplane.a2a import Call, methods, results


def update(state: int) -> bytes:
    """A message of a stream of gRPC in 1.0: news of a task."""
    return b"\0\0\0\0\x0a\x1a\x08\x0a\x02t9\x1a\x02\x08" + bytes([state])


EMPTY = b"\0" * 5


def watched(media: bytes, *pieces: bytes) -> Call:
    call = Call(methods.STREAM)
    watcher = results.watcher(call, media)
    assert watcher is not None
    for piece in pieces:
        watcher.content(piece)
    watcher.end()
    return call


def test_messages_in_the_bounds() -> None:
    assert watched(b"application/grpc", update(2) + EMPTY * 31, update(4)).state == "failed"
    assert watched(b"application/grpc", update(2) + EMPTY * 32).state is None  # not among the last ones
    assert watched(b"application/grpc", EMPTY * 8191 + update(3)).state == "completed"


def test_a_piece_of_too_many_messages_ends_the_watch() -> None:
    assert watched(b"application/grpc", update(2), EMPTY * 8192 + update(3), update(4)).state == "working"


@pytest.mark.parametrize("size", [65_531, 65_532, 200_000])
def test_what_comes_with_and_behind_a_message_that_is_too_large_is_looked_at(size: int) -> None:
    """65,536 bytes with its frame."""
    large = b"\0" + size.to_bytes(4, "big") + bytes(size)
    for pieces in ([large + update(3)], [large[:100], large[100:] + update(3)], [large[:100], large[100:], update(3)]):
        assert watched(b"application/grpc", *pieces).state == "completed"
    assert watched(b"application/grpc", update(2) + large).state == "working"
    inside = b"\0" + size.to_bytes(4, "big") + (update(3) * (size // 8 + 1))[:size]
    assert watched(b"application/grpc", update(2) + inside[:99], inside[99:]).state == "working"


def test_a_message_of_too_many_fields_is_skipped() -> None:
    status = b"\x08\x02" * 257
    inner = b"\x1a" + bytes([len(status) & 0x7F | 0x80, len(status) >> 7]) + status
    task = b"\x1a" + bytes([len(inner) & 0x7F | 0x80, len(inner) >> 7]) + inner
    frame = b"\0" + len(task).to_bytes(4, "big") + task
    assert watched(b"application/grpc", frame).state is None
    assert watched(b"application/grpc", frame, update(3)).state == "completed"


def test_events_of_too_many_lines_end_the_watch() -> None:
    done = b'data: {"result": {"id": "t", "status": {"state": "completed"}}}\n\n'
    assert watched(b"text/event-stream", b":\n" * 8190 + done).state == "completed"
    assert watched(b"text/event-stream", b":\n" * 8192 + done, done).state is None


def test_an_answer_in_the_bounds() -> None:
    for length, state in ((200, "working"), (262_144, "working"), (262_145, None)):
        text = b'{"id": "t", "status": {"state": "working"}, "x": "%b"}'
        assert watched(b"application/json", text % (b"a" * (length - len(text) + 2))).state == state


def test_other_content_is_not_watched() -> None:
    for media in (b"", b"text/html", b"application/octet-stream", b"application/x-ndjson"):
        assert results.watcher(Call(methods.STREAM), media) is None
    assert results.watcher(Call(methods.LIST), b"application/grpc") is None
