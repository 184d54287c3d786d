"""Expressions of policies: compiled by a builder, once; evaluated on the exchange.

An `Exchange` is itself the context of evaluation (`dataplane/variables`), so `program.evaluate(exchange)` is one call.
Nothing here decides what a failing expression means: each policy does. The language is loaded with the first expression
(3 MB that a worker without any does without).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.filter import EVERY_HEADER, Refused
from dataplane.http.heads import plain_name
from gatewright.cel.budget import START
from gatewright.cel.errors import CelError, ExpressionError, Fault, OverBudget
from gatewright.cel.values import NONE, Duration, Optional, Redacted, Timestamp
from gatewright.turns import pause

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program
    from gatewright.variables.moments import Moment

LANGUAGE: Final = (
    *("gatewright.cel.parser", "gatewright.cel.environment", "gatewright.cel.functions", "gatewright.cel.check"),
    *("gatewright.cel.emitters", "gatewright.cel.program", "gatewright.variables.environments"),
)
"""In the order in which they need each other: each is loaded in a turn of its own."""

KNOWN: Final = 4096
"""Compiled expressions that are kept: many policies have the same ones."""

NO_BODIES, OF_AGENTS, ALL = range(3)
"""Whose request bodies are read: what follows includes what stands before it."""

Evaluate = Callable[["Exchange"], Any]


def compiled(text: str, moment: Moment, where: str) -> Program:
    """The program of an expression that is evaluated at `moment`. Raises `Refused`, naming `where` (a field)."""
    try:
        return _compiled(text, moment)
    except ExpressionError as error:
        raise Refused(f"{where}: {error}") from None


@lru_cache(KNOWN)
def _compiled(text: str, moment: Moment) -> Program:
    for name in LANGUAGE:
        if name not in sys.modules:
            pause()
            import_module(name)
    from gatewright.cel.program import compile_expression
    from gatewright.variables.environments import environment

    program = compile_expression(text, environment(moment))
    program.prepare()
    return program


def condition(program: Program, cut_off: bool = False) -> Callable[[Exchange], bool]:
    """Whether the expression is true. One that fails, or gives another type, is not (Authorization 4);
    `cut_off`: whether one is that exceeds the limits of an evaluation, as clients can make it do."""
    evaluate = program.evaluate

    def holds(x: Exchange) -> bool:
        try:
            return evaluate(x) is True
        except OverBudget:
            return cut_off
        except CelError:
            return False

    return holds


def plain(program: Program) -> Evaluate:
    """What the expression gives, a secret as itself and text as UTF-8; None also where it fails."""
    evaluate = program.evaluate

    def value_of(x: Exchange) -> Any:  # of any type of the language
        try:
            value = evaluate(x)
        except CelError:
            return None
        if isinstance(value, Redacted):
            value = value.unredacted()
        return value.encode("utf-8", "replace") if isinstance(value, str) else value

    return value_of


def reads(programs: Iterable[Program], *paths: str) -> bool:
    """Whether one of the expressions reads one of these variables, a part of it, or an object that contains it:
    `request.body`. Goes over them once: they may come from a generator."""
    return any(program.references.reads(path) for program in programs for path in paths)


def reads_request_body(programs: Iterable[Program]) -> int:
    """Which requests' bodies the expressions read: `ALL`, `OF_AGENTS` (what a call of an agent is, its body says), or
    `NO_BODIES`, which is 0."""
    whose = NO_BODIES
    for program in programs:
        if reads((program,), "request.body", "request.bodyPrefix"):
            return ALL
        if reads((program,), "a2a"):
            whose = OF_AGENTS
    return whose


_HEADERS: Final = "request.headers"


def headers_read(programs: Iterable[Program]) -> frozenset[bytes]:
    """Names of request headers that the expressions read, as `Filter.writes` has them: `EVERY_HEADER` where they look
    through all, or name one by what is not known before."""
    from gatewright.cel.references import EVERYTHING  # with the language, which these have loaded

    found: set[bytes] = set()
    for program in programs:
        for path in program.references.attributes:
            name = path.removeprefix(f"{_HEADERS}:")
            if name != path:
                found.add(plain_name(name.lower().encode()))
            elif path in (EVERYTHING, "request", _HEADERS):
                found.add(EVERY_HEADER)
    return frozenset(found)


def reads_response_headers(programs: Iterable[Program]) -> bool:
    """Whether an expression reads headers of the response, the status of a gRPC call among them."""
    return reads(programs, "response.headers", "response.grpcStatus")


def reads_response_body(programs: Iterable[Program]) -> bool:
    return reads(programs, "response.body", "response.bodyPrefix")


def header_value(value: Any) -> bytes | None:
    """A value as that of a header: text, bytes, numbers, true and false, points in time and durations as their text,
    what an optional holds; None where it cannot be one."""
    if type(value) is bytes:
        return value
    if isinstance(value, str):
        return _encoded(value)
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float):
        return repr(value).encode()
    if type(value) is Optional:
        return None if value is NONE else header_value(value.value)
    if isinstance(value, Timestamp | Duration):
        return _json(value).strip('"').encode()
    return b"%d" % value if isinstance(value, int) else None


def _encoded(value: str) -> bytes | None:
    """None of half a surrogate pair, which the JSON of a token may hold."""
    try:
        return value.encode()
    except UnicodeEncodeError:
        return None


def body_value(value: Any) -> bytes:
    """A value as a body: text and bytes as they are, all others as JSON (bodyExpression). Raises CelError."""
    if type(value) is bytes:
        return value
    text = value if isinstance(value, str) else _json(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Fault("no text: half of a surrogate pair") from None


def _json(value: Any) -> str:
    from gatewright.cel.functions import json_text

    return json_text.write(list(START), value)
