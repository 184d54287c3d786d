"""Header modifiers: set, add and remove headers of the request on its way up and of the response on its way down.

Gateway API HTTPHeaderFilter. Within one filter `add` comes first, then `set`, then `remove`; of several entries with
one name the first counts. The static outcome is worked out when the filter is built: which names go, and the bytes of
all lines that come.

What belongs to the connection is not editable (`chain/header_edits`). The request's `host` can be set, and the
authority changes with it, but neither added to nor removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dataplane.chain.filter import Env, Filter, Refused, RequestHook, ResponseHook
from dataplane.chain.header_edits import header_name
from dataplane.chain.pseudo_headers import set_authority
from dataplane.http.heads import is_value, twin_of_lines
from dataplane.http.uri import canonical_host
from gatewright.turns import paced
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

NAME = "header_modifiers"


def build(config: traffic_pb2.HeaderModifiers, env: Env) -> Filter | None:
    """Raises `Refused` for a name or value that no header can have, and for framing headers."""
    request = _edit(config.request, "request") if config.HasField("request") else NO_EDIT
    response = _edit(config.response, "response") if config.HasField("response") else NO_EDIT
    if request == NO_EDIT and response == NO_EDIT:
        return None
    return Filter(
        NAME,
        request=None if request == NO_EDIT else _request_hook(request),
        response=None if response == NO_EDIT else _response_hook(response),
        silent=True,
        writes=frozenset(request.names),
    )


def combine(filters: Sequence[Filter]) -> Filter:
    """A policy's and those of a rule as one: the rule has the last word about the response, too, although responses go
    through the steps the other way round."""
    requests = [each.request for each in filters if each.request is not None]
    responses = [each.response for each in filters if each.response is not None]
    return Filter(
        NAME,
        request=_one_after_the_other(requests),
        response=_one_after_the_other(responses),
        silent=True,
        writes=frozenset[bytes]().union(*(each.writes for each in filters)),
    )


def _one_after_the_other(hooks: list[Callable[[Exchange], Any]]) -> Callable[[Exchange], None] | None:
    if len(hooks) < 2:
        return hooks[0] if hooks else None

    def edit_in_turn(exchange: Exchange) -> None:
        for hook in hooks:
            hook(exchange)

    return edit_in_turn


class Edit(NamedTuple):
    """What is done to a head."""

    names: tuple[bytes, ...]
    """To take out, as twins have them (`heads.plain_name`)."""
    lines: bytes
    """To append."""
    host: bytes
    """To set; b"": it stays."""


NO_EDIT = Edit((), b"", b"")


def _edit(config: traffic_pb2.HeaderFilter, side: str) -> Edit:
    added = _values(config.add, side, "add")
    replaced = _values(config.set, side, "set")
    removed = {header_name(name, f"{side}.remove"): None for name in paced(config.remove)}
    host = b""
    if side == "request":
        if b"host" in added or b"host" in removed:
            raise Refused(f"{side}: host can be set, not added or removed")
        if b"host" in replaced:
            host = replaced.pop(b"host")[len(b"host: ") : -len(b"\r\n")]
        if host and canonical_host(host) is None:
            raise Refused(f"{side}.set: {host.decode()!r} is not a host")
    lines = b""
    for name, line in paced(added.items()):
        if name not in replaced and name not in removed:
            lines += line
    names = []
    for name, line in paced(replaced.items()):
        if name not in removed:
            lines += line
            names.append(name)
    return Edit((*names, *removed), lines, host)


def _values(entries: Iterable[traffic_pb2.HeaderValue], side: str, part: str) -> dict[bytes, bytes]:
    """Finished lines, with names as written, by plain name."""
    values: dict[bytes, bytes] = {}
    for entry in paced(entries):
        name, value = entry.name, entry.value.encode()
        low = header_name(name, f"{side}.{part}")
        if is_value(value) is None:
            raise Refused(f"{side}.{part}: the value of {name} is not a header value")
        if low not in values:
            values[low] = b"%b: %b\r\n" % (name.encode(), value)
    return values


def _request_hook(edit: Edit) -> RequestHook:
    if edit.host:
        return _with_host(*edit)
    lines, needles, low_lines = edit.lines, _needles(edit.names), twin_of_lines(edit.lines)

    def edit_request(exchange: Exchange) -> None:
        head = exchange.request
        for needle in needles:
            if needle in head.low:
                head.remove(needle[2:-1])
        head.block += lines
        head.low += low_lines

    return edit_request


def _with_host(names: tuple[bytes, ...], lines: bytes, authority: bytes) -> RequestHook:
    host, low_lines = canonical_host(authority) or b"", twin_of_lines(lines)

    def edit_request_and_host(exchange: Exchange) -> None:
        head = exchange.request
        for name in names:
            head.remove(name)
        head.block += lines
        head.low += low_lines
        set_authority(exchange, authority, host)

    return edit_request_and_host


def _response_hook(edit: Edit) -> ResponseHook:
    lines, needles, low_lines = edit.lines, _needles(edit.names), twin_of_lines(edit.lines)

    def edit_response(exchange: Exchange) -> None:
        head = exchange.response
        assert head is not None  # response hooks run when there is one
        for needle in needles:
            if needle in head.low:
                head.remove(needle[2:-1])
        head.block += lines
        head.low += low_lines

    return edit_response


@lru_cache(512)
def _needles(names: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """What the lines of these headers begin with; many routes edit the same headers."""
    return tuple(b"\r\n" + name + b":" for name in names)
