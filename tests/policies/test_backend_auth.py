"""Credentials toward backends: what is written, where, into which tries; and that nothing goes without."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from dataplane.table.store import RESOURCE_TYPE, Change
from dataplane.upstream.versions import HTTP2
from gatewright.api.standalone import standalone
from tests.fakes.h2_upstream import Endpoint2
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
from tests.fakes.tokens import Issuer

ROUTES = """
binds:
- port: 8080
  listeners:
  - name: http
    protocol: HTTP
    routes:
    - name: all
      policies: POLICIES
      backends: [BACKEND]
"""
ONE = "{host: '127.0.0.1:9000'}"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"
ANN = Issuer()
TOKEN = ANN.token(aud=None)
JWT = f"jwtAuthentication: {{providers: [{{issuer: '{ANN.issuer}', jwks: {{inline: '{ANN.key_set()}'}}}}]}}"
API_KEY = "apiKeyAuthentication: {secretRef: {one: {value: its-key}}}"
HASH = "{SHA}" + base64.b64encode(hashlib.sha1(b"pass", usedforsecurity=False).digest()).decode()
BASIC = f"basicAuthentication: {{users: ['ann:{HASH}']}}"
ANN_PASS = base64.b64encode(b"ann:pass").decode()


def run(policies: str = "{}", backend: str = ONE, environment: Mapping[str, str] = MappingProxyType({})) -> MemoryProxy:
    return MemoryProxy(ROUTES.replace("POLICIES", policies).replace("BACKEND", backend), environment=environment)


def asked(
    proxy: MemoryProxy, *lines: str, target: str = "/a?b=1", method: str = "GET", body: bytes = b""
) -> FakeTransport:
    client = proxy.connect()
    length = [f"content-length: {len(body)}"] if body else []
    head = "\r\n".join([f"{method} {target} HTTP/1.1", "host: shop.example", *lines, *length, "", ""])
    client.send(head.encode() + body)
    return client


def sent(proxy: MemoryProxy) -> dict[str, Any]:
    """What the newest connection got: target, and headers by name."""
    first, *lines = proxy.connector.upstream.received.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        headers.setdefault(name.lower(), []).append(value)
    return {"target": first.split(" ")[1], **{name: ", ".join(values) for name, values in headers.items()}}


KEY = "key: the-key"
SECRET = "secretRef: {value: the-key}"


@pytest.mark.parametrize("credential", [KEY, SECRET])
@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("", {"authorization": "Bearer the-key", "target": "/a?b=1"}),
        ("header: {name: Authorization}", {"authorization": "the-key"}),
        ("header: {name: Authorization, prefix: Token}", {"authorization": "Token the-key"}),
        ("header: {name: Authorization, prefix: 'key='}", {"authorization": "key=the-key"}),
        ("header: {name: X-Api-Key}", {"x-api-key": "the-key", "authorization": "mine"}),
        ("queryParameter: {name: key}", {"target": "/a?b=1&key=the-key", "authorization": "mine"}),
        ("cookie: {name: sid}", {"cookie": "a=1; sid=the-key", "authorization": "mine"}),
    ],
)
def test_a_key_is_written_where_its_location_says(credential: str, location: str, wanted: dict[str, str]) -> None:
    proxy = run(f"{{auth: {{{credential}{location and f', location: {{{location}}}'}}}}}")
    asked(proxy, "authorization: mine", "cookie: a=1")
    found = sent(proxy)
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("location", "target", "lines", "wanted"),
    [
        ("", "/", ["authorization: mine", "Authorization: other"], {"authorization": "Bearer the-key"}),
        ("queryParameter: {name: key}", "/?key=mine&a=1", [], {"target": "/?a=1&key=the-key"}),
        ("queryParameter: {name: key}", "/?%6Bey=mine", [], {"target": "/?key=the-key"}),
        ("queryParameter: {name: key}", "/?a=1&key=x&key=y", [], {"target": "/?a=1&key=the-key"}),
        ("queryParameter: {name: key}", "/?monkey=1", [], {"target": "/?monkey=1&key=the-key"}),
        ("queryParameter: {name: key}", "/", [], {"target": "/?key=the-key"}),
        ("queryParameter: {name: 'a b'}", "/", [], {"target": "/?a%20b=the-key"}),
        ("cookie: {name: sid}", "/", ["cookie: sid=mine; b=2"], {"cookie": "b=2; sid=the-key"}),
        ("cookie: {name: sid}", "/", ["cookie: b=2", "cookie: sid=mine"], {"cookie": "b=2; sid=the-key"}),
        ("cookie: {name: sid}", "/", ["cookie: sid=mine"], {"cookie": "sid=the-key"}),
        ("cookie: {name: sid}", "/", [], {"cookie": "sid=the-key"}),
        ("cookie: {name: sid}", "/", ["cookie: SID=2"], {"cookie": "SID=2; sid=the-key"}),
    ],
)
def test_nothing_of_a_client_passes_for_the_key(
    location: str, target: str, lines: list[str], wanted: dict[str, str]
) -> None:
    proxy = run(f"{{auth: {{{KEY}{location and f', location: {{{location}}}'}}}}}")
    asked(proxy, *lines, target=target)
    found = sent(proxy)
    assert {name: found.get(name) for name in wanted} == wanted
    assert "mine" not in proxy.connector.upstream.received.decode()


def test_a_header_that_a_backend_may_read_as_the_same_is_replaced_too() -> None:
    """`x_api_key` and `x-api-key` are one for WSGI, CGI and PHP."""
    text = ROUTES.replace("POLICIES", f"{{auth: {{{KEY}, location: {{header: {{name: X-Api-Key}}}}}}}}")
    kept = "    protocol: HTTP\n    http: {headerUnderscores: Keep}\n"
    proxy = MemoryProxy(text.replace("BACKEND", ONE).replace("    protocol: HTTP\n", kept))
    asked(proxy, "x_api_key: mine", "other_one: kept")
    found = proxy.connector.upstream.received
    assert b"mine" not in found and b"other_one: kept" in found and b"X-Api-Key: the-key" in found


# --- the client's own


PASS = "auth: {passthrough: {}}"


@pytest.mark.parametrize(
    ("policy", "lines", "wanted"),
    [
        (JWT, [f"authorization: Bearer {TOKEN}"], f"Bearer {TOKEN}"),
        (API_KEY, ["authorization: Bearer its-key"], "Bearer its-key"),
        (BASIC, [f"authorization: Basic {ANN_PASS}"], f"Basic {ANN_PASS}"),
        (BASIC, [f"authorization: bAsIc {ANN_PASS}"], f"Basic {ANN_PASS}"),
        (f"{API_KEY[:-1]}, location: {{header: {{name: x-key}}}}}}", ["x-key: its-key"], "Bearer its-key"),
        ("csrf: {}", ["authorization: mine"], "mine"),
        ("csrf: {}", [], None),
        (f"{API_KEY[:-1]}, mode: Optional}}", [], None),
        (f"{API_KEY[:-1]}, mode: Permissive}}", ["authorization: Bearer wrong"], "Bearer wrong"),
    ],
)
def test_passthrough_puts_back_what_a_policy_took_out(policy: str, lines: list[str], wanted: str | None) -> None:
    proxy = run(f"{{{policy}, {PASS}}}")
    client = asked(proxy, *lines)
    assert sent(proxy).get("authorization") == wanted
    proxy.connector.upstream.answer(OK)
    assert client.received.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("header: {name: X-Token, prefix: JWT}", {"x-token": f"JWT {TOKEN}", "authorization": None}),
        ("queryParameter: {name: t}", {"target": f"/a?b=1&t={TOKEN}"}),
        ("cookie: {name: t}", {"cookie": f"t={TOKEN}"}),
    ],
)
def test_passthrough_writes_where_its_location_says(location: str, wanted: dict[str, str | None]) -> None:
    proxy = run(f"{{{JWT}, auth: {{passthrough: {{}}, location: {{{location}}}}}}}")
    asked(proxy, f"authorization: Bearer {TOKEN}")
    found = sent(proxy)
    assert {name: found.get(name) for name in wanted} == wanted


def test_without_passthrough_nothing_of_it_goes_up() -> None:
    proxy = run(f"{{{JWT}}}")
    asked(proxy, f"authorization: Bearer {TOKEN}")
    assert TOKEN not in proxy.connector.upstream.received.decode()


def test_a_credential_that_cannot_stand_in_a_cookie_is_not_sent() -> None:
    policy = "apiKeyAuthentication: {secretRef: {one: {value: 'a;b'}}}"
    proxy = run(f"{{{policy}, auth: {{passthrough: {{}}, location: {{cookie: {{name: sid}}}}}}}}")
    client = asked(proxy, "authorization: Bearer a;b")
    assert proxy.connector.upstreams == []
    assert client.received.startswith(b"HTTP/1.1 500") and b"backend authentication failed" in client.received
    assert "reason=BackendAuthenticationFailed" in proxy.log_lines()[-1]


# --- tries, mirrors, levels


def test_each_try_has_it() -> None:
    proxy = run(f"{{auth: {{{KEY}}}, retry: {{attempts: 1, codes: [503], backoff: 100ms}}}}")
    client = asked(proxy)
    assert sent(proxy)["authorization"] == "Bearer the-key"
    proxy.connector.upstream.answer(BUSY)
    proxy.advance(1.0)
    assert proxy.connector.upstream.received.count(b"authorization: Bearer the-key") in (1, 2)
    proxy.connector.upstream.answer(OK)
    assert client.received.startswith(b"HTTP/1.1 200")


def test_a_mirror_has_its_own_credential() -> None:
    mirror = "requestMirror: {host: '127.0.0.1:9001', policies: {auth: {key: for-mirrors}}}"
    proxy = run(f"{{auth: {{{KEY}}}, {mirror}}}")
    asked(proxy)
    found = sorted(re.findall(r"authorization: (.*)\r", each.received.decode()) for each in proxy.connector.upstreams)
    assert found == [["Bearer for-mirrors"], ["Bearer the-key"]]


def test_passthrough_is_for_a_mirror_too() -> None:
    mirror = "requestMirror: {host: '127.0.0.1:9001', policies: {auth: {passthrough: {}}}}"
    proxy = run(f"{{{JWT}, {mirror}}}")
    asked(proxy, f"authorization: Bearer {TOKEN}")
    found = sorted(re.findall(r"authorization: (.*)\r", each.received.decode()) for each in proxy.connector.upstreams)
    assert found == [[], [f"Bearer {TOKEN}"]]


def test_what_is_written_at_the_backend_wins_over_the_route() -> None:
    proxy = run(f"{{auth: {{{KEY}}}}}", "{host: '127.0.0.1:9000', policies: {auth: {key: nearer}}}")
    asked(proxy)
    assert sent(proxy)["authorization"] == "Bearer nearer"


def test_one_host_with_two_credentials_has_each_where_it_is_written() -> None:
    backends = [f"{{host: '127.0.0.1:9000', policies: {{auth: {{key: {key}}}}}}}" for key in ("first", "second")]
    routes = ROUTES.replace("POLICIES", "{}").replace("BACKEND", backends[0])
    routes += f"""    - name: other
      matches: [{{path: {{type: Exact, value: /other}}}}]
      backends: [{backends[1]}]
"""
    proxy = MemoryProxy(routes)
    for target, key in (("/", "first"), ("/other", "second"), ("/", "first")):
        asked(proxy, target=target)
        assert sent(proxy)["authorization"] == f"Bearer {key}"


# --- what cannot be


class Lenient(MemoryProxy):
    """What its configuration refuses is refused."""

    def load(self, text: str) -> None:
        loaded = standalone.load(text, "config.yaml")
        changes = [Change(RESOURCE_TYPE, each.key, each.SerializeToString()) for each in loaded.resources]
        for _ in self.applier.apply(changes):
            pass


@pytest.mark.parametrize(
    "auth",
    [
        "{key: ''}",
        '{key: "a\\tb\\u200b"}',
        '{secretRef: {value: "two\\nlines"}}',
        "{key: k, location: {header: {name: Host}}}",
        "{key: k, location: {header: {name: Content-Length}}}",
        "{key: k, location: {header: {name: Cookie}}}",
        "{key: 'a;b', location: {cookie: {name: sid}}}",
        "{key: k, location: {cookie: {name: 'a b'}}}",
        "{gcp: {secretRef: {value: '{}'}}}",
    ],
)
def test_one_that_cannot_be_built_refuses_what_it_covers(auth: str) -> None:
    proxy = Lenient(ROUTES.replace("POLICIES", f"{{auth: {auth}}}").replace("BACKEND", ONE))
    (why,) = proxy.applier.outcome.refused.values()
    assert "backend_auth" in why and "its-secret" not in why
    client = asked(proxy, "authorization: mine")
    assert proxy.connector.upstreams == [] and client.received.startswith(b"HTTP/1.1 500")
    assert b"backend authentication failed" in client.received
    assert "reason=BackendAuthenticationFailed" in proxy.log_lines()[-1]


def test_a_plain_request_has_no_finisher() -> None:
    proxy = run("{}")
    assert all(plan.finishers is None for plan in proxy.applier.current.table.backends.values())


# --- clouds

AWS_SECRET = "secretRef: {accessKey: {value: AKIDEXAMPLE}, secretKey: {value: its-secret}}"
SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/(\S+)/(\S+)/aws4_request, "
    r"SignedHeaders=(\S+), Signature=[0-9a-f]{64}"
)


def test_a_request_is_signed_for_aws() -> None:
    proxy = run(
        f"{{auth: {{aws: {{{AWS_SECRET}, serviceName: execute-api}}}}}}", environment={"AWS_REGION": "eu-west-1"}
    )
    asked(proxy, "authorization: mine", "x-amz-target: Do", "x-amz-date: yesterday", method="POST", body=b"content")
    found = sent(proxy)
    match = SIGNATURE.fullmatch(found["authorization"])
    assert match is not None and match.groups() == ("eu-west-1", "execute-api", "host;x-amz-date;x-amz-target")
    assert found["x-amz-date"] == "19700101T001640Z"
    assert proxy.connector.upstream.received.endswith(b"content")


def test_content_of_s3_passes_without_a_digest_over_tls_alone() -> None:
    aws = f"{{auth: {{aws: {{{AWS_SECRET}, serviceName: s3}}}}}}"
    proxy = run(aws, environment={"AWS_REGION": "eu-west-1"})
    asked(proxy, method="PUT", body=b"content")
    digest = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    assert sent(proxy)["x-amz-content-sha256"] == digest
    own = f"{{host: 's3.eu-west-1.amazonaws.com:443', policies: {{tls: {{}}, auth: {{aws: {{{AWS_SECRET}}}}}}}}}"
    (plan,) = run(backend=own).applier.current.table.backends.values()
    assert plan.finishers is not None and [each.needs_body for each in plan.finishers] == [False]


def test_a_session_token_is_sent_and_signed() -> None:
    secret = AWS_SECRET.replace("}}", "}, sessionToken: {value: its-token}}")
    proxy = run(f"{{auth: {{aws: {{{secret}, serviceName: lambda}}}}}}", environment={"AWS_REGION": "us-east-1"})
    asked(proxy)
    found = sent(proxy)
    assert found["x-amz-security-token"] == "its-token"
    assert "x-amz-security-token" in found["authorization"]


@pytest.mark.parametrize(
    ("aws", "environment", "why"),
    [
        (AWS_SECRET, {"AWS_REGION": "eu-west-1"}, "aws.serviceName is not set"),
        (f"{AWS_SECRET}, serviceName: s3", {}, "no region of AWS"),
        ("serviceName: s3", {"AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true"}, "credentials of AWS"),
    ],
)
def test_what_cannot_be_signed_is_not_sent(aws: str, environment: dict[str, str], why: str) -> None:
    proxy = run(f"{{auth: {{aws: {{{aws}}}}}}}", environment=environment)
    client = asked(proxy)
    assert proxy.connector.upstreams == []
    assert client.received.startswith(b"HTTP/1.1 500") and b"backend authentication failed" in client.received
    assert why in proxy.log_lines()[-1] and "its-secret" not in proxy.log_lines()[-1]


CLIENT = "secretRef: {clientID: {value: c}, tenantID: {value: t}, clientSecret: {value: its-secret}}"
THERE = {"AZURE_AUTHORITY_HOST": "http://127.0.0.1:9100"}


def answer_of(members: dict[str, Any]) -> bytes:
    body = json.dumps(members).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def test_a_token_is_fetched_once_for_all_who_wait_and_then_known() -> None:
    proxy = run(f"{{auth: {{azure: {{{CLIENT}}}}}}}", environment=THERE)
    clients = [asked(proxy), asked(proxy)]
    (server,) = proxy.connector.upstreams
    assert server.received.startswith(b"POST /t/oauth2/v2.0/token HTTP/1.1\r\nhost: 127.0.0.1:9100\r\n")
    assert b"client_secret=its-secret" in server.received
    server.answer(answer_of({"access_token": "fresh", "expires_in": 3600}))
    backends = proxy.connector.upstreams[1:]
    assert [b"authorization: Bearer fresh" in each.received for each in backends] == [True, True]
    for each in backends:
        each.answer(OK)
    assert all(client.received.startswith(b"HTTP/1.1 200") for client in clients)
    asked(proxy)
    assert proxy.connector.upstream.received.count(b"Bearer fresh") >= 1
    assert server.received.count(b"POST") == 1


def test_a_token_is_renewed_ahead_of_its_end_and_nobody_waits() -> None:
    proxy = run(f"{{auth: {{azure: {{{CLIENT}}}}}}}", environment=THERE)
    asked(proxy)
    server = proxy.connector.upstreams[0]
    server.answer(answer_of({"access_token": "first", "expires_in": 3600}))
    proxy.connector.upstream.answer(OK)
    proxy.now += 3400
    asked(proxy)
    news = [each for each in proxy.connector.upstreams if each.received.count(b"POST") and each.open]
    assert any(b"Bearer first" in each.take() for each in proxy.connector.upstreams[1:]), "it did not wait"
    news[-1].answer(answer_of({"access_token": "second", "expires_in": 3600}))
    asked(proxy)
    assert any(b"Bearer second" in each.take() for each in proxy.connector.upstreams[1:])


def test_a_swap_keeps_the_token() -> None:
    text = ROUTES.replace("POLICIES", f"{{auth: {{azure: {{{CLIENT}}}}}}}").replace("BACKEND", ONE)
    proxy = MemoryProxy(text, environment=THERE)
    asked(proxy)
    server = proxy.connector.upstreams[0]
    server.answer(answer_of({"access_token": "first", "expires_in": 3600}))
    proxy.load(text.replace("name: all", "name: renamed"))
    asked(proxy)
    assert server.received.count(b"POST") == 1 and len([e for e in proxy.connector.upstreams if e is not server]) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 401 No\r\ncontent-length: 29\r\n\r\n{"error": "invalid_client"   }',
        b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ngarbage",
        answer_of({"access_token": "a\r\nb", "expires_in": 3600}),
        answer_of({"access_token": "", "expires_in": 3600}),
        answer_of({"access_token": 1, "expires_in": 3600}),
        answer_of({"access_token": "ended", "expires_in": 0}),
        answer_of({"access_token": "ended", "expires_in": -5}),
        answer_of({"token": "other"}),
        b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n",
        b"nonsense\r\n\r\n",
    ],
)
def test_a_server_of_tokens_that_fails_fails_the_request(answer: bytes) -> None:
    proxy = run(f"{{auth: {{azure: {{{CLIENT}}}}}}}", environment=THERE)
    client = asked(proxy)
    proxy.connector.upstream.answer(answer)
    assert len(proxy.connector.upstreams) == 1, "nothing was sent to the backend"
    assert client.received.startswith(b"HTTP/1.1 500") and b"backend authentication failed" in client.received
    line = proxy.log_lines()[-1]
    assert "reason=BackendAuthenticationFailed" in line and "its-secret" not in line
    again = asked(proxy)
    assert again.received.startswith(b"HTTP/1.1 500"), "at once, without asking again"
    assert len(proxy.connector.upstreams) == 1


def test_a_server_of_tokens_that_hangs_costs_its_five_seconds() -> None:
    proxy = run(f"{{auth: {{azure: {{{CLIENT}}}}}}}", environment=THERE)
    client = asked(proxy)
    proxy.advance(4.9)
    assert client.received == b""
    proxy.advance(0.2)
    assert client.received.startswith(b"HTTP/1.1 500")


def test_a_server_of_tokens_that_refuses_connections() -> None:
    proxy = run(f"{{auth: {{azure: {{{CLIENT}}}}}}}", environment=THERE)
    proxy.connector.refuse = "connection refused"
    client = asked(proxy)
    assert client.received.startswith(b"HTTP/1.1 500") and "connection refused" in proxy.log_lines()[-1]


def test_text_of_grpc_web_is_not_signed() -> None:
    """An endpoint of gRPC gets it decoded: the signature would be that of other content."""
    proxy = run(f"{{auth: {{aws: {{{AWS_SECRET}, serviceName: s3}}}}}}", environment={"AWS_REGION": "eu-west-1"})
    client = asked(proxy, "content-type: application/grpc-web-text", method="POST", body=b"AAAAAAA=")
    assert proxy.connector.upstreams == [] and b"backend authentication failed" in client.received
    assert "cannot be signed" in proxy.log_lines()[-1]


# --- what is in no table of HPACK


@pytest.mark.parametrize(
    ("auth", "name"),
    [
        ("key: the-key, location: {header: {name: X-Api-Token}}", b"x-api-token"),
        ("secretRef: {value: the-key}, location: {header: {name: x-own, prefix: Token}}", b"x-own"),
        (
            "aws: {serviceName: execute-api, secretRef: {accessKey: {value: A}, secretKey: {value: S}, sessionToken:"
            " {value: T}}}",
            b"x-amz-security-token",
        ),
    ],
)
@pytest.mark.parametrize("sender", ["request", "mirror", "extAuthz"])
def test_a_header_with_a_credential_is_in_no_table_of_the_next_hop(auth: str, name: bytes, sender: str) -> None:
    """RFC 7541 7.1.3: who shares the connection could find it out. `authorization` and its like never are."""
    policies = f"{{auth: {{{auth}}}}}"
    called = f"{{host: '127.0.0.1:9001', policies: {policies}PROTOCOL}}"
    proxy = MemoryProxy(
        ROUTES.replace(
            "POLICIES",
            {
                "request": policies,
                "mirror": f"{{requestMirror: {called.replace('PROTOCOL', '')}}}",
                "extAuthz": f"{{extAuthz: {called.replace('PROTOCOL', ', protocol: {http: {}}')}}}",
            }[sender],
        ).replace("BACKEND", ONE),
        spoken=HTTP2,
        environment={"AWS_REGION": "eu-west-1"},
    )
    asked(proxy, "x-plain: 1")
    found = [Endpoint2(each).requests[0].head for each in proxy.connector.upstreams]
    (head,) = [each for each in found if b"\r\n" + name + b":" in each.low]
    assert name in head.never_indexed and b"x-plain" not in head.never_indexed
