"""The oracles see what they are for: a bug that is planted in the product makes an input of the corpus fail.

One row or two for each target: it takes one strictness away, or breaks one law, and names an input that has to notice.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.sources import file_state
from controlplane.xds.protocol.subscription import Subscription
from dataplane.credentials import locations
from dataplane.http import uri
from dataplane.http.h1 import chunked, request_head, response_head
from dataplane.http.h2 import frames, receiving
from dataplane.link import buckets, codec
from dataplane.proxy.attempt import retries
from dataplane.proxy.response import tunnel
from dataplane.table import routes
from dataplane.telemetry import log_field, log_values
from gatewright.api.text import yaml_text
from gatewright.cel import emit_operators, types
from gatewright.cel.plan import Plan
from tests.fakes.h2_wire import POST as UPLOAD_FIELDS
from tests.fakes.h2_wire import frame, literal
from tests.fuzz import targets
from tests.fuzz.rig import Violation
from tests.fuzz.target_h2_frames import RAW_SERVER

POST = b"POST / HTTP/1.1\r\nHost: a.example\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: a.example\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
LONGER_THAN_ANNOUNCED = frame(frames.HEADERS, 4, 1, literal([*UPLOAD_FIELDS, (b"content-length", b"2")])) + frame(
    frames.DATA, 1, 1, b"abc"
)


def lenient_size(patch: pytest.MonkeyPatch) -> None:
    """`int()` takes signs, spaces and underscores."""
    patch.setattr(chunked, "_SIZE", re.compile(rb"[-+_ 0-9A-Fa-f]{1,15}").fullmatch)


def both_framings(patch: pytest.MonkeyPatch) -> None:
    """A length beside chunks is obeyed, the chunks are not."""

    def weigh(rare: list[Any], options: list[bytes], version: bytes) -> Any:
        return original([match for match in rare if match[1] != b"transfer-encoding"], options, version)

    original = request_head._weigh
    patch.setattr(request_head, "_weigh", weigh)
    patch.setattr(request_head, "_agreed", lambda line, block, framing: True)


def no_second_reader(patch: pytest.MonkeyPatch) -> None:
    """Without llhttp, folded lines and spaces before colons pass our own reading."""
    patch.setattr(request_head, "_agreed", lambda line, block, framing: True)


def first_host(patch: pytest.MonkeyPatch) -> None:
    """Of several Host fields the first is taken, the others go on."""
    original = request_head._authority
    patch.setattr(request_head, "_authority", lambda hosts, *rest: original(hosts[:1], *rest))
    no_second_reader(patch)


def trusting_endpoint(patch: pytest.MonkeyPatch) -> None:
    """Both framings in a response are taken: chunks first."""
    original = response_head._frame

    def frame(lengths: list[bytes], codings: list[bytes], *rest: Any) -> tuple[int, int]:
        return original([] if codings else lengths[:1], codings, *rest)

    patch.setattr(response_head, "_frame", frame)
    patch.setattr(response_head, "_valid", lambda head: True)


def decoded_slash(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(uri, "_CHANGED", {**uri._CHANGED, b"%2F": b"/"})


def bad_resource_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """A refused version takes the good one with it."""

    def change(swap: Any, key: str, value: bytes | None) -> None:
        record = swap.of.store.routes.get(key)
        if record is not None:
            routes._leave(swap, key, record)
        original(swap, key, value)

    original = routes.change_route
    patch.setitem(targets_handlers(), "route", change)


def targets_handlers() -> dict[str, Any]:
    from dataplane.table import applier

    return applier.HANDLERS


def removals_are_lost(patch: pytest.MonkeyPatch) -> None:
    """An unsubscribed name that the wildcard covers is not sent again."""
    patch.setattr(Subscription, "_unsubscribe", lambda self, name: self.names.discard(name))


def one_exception_less(patch: pytest.MonkeyPatch) -> None:
    """What the link's reader raises for nonsense escapes as it is."""
    patch.setattr(
        codec, "_decode", lambda frame: codec._READERS.get(kind_of(frame), codec._read_json)(kind_of(frame), frame[1:])
    )


def kind_of(frame: bytes) -> Any:
    return codec._MESSAGES[frame[0]]


def any_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(yaml_text, "_sendable", lambda value, text: value)


def python_division(patch: pytest.MonkeyPatch) -> None:
    """Integers are divided as Python does it: downwards, and with an error of its own for zero."""
    row = emit_operators._by(lambda left, right: left // right)
    patch.setitem(emit_operators.TYPED, ("/", types.INT, types.INT), row)


def words_in_plans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Plan, "constant", lambda self, value: self.plain(value))


def first_parameter(patch: pytest.MonkeyPatch) -> None:
    """Of a credential that a query has twice the first is taken."""
    original = locations._parameters
    patch.setattr(locations, "_parameters", lambda *asked: original(*asked)[:1])


def ends_before_bytes(patch: pytest.MonkeyPatch) -> None:
    """What was given in the same turn is lost when the endpoint closes."""

    def ended(x: Any) -> None:
        x.down.queued = b""
        original(x)

    original = tunnel.endpoint_ended
    patch.setattr(tunnel, "endpoint_ended", ended)


def one_try_more(patch: pytest.MonkeyPatch) -> None:
    def obstacle(x: Any, own: Any, moment: float) -> str:
        found = original(x, own, moment)
        return "" if found == retries.EXHAUSTED and own.tries == own.policy.attempts else found

    original = retries._obstacle
    patch.setattr(retries, "_obstacle", obstacle)


def one_token_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(buckets.Rate, "tolerance", property(lambda rate: rate.capacity * rate.interval))


def errors_take_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(file_state, "_kept", lambda old, staged: ((), frozenset()))


def bare_values(patch: pytest.MonkeyPatch) -> None:
    for module in (log_field, log_values):
        patch.setattr(module, "bare", lambda text: text)


def head(*lines: bytes) -> bytes:
    return b"\r\n".join((b"GET / HTTP/1.1", *lines, b"", b""))


SERVED = bytes((0, 0, 0, 0, 0)) + bytes((1, 0, 0, 0, 0, 0, 0, 0)) + bytes((1, 1, 1, 0, 0, 0, 0, 0)) + bytes((2, 7))
"""A script: one resource, a client that asks for everything of both types, and reads."""


def lengths_of_no_weight(patch: pytest.MonkeyPatch) -> None:
    """Content beyond a content-length is taken."""
    patch.setattr(receiving, "_judged", lambda stream, length, content, ends: None)


PLANTED: tuple[tuple[str, Callable[[pytest.MonkeyPatch], None], bytes], ...] = (
    ("chunks", lenient_size, b"+5\r\nhello\r\n0\r\n\r\n"),
    ("heads", both_framings, CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n" + NEXT),
    ("heads", first_host, head(b"Host: a.example", b"Host: b.example")),
    ("uri", decoded_slash, b"/a%2F../b"),
    ("credentials", first_parameter, b"q/?key=a&k%65y=b"),
    ("responses", trusting_endpoint, OK + b"Content-Length: 5\r\nContent-Length: 2\r\n\r\nhello"),
    ("agent", bad_resource_is_dropped, bytes((0, 0, 0, 2, 0, 16, 7, 1, 1, 4, 7, 2))),
    ("controller", removals_are_lost, SERVED + bytes((1, 0, 1, 0, 1, 0, 0, 0, 0))),
    ("h2_frames", lengths_of_no_weight, RAW_SERVER + LONGER_THAN_ANNOUNCED),
    ("link", one_exception_less, b"R\x00\x00\x00\x03\x03{]"),
    ("cel_programs", python_division, b"\x06\x00 \xa3\xb6"),
    ("cel_text", words_in_plans, b"x == 'a'"),
    ("tunnel", ends_before_bytes, b"\x15\x81\xbf\xd40"),
    ("retries", one_try_more, b"\xb75\xc1?\x98%\xd5\x06\xf2"),
    ("rate_limits", one_token_more, b"\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00"),
    ("files", errors_take_away, b"\x07\xff\xc5*"),
    ("log_lines", bare_values, b"\x02\x01\x00\x05\x04\x03\x02\x01\x00\x04\x03\x02\x01\x00\x02"),
    ("documents", any_number, b'{"apiVersion": "v1", "kind": "\\ud800"}'),
)


def _name(value: object) -> str:
    return getattr(value, "__name__", "") or (value if isinstance(value, str) else "input")


@pytest.mark.parametrize(("target", "plant", "data"), PLANTED, ids=_name)
def test_a_planted_bug_is_found(
    target: str, plant: Callable[[pytest.MonkeyPatch], None], data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = targets.load(target).check
    check(data)
    plant(monkeypatch)
    with pytest.raises((Violation, ValueError, TypeError, ArithmeticError, struct.error)):
        check(data)
