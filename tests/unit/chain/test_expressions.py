"""Values of expressions as headers and bodies."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain import expressions
from dataplane.chain.filter import Refused
from gatewright.cel.errors import CelError
from gatewright.cel.values import Redacted
from tests.fakes.table_state import exchange

HEADERS = b'x-half: {"a":"\\ud800"}\r\nx-pair: {"a":"\\uD83D\\uDE00"}\r\nx-back: {"a":"\\\\ud800"}\r\n'


def value(text: str) -> Any:
    return expressions.compiled(text, "request", "here").evaluate(exchange(headers=HEADERS))


@pytest.mark.parametrize(
    ("text", "header", "body"),
    [
        ("'a\u00e9'", b"a\xc3\xa9", b"a\xc3\xa9"),
        (r"b'\x00\xff'", b"\x00\xff", b"\x00\xff"),  # whether it may stand in a header is looked at behind
        ("1", b"1", b"1"),
        ("-2.5", b"-2.5", b"-2.5"),
        ("3u", b"3", b"3"),
        ("true", b"true", b"true"),
        ("null", None, b"null"),
        ("[1, 'a']", None, b'[1,"a"]'),
        ("{'a': null}", None, b'{"a":null}'),
        ("timestamp('2026-01-02T03:04:05Z')", b"2026-01-02T03:04:05Z", b'"2026-01-02T03:04:05Z"'),
        ("duration('90s')", b"90s", b'"90s"'),
        ("optional.of('a')", b"a", b'"a"'),
        ("optional.none()", None, b"null"),
        ("json(request.headers['x-pair']).a", "\U0001f600".encode(), "\U0001f600".encode()),
        ("json(request.headers['x-back']).a", b"\\ud800", b"\\ud800"),
    ],
)
def test_values(text: str, header: bytes | None, body: bytes) -> None:
    assert expressions.header_value(value(text)) == header
    assert expressions.body_value(value(text)) == body


def test_what_clients_send_is_text_or_nothing() -> None:
    with pytest.raises(CelError, match="half of a surrogate pair"):
        value("json(request.headers['x-half']).a")


@pytest.mark.parametrize("half", ["\ud800", ["\ud800"]])
def test_half_a_pair_from_elsewhere(half: Any) -> None:
    assert expressions.header_value(half) is None
    with pytest.raises(CelError):
        expressions.body_value(half)


def test_secrets_stay_hidden() -> None:
    assert expressions.header_value(Redacted("s3cret")) == b"<redacted>"
    assert expressions.body_value(Redacted("s3cret")) == b"<redacted>"


def test_a_field_is_named() -> None:
    with pytest.raises(Refused, match=r"^policy\.field: "):
        expressions.compiled("nothing", "request", "policy.field")


@pytest.mark.parametrize(
    ("text", "request_body", "response_body"),
    [
        ("request.body", expressions.ALL, False),
        ("request.bodyPrefix", expressions.ALL, False),
        ("json(request.body).a", expressions.ALL, False),
        ("a2a.method", expressions.OF_AGENTS, False),
        ("a2a.task.id + string(request.body)", expressions.ALL, False),
        ("variables()", expressions.ALL, True),
        ("response.bodyPrefix", expressions.NO_BODIES, True),
        ("response.code", expressions.NO_BODIES, False),
    ],
)
def test_which_expressions_read_bodies(text: str, request_body: int, response_body: bool) -> None:
    program = expressions.compiled(text, "response", "here")
    assert expressions.reads_request_body(each for each in [program]) == request_body
    assert expressions.reads_response_body(each for each in [program]) is response_body
