"""Finding a credential in a request and taking it out: every other byte stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.chain.filter import Env, Refused
from dataplane.credentials import locations
from dataplane.credentials.locations import AMBIGUOUS, Location
from dataplane.exchange import Exchange
from dataplane.http.body import BodyBuffer
from dataplane.http.heads import Head
from gatewright.wire.v1 import authentication_pb2
from tests.fakes.memory_proxy import Pending
from tests.fakes.table_state import exchange
from tests.harness import counting


def with_headers(*lines: bytes) -> Exchange:
    x = exchange()
    x.request = Head(b"\r\n" + b"".join(line + b"\r\n" for line in lines))
    return x


def with_target(target: bytes) -> Exchange:
    x = exchange()
    x.target = x.asked_target = target
    x.path, _, x.query = target.partition(b"?")
    return x


def outcome(place: Location, x: Exchange) -> Any:
    """The credential, after it was taken out; None; or AMBIGUOUS."""
    found = place.find(x)
    if found is None or found is AMBIGUOUS:
        return found
    credential = place.read(found[0])
    if credential is not None:
        place.remove(x, found)
    return credential


BEARER = locations.in_header("Authorization", b"Bearer")
PLAIN = locations.in_header("X-Key", b"")


@pytest.mark.parametrize(
    ("place", "lines", "credential", "left"),
    [
        (BEARER, [b"a: 1", b"Authorization: Bearer t", b"b: 2"], b"t", [b"a: 1", b"b: 2"]),
        (BEARER, [b"AUTHORIZATION:bEARER   t \t"], b"t", []),
        (BEARER, [b"authorization: Bearer\tt"], b"t", []),
        (BEARER, [b"authorization: Bearer"], b"", []),
        (BEARER, [b"authorization: Bearer t u"], b"t u", []),
        (BEARER, [b"authorization: Bearers t"], None, [b"authorization: Bearers t"]),
        (BEARER, [b"authorization: Basic t"], None, [b"authorization: Basic t"]),
        (BEARER, [b"authorization:"], None, [b"authorization:"]),
        (BEARER, [b"x-authorization: Bearer t"], None, [b"x-authorization: Bearer t"]),
        (BEARER, [b"a: authorization: Bearer t"], None, [b"a: authorization: Bearer t"]),
        (BEARER, [b"authorization: Bearer t", b"Authorization: Bearer t"], AMBIGUOUS, None),
        (BEARER, [b"authorization: Bearer t", b"a: 1", b"authorization: Basic t"], AMBIGUOUS, None),
        (PLAIN, [b"x-key: a b ", b"x-key2: c"], b"a b", [b"x-key2: c"]),
        (PLAIN, [b"x-key:"], b"", []),
        (locations.in_header("a", b"Token "), [b"a: token t"], b"t", []),
        (locations.in_header("a", b"Token "), [b"a: tokent"], None, [b"a: tokent"]),
        (locations.in_header("a", b"key="), [b"a: KEY=t"], b"t", []),
        (locations.in_header("a", b"key="), [b"a: key= t"], b"t", []),
    ],
)
def test_headers(place: Location, lines: list[bytes], credential: Any, left: list[bytes] | None) -> None:
    x = with_headers(*lines)
    assert outcome(place, x) == credential
    assert x.request.block == with_headers(*(lines if left is None else left)).request.block
    assert x.request.low == x.request.block.lower()


KEY = locations.in_query("key")


@pytest.mark.parametrize(
    ("target", "credential", "left"),
    [
        (b"/?key=a", b"a", b"/"),
        (b"/?key=a&b=%7e", b"a", b"/?b=%7e"),
        (b"/?b=%7E&key=a", b"a", b"/?b=%7E"),
        (b"/?b&key=a&&c=d=e", b"a", b"/?b&&c=d=e"),
        (b"/?&key=a&", b"a", b"/?&"),
        (b"/?k%65y=%61%2B+%2f", b"a++/", b"/"),
        (b"/?key=a=b", b"a=b", b"/"),
        (b"/?key", b"", b"/"),
        (b"/?key=", b"", b"/"),
        (b"/key=a?b", None, b"/key=a?b"),
        (b"/key=a", None, b"/key=a"),
        (b"/?", None, b"/?"),
        (b"/?KEY=a&keys=b&k=key", None, b"/?KEY=a&keys=b&k=key"),
        (b"/?x=1;key=a", None, b"/?x=1;key=a"),
        (b"/?key=a&key=a", AMBIGUOUS, None),
        (b"/?key=a&b&%6bey=c", AMBIGUOUS, None),
    ],
)
def test_query_parameters(target: bytes, credential: Any, left: bytes | None) -> None:
    x = with_target(target)
    assert outcome(KEY, x) == credential
    assert x.target == (target if left is None else left)
    assert x.query == x.target.partition(b"?")[2]
    assert credential is None or b"=a" not in x.asked_target


def test_the_log_shows_that_there_was_a_parameter() -> None:
    x = with_target(b"/?a=1&key=secret&%6Bey=other&b")
    assert KEY.find(x) is AMBIGUOUS
    assert x.asked_target == b"/?a=1&key=<redacted>&%6Bey=<redacted>&b"


def test_values_are_hidden_wherever_the_query_begins() -> None:
    for target, shown in (
        (b"?key=secret", b"?key=<redacted>"),
        (b"/key=a", b"/key=a"),
        (b"/?keys=a", b"/?keys=a"),
        (b"/?key", b"/?key=<redacted>"),
    ):
        assert locations.redacted(target, b"key") == shown


@pytest.mark.parametrize("piece", [b"&", b"a&", b"%41=&", b"+=+&"])
def test_looking_for_a_parameter_takes_no_longer_for_more_of_others(piece: bytes) -> None:
    """Clients choose how many there are."""
    few, many = (with_target(b"/?" + piece * count) for count in (2, 2000))
    KEY.find(few)  # the first look makes the pattern
    assert counting.calls(lambda: KEY.find(many)) == counting.calls(lambda: KEY.find(few))


def test_values_of_a_parameter_that_is_there_very_often_are_hidden_in_one_go() -> None:
    x = with_target(b"/?" + b"key=s&" * 2000)
    assert counting.calls(lambda: KEY.find(x)) < 4 * 2000
    assert x.asked_target == b"/?" + b"key=<redacted>&" * 2000


@pytest.mark.parametrize("name", ["", "a=b", "a;b", "a b", 'a"b', "ä", "a\r\nb", "a,b", "a\0"])
def test_what_no_cookie_is_called_is_refused(name: str) -> None:
    """A name with ";" or "=" in it would be found across cookies, or in the value of another one."""
    with pytest.raises(Refused, match=r"location\.cookie\.name: .* is no name of a cookie"):
        locations.in_cookie(name)


@pytest.mark.parametrize("name", ["key", "__Host-key", "a.b", "a|b", "!#$%&'*+-.^_`|~"])
def test_every_token_is_the_name_of_a_cookie(name: str) -> None:
    x = with_headers(b"cookie: other=1; " + name.encode() + b"=v")
    assert outcome(locations.in_cookie(name), x) == b"v"


@pytest.mark.parametrize(
    ("name", "query", "credential"),
    [
        # what means something in a query is never part of a name as it is written
        ("a&b", b"a&b=1", None),
        ("a&b", b"a%26b=1", b"1"),
        ("a=b", b"a=b=1", None),
        ("a=b", b"a%3db=1", b"1"),
        ("a+b", b"a+b=1", None),
        ("a+b", b"a%2Bb=1", b"1"),
        ("a b", b"a+b=1", b"1"),
        ("a%b", b"a%b=1", b"1"),
        ("a%bc", b"a%bc=1", None),
        ("a%b", b"a%25b=1", b"1"),
        ("a#b", b"a%23b=1", b"1"),
        ("ä", b"%C3%a4=1", b"1"),
        ("a;b", b"a;b=1", b"1"),
    ],
)
def test_names_of_parameters_are_read_as_forms_write_them(name: str, query: bytes, credential: bytes | None) -> None:
    assert outcome(locations.in_query(name), with_target(b"/?" + query)) == credential


@pytest.mark.parametrize("prefix", [b"a\r\nb: ", b"a\0", b"\x7f"])
def test_a_prefix_that_no_header_has_is_refused(prefix: bytes) -> None:
    with pytest.raises(Refused, match=r"location\.header\.prefix: control characters"):
        locations.in_header("x-key", prefix)


def test_looking_for_a_cookie_takes_no_longer_for_more_of_others() -> None:
    place = locations.in_cookie("key")
    few, many = (with_headers(b"Cookie: " + b" ; a=b;" * count) for count in (2, 2000))
    assert counting.calls(lambda: place.find(many)) == counting.calls(lambda: place.find(few))


@pytest.mark.parametrize(
    ("lines", "credential", "left"),
    [
        ([b"Cookie: key=a"], b"a", []),
        ([b"Cookie: key=a; b=c"], b"a", [b"Cookie: b=c"]),
        ([b"Cookie: b=c; key=a"], b"a", [b"Cookie: b=c"]),
        ([b"Cookie: b=c;key=a;  d=e"], b"a", [b"Cookie: b=c;  d=e"]),
        ([b"cookie:key=a;b=c"], b"a", [b"cookie:b=c"]),
        ([b"cookie: key=a;"], b"a", []),
        ([b'Cookie: b="c;d"; key="a"; e'], b"a", [b'Cookie: b="c;d"; e']),
        ([b"Cookie: key=a=b"], b"a=b", []),
        ([b"Cookie: key="], b"", []),
        ([b"Cookie: b=c", b"x: 1", b"Cookie: key=a", b"y: 2"], b"a", [b"Cookie: b=c", b"x: 1", b"y: 2"]),
        ([b"Cookie: KEY=a; keys=a; akey=b; key"], None, [b"Cookie: KEY=a; keys=a; akey=b; key"]),
        ([b"x: 1"], None, [b"x: 1"]),
        ([b"Cookie: key=a; key=a"], AMBIGUOUS, None),
        ([b"Cookie: key=a", b"cookie: b; key =c"], AMBIGUOUS, None),
    ],
)
def test_cookies(lines: list[bytes], credential: Any, left: list[bytes] | None) -> None:
    x = with_headers(*lines)
    assert outcome(locations.in_cookie("key"), x) == credential
    assert x.request.block == with_headers(*(lines if left is None else left)).request.block
    assert x.request.low == x.request.block.lower()


@pytest.mark.parametrize(
    ("text", "credential"),
    [
        ('request.headers["x-key"]', b"a"),
        ('bytes(request.headers["x-key"])', b"a"),
        ('request.headers["x-none"]', None),
        ("null", None),
        ('""', None),
        ("1", AMBIGUOUS),
        ('["a"]', AMBIGUOUS),
    ],
)
def test_expressions(text: str, credential: Any) -> None:
    x = with_headers(b"x-key: a")
    block = x.request.block
    assert outcome(locations.by_expression(text), x) == credential
    assert x.request.block == block


@pytest.mark.parametrize(
    "kind",
    [
        {"header": authentication_pb2.HeaderLocation(name="a b")},
        {"header": authentication_pb2.HeaderLocation(name="")},
        {"header": authentication_pb2.HeaderLocation(name="Host")},
        {"expression": "request."},
        {"expression": "response.code"},
    ],
)
def test_places_that_cannot_be(kind: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="location"):
        locations.location(authentication_pb2.CredentialLocation(**kind), b"Bearer")


def test_an_expression_that_reads_the_body_has_it_whole() -> None:
    env = Env(clock=lambda: 0.0, random=lambda: 0.0)
    step = locations.by_expression("json(request.body).key").step("toy", lambda x: None, env)
    x = exchange()
    x.buffer = BodyBuffer(Pending, lambda: None)
    waiting: Any = step.request and step.request(x)
    assert waiting is not None, "it waits"
    waiting.close()
    step = BEARER.step("toy", lambda x: None, env)
    assert step.request is not None and step.request(x) is None


# Whatever else is in the request stays, whatever the credential is.

PIECES = st.lists(st.sampled_from([b"a=1", b"key=s", b"k%65y=s", b"", b"=", b"keys", b"b=%6bey", b"key"]), max_size=6)


@given(PIECES)
def test_a_parameter_goes_alone(pieces: list[bytes]) -> None:
    ours = [piece for piece in pieces if piece.replace(b"%65", b"e").partition(b"=")[0] == b"key"]
    x = with_target(b"/p?" + b"&".join(pieces))
    found = KEY.find(x)
    assert (found is None, found is AMBIGUOUS) == (not ours, len(ours) > 1)
    if len(ours) == 1 and found is not None:
        KEY.remove(x, found)
        left = [piece for piece in pieces if piece not in ours]
        assert x.target == (b"/p?" + b"&".join(left) if left else b"/p")


COOKIES = st.lists(st.sampled_from([b"a=1", b"key=s", b" key=s", b"", b" b=key=", b"key", b"\tkeys=1"]), max_size=6)


@given(COOKIES)
def test_a_cookie_goes_alone(pieces: list[bytes]) -> None:
    ours = [piece for piece in pieces if piece.strip() == b"key=s"]
    x = with_headers(b"z: 1", b"cookie:" + b";".join(pieces), b"y: 2")
    found = locations.in_cookie("key").find(x)
    assert (found is None, found is AMBIGUOUS) == (not ours, len(ours) > 1)
    if len(ours) == 1 and found is not None:
        locations.in_cookie("key").remove(x, found)
        values = [value for name, value in x.request.items() if name == b"cookie"]
        left = [piece.strip() for value in values for piece in value.split(b";") if piece.strip()]
        assert left == [piece.strip() for piece in pieces if piece not in ours and piece.strip()]
        assert [name for name, _ in x.request.items() if name != b"cookie"] == [b"z", b"y"]
