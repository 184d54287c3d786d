"""Values for headers: what is known when the configuration is read, what a request gives, what no header can have."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain import expressions, header_edits
from dataplane.chain.filter import Refused
from dataplane.http.heads import Head
from tests.fakes.table_state import exchange


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", b"a"),
        ("'  a b\\t'", b"a b"),
        ("1", b"1"),
        ("true", b"true"),
        ("''", b""),
        ("'\u00e9'", "\u00e9".encode()),
        ("'a\\nb'", None),
        ("null", None),
        ("request.path", None),
        ("'a' + 'b'", None),
    ],
)
def test_a_literal_is_written_once_for_all_requests(text: str, value: bytes | None) -> None:
    assert header_edits.constant(expressions.compiled(text, "request", "here")) == value


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("a b", b"a b"),
        ("", b""),
        (" a", b"a"),
        ("a\t", b"a"),
        (b" a ", b"a"),
        ("a\rb", None),
        ("a\x00", None),
        ("\n", None),
        ("\u00e9", "\u00e9".encode()),
        (7, b"7"),
        ([], None),
        (None, None),
    ],
)
def test_what_a_header_gets(given: Any, value: bytes | None) -> None:
    assert header_edits.value_of(lambda _x: given, exchange()) == value


def test_an_expression_that_fails_gives_none() -> None:
    program = expressions.compiled("request.headers['none']", "request", "here")
    assert header_edits.value_of(program.evaluate, exchange()) is None


@pytest.mark.parametrize("name", ["", "a b", "a:", "\u00e9", "Content-Length", "TRANSFER-ENCODING"])
def test_names_that_are_not_taken(name: str) -> None:
    with pytest.raises(Refused, match="headers: "):
        header_edits.header_name(name, "headers")
    assert header_edits.header_name("X-Key", "headers") == b"x-key"


@pytest.mark.parametrize("source", ["'One'", "request.path", "request.headers['x-none']"])
@pytest.mark.parametrize(("make", "kept"), [(header_edits.setting, b""), (header_edits.adding, b"X-A: old\r\n")])
def test_a_head_and_its_twin_stay_alike(make: Any, kept: bytes, source: str) -> None:
    """Literals and others; one without a value takes its header away."""
    edit = make("X-a", b"x-a", expressions.compiled(source, "request", "set"))
    head = Head(b"\r\nX-A: old\r\nx-b: 1\r\n")
    edit(exchange(path="/One"), head)
    written = {"'One'": b"X-a: One\r\n", "request.path": b"X-a: /One\r\n"}.get(source)
    assert head.block == b"\r\n" + (b"" if written is None else kept) + b"x-b: 1\r\n" + (written or b"")
    assert head.low == head.block.lower()
