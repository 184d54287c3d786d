"""Ids of sessions: what they say is bounded, whatever is sealed in them."""

from __future__ import annotations

import os
import zlib

import msgspec
import pytest

from dataplane.credentials.sealing import Sealer
from dataplane.mcp import sessions
from dataplane.mcp.sessions import MAX_CONTENT, Question, Session, UpstreamSession
from dataplane.mcp.worker import MOST_OPENED, Memory, Shared

SEALER = Sealer(bytes(32))
OWNER = b"backend\0caller"
PURPOSE = b"mcp session\0" + OWNER


def session(hello: bytes = b"{}", upstreams: int = 1) -> Session:
    theirs = [UpstreamSession(f"t{each}", "id", "1.2.3.4:5") for each in range(upstreams)]
    return Session(b"8 bytes.", 1000, hello, theirs)


def sealed(content: bytes) -> str:
    return SEALER.seal(content, PURPOSE)


def test_content_of_exactly_the_bound_is_opened() -> None:
    size = MAX_CONTENT - len(msgspec.msgpack.encode(session(bytes(70_000)))) + 70_000
    content = msgspec.msgpack.encode(session(bytes(size)))
    assert len(content) == MAX_CONTENT
    assert sessions.opened(sealed(zlib.compress(content)), SEALER, OWNER, 1001) is not None
    more = msgspec.msgpack.encode(session(bytes(size + 1)))
    assert len(more) == MAX_CONTENT + 1
    assert sessions.opened(sealed(zlib.compress(more)), SEALER, OWNER, 1001) is None


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_content_that_is_cut_off_is_none(cut: int) -> None:
    content = zlib.compress(msgspec.msgpack.encode(session()))
    assert sessions.opened(sealed(content[:-cut]), SEALER, OWNER, 1001) is None
    assert sessions.opened(sealed(b"no zlib"), SEALER, OWNER, 1001) is None


# --- ids of requests of servers, for clients without sessions


@pytest.mark.parametrize("request_id", [0, -1, 2**62, "a", "", "x" * 1024])
def test_a_question_is_opened_as_it_was_sealed(request_id: str | int) -> None:
    question = Question(UpstreamSession("one", "id", "1.2.3.4:5"), request_id)
    text = sessions.sealed_question(question, SEALER, OWNER)
    assert text is not None and sessions.opened_question(text, SEALER, OWNER) == question
    assert sessions.opened_question(text, SEALER, b"another") is None
    assert sessions.opened(text, SEALER, OWNER, 1001) is None, "it is no session"


@pytest.mark.parametrize("request_id", ["x" * 1025, "x" * 4_000_000, 2**70])
def test_a_question_with_an_id_that_none_should_be_has_no_text(request_id: str | int) -> None:
    assert sessions.sealed_question(Question(UpstreamSession("one"), request_id), SEALER, OWNER) is None


# --- ids that a worker remembers


def remembering() -> Memory:
    return Memory(Shared.local(), lambda at, sleeper: None)


def test_a_remembered_id_is_still_one_of_its_owner_and_is_over_in_time() -> None:
    memory = remembering()
    text = sessions.sealed(session(), SEALER, OWNER)
    first = memory.opened(text, SEALER, OWNER, 1001)
    assert first is not None and memory.opened(text, SEALER, OWNER, 1002) is first, "nothing is opened twice"
    assert memory.opened(text, SEALER, b"another", 1002) is None
    assert memory.opened(text[:-1], SEALER, OWNER, 1002) is None
    assert memory.opened(text, SEALER, OWNER, 1000 + sessions.LIFETIME) is None
    assert memory.opened(text, SEALER, OWNER, 1000 - 301) is None, "it was made in the future"


def test_of_ids_a_bounded_number_is_remembered_and_no_long_ones() -> None:
    memory = remembering()
    long = sessions.sealed(session(os.urandom(2000)), SEALER, OWNER)
    assert memory.opened(long, SEALER, OWNER, 1001) is not memory.opened(long, SEALER, OWNER, 1001)
    dense = sessions.sealed(session(b"x" * sessions.MAX_HELLO), SEALER, OWNER)
    assert len(dense) < 1024, "a short id that says much"
    assert memory.opened(dense, SEALER, OWNER, 1001) is not memory.opened(dense, SEALER, OWNER, 1001)
    texts = [sessions.sealed(session(), SEALER, OWNER) for _ in range(MOST_OPENED + 1)]
    opened = [memory.opened(text, SEALER, OWNER, 1001) for text in texts]
    assert memory.opened(texts[-1], SEALER, OWNER, 1001) is opened[-1]
    assert memory.opened(texts[0], SEALER, OWNER, 1001) is not opened[0], "the oldest was forgotten"


def test_a_renewed_session_of_a_server_is_not_that_of_another_whose_name_has_the_same_checksum() -> None:
    memory, number = remembering(), b"12345678"
    memory.renew(number, UpstreamSession("plumless", "secret"), 1001)
    assert zlib.crc32(b"plumless") == zlib.crc32(b"buckeroo")
    assert memory.renewed(number, "buckeroo") is None
    assert memory.renewed(number, "plumless") == UpstreamSession("plumless", "secret")
