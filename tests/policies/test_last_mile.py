"""The last mile as one table: whatever can be sent to a backend, every level that something is said at, and what is
said: every kind of `auth`, `transformation`, `extAuth`. A cell acts, or the table says why not. `-s` prints it. Those
of a `tunnel` are in `test_calls_inherit`.

The reverse is the same table: no credential of a Gateway, listener, route or rule reaches a key server, an
authorization server, a guardrail or a collector.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dataplane.http.h2.frames import PREFACE
from tests.fakes.both_planes import BothPlanes
from tests.policies.test_calls_inherit import (
    KEY,
    KEYS,
    LEVELS,
    METADATA,
    OWN,
    PLACES,
    POLICY,
    Place,
    Seen,
    _backend,
    _route,
    export,
    placed,
)

FAR: Final = "10.0.0.9:9001"
TOKENS: Final = "127.0.0.1:9100"
ENVIRONMENT: Final = {"AZURE_AUTHORITY_HOST": f"http://{TOKENS}", "AWS_REGION": "eu-west-1"}

AUTH: Final = {
    "key": "{key: the-key}",
    "secretRef": "{secretRef: {name: cred}}",
    "aws": "{aws: {secretRef: {name: cred}, serviceName: execute-api}}",
    "azure": "{azure: {secretRef: {name: cred}}}",
    "gcp": "{gcp: {secretRef: {name: cred}}}",
    "passthrough": "{passthrough: {}}",
}
MARKS: Final = {
    "key": b"Bearer the-key",
    "secretRef": b"Bearer of-the-secret",
    "aws": b"AWS4-HMAC-SHA256 Credential=AKID/",
    "azure": b"Bearer of-a-server",
    "gcp": b"Bearer of-a-server",
    "passthrough": b"Bearer the-clients-own",
    "transformation": b"x-mark: made",
    "extAuth": b"x-user: ann",
}
STEPS: Final = {
    "transformation": "transformation: {request: {add: [{name: x-mark, value: \"'made'\"}]}}",
    "extAuth": f"extAuth: {{backendRef: {_backend('judge')}, http: {{allowedResponseHeaders: [x-user]}}}}",
}
WRITTEN: Final = {**{kind: f"auth: {setting}" for kind, setting in AUTH.items()}, **STEPS}
JUDGE: Final = "10.0.0.7:9002"
SERVER: Final = """---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: judge}
spec: {static: {host: 10.0.0.7, port: 9002}}
"""
CLIENT: Final = """
    apiKeyAuthentication: {secretRef: {name: clients}, location: {header: {name: x-key}}}
"""
"""What takes the client's own credential out of a request."""

ABOVE: Final = "of a level above: how to connect alone"
NO_CLIENT: Final = "for no request of a client"
BEFORE: Final = "acts before the kind: on what the client has sent"
NO_FIELD: Final = "no field: attached to the target or provider by name"
PARTS: Final = ("MCP target", "LLM provider")
LACKS: Final = {"MCP target": ("transformation", "extAuth"), "LLM provider": ("extAuth",)}
"""What may not be written in a part itself (BackendSimple, BackendWithAI)."""
OF_REQUESTS: Final = ("request", "retry", "mirror", *PARTS)
"""They stand in the place of a request: all levels count for them."""
ROWS: Final = {**PLACES, "retry": PLACES["request"]}
RETRY: Final = POLICY.format(
    name="again", target=_route(), spec="traffic: {retry: {attempts: 1, codes: [503], backoff: 50ms}}"
)


def why(row: str, level: str, kind: str) -> str:
    """Why there is no credential; "": there is."""
    place = ROWS[row]
    if level in place.not_at:
        return place.reason
    if row not in OF_REQUESTS and level not in ("backend", OWN):
        return ABOVE
    if row in PARTS and kind in STEPS:
        if level == OWN and kind in LACKS[row]:
            return NO_FIELD
        return "" if level in ("backend", OWN) else BEFORE
    return NO_CLIENT if kind == "passthrough" and not _has_client(row) else ""


def _has_client(row: str) -> bool:
    """A request whose credential an API key policy has taken out by then."""
    return row in (*OF_REQUESTS, "extAuth", "guardrails")


@cache
def secrets() -> str:
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "client_email": "gw@project.iam.gserviceaccount.com",
        "private_key": key.decode(),
        "token_uri": f"http://{TOKENS}/token",
    }
    entries = {
        "Authorization": "of-the-secret",
        "accessKey": "AKID",
        "secretKey": "its-secret",
        "clientID": "c",
        "tenantID": "t",
        "clientSecret": "its-secret",
        "credentials.json": json.dumps(account),
    }
    return _secret("cred", entries) + _secret("clients", {"one": "the-clients-own"})


def _secret(name: str, entries: dict[str, str]) -> str:
    data = ", ".join(f"{entry}: {base64.b64encode(text.encode()).decode()}" for entry, text in entries.items())
    return f"---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\ndata: {{{data}}}\n"


def configured(row: str, level: str, kind: str) -> str:
    place, setting = ROWS[row], WRITTEN[kind]
    own = "" if why(row, level, kind) == NO_FIELD else setting
    text = placed(place, level, own).replace("ADDRESS", "{host: 10.0.0.9, port: 9001}") + SERVER
    if level != OWN:
        target = place.attached if level == "backend" else LEVELS[level]
        text += POLICY.format(name="settings", target=target, spec=f"backend: {{{setting}}}")
    if kind == "passthrough" and _has_client(row):
        text += POLICY.format(name="clients", target=_route(), spec=f"traffic:{CLIENT}")
    return text + (RETRY if row == "retry" else "") + secrets()


class World:
    """A proxy, and servers that answer it: one that gives tokens, and those that policies call."""

    def __init__(self, row: str, level: str, kind: str) -> None:
        self.place: Place = ROWS[row]
        self.proxy = BothPlanes(configured(row, level, kind), environment=ENVIRONMENT)
        if self.place.policy is not None:  # now that its backend is known: some begin with a call
            self.proxy.load(POLICY.format(name="calls", target=self.place.policy[0], spec=self.place.policy[1]))
        self.seen: list[bytes] = []
        """What the called backend got; over HTTP/2 (guardrails, which speak gRPC) lines that are about to be sent."""
        self.begun: list[tuple[Any, Any]] = []
        leases = self.proxy.context.leases
        leases.backends = {name: Seen(each, KEY, self.begun) for name, each in leases.backends.items()}
        self.fails_first = row == "retry"
        self.left: list[tuple[Any, ...]] = []
        self.proxy.context.exporters.add = lambda *given: self.left.append(given)  # type: ignore[method-assign]
        self.judged: list[bytes] = []
        """What the server of `extAuth` was asked."""

    def ask(self) -> list[bytes]:
        method, path, lines, body = self.place.asks
        head = [f"{method} {path} HTTP/1.1", "host: idp.test", "x-key: the-clients-own", *lines]
        client = self.proxy.connect_to(0)
        client.send(("\r\n".join([*head, f"content-length: {len(body)}", "", ""]) + body).encode())
        for _ in range(8):
            self._answer()
            self.proxy.advance(0.2)
        if self.place.exports:
            self.seen.clear()
            export(self.proxy, self.left)
            self.proxy.connector.hold = False
            self.proxy.connector.release()
            self._answer()
            self._answer()
        client.lose()
        if self.seen and self.seen[0].startswith(PREFACE):
            return [holder.block for _, holder in self.begun]
        return [each for each in self.seen if self.place.which(each.split(b" ")[1])]

    def _answer(self) -> None:
        for each in list(self.proxy.connector.upstreams):
            request = each.take()
            if not request or not each.open:
                continue
            label = each.protocol.endpoint.label
            if label == FAR:
                self.seen.append(request)
            elif label == JUDGE:
                self.judged.append(request)
            if not request.startswith(PREFACE):
                each.answer(self._response(label, request))

    def _response(self, label: str, request: bytes) -> bytes:
        if label == JUDGE:
            return b"HTTP/1.1 200 OK\r\nx-user: ann\r\ncontent-length: 0\r\n\r\n"
        if label == TOKENS:
            body = json.dumps({"access_token": "of-a-server", "expires_in": 3600}).encode()
        else:
            body = KEYS if b"/certs" in request else METADATA
        status = b"200 OK"
        if label == FAR and self.fails_first:
            status, self.fails_first = b"503 Busy", False
        return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


CELLS: Final = [(row, level, kind) for row in ROWS for level in LEVELS for kind in MARKS]


@pytest.mark.parametrize("row", ROWS)
async def test_which_credential_reaches_what_is_sent(row: str) -> None:
    found, expected = {}, {}
    for level in LEVELS:
        for kind, mark in MARKS.items():
            world = World(row, level, kind)
            requests = world.ask()
            assert len(requests) >= (2 if row == "retry" else 1), (level, kind)
            found[level, kind] = _have(requests, mark)
            reason = why(row, level, kind)
            expected[level, kind] = not reason or (reason == BEFORE and found[level, kind])  # what a kind passes on
            if kind == "extAuth" and reason in ("", BEFORE):
                assert world.judged, level
    assert found == expected


def _have(requests: list[bytes], mark: bytes) -> bool:
    """All of them, or none of them."""
    having = [mark in each for each in requests]
    assert len(set(having)) == 1, "some have it"
    return having[0]


def test_the_table_is_shown(capsys: Any) -> None:
    lines = [f"{row:22} {level:10} {kind:12} {why(row, level, kind) or 'has it'}" for row, level, kind in CELLS]
    print("\n".join(lines))
    assert len(capsys.readouterr().out.splitlines()) == len(CELLS)
