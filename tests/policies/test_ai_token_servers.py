"""Providers of clouds whose credentials come from servers of tokens: what these do wrong, as clients of LLMs see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.fakes import aws_frames
from tests.fakes.llm_talks import event
from tests.fakes.llm_toys import CHAT, of_backend
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy

SERVER = "127.0.0.1:9100"
AT = "host: 127.0.0.1, port: 9001"
ROLE = "arn:aws:iam::123456789012:role/r"
CLIENT = "secretRef: {clientID: {value: c}, tenantID: {value: t}, clientSecret: {value: its-secret}}"


def answer(content: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = b"".join(b"%b\r\n" % each for each in (*headers, b"content-length: %d" % len(content)))
    return b"HTTP/1.1 %b\r\n%b\r\n%b" % (status, lines, content)


def given(name: str) -> bytes:
    """A token that counts for an hour, of Google or Azure."""
    return answer(json.dumps({"access_token": name, "expires_in": 3600}).encode(), b"metadata-flavor: Google")


def assumed(name: str) -> bytes:
    """The same of AWS, whose life is counted by the server's clock."""
    keys = f"<AccessKeyId>{name}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
    text = f"<R><Credentials>{keys}<Expiration>2028-01-01T01:00:00Z</Expiration></Credentials></R>"
    return answer(text.encode(), b"date: Sat, 01 Jan 2028 00:00:00 GMT")


class Cloud(NamedTuple):
    """A provider, its environment, the path where its server of tokens is asked, what that gives, what a request that
    has it says, and the event of a stream."""

    provider: str
    policies: str
    environment: dict[str, str]
    asked: bytes
    given: Callable[[str], bytes]
    sent: bytes
    events: tuple[bytes, bytes]


EVENTS = (
    event({"model": "m", "choices": [{"index": 0, "delta": {"content": "one"}}]}),
    event({"model": "m", "choices": [{"index": 0, "delta": {"content": "two"}, "finish_reason": "stop"}]})
    + b"data: [DONE]\n\n",
)
GENERATED = (
    event({"candidates": [{"content": {"role": "model", "parts": [{"text": "one"}]}}]}),
    event({"candidates": [{"content": {"role": "model", "parts": [{"text": "two"}]}, "finishReason": "STOP"}]}),
)
FRAMES = (
    aws_frames.event("messageStart", {"role": "assistant"})
    + aws_frames.event("contentBlockDelta", {"delta": {"text": "one"}, "contentBlockIndex": 0}),
    aws_frames.event("contentBlockDelta", {"delta": {"text": "two"}, "contentBlockIndex": 0})
    + aws_frames.event("contentBlockStop", {"contentBlockIndex": 0})
    + aws_frames.event("messageStop", {"stopReason": "end_turn"})
    + aws_frames.event("metadata", {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}),
)
AWS = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ENDPOINT_URL_STS": f"http://{SERVER}"}
CLOUDS = {
    "bedrock": Cloud(
        "bedrock: {region: eu-west-1, model: 'amazon.nova-pro-v1:0'}",
        f"auth: {{aws: {{assumeRole: {{roleArn: '{ROLE}'}}}}}}",
        {**AWS, "AWS_REGION": "eu-west-1"},
        b"POST / ",
        assumed,
        b"Credential=%b/",
        FRAMES,
    ),
    "vertexai": Cloud(
        "vertexai: {projectId: p, model: gemini-3}",
        "",
        {"GCE_METADATA_HOST": SERVER},
        b"GET /computeMetadata/v1/",
        given,
        b"Bearer %b\r\n",
        GENERATED,
    ),
    "azure": Cloud(
        "azure: {resourceName: r, resourceType: OpenAI, model: dep}",
        f"auth: {{azure: {{{CLIENT}}}}}",
        {"AZURE_AUTHORITY_HOST": f"http://{SERVER}"},
        b"POST /t/oauth2/v2.0/token ",
        given,
        b"Bearer %b\r\n",
        EVENTS,
    ),
}
OTHER = ", {name: other, openai: {model: o}, host: 127.0.0.2, port: 9001, policies: {auth: {key: k}}}"


def proxy_of(name: str, other: str = "") -> MemoryProxy:
    cloud = CLOUDS[name]
    policies = f", policies: {{{cloud.policies}}}" if cloud.policies else ""
    first = f"{{name: {name}, {cloud.provider}, {AT}{policies}}}"
    groups = "groups: [" + ", ".join(f"{{providers: [{each}]}}" for each in (first, *filter(None, [other[2:]]))) + "]"
    return MemoryProxy(of_backend(groups), environment=cloud.environment)


def ask(proxy: MemoryProxy, is_stream: bool = False) -> FakeTransport:
    client = proxy.connect()
    body = json.dumps({**CHAT, "stream": is_stream}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer mine\r\n"
    client.send(head + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
    return client


def refusal(client: FakeTransport) -> Any:
    assert client.received.startswith(b"HTTP/1.1 500 "), client.received
    return json.loads(client.received.partition(b"\r\n\r\n")[2])["error"]


FAULTS = {
    "refused": answer(b'{"error": "invalid_client", "error_description": "its-secret"}', status=b"401 Unauthorized"),
    "forbidden": answer(b"<Error><Code>AccessDenied</Code><Message>its-secret</Message></Error>", status=b"403 No"),
    "unavailable": answer(b"", status=b"503 Busy"),
    "no JSON": answer(b"garbage", b"metadata-flavor: Google"),
    "nothing": answer(b""),
    "a token that has ended": answer(b'{"access_token": "x", "expires_in": 0}', b"metadata-flavor: Google"),
    "a token with a line end": answer(b'{"access_token": "a\\r\\nb", "expires_in": 9}', b"metadata-flavor: Google"),
    "too much": b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n",
    "no HTTP": b"nonsense\r\n\r\n",
}


def fail(proxy: MemoryProxy, fault: bytes) -> None:
    """STS is asked once more, by its own clock, when it has refused."""
    for _ in range(2):
        for each in proxy.connector.upstreams:
            if each.open and each.take():
                each.answer(fault)


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_client_is_told_in_its_own_api_and_nothing_goes_to_the_provider(name: str, fault: str) -> None:
    proxy = proxy_of(name)
    client = ask(proxy)
    (server,) = proxy.connector.upstreams
    assert server.received.startswith(CLOUDS[name].asked)
    fail(proxy, FAULTS[fault])
    found = refusal(client)
    assert "authentication" in found["message"] and "its-secret" not in client.received.decode()
    (line,) = proxy.log_lines()
    assert "reason=BackendAuthenticationFailed" in line and "its-secret" not in line
    assert {each.label for each in proxy.connector.endpoints} == {SERVER}, "nobody else was asked"


@pytest.mark.parametrize("name", CLOUDS)
def test_a_server_of_tokens_that_is_slow_is_waited_for_a_while(name: str) -> None:
    proxy = proxy_of(name)
    client = ask(proxy)
    proxy.advance(4.9)
    assert client.received == b""
    proxy.connector.upstreams[0].answer(CLOUDS[name].given("late"))
    assert CLOUDS[name].sent % b"late" in proxy.connector.upstream.received
    other = proxy_of(name)
    client = ask(other)
    other.advance(5.1)
    assert "authentication" in refusal(client)["message"]


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("fault", ["refused", "slow"])
def test_the_next_provider_takes_the_place_of_one_without_credentials(name: str, fault: str) -> None:
    proxy = proxy_of(name, OTHER)
    client = ask(proxy)
    if fault == "slow":
        proxy.advance(5.1)
    else:
        proxy.connector.upstreams[0].answer(FAULTS[fault])
        if name == "bedrock":
            proxy.connector.upstream.answer(FAULTS[fault])  # once more, by its own clock
    sent = proxy.connector.upstream
    assert b"Bearer k\r\n" in sent.received and b'"model": "o"' in sent.received
    sent.answer(answer(b'{"model": "o", "choices": []}', b"content-type: application/json"))
    assert client.received.startswith(b"HTTP/1.1 200 ")
    assert f"llm.candidates={name}:unfinished:" in proxy.log_lines()[-1].replace('"', "")


KINDS = {"bedrock": b"application/vnd.amazon.eventstream", "vertexai": b"text/event-stream"}


@pytest.mark.parametrize("name", CLOUDS)
def test_a_token_that_ends_in_the_middle_of_a_stream_ends_no_stream(name: str) -> None:
    """What is under way has been let in; the next request has a new one, and waits for it when the old one is over."""
    cloud, proxy = CLOUDS[name], proxy_of(name)
    client = ask(proxy, is_stream=True)
    server = proxy.connector.upstreams[0]
    server.answer(cloud.given("first"))
    stream = proxy.connector.upstream
    assert cloud.sent % b"first" in stream.received
    kind = KINDS.get(name, b"text/event-stream")
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\nconnection: close\r\n\r\n" % kind
    stream.answer(head + cloud.events[0])
    assert b'"one"' in client.received
    for _ in range(13):
        proxy.advance(300.0)
    before = [each.take() for each in proxy.connector.upstreams]
    assert len(before) == 2
    second = ask(proxy)
    (asked,) = [each for each in proxy.connector.upstreams if each.open and each.received.startswith(cloud.asked)]
    asked.answer(cloud.given("second"))
    sent = proxy.connector.upstream.received
    assert cloud.sent % b"second" in sent and cloud.sent % b"first" not in sent
    assert second.received == b""
    stream.answer(cloud.events[1])
    stream.close()
    assert b'"two"' in client.received and b"data: [DONE]" in client.received and b'"error"' not in client.received
