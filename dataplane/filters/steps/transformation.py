"""Transformation: metadata, headers, pseudo-headers and bodies of requests and responses, by expressions.

The order is metadata, add, set, remove, body, and each expression sees what those before it changed. Where one has no
value, its header is taken away and its metadata key is absent; for a body or a pseudo-header the request is answered
with 500, the response replaced by 502. Edits whose expression is a literal are worked out
when the filter is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import expressions, header_edits, pseudo_headers
from dataplane.chain.buffering import buffering
from dataplane.chain.conditional import conditional
from dataplane.chain.filter import Env, Filter, Refused, RequestHook, ResponseHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.http.body import DESCRIBING
from dataplane.http.heads import Head, plain_name
from dataplane.http.statuses import SWITCHING
from gatewright.cel.errors import CelError
from gatewright.variables.moments import Moment
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange
    from gatewright.cel.program import Program

NAME = "transformation"

FAILED: Final[dict[Moment, str]] = {
    "request": "RequestTransformationFailed",
    "response": "ResponseTransformationFailed",
}
"""Reason codes."""
WRITERS: Final = {"request": pseudo_headers.REQUEST, "response": pseudo_headers.RESPONSE}

Step = Callable[["Exchange", Head], bool | None]
"""Edits a head; False: a pseudo-header that must have a value has none."""


@dataclass(frozen=True, slots=True)
class Side:
    """What is done to requests, or to responses."""

    metadata: tuple[tuple[str, Program], ...]
    steps: tuple[Step, ...]
    writes_pseudo: bool
    body: Program | None
    old_body: Step
    """Takes out the headers that describe the body that was there, unless this transformation writes them."""
    programs: tuple[Program, ...]
    refusal: Reply
    names: frozenset[bytes]
    """Headers that are written or taken out."""

    @property
    def is_empty(self) -> bool:
        return not (self.metadata or self.steps or self.body)

    @property
    def is_silent(self) -> bool:
        return not self.writes_pseudo and self.body is None


def build(config: traffic_pb2.Transformation, env: Env) -> Filter | None:
    """Raises `Refused` for headers that cannot be edited and expressions that cannot work."""
    if config.conditional:
        return conditional(NAME, config.conditional, env, build)
    request, response = _side(config.request, "request", env), _side(config.response, "response", env)
    if request.is_empty and response.is_empty:
        return None
    reads_request = expressions.reads_request_body((*request.programs, *response.programs))
    if request.body is not None:
        reads_request = expressions.ALL
    reads = response.body is not None or expressions.reads_response_body(response.programs)
    hook = None if request.is_empty and not reads_request else _request(request)
    if hook is not None and reads_request:
        reads_for_body = request.body is not None and expressions.reads_request_body((request.body,))
        too_large = made("BodyTooLarge", str(env.origin)) if reads_for_body else None
        hook = buffering(hook, env.buffer_limit, too_large, reads_request)
    return Filter(
        NAME,
        request=hook,
        response=None if response.is_empty else _response(response),
        silent=request.is_silent and response.is_silent and not reads_request,
        response_body=env.buffer_limit if reads else 0,
        writes=request.names,
        takes_body=bool(reads_request),
    )


def of_backend(config: traffic_pb2.Transformation, env: Env) -> Filter:
    """That of `backend.transformation`, a step of the backend. One that changes nothing still takes the place of what
    stands above it. Raises `Refused`."""
    return build(config, env) or Filter(NAME)


# --- reading the configuration


def _side(config: traffic_pb2.Transform, moment: Moment, env: Env) -> Side:
    written: dict[bytes, None] = {}
    programs: list[Program] = []
    steps: list[Step] = []
    metadata = tuple(
        (name, expressions.compiled(text, moment, f"{moment}.metadata[{name}]"))
        for name, text in sorted(config.metadata.items())  # a map has no order of its own
    )
    for low, program, step in (*_edits(config.add, moment, "add"), *_edits(config.set, moment, "set")):
        written[low] = None
        programs.append(program)
        steps.append(step)
    removed = tuple(_removed(name, moment) for name in config.remove)
    if removed:
        steps.append(header_edits.replacing(removed, b""))
    body = expressions.compiled(config.body, moment, f"{moment}.body") if config.body else None
    return Side(
        metadata,
        tuple(steps),
        any(low in WRITERS[moment] for low in written),
        body,
        header_edits.replacing(tuple(name for name in DESCRIBING if name not in written), b""),
        (*(program for _, program in metadata), *programs, *(() if body is None else (body,))),
        made(FAILED[moment], str(env.origin)),
        frozenset((*written, *removed)),
    )


def _edits(
    entries: Iterable[traffic_pb2.HeaderExpression], moment: Moment, part: str
) -> Iterator[tuple[bytes, Program, Step]]:
    """(name in lower case, program, step) of each entry."""
    for entry in entries:
        name, where = entry.name, f"{moment}.{part}"
        program = expressions.compiled(entry.value, moment, f"{where}[{name}]")
        low = plain_name(name.encode())
        write = WRITERS[moment].get(low)
        if write is not None:
            if part == "add":
                raise Refused(f"{where}: {name} can be set, not added")
            yield low, program, _pseudo(write, program)
        else:
            make = header_edits.adding if part == "add" else header_edits.setting
            yield low, program, make(name, header_edits.header_name(name, where), program)


def _removed(name: str, moment: Moment) -> bytes:
    if plain_name(name.encode()) in WRITERS[moment]:
        raise Refused(f"{moment}.remove: {name} can be set, not removed")
    return header_edits.header_name(name, f"{moment}.remove")


def _pseudo(write: pseudo_headers.Write, program: Program) -> Step:
    evaluate = program.evaluate

    def write_pseudo(x: Exchange, head: Head) -> bool:
        value = header_edits.value_of(evaluate, x)
        return value is not None and write(x, value)

    return write_pseudo


# --- hooks


def _leave(x: Exchange, metadata: tuple[tuple[str, Program], ...]) -> None:
    """Each value can be read by the expressions behind it."""
    known: Any = None if x.attributes is None else x.attributes.get("metadata")
    values = {} if known is None else known
    x.leave("metadata", values)
    for name, program in metadata:
        try:
            values[name] = program.evaluate(x)
        except CelError:
            values.pop(name, None)


def _request(side: Side) -> RequestHook:
    metadata, steps, body, refusal = side.metadata, side.steps, side.body, side.refusal

    def transform_request(x: Exchange) -> Reply | None:
        if metadata:
            _leave(x, metadata)
        head = x.request
        for step in steps:
            if step(x, head) is False:
                return refusal
        return None if body is None else _request_body(x, body, side)

    return transform_request


def _request_body(x: Exchange, body: Program, side: Side) -> Reply | None:
    try:
        data = expressions.body_value(body.evaluate(x))
    except CelError:
        return side.refusal
    if data != x.body:
        side.old_body(x, x.request)
        x.replace_body(data)
    return None


def _response(side: Side) -> ResponseHook:
    metadata, steps, body, refusal = side.metadata, side.steps, side.body, side.refusal

    def transform_response(x: Exchange) -> Reply | None:
        if metadata:
            _leave(x, metadata)
        head = x.response
        assert head is not None  # response hooks run when there is one
        for step in steps:
            if step(x, head) is False:
                return refusal
        return None if body is None else _response_body(x, head, body, side)

    return transform_response


def _response_body(x: Exchange, head: Head, body: Program, side: Side) -> Reply | None:
    if x.status == SWITCHING:  # no body, but a tunnel
        return None
    if x.response_body is None and (x.method == b"HEAD" or x.status == 304):
        side.old_body(x, head)  # it describes what a GET would get, which is unknown
        head.remove(b"content-length")
        return None
    try:
        data = expressions.body_value(body.evaluate(x))
    except CelError:
        return side.refusal
    if data != x.response_body:
        side.old_body(x, head)
        x.response_body, x.response_body_changed = data, True
    return None
