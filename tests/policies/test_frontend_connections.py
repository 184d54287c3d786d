"""`frontend.http` of a connection: heads, idle time, age, letter case, settings of HTTP/2, and bodies that are held."""

from __future__ import annotations

import pytest

from dataplane.http.h2.errors import ENHANCE_YOUR_CALM, NO_ERROR
from dataplane.http.h2.frames import HEADERS, SETTING, SETTINGS, WINDOW_UPDATE
from dataplane.server.h2.announced import settings_of
from tests.carriers import Answer, Carrier, Request, Response, Run
from tests.carriers.contract import Conversation
from tests.fakes.certificates import Authority
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import GET, data, frame, headers, parse
from tests.fakes.memory_proxy import FakeTransport, Http1Endpoints, MemoryProxy
from tests.fakes.secure_proxy import SecureProxy, TlsClient, secure

FILE = """
frontendPolicies:
  http: {http}
binds:
- port: 8080
  listeners:
  - name: http
    hostname: a.test
    policies: {policies}
    routes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]
  - name: own
    hostname: own.test
    http: {own}
    routes: [{{backends: [{{host: "127.0.0.1:9000"}}]}}]
"""


def text(http: str = "{}", own: str = "{}", policies: str = "{}") -> str:
    return FILE.format(http=http, own=own, policies=policies)


def memory(http: str = "{}", own: str = "{}") -> MemoryProxy:
    return Http1Endpoints(text(http, own))


def head(*lines: str, host: str = "a.test") -> bytes:
    return "".join(f"{line}\r\n" for line in ("GET / HTTP/1.1", f"host: {host}", *lines, "")).encode()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Mixed-Case: Yes\r\n\r\nok"


def ask(proxy: MemoryProxy, client: FakeTransport, host: str = "a.test", answer: bytes = OK) -> bytes:
    client.send(head(host=host))
    proxy.upstream.answer(answer)
    return client.take()


class TestHeaders:
    """http1MaxHeaders."""

    @pytest.mark.parametrize(
        ("http", "own", "host", "most"),
        [
            ("{}", "{}", "a.test", 100),
            ("{http1MaxHeaders: 3}", "{}", "a.test", 3),
            ("{http1MaxHeaders: 300}", "{}", "a.test", 300),
            ("{http1MaxHeaders: 4096}", "{}", "a.test", 4096),
            ("{http1MaxHeaders: 3}", "{http1MaxHeaders: 200}", "own.test", 200),
            ("{http1MaxHeaders: 3}", "{http1MaxHeaders: 200}", "a.test", 3),
            ("{}", "{http1MaxHeaders: 1}", "own.test", 1),
        ],
    )
    def test_are_so_many(self, http: str, own: str, host: str, most: int) -> None:
        proxy = memory(http, own)
        client = proxy.connect()
        client.send(head(*(f"x{n}: y" for n in range(most - 1)), host=host))
        assert proxy.upstream.received.startswith(b"GET / HTTP/1.1\r\n")
        proxy.upstream.answer(OK)
        assert client.take().startswith(b"HTTP/1.1 200 ")
        client.send(head(*(f"x{n}: y" for n in range(most)), host=host))
        assert client.take().startswith(b"HTTP/1.1 431 ")
        assert " reason=HeadersTooLarge " in proxy.log_lines()[-1]

    def test_of_a_request_without_a_good_host_are_too_many_all_the_same(self) -> None:
        client = memory().connect()
        client.send(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 101 + b"\r\n")
        assert client.take().startswith(b"HTTP/1.1 431 ")
        client = memory().connect()
        client.send(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 100 + b"\r\n")
        assert client.take().startswith(b"HTTP/1.1 400 ")

    def test_above_what_any_listener_may_allow_nobody_is_asked(self) -> None:
        client = memory("{http1MaxHeaders: 4096}").connect()
        client.send(head(*("a:" for _ in range(4096))))
        assert client.take().startswith(b"HTTP/1.1 431 ")


class TestIdleTime:
    """http1IdleTimeout."""

    @pytest.mark.parametrize(
        ("http", "seconds"), [("{}", 600), ("{http1IdleTimeout: 5s}", 5), ("{http1IdleTimeout: 15m}", 900)]
    )
    def test_ends_a_connection(self, http: str, seconds: int) -> None:
        proxy = memory(http)
        client = proxy.connect()
        for _ in range(3):
            assert ask(proxy, client)
            for _ in range(seconds - 1):  # in steps, as time goes by
                proxy.advance(1)
            assert client.open
        proxy.advance(1.1)
        assert not client.open

    def test_is_not_the_time_of_a_request(self) -> None:
        proxy = memory("{http1IdleTimeout: 1s}")
        client = proxy.connect()
        client.send(head())
        for _ in range(30):
            proxy.advance(1)
        proxy.upstream.answer(OK)
        assert client.take() and client.open
        proxy.advance(0.5)
        assert client.open
        proxy.advance(0.6)
        assert not client.open

    def test_of_a_listener_is_that_of_its_bind_where_it_is_shorter(self) -> None:
        proxy = memory("{http1IdleTimeout: 60s}", "{http1IdleTimeout: 2s}")
        client = proxy.connect()
        ask(proxy, client)
        proxy.advance(1.9)
        assert client.open
        proxy.advance(0.2)
        assert not client.open

    def test_counts_for_connections_that_are_opened_after_an_edit(self) -> None:
        proxy = memory()
        before = proxy.connect()
        ask(proxy, before)
        proxy.load(text("{http1IdleTimeout: 2s}"))
        after = proxy.connect()
        ask(proxy, after)
        proxy.advance(2.1)
        assert before.open and not after.open


class TestAge:
    """maxConnectionDuration."""

    def test_ends_an_idle_connection(self) -> None:
        proxy = memory("{maxConnectionDuration: 30s}")
        client = proxy.connect()
        for _ in range(29):
            assert b"connection: close" not in ask(proxy, client)
            proxy.advance(1)
        assert client.open
        proxy.advance(1.1)
        assert not client.open and not client.aborted

    def test_lets_the_request_under_way_end(self) -> None:
        proxy = memory("{maxConnectionDuration: 30s}")
        client = proxy.connect()
        proxy.advance(9)
        client.send(head())
        for _ in range(30):
            proxy.advance(1)
        assert client.open
        proxy.upstream.answer(OK)
        assert b"\r\nconnection: close\r\n" in client.take() and not client.open

    def test_lets_a_head_come_that_has_begun(self) -> None:
        proxy = memory("{maxConnectionDuration: 5s}")
        client = proxy.connect()
        proxy.advance(4)
        client.send(head()[:10])
        proxy.advance(2)
        client.send(head()[10:])
        proxy.advance(0.2)
        proxy.upstream.answer(OK)
        assert b"\r\nconnection: close\r\n" in client.take() and not client.open

    def test_what_a_client_does_not_read_keeps_its_connection_for_a_while_only(self) -> None:
        """A transport is closed when all is sent; to a client that reads nothing, that would be never."""
        proxy = memory("{maxConnectionDuration: 30s}")
        client = proxy.connect()
        ask(proxy, client)
        client.protocol.pause_writing()
        client.close = lambda: None  # type: ignore[method-assign]
        proxy.advance(31)
        del client.close  # type: ignore[method-assign]
        proxy.advance(560)
        assert client.open
        proxy.advance(10)
        assert client.aborted and not client.open

    def test_ends_a_connection_of_http_2_gracefully(self) -> None:
        proxy = memory("{maxConnectionDuration: 30s}")
        client = FrameClient(proxy)
        proxy.advance(9)
        client.send(headers(1, [(n, b"a.test" if n == b":authority" else v) for n, v in GET]))
        for _ in range(22):
            proxy.advance(1)
        said = client.take()
        assert said[0] == Said("goaway", 0x7FFFFFFF, NO_ERROR) and client.open
        proxy.upstream.answer(OK)
        assert client.take()[-1].end
        proxy.advance(2)
        assert client.is_ended

    def test_unset_has_no_end(self) -> None:
        proxy = memory()
        client = proxy.connect()
        for _ in range(500):
            ask(proxy, client)
            proxy.advance(599)
        assert client.open


class TestLetterCase:
    """http1HeaderCase."""

    @pytest.mark.parametrize(
        ("http", "own", "host", "written"),
        [
            ("{}", "{}", "a.test", b"X-Mixed-Case: Yes"),
            ("{http1HeaderCase: Preserve}", "{}", "a.test", b"X-Mixed-Case: Yes"),
            ("{http1HeaderCase: Lowercase}", "{}", "a.test", b"x-mixed-case: Yes"),
            ("{http1HeaderCase: Lowercase}", "{http1HeaderCase: Preserve}", "own.test", b"X-Mixed-Case: Yes"),
            ("{http1HeaderCase: Lowercase}", "{http1HeaderCase: Preserve}", "a.test", b"x-mixed-case: Yes"),
            ("{}", "{http1HeaderCase: Lowercase}", "own.test", b"x-mixed-case: Yes"),
        ],
    )
    def test_of_a_response(self, http: str, own: str, host: str, written: bytes) -> None:
        proxy = memory(http, own)
        client = proxy.connect()
        got = ask(proxy, client, host)
        assert b"\r\n" + written + b"\r\n" in got

    def test_of_interim_responses_and_switches(self) -> None:
        proxy = memory("{http1HeaderCase: Lowercase}")
        client = proxy.connect()
        client.send(head("connection: upgrade", "upgrade: websocket"))
        proxy.upstream.answer(b"HTTP/1.1 103 Early Hints\r\nLink: </A>\r\n\r\n")
        assert b"\r\nlink: </A>\r\n" in client.take()
        proxy.upstream.answer(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Ab: Cd\r\n\r\nX-Raw: 1"
        )
        assert b"\r\nx-ab: Cd\r\n" in (got := client.take()) and got.endswith(b"X-Raw: 1")

    def test_of_a_request_stays(self) -> None:
        proxy = memory("{http1HeaderCase: Lowercase}")
        client = proxy.connect()
        client.send(head("X-Mixed-Case: Yes"))
        assert b"\r\nX-Mixed-Case: Yes\r\n" in proxy.upstream.received


def announced(proxy: MemoryProxy) -> dict[int, int]:
    """Our SETTINGS, by number; 0: by how much the window of the connection was opened."""
    client = FrameClient(proxy, opening=b"")
    client.transport.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS))
    found = {0: 0}
    for each in parse(client.transport.take()):
        if each.kind == SETTINGS:
            found |= dict(SETTING.iter_unpack(each.payload))
        elif each.kind == WINDOW_UPDATE and not each.stream:
            found[0] += int.from_bytes(each.payload, "big")
    return found


class TestHttp2:
    """http2WindowSize, http2ConnectionWindowSize, http2FrameSize, http2MaxHeaderSize, http2Keepalive…."""

    @pytest.mark.parametrize(
        ("http", "number", "value"),
        [
            ("{}", 4, 65_536),
            ("{http2WindowSize: 1Mi}", 4, 1_048_576),
            ("{http2WindowSize: 1000}", 4, 1000),
            ("{}", 0, 524_288 - 65_535),
            ("{http2ConnectionWindowSize: 4Mi}", 0, 4_194_304 - 65_535),
            ("{http2ConnectionWindowSize: 1Ki}", 0, 0),  # RFC 9113 6.9.2: it cannot begin smaller
            ("{}", 5, 16_384),
            ("{http2FrameSize: 1Mi}", 5, 1_048_576),
            ("{http2FrameSize: 16777215}", 5, 16_777_215),
            ("{}", 6, 16_384),
            ("{http2MaxHeaderSize: 64Ki}", 6, 65_536),
            ("{http2MaxHeaderSize: 100}", 6, 100),
            ("{http2MaxHeaderSize: 1Gi}", 6, 1_048_576),
        ],
    )
    def test_settings(self, http: str, number: int, value: int) -> None:
        assert announced(memory(http))[number] == value

    def test_settings_are_the_smallest_of_the_listeners_of_a_bind(self) -> None:
        found = announced(memory("{http2WindowSize: 1Mi, http2FrameSize: 64Ki}", "{http2WindowSize: 64Ki}"))
        assert (found[4], found[5]) == (65_536, 65_536)

    def test_settings_are_one_object_for_equal_rules(self) -> None:
        proxy = memory("{http2WindowSize: 1Mi}")
        (bind,) = proxy.applier.current.table.binds
        rules = proxy.context.connection_rules(bind)
        assert settings_of(proxy.context.limits, rules) is settings_of(proxy.context.limits, rules)

    def test_a_head_above_its_size_is_refused(self) -> None:
        long = [(n, b"a.test" if n == b":authority" else v) for n, v in GET]
        long += [(b"x-%d" % n, b"v" * 100) for n in range(150)]
        for http, status in (("{}", 431), ("{http2MaxHeaderSize: 32Ki}", 200)):
            proxy = memory(http)
            client = FrameClient(proxy)
            whole = headers(1, long)
            client.send(whole)
            if status == 200:
                proxy.upstream.answer(OK)
            assert client.take()[0].value == status, http

    def test_frames_that_would_be_kept_are_not_as_large_as_those_that_pass(self) -> None:
        proxy = memory("{http2FrameSize: 16777215}")
        client = FrameClient(proxy)
        client.send(frame(HEADERS, 0, 1, bytes(70_000))[:20])
        assert client.take() == [Said("goaway", 0, ENHANCE_YOUR_CALM)]
        client = FrameClient(proxy)
        post = [(n, {b":authority": b"a.test", b":method": b"POST"}.get(n, v)) for n, v in GET]
        client.send(headers(1, post, end=False))
        client.send(data(1, bytes(60_000), end=True))
        assert proxy.upstream.received.count(b"\0") >= 60_000

    def test_a_client_that_answers_pings_stays(self) -> None:
        proxy = memory("{http2KeepaliveInterval: 10s, http2KeepaliveTimeout: 3s}")
        client = FrameClient(proxy)
        for _ in range(5):
            for _ in range(10):
                assert client.take() == []
                proxy.advance(1.01)
            (said,) = client.take()
            assert said.kind == "ping"
            assert isinstance(said.value, bytes)
            client.send(frame(6, 1, 0, said.value))
        assert client.open

    def test_a_client_that_does_not_answer_is_given_up(self) -> None:
        proxy = memory("{http2KeepaliveInterval: 10s, http2KeepaliveTimeout: 3s}")
        client = FrameClient(proxy)
        client.send(headers(1, [(n, b"a.test" if n == b":authority" else v) for n, v in GET]))
        proxy.advance(10.1)
        assert [each.kind for each in client.take()] == ["ping"]
        proxy.advance(2.8)
        assert client.take() == []
        proxy.advance(0.4)
        assert client.take()[-1] == Said("goaway", 1, NO_ERROR)
        assert client.is_ended
        assert {each.labels: values[0] for each, values in proxy.metrics.series()}[("KeepaliveTimeout",)] == 1

    def test_unset_no_client_is_asked(self) -> None:
        proxy = memory("{http2KeepaliveTimeout: 3s}")
        client = FrameClient(proxy)
        for _ in range(59):
            proxy.advance(10)
        assert client.take() == []

    def test_the_time_of_an_answer_is_twenty_seconds_where_it_is_unset(self) -> None:
        proxy = memory("{http2KeepaliveInterval: 1s}")
        client = FrameClient(proxy)
        proxy.advance(1.1)
        proxy.advance(19.8)
        assert [each.kind for each in client.take()] == ["ping"]
        proxy.advance(0.4)
        assert client.is_ended


def test_with_tls_a_connection_has_the_rules_of_its_listener() -> None:
    """The server name has chosen it before HTTP begins."""
    authority = Authority()
    listeners = {"http": secure(authority.issue("a.test")), "own": secure(authority.issue("own.test"))}
    file = text("{http2WindowSize: 64Ki, http1IdleTimeout: 5s}", "{http2WindowSize: 1Mi, http1IdleTimeout: 20s}")
    proxy = SecureProxy(file, listeners)
    for host, window, idle in (("a.test", 65_536, 5), ("own.test", 1_048_576, 20)):
        client = TlsClient(proxy.connect(), server_name=host, authority=authority, alpn=(b"h2",))
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS))
        (settings, *_) = [each for each in parse(client.read()) if each.kind == SETTINGS and each.payload]
        assert dict(SETTING.iter_unpack(settings.payload))[4] == window
        over_1 = TlsClient(proxy.connect(), server_name=host, authority=authority, alpn=(b"http/1.1",))
        over_1.send(head(host=host))
        proxy.connector.upstream.answer(OK)
        assert over_1.read().startswith(b"HTTP/1.1 200 ")
        proxy.advance(idle - 0.5)
        assert over_1.far.open
        proxy.advance(0.6)
        assert not over_1.far.open


ECHO = '{transformation: {request: {set: [{name: x-size, value: "string(size(request.body))"}]}}}'
BUFFER = "{buffer: {request: {}}}"


class TestHeldBodies:
    """maxBufferSize."""

    @pytest.mark.parametrize(
        ("http", "most"),
        [
            ("{}", 2_097_152),
            ("{maxBufferSize: 1Ki}", 1024),
            ("{maxBufferSize: 3Mi}", 3_145_728),
            ("{maxBufferSize: 0}", 0),
        ],
    )
    def test_are_so_large_by_default(self, http: str, most: int, carrier: Carrier) -> None:
        run = carrier.proxy(text(http, policies=BUFFER))
        assert posted(run, most).answer == Answer()
        assert posted(run, most + 1).answer.status == 413

    def test_of_a_policy_with_a_limit_of_its_own(self, carrier: Carrier) -> None:
        """It holds beside the default, and is cut to any other value."""
        own = "{buffer: {request: {maxBytes: 3Mi}}}"
        assert posted(carrier.proxy(text(policies=own)), 3_145_728).answer == Answer()
        run = carrier.proxy(text("{maxBufferSize: 1Mi}", policies=own))
        assert posted(run, 1_048_577).answer.status == 413

    def test_of_responses(self, carrier: Carrier) -> None:
        for policies in ("{buffer: {response: {}}}", "{buffer: {response: {maxBytes: 100}}}"):
            run = carrier.proxy(text("{maxBufferSize: 8}", policies=policies))
            assert run.ask(Request(authority="a.test"), Response(200, body=b"12345678")).status == 200
            assert run.ask(Request(authority="a.test"), Response(200, body=b"123456789")).status == 502

    def test_that_expressions_read(self, carrier: Carrier) -> None:
        run = carrier.proxy(text("{maxBufferSize: 8}", policies=ECHO))
        assert sized(run, 8) == "8"
        assert sized(run, 9) is None

    def test_of_responses_that_expressions_read(self, carrier: Carrier) -> None:
        policies = '{transformation: {response: {set: [{name: x-size, value: "string(size(response.body))"}]}}}'
        for http, most in (("{maxBufferSize: 8}", 8), ("{maxBufferSize: 3Mi}", 3_145_728)):
            run = carrier.proxy(text(http, policies=policies))
            for size, seen in ((most, str(most)), (most + 1, None)):
                answer = run.ask(Request(authority="a.test"), Response(200, body=bytes(size)))
                assert answer.status == 200 and answer.headers.get("x-size") == seen

    def test_that_are_kept_for_another_try(self, carrier: Carrier) -> None:
        for size, tries in ((8, 2), (9, 1)):
            run = carrier.proxy(text("{maxBufferSize: 8}", policies="{retry: {codes: [503], attempts: 1}}"))
            run.send(Request("POST", authority="a.test", body=bytes(size)))
            run.serve(Response(503))
            run.advance(1)
            run.serve()
            assert [each.received.body for each in run.arrivals] == [bytes(size)] * tries

    def test_are_those_of_the_listener(self, carrier: Carrier) -> None:
        """Also where one policy covers several listeners."""
        file = text("{maxBufferSize: 4}", "{maxBufferSize: 8}").replace(
            "hostname: own.test\n", f"hostname: own.test\n    policies: {BUFFER}\n"
        )
        run = carrier.proxy(file.replace("policies: {}", f"policies: {BUFFER}"))
        for host, most in (("a.test", 4), ("own.test", 8)):
            for size, status in ((most, None), (most + 1, 413)):
                request = Request("POST", authority=host, headers=[("content-length", str(size))])
                assert run.client().begin(request).answer.status == status


def posted(run: Run, size: int) -> Conversation:
    """The head of a request with a body of this size."""
    return run.client().begin(Request("POST", authority="a.test", headers=[("content-length", str(size))]))


def sized(run: Run, size: int) -> str | None:
    carried = run.carry(Request("POST", authority="a.test", body=bytes(size)))
    return carried.received.headers.get("x-size")
