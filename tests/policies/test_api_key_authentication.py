"""API key authentication from the standalone file to the request that an upstream sees."""

from __future__ import annotations

import gc
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.registry import ROWS
from dataplane.filters.steps import api_key_authentication
from dataplane.table.intern import Interns
from gatewright.wire.v1 import authentication_pb2, policy_pb2
from tests.carriers import Carrier, Headers, Request
from tests.carriers.values import Pairs
from tests.fakes.policy_run import example, served, text_of
from tests.fakes.table_state import exchange
from tests.harness import yamls

KEYS = {
    "ann": "k-ann",
    "batch": json.dumps({"key": "k-batch", "metadata": {"group": "batch", "level": 3, "tags": ["a"]}}),
    "padded": " k-padded\n",
    "bare": json.dumps({"key": "{}"}),
}

USER = "ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="


def policy(keys: dict[str, str] = KEYS, **fields: Any) -> str:
    secret = {name: {"value": value} for name, value in keys.items()}
    return yamls.dump({"policies": {"apiKeyAuthentication": {"secretRef": secret, **fields}}})


def bearer(key: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {key}")


def get(*headers: tuple[str, str], target: str = "/") -> Request:
    return Request("GET", target, headers)


BASIC = ("authorization", "Basic eA==")
ATTRIBUTES = "{key: apiKey.key.unredacted(), all: toJson(apiKey)}"
STRICT = served(policy(), log=ATTRIBUTES)


def attributes(line: str) -> tuple[str, dict[str, Any]] | None:
    """Key and metadata that expressions see; None when there is no key."""
    found = re.search(r'ms key=(\S+|"[^"]*") all=(\S+)$', line)
    if found is None:
        assert line.endswith("ms all={}"), line
        return None
    key, members = (json.loads(text) if text.startswith('"') else text for text in found.groups())
    metadata = json.loads(members)
    assert key not in metadata.pop("key")
    return key, metadata


@pytest.mark.claims("errors: Authentication mode `Strict` with missing or invalid credentials")
@pytest.mark.parametrize("headers", [[], [bearer("k-bob")], [("authorization", "Bearer")]])
def test_strict_refuses(headers: Pairs, refused: Any, carrier: Carrier) -> None:
    seen = carrier.shared(STRICT).carry(get(*headers))
    refused(seen.answer, case="apiKey")
    assert seen.reached == () and attributes(seen.line) is None


@pytest.mark.parametrize(
    ("key", "metadata"),
    [
        ("k-ann", {}),
        ("k-batch", {"group": "batch", "level": 3, "tags": ["a"]}),
        ("k-padded", {}),
        ("{}", {}),
    ],
)
def test_a_known_key_passes_and_is_taken_out(key: str, metadata: dict[str, Any], carrier: Carrier) -> None:
    seen = carrier.shared(STRICT).carry(get(("a", "1"), bearer(key), ("b", "2")))
    assert (seen.answer.status, seen.received.passed) == (200, {"a": "1", "b": "2"})
    assert attributes(seen.line) == (key, metadata)


@pytest.mark.parametrize("key", ["K-ANN", "k-anna", "k-an", KEYS["batch"], "k-ann,k-ann", "k-ann k-ann"])
def test_what_is_nearly_a_key_is_none(key: str, carrier: Carrier) -> None:
    seen = carrier.shared(STRICT).carry(get(bearer(key)))
    assert (seen.answer.status, seen.reason, seen.reached) == (401, "ApiKeyInvalid", ())
    assert seen.answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert key not in seen.line and key not in seen.answer.body.decode()


MODES = [
    ("Strict", [], "ApiKeyMissing"),
    ("Strict", [BASIC], "ApiKeyMissing"),
    ("Strict", [bearer("k-ann")] * 2, "ApiKeyInvalid"),
    ("Optional", [], ""),
    ("Optional", [BASIC], ""),
    ("Optional", [bearer("no")], "ApiKeyInvalid"),
    ("Optional", [bearer("k-ann"), bearer("no")], "ApiKeyInvalid"),
    ("Permissive", [], ""),
    ("Permissive", [bearer("no")], ""),
    ("Permissive", [bearer("k-ann")] * 2, ""),
]


@pytest.mark.parametrize(("mode", "headers", "reason"), MODES)
def test_modes(mode: str, headers: Pairs, reason: str, carrier: Carrier) -> None:
    seen = carrier.shared(served(policy(mode=mode), log=ATTRIBUTES)).carry(get(*headers))
    assert (seen.answer.status, seen.reason) == (401 if reason else 200, reason)
    assert [each.passed for each in seen.reached] == ([] if reason else [Headers(headers)])
    assert attributes(seen.line) is None


@pytest.mark.parametrize(
    ("location", "headers", "query", "challenge"),
    [
        ({"header": {"name": "X-Api-Key"}}, [("x-api-key", "k-ann")], "", "Bearer"),
        ({"header": {"name": "Authorization", "prefix": "ApiKey"}}, [("authorization", "apikey k-ann")], "", "ApiKey"),
        ({"header": {"name": "x-key", "prefix": "key="}}, [("x-key", "key=k-ann")], "", "Bearer"),
        ({"queryParameter": {"name": "api key"}}, [], "?api+key=k%2dann", "Bearer"),
        ({"cookie": {"name": "key"}}, [("cookie", "key=k-ann")], "", "Bearer"),
    ],
)
def test_locations(location: dict[str, Any], headers: Pairs, query: str, challenge: str, carrier: Carrier) -> None:
    run = carrier.proxy(served(policy(location=location)))
    seen = run.carry(get(*headers, target="/" + query))
    assert (seen.answer.status, seen.received.passed, seen.received.target) == (200, {}, "/")
    answer = run.carry(get()).answer
    assert (answer.status, answer.headers["www-authenticate"]) == (401, challenge)


def test_an_expression_finds_the_key_and_leaves_it(carrier: Carrier) -> None:
    run = carrier.proxy(served(policy(location={"expression": 'request.path.split("/")[1]'})))
    assert run.carry(get(target="/k-ann/x")).received.target == "/k-ann/x"
    assert run.carry(get(target="/k-bob/x")).answer.status == 401


def test_metadata_decide(carrier: Carrier) -> None:
    route = yamls.load(policy())
    route["policies"]["authorization"] = {"policy": {"matchExpressions": ['apiKey.group == "batch"']}}
    run = carrier.proxy(served(yamls.dump(route)))
    assert run.carry(get(bearer("k-batch"))).answer.status == 200
    assert run.carry(get(bearer("k-ann"))).answer.status == 403


def line_of(key: str) -> bytes:
    return f"Authorization: Bearer {key}\r\n".encode()


@pytest.mark.parametrize("credential", [b"Bearer ", b"Bearer  ", b"Bearer"])
def test_a_scheme_without_a_key_is_an_invalid_one(credential: bytes) -> None:
    x = exchange(headers=b"Authorization: " + credential + b"\r\n")
    answer = build({"a": b"k-ann"}).request(x)
    assert (answer.status, answer.reason) == (401, "ApiKeyInvalid")
    assert answer.headers == b'www-authenticate: Bearer error="invalid_token"\r\n' and x.attributes is None


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
        x = exchange(headers=line_of(key))
        assert step.request(x) is None
        assert x.attributes is not None and x.attributes["apiKey"].get("of") == of


@pytest.mark.parametrize(
    "entry",
    [b"", b" \n", b"{", b'{"key": 1}', b'{"key": ""}', b'{"key": "k", "metadata": 1}', b'{"key": "a", "key": "k"}'],
)
def test_an_entry_that_is_no_key_is_left_out_and_named(entry: bytes, caplog: pytest.LogCaptureFixture) -> None:
    step = build({"bad": entry, "good": b"k-good"})
    assert step.request(exchange(headers=line_of("k-good"))) is None
    for key in (entry.decode(), "k", "{"):
        assert step.request(exchange(headers=line_of(key))) is not None
    assert "entry bad is no API key" in caplog.text and (not entry.strip() or entry.decode() not in caplog.text)


def test_a_missing_secret_is_refused() -> None:
    config = authentication_pb2.ApiKeyAuthentication(secrets=["secret/default/a"])
    with pytest.raises(Refused, match="secret/default/a"):
        api_key_authentication.build(config, Env(clock=time.monotonic, random=lambda: 0.0))


def test_no_secret_means_no_key() -> None:
    assert build().request(exchange(headers=line_of("k"))).reason == "ApiKeyInvalid"


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


def test_the_example_of_the_page(root: Path, carrier: Carrier) -> None:
    run = carrier.proxy(served(example(root / "docs/policies/api_key_authentication.md").partition("backends:")[0]))
    for key, method, passes in (("k-123", "POST", True), ("k-456", "GET", True), ("k-456", "POST", False)):
        seen = run.carry(Request(method, headers=[("x-api-key", key)]))
        assert (seen.answer.status == 200) is passes


def test_a_key_in_the_query_is_taken_out_and_not_logged(carrier: Carrier) -> None:
    run = carrier.proxy(served(policy(location={"queryParameter": {"name": "key"}})))
    first = run.carry(get(target="/a%20b?x=%7e&key=k-ann&y"))
    assert (first.received.method, first.received.target) == ("GET", "/a%20b?x=%7e&y")
    second = run.carry(get(target="/?key=k-bob"))
    assert second.answer.status == 401
    assert "key=<redacted>&y" in first.line and "k-ann" not in first.line
    assert second.reason == "ApiKeyInvalid" and "k-bob" not in second.line


CORS = {"cors": {"allowOrigins": ["https://a.test"], "allowMethods": ["GET"]}}
EARLIER: dict[str, tuple[dict[str, Any], str, Pairs, int]] = {
    "preflight": (
        CORS,
        "OPTIONS",
        [("origin", "https://a.test"), ("access-control-request-method", "GET")],
        204,
    ),
    "csrf": ({"csrf": {}}, "POST", [("origin", "https://b.test")], 403),
    "another login": ({"basicAuthentication": {"users": [USER]}}, "GET", [], 401),
}


@pytest.mark.parametrize("case", EARLIER)
def test_a_key_of_a_request_that_another_step_answers_is_not_logged(case: str, carrier: Carrier) -> None:
    others, method, headers, status = EARLIER[case]
    route = yamls.load(policy(location={"queryParameter": {"name": "key"}}))
    route["policies"] |= others
    seen = carrier.proxy(text_of(yamls.dump(route))).carry(Request(method, "/?key=k-ann", headers))
    assert seen.answer.status == status
    assert "http.path=/?key=<redacted> " in seen.line and "k-ann" not in seen.line


def test_a_key_of_a_request_that_an_unusable_policy_refuses_is_not_logged() -> None:
    location = {"query_parameter": {"name": "key"}}
    own = authentication_pb2.ApiKeyAuthentication(secrets=["secret/default/a"], location=location)
    inline = policy_pb2.Policy(api_key_authentication=own, invalid="the Secret is not there")
    built = Interns(ROWS, Env(clock=time.monotonic, random=lambda: 0.0)).inline([inline], "route/httproute/default/r/0")
    x = exchange(query="key=k-ann&b")
    assert built.chain.request is not None and built.chain.request(x) is not None
    for hook in built.chain.end:
        hook(x)
    assert x.asked_target == b"/?key=<redacted>&b"
