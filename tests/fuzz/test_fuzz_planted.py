"""The oracles see what they are for: a bug that is planted in the product makes an input of the corpus fail.

Each row takes one strictness away, or breaks one law, and names an input that has to notice.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from typing import Any

import pytest

from controlplane.answers import nacks
from controlplane.sources import tree
from controlplane.xds.protocol.subscription import Subscription
from dataplane.agent import xds_stream
from dataplane.credentials import jwt, locations
from dataplane.http import uri
from dataplane.http.h1 import chunked, request_head, response_head
from dataplane.http.h2 import frames, receiving, rules
from dataplane.link import buckets, codec
from dataplane.proxy.attempt import retries
from dataplane.proxy.attempt.replay import BodyCopy
from dataplane.proxy.exchange import CarriedExchange
from dataplane.proxy.request import request_body
from dataplane.proxy.response import tunnel
from dataplane.server.h1.h1_connection import Connection
from dataplane.table import routes
from dataplane.telemetry import log_field, log_values
from dataplane.upstream.h1 import UpstreamConnection
from gatewright import logs as log_forms
from gatewright.api.text import yaml_text
from gatewright.cel import emit_operators, lexer, selection, types
from gatewright.cel import errors as cel_errors
from gatewright.cel.plan import Plan
from tests.fakes.h2_wire import GET, frame, literal
from tests.fakes.h2_wire import POST as UPLOAD_FIELDS
from tests.fuzz import targets
from tests.fuzz.rig import Violation
from tests.fuzz.target_h2_frames import RAW_SERVER

POST = b"POST / HTTP/1.1\r\nHost: a.example\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: a.example\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
UPLOAD = frame(frames.HEADERS, 4, 1, literal(UPLOAD_FIELDS))
LONGER_THAN_ANNOUNCED = frame(frames.HEADERS, 4, 1, literal([*UPLOAD_FIELDS, (b"content-length", b"2")])) + frame(
    frames.DATA, 1, 1, b"abc"
)


def lenient_size(patch: pytest.MonkeyPatch) -> None:
    """`int()` takes signs, spaces and underscores."""
    patch.setattr(chunked, "_SIZE", re.compile(rb"[-+_ 0-9A-Fa-f]{1,15}").fullmatch)


def lenient_extension(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chunked, "_EXTENSIONS", lambda line, at: True)


def bare_line_feed(patch: pytest.MonkeyPatch) -> None:
    def take(self: chunked.ChunkedReader, data: bytes, position: int, out: list[bytes]) -> int:
        return original(self, data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), position, out)

    original = chunked.ChunkedReader._take_line
    patch.setattr(chunked.ChunkedReader, "_take_line", take)


def unchecked_chunk_end(patch: pytest.MonkeyPatch) -> None:
    """Whatever two octets stand behind a chunk are taken for its end."""

    def walk(self: chunked.ChunkedReader, data: bytes, position: int) -> tuple[bytes, int]:
        return original(self, re.sub(rb"(hello)..", rb"\1\r\n", data), position)

    original = chunked.ChunkedReader._walk
    patch.setattr(chunked.ChunkedReader, "_walk", walk)


def all_trailers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chunked, "FORBIDDEN_TRAILERS", frozenset())


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


def pieces_matter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Connection, "_refuse_head", lambda self, reason, data, end: self.refuse(reason, data))


def a_step_that_fails(patch: pytest.MonkeyPatch) -> None:
    """A bug of ours is answered with 500 and logged: the harness must not take that for an answer."""

    def take(x: object) -> tuple[bytes, bool]:
        raise KeyError("planted")

    patch.setattr(request_body, "take", take)


def trusting_endpoint(patch: pytest.MonkeyPatch) -> None:
    """Both framings in a response are taken: chunks first."""
    original = response_head._frame

    def frame(lengths: list[bytes], codings: list[bytes], *rest: Any) -> tuple[int, int]:
        return original([] if codings else lengths[:1], codings, *rest)

    patch.setattr(response_head, "_frame", frame)
    patch.setattr(response_head, "_valid", lambda head: True)


def leftovers_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A connection whose endpoint sent more than its answer is used again."""

    def complete(self: UpstreamConnection) -> None:
        self.keep = True
        original(self)

    original = UpstreamConnection._give_back
    patch.setattr(UpstreamConnection, "_give_back", complete)
    patch.setattr(UpstreamConnection, "_unasked", lambda self: None)


def single_pass_dots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(uri, "without_dots", lambda path: path.replace(b"/./", b"/").replace(b"/../", b"/"))


def decoded_slash(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(uri, "_UNRESERVED", uri._UNRESERVED | {ord("/")})


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


def wrong_type_is_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(xds_stream, "_wrong", lambda resource, type_url: "")


def removals_of_any_length(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(xds_stream, "_is_name", lambda name: True)


def removals_are_lost(patch: pytest.MonkeyPatch) -> None:
    """An unsubscribed name that the wildcard covers is not sent again."""
    patch.setattr(Subscription, "_unsubscribe", lambda self, name: self.names.discard(name))


def endless_refusals(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(nacks, "note", lambda known, text: known.update((each.key, each) for each in nacks.parse(text)))


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


def any_position(patch: pytest.MonkeyPatch) -> None:
    """What is no number reaches Python as a position of a list."""
    patch.setattr(selection, "whole_number", lambda key: key)


def errors_are_final(patch: pytest.MonkeyPatch) -> None:
    """The quick plan does not start over with the careful one where an error may be absorbed."""
    patch.setattr(Plan, "absorbs", property(lambda plan: False, lambda plan, value: None), raising=False)


def words_in_plans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Plan, "constant", lambda self, value: self.plain(value))


def places_count_from_zero(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lexer, "problem_at", lambda text, offset, message: cel_errors.Problem(message, 1, offset))


def first_parameter(patch: pytest.MonkeyPatch) -> None:
    """Of a credential that a query has twice the first is taken."""
    original = locations._parameters
    patch.setattr(locations, "_parameters", lambda *asked: original(*asked)[:1])


def whole_cookie_line(patch: pytest.MonkeyPatch) -> None:
    """With a cookie its neighbours go."""
    patch.setattr(locations, "_cookie_span", lambda block, line, end, start, stop: (line, end))


def lenient_base64url(patch: pytest.MonkeyPatch) -> None:
    """Several texts for one token: what is refused under one could pass under another."""
    patch.setattr(jwt, "from_base64url", lambda text: base64.urlsafe_b64decode(text + b"=="))


def ends_that_stay_here(patch: pytest.MonkeyPatch) -> None:
    """A client that sends no more into a tunnel: the endpoint does not hear of it."""
    original = CarriedExchange.downstream_content

    def content(self: CarriedExchange, data: bytes, end: bool) -> None:
        if data or not (self.tunnel and end):
            original(self, data, end and not self.tunnel)

    patch.setattr(CarriedExchange, "downstream_content", content)


def ends_before_bytes(patch: pytest.MonkeyPatch) -> None:
    """What was given in the same turn is lost when the endpoint closes."""

    def ended(x: Any) -> None:
        x.down.queued = b""
        original(x)

    original = tunnel.endpoint_ended
    patch.setattr(tunnel, "endpoint_ended", ended)


def no_pace(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Connection, "pause_writing", lambda self: None)


def one_try_more(patch: pytest.MonkeyPatch) -> None:
    def obstacle(x: Any, own: Any, moment: float) -> str:
        found = original(x, own, moment)
        return "" if found == retries.EXHAUSTED and own.tries == own.policy.attempts else found

    original = retries._obstacle
    patch.setattr(retries, "_obstacle", obstacle)


def no_backoff(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retries.Retries, "wait", lambda self, random: self.policy.backoff)


def body_of_the_rest(patch: pytest.MonkeyPatch) -> None:
    """Another try goes on with the body where the one before has stopped."""

    def again(self: BodyCopy, data: bytes, done: bool) -> bytes:
        self.sent(data, done)
        return data

    patch.setattr(BodyCopy, "again", again)


def one_token_more(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(buckets.Rate, "room", property(lambda rate: rate.capacity * rate.interval))


def nothing_is_owed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(buckets, "_spend", lambda lock, entries: lambda now, index, tokens: None)


def errors_take_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tree, "_kept", lambda old, staged: ((), frozenset()))


def the_last_file_wins(patch: pytest.MonkeyPatch) -> None:
    def last(self: Any) -> Any:
        return max(self.files or self.invalid, default=None)

    patch.setattr(tree._Claims, "file", property(last))


def nothing_is_lost(patch: pytest.MonkeyPatch) -> None:
    """A file that is half written counts at once."""
    patch.setattr(tree, "_loses", lambda old, new: False)


def bare_values(patch: pytest.MonkeyPatch) -> None:
    for module in (log_field, log_values):
        patch.setattr(module, "bare", lambda text: text)


def raw_messages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_forms, "_CONTROL", re.compile("(?!)"))


def raw_exceptions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_forms, "_indented", lambda text: "\n" + text)


def head(*lines: bytes) -> bytes:
    return b"\r\n".join((b"GET / HTTP/1.1", *lines, b"", b""))


SERVED = bytes((0, 0, 0, 0, 0)) + bytes((1, 0, 0, 0, 0, 0, 0, 0)) + bytes((1, 1, 1, 0, 0, 0, 0, 0)) + bytes((2, 7))
"""A script: one resource, a client that asks for everything of both types, and reads."""


def lengths_of_no_weight(patch: pytest.MonkeyPatch) -> None:
    """Content beyond a content-length is taken."""
    patch.setattr(receiving, "_judged", lambda stream, length, content, ends: None)


def values_with_line_feeds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rules, "_check_values", lambda values: None)


def padding_is_lost(patch: pytest.MonkeyPatch) -> None:
    """What is given back of a padded frame is its content alone."""
    original = receiving.Receiving._give_back

    def give_back(self: receiving.Receiving, size: int) -> None:
        if size != 3:
            original(self, size)

    patch.setattr(receiving.Receiving, "_give_back", give_back)


PLANTED: tuple[tuple[str, Callable[[pytest.MonkeyPatch], None], bytes], ...] = (
    ("heads", lenient_size, CHUNKED + b"\r\n+5\r\nhello\r\n0\r\n\r\n"),
    ("chunks", lenient_size, b"+5\r\nhello\r\n0\r\n\r\n"),
    ("chunks", lenient_extension, b"5; a\r\nhello\r\n0\r\n\r\n"),
    ("chunks", bare_line_feed, b"5\nhello\r\n0\r\n\r\n"),
    ("chunks", unchecked_chunk_end, b"5\r\nhelloXX0\r\n\r\n"),
    ("chunks", all_trailers, b"0\r\nHost: b\r\n\r\n"),
    ("heads", both_framings, CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n" + NEXT),
    ("heads", no_second_reader, head(b"Host: a.example", b"X: 1", b" folded")),
    ("heads", no_second_reader, head(b"Host : a.example", b"Content-Length : 3") + b"abc"),
    ("heads", first_host, head(b"Host: a.example", b"Host: b.example")),
    ("heads", pieces_matter, b"FOO / HTTP/1.1\r\nHost: a\nb\r\n\r\n"),
    ("heads", a_step_that_fails, head(b"Host: a.example", b"Content-Length: 1") + b"x"),
    ("heads", single_pass_dots, b"GET /a/b/../../../c HTTP/1.1\r\nHost: a.example\r\n\r\n"),
    ("uri", single_pass_dots, b"/a/../b/.."),
    ("uri", decoded_slash, b"/a%2F../b"),
    ("credentials", first_parameter, b"q/?key=a&k%65y=b"),
    ("credentials", whole_cookie_line, b"ccookie: a=1; key=b"),
    ("credentials", lenient_base64url, b"teyJhbGciOiJFUzI1NiJ9.e31.AB"),
    ("responses", trusting_endpoint, OK + b"Content-Length: 5\r\nContent-Length: 2\r\n\r\nhello"),
    ("responses", leftovers_are_forgotten, OK + b"Content-Length: 2\r\n\r\nok" + OK + b"Content-Length: 2\r\n\r\nno"),
    ("agent", bad_resource_is_dropped, bytes((0, 0, 0, 2, 0, 16, 7, 1, 1, 4, 7, 2))),
    ("agent", wrong_type_is_taken, bytes((4, 0, 7, 1))),
    ("agent", removals_of_any_length, bytes((10, 0, 255, 7, 1))),
    ("controller", removals_are_lost, SERVED + bytes((1, 0, 1, 0, 1, 0, 0, 0, 0))),
    ("controller", endless_refusals, SERVED + bytes((6, 0, 6, 1, 6, 2, 6, 3))),
    ("h2_frames", lengths_of_no_weight, RAW_SERVER + LONGER_THAN_ANNOUNCED),
    (
        "h2_frames",
        values_with_line_feeds,
        RAW_SERVER + frame(frames.HEADERS, 5, 1, literal([*GET, (b"a", b"b\r\nc: d")])),
    ),
    ("h2_frames", padding_is_lost, RAW_SERVER + UPLOAD + frame(frames.DATA, frames.PADDED, 1, b"\2ab\0\0")),
    ("link", one_exception_less, b"R\x00\x00\x00\x03\x03{]"),
    ("cel_programs", python_division, b"\x06\x00 \xa3\xb6"),
    ("cel_programs", any_position, b"(\xe0*\xf6\x93"),
    ("cel_programs", errors_are_final, b"\xb8\xd7\xe9\x92\x8bK\xbdo\xf7\x8d\xe6\xcf"),
    ("cel_text", words_in_plans, b"x == 'a'"),
    ("cel_text", places_count_from_zero, b"'a"),
    ("tunnel", ends_that_stay_here, b""),
    ("tunnel", ends_before_bytes, b"\x15\x81\xbf\xd40"),
    ("tunnel", no_pace, b"*\x04?eRA"),
    ("retries", one_try_more, b"\xb75\xc1?\x98%\xd5\x06\xf2"),
    ("retries", no_backoff, b"\x04\x00\x00\x06\x07\x06\x06K"),
    ("retries", body_of_the_rest, b"\x03\x01\t\x00\t\x02\x06"),
    ("rate_limits", one_token_more, b"\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00"),
    ("rate_limits", nothing_is_owed, b"\x00\x00\x00\x01\x00\x02\x02\x01\x01\x00\xf2"),
    ("files", errors_take_away, b"\x07\xff\xc5*"),
    ("files", the_last_file_wins, b"\xa7\x02\x01\x02\x00\x01\x01"),
    ("files", nothing_is_lost, b"h\xceJD"),
    ("log_lines", bare_values, b"\x02\x01\x00\x05\x04\x03\x02\x01\x00\x04\x03\x02\x01\x00\x02"),
    ("log_lines", raw_messages, b"\r\x02x"),
    ("log_lines", raw_exceptions, b"g\xe6\xb1\x02P\x07"),
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
