"""API key authentication from the standalone file to the request that an upstream sees."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from dataplane.chain.filter import Env, Refused
from dataplane.filters import api_key_authentication
from dataplane.filters.registry import ROWS
from dataplane.table.intern import Interns
from gatewright.wire.v1 import authentication_pb2, policy_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import PolicyRun, example, text_of
from tests.fakes.table_state import exchange

KEYS = {
    "ann": "k-ann",
    "batch": json.dumps({"key": "k-batch", "metadata": {"group": "batch", "level": 3, "tags": ["a"]}}),
    "padded": " k-padded\n",
    "bare": json.dumps({"key": "{}"}),
}

USER = "ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="


def policy(keys: dict[str, str] = KEYS, **fields: Any) -> str:
    secret = {name: {"value": value} for name, value in keys.items()}
    return yaml.safe_dump({"policies": {"apiKeyAuthentication": {"secretRef": secret, **fields}}})


def bearer(key: str) -> bytes:
    return f"Authorization: Bearer {key}\r\n".encode()


STRICT = PolicyRun(policy())


@pytest.mark.claims("errors: Authentication mode `Strict` with missing or invalid credentials")
@pytest.mark.parametrize("headers", [b"", bearer("k-bob"), bearer("")])
def test_strict_refuses(headers: bytes, refused: Any) -> None:
    refused(STRICT.request(exchange(headers=headers)), case="apiKey")


@pytest.mark.parametrize(
    ("key", "metadata"),
    [
        ("k-ann", {}),
        ("k-batch", {"group": "batch", "level": 3, "tags": ["a"]}),
        ("k-padded", {}),
        ("{}", {}),
    ],
)
def test_a_known_key_passes_and_is_taken_out(key: str, metadata: dict[str, Any]) -> None:
    x = exchange(headers=b"a: 1\r\n" + bearer(key) + b"b: 2\r\n")
    assert STRICT.request(x) is None
    assert x.request.block == b"\r\nHost: a.example\r\na: 1\r\nb: 2\r\n"
    assert x.attributes is not None and x.attributes["apiKey"].pop("key").unredacted() == key
    assert x.attributes["apiKey"] == metadata


@pytest.mark.parametrize("key", ["K-ANN", "k-anna", "k-an", " ", KEYS["batch"], "k-ann,k-ann", "k-ann k-ann"])
def test_what_is_nearly_a_key_is_none(key: str) -> None:
    x = exchange(headers=bearer(key))
    answer = STRICT.request(x)
    assert answer is not None and (answer.status, answer.reason) == (401, "ApiKeyInvalid")
    assert answer.headers == b'www-authenticate: Bearer error="invalid_token"\r\n'
    assert bearer(key) in x.request.block
    assert key == " " or key not in repr(answer)


MODES = [
    ("Strict", b"", "ApiKeyMissing"),
    ("Strict", b"Authorization: Basic eA==\r\n", "ApiKeyMissing"),
    ("Strict", bearer("k-ann") * 2, "ApiKeyInvalid"),
    ("Optional", b"", "passes"),
    ("Optional", b"Authorization: Basic eA==\r\n", "passes"),
    ("Optional", bearer("no"), "ApiKeyInvalid"),
    ("Optional", bearer("k-ann") + bearer("no"), "ApiKeyInvalid"),
    ("Permissive", b"", "passes"),
    ("Permissive", bearer("no"), "passes"),
    ("Permissive", bearer("k-ann") * 2, "passes"),
]


@pytest.mark.parametrize(("mode", "headers", "outcome"), MODES)
def test_modes(mode: str, headers: bytes, outcome: str) -> None:
    x = exchange(headers=headers)
    answer = PolicyRun(policy(mode=mode)).request(x)
    assert (answer.reason if answer else "passes") == outcome
    assert headers in x.request.block and x.attributes is None


@pytest.mark.parametrize(
    ("location", "headers", "query", "challenge"),
    [
        ({"header": {"name": "X-Api-Key"}}, b"x-api-key: k-ann\r\n", "", b"Bearer"),
        ({"header": {"name": "Authorization", "prefix": "ApiKey"}}, b"authorization: apikey k-ann\r\n", "", b"ApiKey"),
        ({"header": {"name": "x-key", "prefix": "key="}}, b"x-key: key=k-ann\r\n", "", b"Bearer"),
        ({"queryParameter": {"name": "api key"}}, b"", "api+key=k%2dann", b"Bearer"),
        ({"cookie": {"name": "key"}}, b"cookie: key=k-ann\r\n", "", b"Bearer"),
    ],
)
def test_locations(location: dict[str, Any], headers: bytes, query: str, challenge: bytes) -> None:
    run = PolicyRun(policy(location=location))
    x = exchange(headers=headers, query=query)
    assert run.request(x) is None
    assert (x.request.block, x.target) == (b"\r\nHost: a.example\r\n", b"/")
    answer = run.request(exchange())
    assert answer is not None and answer.headers == b"www-authenticate: %b\r\n" % challenge


def test_an_expression_finds_the_key_and_leaves_it() -> None:
    run = PolicyRun(policy(location={"expression": 'request.path.split("/")[1]'}))
    x = exchange(path="/k-ann/x")
    assert (run.request(x), x.target) == (None, b"/k-ann/x")
    assert run.request(exchange(path="/k-bob/x")) is not None


def test_metadata_decide() -> None:
    route = yaml.safe_load(policy())
    route["policies"]["authorization"] = {"policy": {"matchExpressions": ['apiKey.group == "batch"']}}
    run = PolicyRun(yaml.safe_dump(route))
    assert run.request(exchange(headers=bearer("k-batch"))) is None
    answer = run.request(exchange(headers=bearer("k-ann")))
    assert answer is not None and answer.status == 403


def build(*secrets: dict[str, bytes]) -> Any:
    """The policy's step, of several Secrets."""
    held = {f"secret/default/{number}": secret for number, secret in enumerate(secrets)}
    env = Env(clock=time.monotonic, random=lambda: 0.0, secret=lambda key: held[key])
    return api_key_authentication.build(authentication_pb2.ApiKeyAuthentication(secrets=held), env)


def test_of_several_secrets_the_first_has_a_key() -> None:
    step = build(
        {"a": b'{"key": "k", "metadata": {"of": 1}}'}, {"a": b'{"key": "k", "metadata": {"of": 2}}', "b": b"l"}
    )
    for key, of in (("k", 1), ("l", None)):
        x = exchange(headers=bearer(key))
        assert step.request(x) is None
        assert x.attributes is not None and x.attributes["apiKey"].get("of") == of


@pytest.mark.parametrize(
    "entry",
    [b"", b" \n", b"{", b'{"key": 1}', b'{"key": ""}', b'{"key": "k", "metadata": 1}', b'{"key": "a", "key": "k"}'],
)
def test_an_entry_that_is_no_key_is_left_out_and_named(entry: bytes, caplog: pytest.LogCaptureFixture) -> None:
    step = build({"bad": entry, "good": b"k-good"})
    assert step.request(exchange(headers=bearer("k-good"))) is None
    for key in (entry.decode(), "k", "{"):
        assert step.request(exchange(headers=bearer(key))) is not None
    assert "entry bad is no API key" in caplog.text and (not entry.strip() or entry.decode() not in caplog.text)


def test_a_missing_secret_is_refused() -> None:
    config = authentication_pb2.ApiKeyAuthentication(secrets=["secret/default/a"])
    with pytest.raises(Refused, match="secret/default/a"):
        api_key_authentication.build(config, Env(clock=time.monotonic, random=lambda: 0.0))


def test_no_secret_means_no_key() -> None:
    assert build().request(exchange(headers=bearer("k"))).reason == "ApiKeyInvalid"


def test_keys_are_not_kept() -> None:
    secret = b"k-" + b"never kept"
    step = build({"a": secret})
    del secret
    reached, todo = set(), [step.request]
    while todo:
        each = todo.pop()
        if id(each) not in reached:
            reached.add(id(each))
            assert b"never kept" not in each if isinstance(each, bytes) else True
            todo += [] if isinstance(each, type) else [other for other in gc.get_referents(each) if not _shared(other)]


def _shared(value: Any) -> bool:
    """Modules and what hangs on them: not of a filter."""
    return isinstance(value, type) or (isinstance(value, dict) and "__name__" in value)


def test_the_example_of_the_page(root: Path) -> None:
    run = PolicyRun(example(root / "docs/policies/api_key_authentication.md"))
    for key, method, passes in (("k-123", "POST", True), ("k-456", "GET", True), ("k-456", "POST", False)):
        x = exchange(method=method, headers=f"x-api-key: {key}\r\n".encode())
        assert (run.request(x) is None) is passes


def test_over_the_wire() -> None:
    location = {"queryParameter": {"name": "key"}}
    proxy = MemoryProxy(text_of(policy(location=location) + "backends: [{host: '127.0.0.1:9000'}]"))
    client = proxy.connect()
    client.send(b"GET /a%20b?x=%7e&key=k-ann&y HTTP/1.1\r\nHost: a\r\n\r\n")
    assert proxy.upstream.take().startswith(b"GET /a%20b?x=%7e&y HTTP/1.1\r\n")
    proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    client.take()
    client.send(b"GET /?key=k-bob HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.take().startswith(b"HTTP/1.1 401 ")
    first, second = proxy.log_lines()
    assert "key=<redacted>&y" in first and "k-ann" not in first
    assert "reason=ApiKeyInvalid" in second and "k-bob" not in second


EARLIER: dict[str, tuple[dict[str, Any], bytes, bytes]] = {
    "preflight": (
        {"cors": {"allowOrigins": ["https://a.test"], "allowMethods": ["GET"]}},
        b"OPTIONS /?key=k-ann HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\nAccess-Control-Request-Method: GET",
        b"204",
    ),
    "csrf": ({"csrf": {}}, b"POST /?key=k-ann HTTP/1.1\r\nHost: a\r\nOrigin: https://b.test", b"403"),
    "another login": ({"basicAuthentication": {"users": [USER]}}, b"GET /?key=k-ann HTTP/1.1\r\nHost: a", b"401"),
}


@pytest.mark.parametrize("case", EARLIER)
def test_a_key_of_a_request_that_another_step_answers_is_not_logged(case: str) -> None:
    others, request, status = EARLIER[case]
    route = yaml.safe_load(policy(location={"queryParameter": {"name": "key"}}))
    route["policies"] |= others
    proxy = MemoryProxy(text_of(yaml.safe_dump(route)))
    client = proxy.connect()
    client.send(request + b"\r\n\r\n")
    assert client.take().startswith(b"HTTP/1.1 " + status)
    (line,) = proxy.log_lines()
    assert "http.path=/?key=<redacted> " in line and "k-ann" not in line


def test_a_key_of_a_request_that_an_unusable_policy_refuses_is_not_logged() -> None:
    location = {"query_parameter": {"name": "key"}}
    own = authentication_pb2.ApiKeyAuthentication(secrets=["secret/default/a"], location=location)
    inline = policy_pb2.Policy(api_key_authentication=own, invalid="the Secret is not there")
    built = Interns(ROWS, Env(clock=time.monotonic, random=lambda: 0.0)).inline([inline], "route/default/r/0")
    x = exchange(query="key=k-ann&b")
    assert built.chain.request is not None and built.chain.request(x) is not None
    for hook in built.chain.end:
        hook(x)
    assert x.asked_target == b"/?key=<redacted>&b"
