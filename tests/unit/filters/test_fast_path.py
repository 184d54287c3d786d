"""Policies that know their answer do not wait, and none makes a Task: counted, request by request, in a whole proxy in
memory."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Coroutine
from typing import Any

import bcrypt
import pytest

from benchmarks.policies import ISSUER, token
from dataplane.proxy.steps import waiting
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy

TOKEN, KEYS = token()
PASSWORD = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()

FILE = """
frontendPolicies:
  accessLog:
    add: {user: jwt.sub, group: apiKey.group}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      backends: [{host: "127.0.0.1:9000"}]
      policies:
"""

JWT = f"""
jwtAuthentication:
  providers:
  - issuer: {ISSUER}
    jwks: {{inline: '{KEYS}'}}
"""
API_KEY = """
apiKeyAuthentication:
  secretRef: {one: {value: '{"key": "k1", "metadata": {"group": "staff"}}'}}
  location: {header: {name: x-api-key}}
"""
BASIC = f"""
basicAuthentication:
  users: ["ann:{PASSWORD}"]
  location: {{header: {{name: x-basic, prefix: Basic}}}}
"""
EXT_AUTH = """
extAuthz:
  host: 127.0.0.1:9100
  protocol: {http: {}}
  cache: {key: [request.path], ttl: 5m}
"""
REST = """
authorization: {policy: {matchExpressions: ['request.method == "GET"']}}
rateLimit: {local: [{requests: 1000, unit: Seconds}]}
cors: {allowOrigins: ["https://app.example"], exposeHeaders: [x-total]}
csrf: {}
transformation: {request: {set: [{name: x-path, value: request.path}]}}
headerModifiers: {request: {set: [{name: x-gateway, value: one}]}, response: {remove: [server]}}
retry: {codes: [503], precondition: 'request.method == "GET"'}
timeouts: {request: 30s}
hostRewrite: {mode: Auto}
buffer: {request: {}}
"""

POLICIES = {"jwt": JWT, "api key": API_KEY, "basic": BASIC, "ext auth": EXT_AUTH, "the rest": REST}
WAITS_FIRST = {"ext auth"}
"""Those that have to ask before they know (slow password hashes run in threads, which this proxy has not)."""

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Counting(MemoryProxy):
    """Counts the Tasks that it would have made for requests."""

    def __init__(self, text: str) -> None:
        self.spawned = 0
        super().__init__(text)
        self.spawned = 0

    def _spawn(self, task: Coroutine[Any, Any, None]) -> Any:
        self.spawned += 1
        return super()._spawn(task)


def proxy(*policies: str) -> Counting:
    return Counting(FILE + textwrap.indent("".join(policies), " " * 8))


def request() -> bytes:
    user = base64.b64encode(b"ann:secret").decode()
    lines = (
        f"Authorization: Bearer {TOKEN}\r\nx-api-key: k1\r\nx-basic: Basic {user}\r\nOrigin: https://app.example\r\n"
    )
    return f"GET /a HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n".encode()


def exchange(proxy: Counting, client: FakeTransport, sent: bytes) -> None:
    """One request; whatever waits upstream, of policies too, is answered with 200."""
    client.send(sent)
    for _ in range(2):
        for upstream in proxy.connector.upstreams:
            if upstream.take():
                upstream.answer(OK)
    assert client.take().startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("name", [*POLICIES, "all"])
def test_a_request_like_the_one_before_does_not_wait(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[waiting.Steps] = []

    class Counted(waiting.Steps):
        def __init__(self, *arguments: Any) -> None:
            waited.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(waiting, "Steps", Counted)
    running = proxy(*(POLICIES.values() if name == "all" else [POLICIES[name]]))
    client, sent = running.connect(), request()
    exchange(running, client, sent)
    assert bool(waited) == (name in WAITS_FIRST or name == "all")
    before = len(waited)
    for _ in range(3):
        exchange(running, client, sent)
    assert len(waited) == before
    assert running.spawned == 0
