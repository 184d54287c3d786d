"""What a request of HTTP/2 becomes towards an endpoint of HTTP/1, and which become nothing at all."""

from __future__ import annotations

import pytest

from dataplane.http.h2.errors import NO_ERROR, PROTOCOL_ERROR
from dataplane.proxy.context import Limits
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET, data, headers
from tests.fakes.memory_proxy import Http1Endpoints

Fields = tuple[tuple[bytes, bytes], ...]

OURS = b"x-forwarded-for: 192.0.2.7\r\nx-forwarded-proto: http\r\nx-forwarded-host: a.example\r\n"


def get(*more: tuple[bytes, bytes], path: bytes = b"/", **pseudo: bytes) -> Fields:
    """The fields of a GET; pseudo-headers by their names."""
    wanted = {b":method": b"GET", b":scheme": b"http", b":authority": b"a.example", b":path": path}
    wanted |= {b":" + name.encode(): value for name, value in pseudo.items()}
    return (*wanted.items(), *more)


def forwarded(fields: Fields, *more: bytes) -> bytes:
    """What reaches the endpoint, without the id that the request gets."""
    proxy = Http1Endpoints()
    proxy.context.request_id = lambda: b"id"
    FrameClient(proxy).send(headers(1, fields, end=not more), *more)
    received: bytes = proxy.upstream.received
    return received.replace(b"x-request-id: id\r\n", b"")


@pytest.mark.parametrize(
    ("fields", "line", "lines"),
    [
        (get(), b"GET / ", b""),
        (get(path=b"/a/../b?c=%zz"), b"GET /b?c=%zz ", b""),
        (get(path=b"/%41?"), b"GET /A? ", b""),
        (get((b"x-a", b"1"), (b"x-a", b"2")), b"GET / ", b"x-a: 1\r\nx-a: 2\r\n"),
        (get((b"cookie", b"a=1"), (b"x-b", b"2"), (b"cookie", b"c=3")), b"GET / ", b"cookie: a=1; c=3\r\nx-b: 2\r\n"),
        (get((b"te", b"trailers")), b"GET / ", b""),
        (get((b"host", b"a.example")), b"GET / ", b""),
        (get((b"forwarded", b"for=1.2.3.4"), (b"x_forwarded_for", b"1.2.3.4")), b"GET / ", b""),
        (get((b"x-forwarded-proto", b"https"), (b"x-forwarded-client-cert", b"x")), b"GET / ", b""),
        (get((b"content_length", b"5"), (b"transfer_encoding", b"chunked")), b"GET / ", b""),
        (get((b"http2-settings", b"AAMAAABk")), b"GET / ", b""),
    ],
)
def test_becomes_the_same_request_of_http1(fields: Fields, line: bytes, lines: bytes) -> None:
    assert forwarded(fields) == line + b"HTTP/1.1\r\nhost: a.example\r\n" + lines + OURS + b"\r\n"


def test_forwarded_for_grows_by_the_client() -> None:
    assert b"\r\nx-forwarded-for: 1.2.3.4, 192.0.2.7\r\n" in forwarded(get((b"x-forwarded-for", b"1.2.3.4")))


def test_a_request_id_of_the_client_stays() -> None:
    proxy = Http1Endpoints()
    FrameClient(proxy).send(headers(1, get((b"x-request-id", b"mine"), (b"x_request_id", b"other"))))
    assert proxy.upstream.received.count(b"request") == 1 and b"\r\nx-request-id: mine\r\n" in proxy.upstream.received


def test_options_of_the_server_as_a_whole_has_no_route() -> None:
    client = FrameClient(Http1Endpoints())
    client.send(headers(1, get(method=b"OPTIONS", path=b"*")))
    assert client.take()[0] == Said("head", 1, 404)


def test_equal_heads_are_read_once_and_stay_apart() -> None:
    """A head is shared by requests that sent the same: what a step does to one does not show in the next."""
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    for number in range(3):
        client.send(headers(1 + 2 * number, get((b"x-a", b"1"))))
    received = [upstream.received.partition(b"x-request-id")[0] for upstream in proxy.connector.upstreams]
    assert len(received) == 3 and len({*received}) == 1
    client.send(headers(7, get((b"x-a", b"1"), authority=b"b.example")))
    assert b"\r\nhost: b.example\r\n" in proxy.upstream.received


def test_each_field_of_a_request_is_in_the_log() -> None:
    proxy = Http1Endpoints()
    FrameClient(proxy).send(headers(1, get(path=b"/x?y", method=b"PUT"), end=False), data(1, b"abc", end=True))
    proxy.upstream.answer(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok")
    (line,) = proxy.log_lines()
    assert " http.method=PUT http.host=a.example http.path=/x?y http.version=HTTP/2 http.status=201 " in line
    assert " request.bytes=3 response.bytes=2 " in line


MALFORMED = [
    ("CR LF in a value", get((b"x-a", b"1\r\nx-b: 2"))),
    ("LF in a value", get((b"x-a", b"1\nx-b: 2"))),
    ("NUL in a value", get((b"x-a", b"1\0"))),
    ("a colon in a name", get((b"x:a", b"1"))),
    ("CR LF in a name", get((b"x\r\na", b"1"))),
    ("upper case", get((b"X-A", b"1"))),
    ("a space in a name", get((b"x a", b"1"))),
    ("CR LF in the path", get(path=b"/ HTTP/1.1\r\nx: y")),
    ("a space in the path", get(path=b"/a b")),
    ("CR LF in the method", get(method=b"GET / HTTP/1.1\r\nx: y\r\n\r\nGET")),
    ("a space in the authority", get(authority=b"a b")),
    ("user information", get(authority=b"u@a.example")),
    ("an absolute URI", get(path=b"http://a.example/")),
    ("no path", get(path=b"")),
    ("a fragment", get(path=b"/a#b")),
    ("transfer-encoding", get((b"transfer-encoding", b"chunked"))),
    ("connection", get((b"connection", b"close"))),
    ("keep-alive", get((b"keep-alive", b"1"))),
    ("proxy-connection", get((b"proxy-connection", b"keep-alive"))),
    ("upgrade", get((b"upgrade", b"websocket"))),
    ("te", get((b"te", b"gzip"))),
    ("a pseudo-header twice", ((b":path", b"/b"), *get())),
    ("a late pseudo-header", (*get((b"x-a", b"1")), (b":authority", b"b"))),
    ("an unknown pseudo-header", ((b":status", b"200"), *get())),
    ("no method", get()[1:]),
    ("no scheme", (get()[0], *get()[2:])),
    ("another host", get((b"host", b"b.example"))),
    ("two hosts", get((b"host", b"a.example"), (b"host", b"a.example"))),
    ("two lengths", get((b"content-length", b"0"), (b"content-length", b"0"))),
    ("a list of lengths", get((b"content-length", b"0, 0"))),
    ("a signed length", get((b"content-length", b"+1"))),
]


@pytest.mark.parametrize("fields", [fields for _, fields in MALFORMED], ids=[name for name, _ in MALFORMED])
def test_smuggling_ends_at_the_stream(fields: Fields) -> None:
    """RFC 9113 8.1.1: the stream is reset, the connection goes on, and no endpoint has seen anything."""
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    client.send(headers(1, fields))
    assert client.take() == [Said("reset", 1, PROTOCOL_ERROR)]
    assert not proxy.connector.upstreams and proxy.context.recorder.active == 0
    client.send(headers(3, GET))
    assert proxy.upstream.received.startswith(b"GET / HTTP/1.1\r\n")
    causes = [each.labels for each, _ in proxy.metrics.series() if each.metric.name == "http_rejected_total"]
    assert len(causes) == 1


@pytest.mark.parametrize(
    ("length", "contents"),
    [(b"3", [b"four"]), (b"3", [b"2", b"two"]), (b"3", [b""]), (b"3", [b"12"])],
    ids=["more at once", "more in parts", "nothing", "less"],
)
def test_content_against_its_length_ends_at_the_stream(length: bytes, contents: list[bytes]) -> None:
    """What the endpoint has got by then is a request that does not end."""
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    client.send(headers(1, get((b"content-length", length), method=b"POST"), end=False))
    for number, content in enumerate(contents):
        client.send(data(1, content, end=number == len(contents) - 1))
    assert client.take() == [Said("reset", 1, PROTOCOL_ERROR)]
    assert not proxy.upstream.open
    assert len(proxy.upstream.received.partition(b"\r\n\r\n")[2]) < 3
    (line,) = proxy.log_lines()
    assert " reason=BadRequest " in line and ' error="ContentLength" ' in line


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (get(scheme=b"https"), 400),
        (get(scheme=b"ftp"), 400),
        (get(path=b"/%zz"), 400),
        (get(path=b"/%00"), 400),
        (get(path=b"/\\a"), 400),
        (get(authority=b"a..b"), 400),
        (get(authority=b"a:99999"), 400),
        (get(method=b"BREW"), 501),
        (((b":method", b"CONNECT"), (b":authority", b"a.example:1")), 405),
        (get((b"expect", b"200-maybe")), 417),
        (get(path=b"/" + b"a" * 200), 414),
        (get((b"x-a", b"a" * 900)), 431),
        (get(*[(b"x-%d" % number, b"") for number in range(11)]), 431),
    ],
)
def test_is_answered_without_an_endpoint(fields: Fields, status: int) -> None:
    """What is well-formed and not for us, with the answers that HTTP/1 gives."""
    proxy = Http1Endpoints(limits=Limits(max_line=200, max_header_list=900, max_headers=10))
    client = FrameClient(proxy)
    client.send(headers(1, fields, end=False))
    head, content, reset = client.take()
    assert (head, content.end) == (Said("head", 1, status), True)
    assert reset == Said("reset", 1, NO_ERROR)  # the rest of the request is not wanted
    assert not proxy.connector.upstreams
    client.send(headers(3, GET))
    assert len(proxy.connector.upstreams) == 1


def test_a_refused_head_request_gets_no_content() -> None:
    client = FrameClient(Http1Endpoints())
    client.send(headers(1, get(method=b"HEAD", scheme=b"https")))
    assert client.take() == [Said("head", 1, 400, end=True)]


PLAIN_POST = ((b":method", b"POST"), *GET[1:])
REFUSED = {
    "431": (
        (*PLAIN_POST, *[(b"x-%d" % number, b"a") for number in range(120)]),
        b"8",
        b"request headers are too large",
    ),
    "400": ((*PLAIN_POST[:1], (b":scheme", b"https"), *PLAIN_POST[2:]), b"13", b"bad request"),
    "417": ((*PLAIN_POST, (b"expect", b"more")), b"13", b"expectation failed"),
    "501": (((b":method", b"BREW"), *GET[1:]), b"13", b"method is not implemented"),
}


@pytest.mark.parametrize(("fields", "status", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("kind", [b"application/grpc", b"application/grpc+proto", b"application/grpc-web"])
def test_a_call_that_is_refused_by_its_head_gets_a_status_of_grpc(
    fields: tuple[tuple[bytes, bytes], ...], status: bytes, message: bytes, kind: bytes
) -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    client.send(headers(1, (*fields, (b"content-type", kind)), end=False))
    head, *_ = client.take()
    assert (head.kind, head.value, head.end) == ("head", 200, True)
    assert (head.headers[b"content-type"], head.headers[b"grpc-status"]) == (kind, status)
    assert head.headers[b"grpc-message"] == message
    (line,) = proxy.log_lines()
    assert f" grpc.status={status.decode()} " in line


def test_others_that_are_refused_by_their_head_do_not() -> None:
    client = FrameClient(Http1Endpoints())
    fields, _, message = REFUSED["431"]
    client.send(headers(1, (*fields, (b"content-type", b"application/grpcs"))))
    head, content = client.take()
    assert (head.value, content.value) == (431, message) and b"grpc-status" not in head.headers


@pytest.mark.parametrize(("size", "status"), [(40, 200), (41, 414)])
def test_a_target_may_be_as_long_as_a_line_of_http1(size: int, status: int) -> None:
    proxy = Http1Endpoints(limits=Limits(max_line=40))
    client = FrameClient(proxy)
    client.send(headers(1, get(path=b"/".ljust(size, b"a"))))
    if status == 200:
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert client.take()[0].value == status


def test_the_log_names_the_client_of_each_request_also_of_a_refused_one() -> None:
    proxy = Http1Endpoints()
    client = FrameClient(proxy)
    client.send(headers(1, get()), headers(3, get(method=b"BREW")), headers(5, get()))
    for upstream in proxy.connector.upstreams:
        upstream.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    lines = proxy.log_lines()
    assert len(lines) == 3 and all(" src.addr=192.0.2.7 " in line for line in lines), lines
