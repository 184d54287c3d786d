"""Servers that give credentials toward clouds, and what becomes of a request when one of them is not there, refuses,
is slow, or says what makes no sense: one row for each kind of server, one column for each fault. Nothing is sent to the
backend, the client waits five seconds at most, and the next good answer heals it. Good answers: see also
`unit/upstream/test_credential_sources`, and `loopback/test_cloud_peers` for servers that others have made."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dataplane.upstream.auth.asking import MAX_ANSWER, SECONDS
from dataplane.upstream.auth.tokens import LONGEST
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy
from tests.policies.test_backend_auth import OK, asked, run

SERVER: Final = "http://127.0.0.1:9100"
HUSH: Final = "hush-hush-hush"
"""Stands in all answers: nothing of one is repeated."""
PEM: Final = (
    rsa.generate_private_key(65537, 2048)
    .private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    .decode()
)
ACCOUNT: Final = json.dumps(
    {"type": "service_account", "client_email": "a@b", "private_key": PEM, "token_uri": f"{SERVER}/token"}
)
ROLE: Final = "assumeRole: {roleArn: 'arn:aws:iam::123456789012:role/r'}"
NOW: Final = 1000.0
"""The clock of `MemoryProxy` when a test begins."""

Lives = Callable[[Any], bytes]
"""A good answer but for its life: seconds, or what stands in their place."""


def http(body: bytes, status: str = "200 OK", *lines: str) -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", "Metadata-Flavor: Google", f"Content-Length: {len(body)}", *lines])
    return head.encode() + b"\r\n\r\n" + body


def json_of(**members: Any) -> bytes:
    return http(json.dumps(members).encode())


def moment(life: Any) -> Any:
    """As AWS writes it."""
    if not isinstance(life, int) or abs(life) > 2**33 or NOW + life < 0:
        return life if isinstance(life, str) else str(life)
    return datetime.fromtimestamp(NOW + life, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def keys(life: Any) -> bytes:
    return json_of(AccessKeyId="AKID", SecretAccessKey=HUSH, Token=HUSH, Expiration=moment(life))


def session(life: Any) -> bytes:
    names = {"AccessKeyId": "AKID", "SecretAccessKey": HUSH, "SessionToken": HUSH, "Expiration": moment(life)}
    return http("".join(f"<{name}>{value}</{name}>" for name, value in names.items()).encode())


def access(life: Any) -> bytes:
    return json_of(access_token=HUSH, expires_in=life)


def identity(life: Any) -> bytes:
    ends = NOW + life if isinstance(life, int) and abs(life) < 2**33 else life
    claims = base64.urlsafe_b64encode(json.dumps({"exp": ends}).encode()).decode().rstrip("=")
    return json_of(id_token=f"e30.{claims}.{HUSH}")


class Server(NamedTuple):
    auth: str
    environment: Mapping[str, str]
    lives: Lives
    before: tuple[bytes, ...] = ()
    """Good answers to what is asked first."""


ENTRA = "azure: {secretRef: {clientID: {value: c}, tenantID: {value: t}, clientSecret: {value: HUSH}}}".replace(
    "HUSH", HUSH
)
GOOGLE = "gcp: {TYPE, secretRef: {value: ACCOUNT}}".replace("ACCOUNT", json.dumps(ACCOUNT))
SERVERS: Final = {
    "AWS role": Server(
        f"aws: {{{ROLE}, serviceName: s3}}",
        {"AWS_ENDPOINT_URL_STS": SERVER, "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": HUSH},
        session,
    ),
    "AWS container": Server("aws: {serviceName: s3}", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{SERVER}/creds"}, keys),
    "AWS instance": Server(
        "aws: {serviceName: s3}",
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT": SERVER},
        keys,
        (http(b"its-token"), http(b"the-role\n")),
    ),
    "Azure client": Server(ENTRA, {"AZURE_AUTHORITY_HOST": SERVER}, access),
    "Azure identity": Server(
        "azure: {managedIdentity: {clientId: c, objectId: '', resourceId: ''}}",
        {"AZURE_POD_IDENTITY_AUTHORITY_HOST": SERVER},
        access,
    ),
    "Azure of App Service": Server(
        "azure: {managedIdentity: {clientId: c, objectId: '', resourceId: ''}}",
        {"IDENTITY_ENDPOINT": f"{SERVER}/msi", "IDENTITY_HEADER": HUSH},
        lambda life: json_of(access_token=HUSH, expires_on=str(NOW + life) if life == 3600 else life),
    ),
    "Google account": Server(GOOGLE.replace("TYPE", "type: AccessToken"), {}, access),
    "Google account, ID token": Server(GOOGLE.replace("TYPE", "type: IdToken, audience: a"), {}, identity),
    "Google metadata": Server("gcp: {}", {"GCE_METADATA_HOST": "127.0.0.1:9100"}, access),
}
LIVES: Final = {
    "ended": 0,
    "ended long ago": -(10**6),
    "ends in no number": float("nan"),
    "ended at minus infinity": float("-inf"),
    "a life with too many digits": 10**400,
    "a life as too large a text": "-1e999",
}
ANSWERS: Final = {
    "unauthorized": http(json.dumps({"error": HUSH, "error_description": HUSH}).encode(), "401 No"),
    "its own fault": http(HUSH.encode(), "500 Broken"),
    "nothing": http(b"", "204 Nothing").replace(b"Content-Length: 0\r\n", b""),
    "elsewhere": http(b"", "302 Found", "Location: http://127.0.0.1:9666/"),
    "no JSON": http(HUSH.encode()),
    "a page": http(f"<html>{HUSH}</html>".encode(), "200 OK", "Content-Type: text/html"),
    "a list": http(json.dumps([HUSH]).encode()),
    "nested": http(b"[" * 60_000),
    "not UTF-8": http(b'{"access_token": "\xff\xfe"}'),
    "empty": http(b""),
    "another thing": json_of(other=HUSH),
    "null": json_of(access_token=None, id_token=None, AccessKeyId=None, expires_in=None),
    "no text": json_of(access_token=[HUSH], id_token={"a": HUSH}, AccessKeyId=7, expires_in=9),
    "a line in it": json_of(access_token=f"a\r\nx: {HUSH}", id_token="a.b\r\n.c", AccessKeyId="a\nb", expires_in=9),
    "too long": http(b"").replace(b"Content-Length: 0", b"Content-Length: %d" % (MAX_ANSWER + 1)),
    "too long in chunks": http(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    + b"20000\r\n" + b"x" * 0x20000 + b"\r\n",
    "no HTTP": b"\x16\x03\x01\x00\xff\r\n\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
    "a date that is none": json_of(other=1).replace(
        b"Metadata", b"Date: Mon, 01 Jan 99999999999999999999 00:00:00 GMT\r\nMetadata"
    ),
}  # fmt: skip
each_server = pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)


def waiting(server: Server) -> tuple[MemoryProxy, FakeTransport]:
    """A proxy, and a client whose request waits for the server's last answer."""
    proxy = run(f"{{auth: {{{server.auth}}}}}", environment={"AWS_REGION": "eu-west-1", **server.environment})
    client = asked(proxy)
    for good in server.before:
        proxy.connector.upstream.send(good)
    assert client.received == b"" and len(proxy.connector.upstreams) == 1
    return proxy, client


def refused(proxy: MemoryProxy, client: FakeTransport) -> None:
    """The request has failed with the reason, and nothing went to the backend."""
    assert client.received.startswith(b"HTTP/1.1 500") and b"backend authentication failed" in client.received
    line = proxy.log_lines()[-1]
    assert "reason=BackendAuthenticationFailed" in line and HUSH not in line and "internal error" not in line
    assert all(b"/a?b=1" not in each.received for each in proxy.connector.upstreams)


def heals(proxy: MemoryProxy, server: Server) -> None:
    """A second later the server is asked again, and answers."""
    proxy.advance(1.0)
    client = asked(proxy)
    for good in (*server.before, server.lives(3600)):
        proxy.connector.upstream.send(good)
    backend = proxy.connector.upstream
    assert backend.received.startswith(b"GET /a?b=1"), "the backend is asked"
    assert b"\r\nauthorization: " in backend.received
    backend.answer(OK)
    assert client.received.startswith(b"HTTP/1.1 200")


@each_server
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_server_that_makes_no_sense(server: Server, answer: bytes) -> None:
    proxy, client = waiting(server)
    proxy.connector.upstream.send(answer)
    refused(proxy, client)
    heals(proxy, server)


@each_server
@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_a_credential_that_has_no_life(server: Server, life: Any) -> None:
    proxy, client = waiting(server)
    proxy.connector.upstream.send(server.lives(life))
    refused(proxy, client)
    heals(proxy, server)


@pytest.mark.parametrize("life", [float("inf"), "inf", 1e300, 10**12])
@pytest.mark.parametrize("name", ["Azure client", "Azure identity", "Google account", "Google metadata"])
def test_a_credential_for_ever_is_fetched_again_after_a_day(name: str, life: Any) -> None:
    """What a server says is no reason never to ask it again."""
    server = SERVERS[name]
    proxy, _ = waiting(server)
    proxy.connector.upstream.send(server.lives(life))
    proxy.connector.upstream.answer(OK)
    asker, backend = proxy.connector.upstreams
    asker.take(), backend.take()
    proxy.now += LONGEST
    client = asked(proxy)
    assert asker.received and not backend.received, "the request waits for another one"
    asker.send(server.lives(3600))
    backend.answer(OK)
    assert client.received.startswith(b"HTTP/1.1 200")


@each_server
def test_a_server_that_hangs(server: Server) -> None:
    proxy, client = waiting(server)
    proxy.advance(SECONDS + 0.1)
    refused(proxy, client)
    assert not proxy.connector.upstreams[0].open
    heals(proxy, server)


@each_server
def test_a_server_that_drips(server: Server) -> None:
    """A byte now and then is no progress: the time is for the whole."""
    proxy, client = waiting(server)
    dripping = proxy.connector.upstream
    for byte in server.lives(3600)[:50]:
        if dripping.open:
            dripping.send(bytes([byte]))
            proxy.advance(0.2)
    refused(proxy, client)
    heals(proxy, server)


@each_server
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_server_that_goes_away_in_its_answer(server: Server, share: float) -> None:
    proxy, client = waiting(server)
    answer = server.lives(3600)
    proxy.connector.upstream.send(answer[: int(len(answer) * share)] or b"\r\n")
    while client.received == b"":  # a connection that was used before is tried once more
        proxy.connector.upstream.lose()
    refused(proxy, client)
    heals(proxy, server)


@each_server
def test_a_server_that_answers_late(server: Server) -> None:
    """What comes when nobody waits any more changes nothing, and breaks nothing."""
    proxy, client = waiting(server)
    late = proxy.connector.upstream
    proxy.advance(SECONDS + 0.1)
    refused(proxy, client)
    if late.open:
        late.send(server.lives(3600))
    heals(proxy, server)


@each_server
def test_a_server_that_takes_no_connection(server: Server) -> None:
    proxy = run(f"{{auth: {{{server.auth}}}}}", environment={"AWS_REGION": "eu-west-1", **server.environment})
    proxy.connector.refuse = "connection refused"
    refused(proxy, asked(proxy))
    proxy.connector.refuse = ""
    heals(proxy, server)


@pytest.mark.parametrize("status", ["200 OK", "403 No"])
@pytest.mark.parametrize("date", ["Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 9999 00:00:00 -2359"])
def test_a_clock_at_an_end_of_time_is_not_believed(date: str, status: str) -> None:
    """Requests to AWS are signed for the moment that its servers report. One that cannot be would end all of them."""
    server = SERVERS["AWS role"]
    proxy, client = waiting(server)
    proxy.connector.upstream.send(http(b"", status, f"Date: {date}"))
    refused(proxy, client)
    proxy.advance(3.0)
    heals(proxy, server)
