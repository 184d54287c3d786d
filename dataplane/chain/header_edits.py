"""Edits of a header block by expressions, and which headers may be edited at all.

Used by the builders of filters that write headers. What an expression gives is held to what a value may be: nothing
that a request carries can end a line. An expression without such a value takes the header away, so that a client's own
value never passes for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dataplane.chain import expressions
from dataplane.chain.expressions import Evaluate
from dataplane.chain.filter import Refused
from dataplane.http.heads import Head, is_name, is_value, plain_name, twin_of_lines
from gatewright.cel.errors import CelError

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

FRAMING = frozenset(
    b"connection content-length expect http2-settings keep-alive proxy-connection te trailer transfer-encoding"
    b" upgrade".split()
)
"""Not for policies: they say how the message is framed or what this hop agreed on (RFC 9110 7.6.1, RFC 9112 6)."""

Edit = Callable[["Exchange", Head], None]


@lru_cache(512)
def header_name(name: str, where: str) -> bytes:
    """The name as twins have it (`heads.plain_name`). Raises `Refused` for what is no name, and for FRAMING."""
    if is_name(name.encode()) is None:
        raise Refused(f"{where}: {name!r} is not a header name")
    low = plain_name(name.encode())
    if low in FRAMING:
        raise Refused(f"{where}: {name} belongs to the connection")
    return low


def value_of(evaluate: Evaluate, x: Exchange) -> bytes | None:
    """What a header gets, without white space around it; None where the expression has no value, or one that no header
    can have."""
    try:
        value = evaluate(x)
    except CelError:
        return None
    if type(value) is str and value.isascii() and value.isprintable() and value.strip(" ") == value:  # almost always
        return value.encode()
    text = expressions.header_value(value)
    if text is None or is_value(text) is not None:
        return text
    text = text.strip(b" \t")
    return text if is_value(text) is not None else None


def constant(program: Program) -> bytes | None:
    """The header value of an expression that is a literal; None of all others."""
    from gatewright.cel import tree
    from gatewright.cel.parser import parse

    node = parse(program.text)
    return value_of(lambda x: node.value, _NO_REQUEST) if isinstance(node, tree.Literal) else None


_NO_REQUEST: Any = None
"""Nothing of a request is looked at."""


def setting(name: str, low: bytes, program: Program) -> Edit:
    """Write the header in place of all of its name."""
    fixed = constant(program)
    if fixed is not None:
        return replacing((low,), b"%b: %b\r\n" % (name.encode(), fixed))
    evaluate = program.evaluate
    start, low_start, needle = name.encode() + b": ", low + b": ", b"\r\n" + low + b":"

    def set_header(x: Exchange, head: Head) -> None:
        value = value_of(evaluate, x)
        if needle in head.low:
            head.remove(low)
        if value is not None:
            head.block += start + value + b"\r\n"
            head.low += low_start + value.lower() + b"\r\n"

    return set_header


def adding(name: str, low: bytes, program: Program) -> Edit:
    """Write the header beside those of its name."""
    fixed = constant(program)
    if fixed is not None:
        return replacing((), b"%b: %b\r\n" % (name.encode(), fixed))
    evaluate = program.evaluate
    start, low_start = name.encode() + b": ", low + b": "

    def add_header(x: Exchange, head: Head) -> None:
        value = value_of(evaluate, x)
        if value is None:
            head.remove(low)
        else:
            head.block += start + value + b"\r\n"
            head.low += low_start + value.lower() + b"\r\n"

    return add_header


def replacing(names: tuple[bytes, ...], lines: bytes) -> Edit:
    """Take out the headers of these names, then append finished lines."""
    needles, low_lines = tuple((b"\r\n" + name + b":", name) for name in names), twin_of_lines(lines)

    def replace(x: Exchange, head: Head) -> None:
        for needle, name in needles:
            if needle in head.low:
                head.remove(name)
        head.block += lines
        head.low += low_lines

    return replace
