"""A guard's server that hangs, drips, goes away or says what makes no sense, in both failure modes, for requests and
for answers; and that nothing which was judged, masked, or presented to such a server shows anywhere."""

from __future__ import annotations

import json
import logging
from typing import Final

import pytest

from dataplane.guards.servers.asking import MAX_ANSWER, SECONDS
from tests.fakes.llm_toys import CHAT, CHATTED, of_backend
from tests.fakes.memory_proxy import FakeTransport, FakeUpstream, MemoryProxy

CANARY: Final = "c4n4ry"
HOOK: Final = "{webhook: {backend: guard, failureMode: MODE}}"
FILE: Final = f"backends: [{{name: guard, host: '127.0.0.1:9005', policies: {{auth: {{key: {CANARY}-key}}}}}}]\n"
PROVIDER: Final = "provider: {custom: {formats: [{type: Completions}]}, host: 127.0.0.1, port: 9001}"
TRACING: Final = "frontendPolicies: {tracing: {host: '127.0.0.1:4317', randomSampling: 'true'}}\n"
HEAD: Final = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n"
PASSES: Final = b'{"action": {}}'


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n\r\n".encode() + body


ANSWERS: Final = {
    "its own fault": http(CANARY.encode(), "500 No"),
    "elsewhere": http(b"", "302 Found"),
    "no JSON": http(CANARY.encode()),
    "nested": http(b"[" * 100_000),
    "not UTF-8": http(b'{"action": "\xff"}'),
    "another thing": http(json.dumps({"a": CANARY}).encode()),
    "a status that is none": http(json.dumps({"action": {"body": CANARY, "status_code": 999}}).encode()),
    "fewer texts": http(b'{"action": {"body": {"messages": [], "choices": []}}}'),
    "no HTTP": b"\x16\x03\x01\r\n\r\n",
}
MODES: Final = {"FailClosed": False, "FailOpen": True}
each_mode = pytest.mark.parametrize("mode", MODES)
each_phase = pytest.mark.parametrize("phase", ["request", "response"])


def proxy_of(phase: str, mode: str, first: str = "") -> MemoryProxy:
    guards = ", ".join(filter(None, (first, HOOK.replace("MODE", mode))))
    return MemoryProxy(of_backend(PROVIDER, f"promptGuard: {{{phase}: [{guards}]}}") + FILE + TRACING)


def waiting(proxy: MemoryProxy, phase: str, said: str = f"{CANARY} asks") -> tuple[FakeTransport, FakeUpstream]:
    """A client, and the connection on which the guard's server was asked."""
    client = proxy.connect()
    body = json.dumps({**CHAT, "messages": [{"role": "user", "content": said}]}).encode()
    client.send(HEAD % len(body) + body)
    if phase == "response":
        proxy.connector.upstream.answer(http(json.dumps(CHATTED | {"system_fingerprint": CANARY}).encode()))
    asked = proxy.connector.upstream
    assert f"POST /{phase} ".encode() in asked.received and f"Bearer {CANARY}-key".encode() in asked.received
    return client, asked


def judged(proxy: MemoryProxy, client: FakeTransport, phase: str, mode: str) -> None:
    """What comes of it where the guard could not be asked."""
    provider = [each for each in proxy.connector.upstreams if b"/v1/chat/completions" in each.received]
    if not MODES[mode]:
        assert client.received.startswith(b"HTTP/1.1 403") and b"GuardUnavailable" in client.received
        assert b'"ho"' not in client.received and (phase == "response") == bool(provider)
        return
    if phase == "request":
        provider[0].answer(http(json.dumps(CHATTED).encode()))
    assert client.received.startswith(b"HTTP/1.1 200") and b'"ho"' in client.received


@each_mode
@each_phase
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_server_that_makes_no_sense(answer: bytes, phase: str, mode: str) -> None:
    proxy = proxy_of(phase, mode)
    client, server = waiting(proxy, phase)
    server.answer(answer)
    judged(proxy, client, phase, mode)
    assert CANARY not in "".join(proxy.log_lines())


BLAMES: Final = {
    **{f"{status}": http(CANARY.encode(), f"{status} No") for status in (400, 413, 414, 422, 431)},
    "too long": http(b"", length=MAX_ANSWER + 1),
}


@each_mode
@each_phase
@pytest.mark.parametrize("answer", BLAMES.values(), ids=BLAMES)
def test_a_server_that_does_not_take_the_text_lets_it_pass_in_no_mode(answer: bytes, phase: str, mode: str) -> None:
    """A client could have that at will, by a text that is too long for the server."""
    proxy = proxy_of(phase, mode)
    client, server = waiting(proxy, phase)
    server.answer(answer)
    judged(proxy, client, phase, "FailClosed")


@each_mode
@each_phase
def test_a_server_that_hangs(phase: str, mode: str) -> None:
    proxy = proxy_of(phase, mode)
    client, server = waiting(proxy, phase)
    proxy.advance(SECONDS - 0.2)
    assert client.received == b""
    proxy.advance(0.3)
    judged(proxy, client, phase, mode)
    assert not server.open


@each_mode
@each_phase
def test_a_server_that_drips(phase: str, mode: str) -> None:
    """A byte now and then is no progress: the time is for the whole."""
    proxy = proxy_of(phase, mode)
    client, server = waiting(proxy, phase)
    for byte in http(PASSES):
        if server.open:
            server.send(bytes([byte]))
            proxy.advance(0.25)
    judged(proxy, client, phase, mode)


@each_mode
@each_phase
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_server_that_goes_away(share: float, phase: str, mode: str) -> None:
    proxy = proxy_of(phase, mode)
    client, server = waiting(proxy, phase)
    answer = http(PASSES)
    if share:
        server.send(answer[: int(len(answer) * share)])
    server.lose()
    judged(proxy, client, phase, mode)


@each_mode
def test_a_server_that_takes_no_connection(mode: str) -> None:
    proxy = proxy_of("request", mode)
    proxy.connector.refused = {"127.0.0.1:9005"}
    client = proxy.connect()
    body = json.dumps(CHAT).encode()
    client.send(HEAD % len(body) + body)
    judged(proxy, client, "request", mode)


@pytest.mark.parametrize("answer", [http(PASSES), *ANSWERS.values()], ids=["passes", *ANSWERS])
@each_phase
def test_nothing_that_was_judged_shows(phase: str, answer: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a text, nor what was masked in it, nor the key of the server: in logs, metrics, spans."""
    caplog.set_level(logging.DEBUG)
    proxy = proxy_of(phase, "FailClosed", f"{{regex: {{matches: ['{CANARY}-secret']}}}}")
    client, server = waiting(proxy, phase, f"{CANARY} asks of {CANARY}-secret")
    assert (phase == "request") == (b"<masked>" in server.received)
    server.answer(answer)
    for each in proxy.connector.upstreams[1:]:
        if each.open and b"/v1/chat/completions" in each.received:
            each.answer(http(json.dumps(CHATTED).encode()))
    assert client.received
    series = [labels for each, _ in proxy.metrics.series() for labels in each.labels]
    shown = [*proxy.log_lines(), caplog.text, *series, *map(repr, proxy.exported), repr(proxy.applier.outcome)]
    assert series and any("completions" in repr(each) for each in proxy.exported)
    assert not [text for text in shown if CANARY in text]
