"""What proxies refuse of single parts, and what is hardly meant: each row of `advice` at its edges."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from gatewright.api.advice.advice import KINDS_OF_HASHES, REFUSED, advice, refusals, warnings
from gatewright.api.advice.shared_secrets import weakness
from gatewright.api.backend.auth import BackendAuth
from gatewright.api.backend.mcp_targets import McpTarget
from gatewright.api.backend.providers import AzureConfig, AzureOpenAIConfig, LLMProvider, ProviderFormatConfig
from gatewright.api.frontend.telemetry import AccessLog
from gatewright.api.objects.gateway_backend import A2ABackend, StaticBackend
from gatewright.api.routes.http_filters import HTTPPathModifier
from gatewright.api.routes.http_route import HTTPHeaderMatch, HTTPPathMatch, HTTPQueryParamMatch
from gatewright.api.text.problem import path_text
from gatewright.api.traffic.authorization import Authorization
from gatewright.api.traffic.basic_authentication import BasicAuthentication
from gatewright.api.traffic.buffer import BufferedBody
from gatewright.api.traffic.direct_response import DirectResponse
from gatewright.api.traffic.ext_auth import AgentExtAuthHTTP, ExtAuthCache
from gatewright.api.traffic.extraction import CookieLocation, HeaderLocation
from gatewright.api.traffic.jwt_authentication import JWKS, RemoteJWKS
from gatewright.api.traffic.traffic import Traffic
from gatewright.api.traffic.transformation import RequestTransform, ResponseTransform


def said(model: type[BaseModel], **fields: Any) -> dict[str, str]:
    """Message by path. What is refused is an error, what is hardly meant a warning; the message says which it is."""
    value = model.model_validate(fields)
    found = [*advice(value)]
    assert [*refusals(value), *warnings(value)] == sorted(found, key=lambda each: each.severity != "error")
    for each in found:
        assert (each.severity == "error") is each.message.endswith(f": {REFUSED}")
    return {path_text(each.path): each.message.removesuffix(f": {REFUSED}") for each in found}


def header(name: str) -> dict[str, str]:
    return {"name": name, "value": "'1'"}


REQUEST_NAMES = "is none of :method, :path, :authority, :scheme"


@pytest.mark.parametrize(
    ("model", "names", "refused_set", "refused_more"),
    [
        (RequestTransform, [":method", ":PATH", ":authority", ":scheme"], "", "yes"),
        (RequestTransform, [":status", ":x"], REQUEST_NAMES, "yes"),
        (RequestTransform, ["host", "Host"], "", "yes"),
        (RequestTransform, ["x-host", "a"], "", ""),
        (ResponseTransform, [":status", ":STATUS"], "", "yes"),
        (ResponseTransform, [":path", ":x"], "is none of :status", "yes"),
        (ResponseTransform, ["host", "a"], "", ""),
    ],
)
def test_names_that_no_message_can_have(
    model: type[BaseModel], names: list[str], refused_set: str, refused_more: str
) -> None:
    for name in names:
        first = header("b")
        assert said(model, set=[first, header(name)]) == ({"set[1].name": refused_set} if refused_set else {})
        added = {"add[1].name": "can be set, not added"} if refused_more else {}
        assert said(model, add=[first, header(name)]) == added
        removed = {"remove[1]": "can be set, not removed"} if refused_more else {}
        assert said(model, remove=["b", name]) == removed


@pytest.mark.parametrize(("status", "is_sent"), [(200, True), (203, True), (204, False), (205, False), (206, True)])
def test_a_body_that_is_not_sent(status: int, is_sent: bool) -> None:
    message = f"is not sent: an answer with status {status} has no body"
    assert said(DirectResponse, status=status) == {}
    for field, text in (("body", "a"), ("bodyExpression", "'a'")):
        assert said(DirectResponse, status=status, **{field: text}) == ({} if is_sent else {field: message})
    assert said(DirectResponse, status=304, body="a") == {"body": message.replace(str(status), "304")}
    assert said(DirectResponse, status=305, body="a") == {}


@pytest.mark.parametrize(
    ("hashed", "is_known"),
    [
        *((f"{start}x", True) for start in ("$2a$", "$2b$", "$2y$", "$apr1$", "$1$", "$5$", "$6$", "{SHA}")),
        *(("x" * length, length == 13) for length in (1, 12, 13, 14)),
        ("$3$x", False),
        ("x$1$", False),
    ],
)
def test_hashes_of_users(hashed: str, is_known: bool) -> None:
    """The last user counts for nothing, as long as there is another."""
    alone = f"has no user with a hash of a known kind ({KINDS_OF_HASHES})"
    one = f"is no user with a hash of a known kind ({KINDS_OF_HASHES}): the proxy leaves it out"
    users = f"ann:{hashed}"
    assert said(BasicAuthentication, users=[users]) == ({} if is_known else {"users": alone})
    assert said(BasicAuthentication, users=["ben:$1$a", users]) == ({} if is_known else {"users[1]": one})
    assert said(BasicAuthentication, users=[users, users]) == ({} if is_known else {"users": alone})


@pytest.mark.parametrize("realm", ["a b", "é", "a\x80", "~"])
def test_realms(realm: str) -> None:
    assert said(BasicAuthentication, users=["a:$1$a"], realm=realm) == {}
    for control in "\x00\x1f\x7f\n":
        assert said(BasicAuthentication, users=["a:$1$a"], realm=realm + control) == {
            "realm": "has a control character"
        }


SECRET_KEY, PUBLIC_KEY = {"kty": "oct"}, {"kty": "RSA"}
NO_LIST = 'is no JSON object with a list "keys" of keys'
SECRETS = "has secret keys (oct) alone; HS256 takes sharedSecretRef in place of jwks"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("{a", NO_LIST),
        ("[" * 60_000, NO_LIST),
        (json.dumps([]), NO_LIST),
        (json.dumps({}), NO_LIST),
        (json.dumps({"keys": {}}), NO_LIST),
        (json.dumps({"keys": []}), NO_LIST),
        (json.dumps({"keys": [SECRET_KEY]}), SECRETS),
        (json.dumps({"keys": [SECRET_KEY, SECRET_KEY]}), SECRETS),
        (json.dumps({"keys": [SECRET_KEY, PUBLIC_KEY]}), ""),
        (json.dumps({"keys": [PUBLIC_KEY]}), ""),
        (json.dumps({"keys": [1]}), ""),
    ],
)
def test_sets_of_keys(keys: str, message: str) -> None:
    assert said(JWKS, inline=keys) == ({"inline": message} if message else {})


@pytest.mark.parametrize(
    ("path", "is_good"),
    [("a", True), ("/a/b?c=d", True), ("/a b", False), ("/é", False), ("/a#b", False), ("/a\t", False)],
)
def test_paths_of_keys(path: str, is_good: bool) -> None:
    reference = {"name": "s", "port": 1}
    found = said(RemoteJWKS, jwksPath=path, backendRef=reference)
    assert found == ({} if is_good else {"jwksPath": "is no path that can be asked for"})


REFUSES_IT = "the proxy refuses it"
NO_HOST = f"is no host name, and no IP address: {REFUSES_IT}"
NO_TARGET = f"must begin with / and have no space, # or character beyond ASCII: {REFUSES_IT}"


@pytest.mark.parametrize(
    ("model", "fields", "expected"),
    [
        (StaticBackend, {"host": "a.example", "port": 1}, {}),
        (StaticBackend, {"host": "a example", "port": 1}, {"host": NO_HOST}),
        (StaticBackend, {"unixPath": "/run/a"}, {}),
        (StaticBackend, {"unixPath": "run/a"}, {"unixPath": f"must begin with /: {REFUSES_IT}"}),
        (A2ABackend, {"host": "a..b", "port": 1}, {"host": NO_HOST}),
        (McpTarget, {"host": "::1", "port": 1, "path": "/mcp?a=b"}, {}),
        (
            McpTarget,
            {"host": "a\nb", "port": 1, "path": "/a b"},
            {"host": NO_HOST, "path": NO_TARGET},
        ),
        (LLMProvider, {"openai": {}, "host": "a.example", "pathPrefix": "/proxy/v1"}, {}),
        (
            LLMProvider,
            {"openai": {}, "host": "https://a.example"},
            {"host": f"is a URL, not a host name: {REFUSES_IT}"},
        ),
        (LLMProvider, {"openai": {}, "path": "chat"}, {"path": NO_TARGET}),
        (LLMProvider, {"openai": {}, "pathPrefix": "/a b"}, {"pathPrefix": NO_TARGET}),
        (ProviderFormatConfig, {"type": "Rerank", "path": "/a#b"}, {"path": NO_TARGET}),
        (AzureOpenAIConfig, {"endpoint": "https://own.openai.azure.com/"}, {}),
        (AzureOpenAIConfig, {"endpoint": "https://own.example:8443"}, {"endpoint": NO_HOST}),
        (AzureConfig, {"resourceName": "my resource", "resourceType": "OpenAI"}, {"resourceName": NO_HOST}),
        (CookieLocation, {"name": "__Host-key"}, {}),
        (CookieLocation, {"name": "a=b"}, {"name": f"is no name of a cookie: {REFUSES_IT}"}),
        (HeaderLocation, {"name": "x-key", "prefix": "Key "}, {}),
        (
            HeaderLocation,
            {"name": "x-key", "prefix": "a\r\nb"},
            {"prefix": f"has a control character, which no header has: {REFUSES_IT}"},
        ),
    ],
)
def test_what_nothing_can_be_called(model: type[BaseModel], fields: dict[str, Any], expected: dict[str, str]) -> None:
    found = refusals(model.model_validate(fields))
    assert {path_text(each.path): each.message for each in found} == expected


CALL_NAMES = "is none of :authority, :method, :path"


@pytest.mark.parametrize(
    ("name", "request_", "response", "added"),
    [
        ("x-a", "", "", ""),
        ("host", "", "is not the authorization server's to set", "is written :authority"),
        ("HOST", "", "is not the authorization server's to set", "is written :authority"),
        (":path", CALL_NAMES, CALL_NAMES, ""),
        (":x", CALL_NAMES, CALL_NAMES, CALL_NAMES),
        ("a b", "is no header name", "is no header name", "is no header name"),
        ("TE", *["belongs to the connection"] * 3),
        ("connection", *["belongs to the connection"] * 3),
    ],
)  # fmt: skip
def test_headers_of_authorization(name: str, request_: str, response: str, added: str) -> None:
    where = f"addRequestHeaders{path_text(('a', name))[1:]}"
    assert said(AgentExtAuthHTTP, allowedRequestHeaders=["b", name]) == (
        {"allowedRequestHeaders[1]": request_} if request_ else {}
    )
    assert said(AgentExtAuthHTTP, allowedResponseHeaders=["b", name]) == (
        {"allowedResponseHeaders[1]": response} if response else {}
    )
    assert said(AgentExtAuthHTTP, addRequestHeaders={"b": "'1'", name: "'1'"}) == ({where: added} if added else {})


@pytest.mark.parametrize(
    ("ttl", "is_odd"),
    [("60", True), ("999999999", True), ("1000000000", False), ("60s", False), ("request.size", False)],
)
def test_a_time_that_was_meant_as_a_duration(ttl: str, is_odd: bool) -> None:
    found = said(ExtAuthCache, key=["request.path"], ttl=ttl)
    message = f"is a time, {ttl} seconds after 1970, so nothing is kept: for a duration write {ttl}s"
    assert found == ({"ttl": message} if is_odd else {})


NO_SECRET = "is a key or certificate, no secret: public keys belong into jwks"


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        (b"s" * 32, ""),
        (b"s" * 31, "has 31 bytes, and HS256 needs 32 or more"),
        (b"s" * 31 + b"\n", "has 31 bytes, and HS256 needs 32 or more"),
        (b"s" * 32 + b"\r\n", ""),
        (b"\xff" * 31 + b"\n", ""),  # it is no text, so its last byte counts
        (b"", "has 0 bytes, and HS256 needs 32 or more"),
        (b"-----BEGIN PUBLIC KEY-----" + b"s" * 32, NO_SECRET),
        (b"  -----BEGIN X" + b"s" * 32, NO_SECRET),
        (json.dumps({"kty": "oct", "a": "s" * 32}).encode(), NO_SECRET),
        (json.dumps({"keys": [], "a": "s" * 32}).encode(), NO_SECRET),
        (json.dumps({"a": "s" * 32}).encode(), ""),
        (json.dumps(["kty", "keys", "s" * 32]).encode(), ""),
        (b"[" * 100_000, ""),
    ],
)  # fmt: skip
def test_shared_secrets(secret: bytes, why: str) -> None:
    assert weakness(secret) == why


@pytest.mark.parametrize(
    ("key", "is_odd"), [("Bearer a", True), ("bearer a", True), ("Bearer", False), ("a Bearer b", False), ("a", False)]
)
def test_a_prefix_that_is_written_twice(key: str, is_odd: bool) -> None:
    assert bool(said(BackendAuth, key=key)) is is_odd


@pytest.mark.parametrize(
    ("type_", "value", "part"),
    [
        ("PathPrefix", "/shop", ""),
        ("PathPrefix", "/shop/*", "leave it out, a prefix takes all below it"),
        ("Exact", "/shop*", "write type: PathPrefix"),
        ("Exact", "/*shop", ""),
        ("RegularExpression", "/shop/.*", ""),
        ("RegularExpression", "/shop*", ""),
        ("RegularExpression", "^/shop", ""),
        ("RegularExpression", "^shop", "fits no path"),
        ("RegularExpression", "shop", "fits no path"),
        ("RegularExpression", "~ /shop", "fits no path"),
        ("RegularExpression", "(/a|/b)", ""),
    ],
)
def test_paths_as_other_proxies_write_them(type_: str, value: str, part: str) -> None:
    found = said(HTTPPathMatch, type=type_, value=value)
    assert (list(found), part in found.get("value", "")) == (["value"] if part else [], True)


@pytest.mark.parametrize("model", [HTTPHeaderMatch, HTTPQueryParamMatch])
@pytest.mark.parametrize(
    ("type_", "value", "is_odd"),
    [
        ("RegularExpression", "/a/", True),
        ("RegularExpression", "/a/i", True),
        ("RegularExpression", "/a", False),
        ("RegularExpression", "//", False),
        ("RegularExpression", "a/b/", False),
        ("Exact", "/a/", False),
    ],
)
def test_slashes_around_an_expression(model: type[BaseModel], type_: str, value: str, is_odd: bool) -> None:
    assert [*said(model, name="a", type=type_, value=value)] == ["value"] * is_odd


@pytest.mark.parametrize(
    ("text", "group"),
    [("/$1", "$1"), ("/${2}", "${2}"), ("/$a", ""), ("/$", ""), ("/1", ""), ("/{1}", "")],
)
def test_groups_that_a_path_has_not(text: str, group: str) -> None:
    for type_, field in (("ReplaceFullPath", "replaceFullPath"), ("ReplacePrefixMatch", "replacePrefixMatch")):
        found = said(HTTPPathModifier, type=type_, **{field: text})
        assert [*found] == [field] * bool(group)
        assert found.get(field, f'"{group}" refers').startswith(f'"{group}" refers')


@pytest.mark.parametrize(("size", "cure"), [("10m", "write 10Mi or 10M"), ("10M", ""), ("10Mi", ""), (10, "")])
def test_thousandths_of_a_byte(size: str | int, cure: str) -> None:
    found = said(BufferedBody, maxBytes=size)
    assert found == ({"maxBytes": f"is 10 thousandths of a byte: {cure}"} if cure else {})


@pytest.mark.parametrize(
    ("action", "effect"),
    [("Deny", "this Deny never matches"), ("Require", "this Require refuses every request"), ("Allow", "")],
)
def test_what_a_rule_does_that_reads_what_has_no_value(action: str, effect: str) -> None:
    for name in ("mcp.tool.name", "llm.provider"):
        rule = {"action": action, "policy": {"matchExpressions": ["true", f"{name} == 'a'"]}}
        found = said(Authorization, **rule)
        assert [(path, message.endswith(effect)) for path, message in found.items()] == (
            [("policy.matchExpressions[1]", True)] if effect else []
        )
    rule = {"action": action, "policy": {"matchExpressions": ["true", "a2a.method == 'a'"]}}
    for phase in ("PreRouting", "PostRouting"):
        found = said(Traffic, phase=phase, authorization=rule)
        told_of = bool(effect) and phase == "PreRouting"
        assert [(path, message.endswith(effect)) for path, message in found.items()] == (
            [("authorization.policy.matchExpressions[1]", True)] if told_of else []
        )


@pytest.mark.parametrize(("name", "is_good"), [("x-key", True), ("host", False), ("Host", False), ("TE", False)])
def test_a_header_that_cannot_be_taken_out(name: str, is_good: bool) -> None:
    assert said(HeaderLocation, name=name) == ({} if is_good else {"name": "cannot be taken out of a request"})


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (["a", "b"], {}),
        (["a", "b", "a"], {2: "stands there twice"}),
        (["level", "x", "time", "scope"], dict.fromkeys((0, 2, 3), "is what each line has already")),
        (["a b", 'a"', "a=b", "a\\b", "a.b"], dict.fromkeys(range(4), "has a space, quote,")),
    ],
)
def test_names_in_the_log(names: list[str], wrong: dict[int, str]) -> None:
    found = said(AccessLog, attributes={"add": [{"name": name, "expression": "'1'"} for name in names]})
    assert list(found) == [f"attributes.add[{place}].name" for place in wrong]
    assert all(message.startswith(why) for message, why in zip(found.values(), wrong.values(), strict=True))
