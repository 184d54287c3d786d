"""What expressions read of the backend that was chosen, for each kind: from YAML to the line of a request."""

from __future__ import annotations

import pytest

from dataplane.backends.registry import KINDS
from dataplane.table import compile as compiler
from gatewright.wire.v1 import backend_pb2
from tests.carriers import Carrier, Request

FILE = """
frontendPolicies:
  accessLog: {add: {type: backend.type, protocol: backend.protocol}}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      backends: [BACKEND]
"""


@pytest.mark.parametrize(
    ("backend", "found"),
    [
        ("{host: '127.0.0.1:9000'}", ("static", "http")),
        ("{a2a: {host: 127.0.0.1, port: 9000}}", ("static", "a2a")),
        ("{mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: 9000}}]}}", ("mcp", "mcp")),
    ],
)
def test_type_and_protocol_are_those_of_the_kind(backend: str, found: tuple[str, str], carrier: Carrier) -> None:
    run = carrier.proxy(FILE.replace("BACKEND", backend))
    asked = run.send(Request("PUT", "/a"))
    if not asked.answer.ended:
        asked.cancel()
    (line,) = run.log_lines()
    assert line.endswith(" type={} protocol={}".format(*found))


@pytest.mark.parametrize(("spoken", "protocol"), [("", "http"), ("gatewright.dev/a2a", "a2a")])
def test_a_service_is_one_whatever_is_spoken_there(spoken: str, protocol: str) -> None:
    service = backend_pb2.ServiceBackend(namespace="n", name="s", port=80, app_protocol=spoken, empty=True)
    plan = compiler.backend_plan("backend/service/n/s/80", backend_pb2.Backend(service=service), KINDS, ())
    assert (plan.type, plan.protocol) == ("service", protocol)
