"""Warnings about settings that have no effect, or another one than their name says: one object, one warning."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.advice.advice import warnings
from gatewright.api.decode.documents import decode_object
from gatewright.api.text.problem import path_text
from tests.harness import yamls
from tests.rules.verdicts.table import OBJECTS

REF = "backendRef: {name: c, port: 4317}"
PROVIDER = "spec: {ai: {provider: {%s}}}"
POLICY = "spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}], %s}"
OF_MCP = POLICY % "backend: {mcp: {authorization: {action: %s, policy: {matchExpressions: ['%s']}}}}"
RULE = "traffic: {authorization: {action: %s, policy: {matchExpressions: ['%s']}}}"
EARLY = RULE.replace("traffic: {", "traffic: {phase: PreRouting, ")


def told(kind: str, text: str) -> list[str]:
    """Warnings about an object of which `text` is the rest, or that it is not valid."""
    value: dict[str, Any] = {"kind": kind, **OBJECTS[kind], **yamls.load(text)}
    decoded = decode_object(value, "")
    assert decoded.verdict != "invalid", decoded.problems
    assert decoded.item is not None
    return [f"{path_text(each.path)}: {each.message}" for each in warnings(decoded.item)]


@pytest.mark.parametrize(
    ("kind", "text", "beginning"),
    [
        (
            "GatewayPolicy",
            POLICY % "backend: {tls: {insecureSkipVerify: All, caCertificateRefs: [{name: ca}]}}",
            "spec.backend.tls.insecureSkipVerify: All verifies nothing",
        ),
        (
            "GatewayPolicy",
            POLICY % "backend: {tls: {insecureSkipVerify: Hostname, caCertificateRefs: [{name: ca}]}}",
            "",
        ),
        ("GatewayPolicy", POLICY % "backend: {tls: {insecureSkipVerify: All}}", ""),
        (
            "GatewayPolicy",
            POLICY % f"frontend: {{tracing: {{{REF}, path: /v1/traces}}}}",
            "spec.frontend.tracing.path: is ignored with GRPC",
        ),
        (
            "GatewayPolicy",
            POLICY % f"frontend: {{accessLog: {{otlp: {{{REF}, protocol: GRPC, path: /x}}}}}}",
            "spec.frontend.accessLog.otlp.path: is ignored with GRPC",
        ),
        ("GatewayPolicy", POLICY % f"frontend: {{tracing: {{{REF}, protocol: HTTP, path: /v1/traces}}}}", ""),
        ("GatewayPolicy", POLICY % f"frontend: {{tracing: {{{REF}}}}}", ""),
        ("GatewayBackend", PROVIDER % "openai: {}, path: v1/chat", "spec.ai.provider.path: does not begin with"),
        ("GatewayBackend", PROVIDER % "openai: {}, pathPrefix: v1", "spec.ai.provider.pathPrefix: does not begin with"),
        (
            "GatewayBackend",
            PROVIDER % "custom: {formats: [{type: Rerank, path: r}]}, host: h, port: 1",
            "spec.ai.provider.custom.formats[0].path: does not begin with",
        ),
        ("GatewayBackend", PROVIDER % "openai: {}, path: /v1/chat", ""),
        ("GatewayPolicy", POLICY % "strategy: {inheritance: Override}, frontend: {}", "spec.strategy: has no effect"),
        (
            "GatewayPolicy",
            POLICY % "strategy: {inheritance: Default}, traffic: {}, backend: {}",
            "spec.strategy: acts on traffic alone, not on backend",
        ),
        *(
            (
                "GatewayPolicy",
                POLICY.replace("kind: Gateway,", f"kind: {kind},") % f"backend: {{{setting}}}",
                beginning and f"spec.backend.{beginning}: has no effect on a {kind}",
            )
            for kind, setting, beginning in (
                ("TCPRoute", "auth: {passthrough: {}}", "auth"),
                ("TLSRoute", "transformation: {request: {remove: [x-a]}}", "transformation"),
                ("UDPRoute", "extAuth: {backendRef: {name: a, port: 1}, http: {}}", "extAuth"),
                ("UDPRoute", "tls: {}", "tls"),
                ("TCPRoute", "tls: {}", ""),
                ("UDPRoute", "health: {eviction: {duration: 1s}}", ""),
                ("HTTPRoute", "auth: {passthrough: {}}", ""),
            )
        ),
        ("GatewayPolicy", POLICY % "strategy: {inheritance: Override}, traffic: {}", ""),
        ("GatewayPolicy", POLICY % "strategy: {}, frontend: {}", ""),
        *(
            (
                "GatewayPolicy",
                POLICY % f"traffic: {{{name}: {{}}}}",
                f"spec.traffic.{name}: is empty, and takes the place",
            )
            for name in ("rateLimit", "buffer", "timeouts")
        ),
        ("GatewayPolicy", POLICY % "traffic: {buffer: {request: {}}}", ""),
        ("GatewayPolicy", POLICY % "traffic: {timeouts: {request: 1s}}", ""),
        ("GatewayPolicy", POLICY % "traffic: {rateLimit: {local: [{requests: 1, unit: Hours}]}}", ""),
        *(
            ("GatewayPolicy", POLICY % f"traffic: {{rateLimit: {where % key}}}", beginning and at + beginning)
            for where, at in (
                ("{local: [{requests: 1, unit: Hours, key: '%s'}]}", "spec.traffic.rateLimit.local[0].key: "),
                (
                    "{conditional: [{policy: {local: [{requests: 1, unit: Hours, key: '%s'}]}}]}",
                    "spec.traffic.rateLimit.conditional[0].policy.local[0].key: ",
                ),
            )
            for key, beginning in (
                ("source.address", ""),
                ('request.headers["uuid()"]', ""),
                ("variables().source.address", ""),
                ('"everybody"', "reads nothing of the request: all requests share one bucket"),
                ("string(1 + 1)", "reads nothing of the request"),
                ("uuid()", "differs from request to request: each has a bucket of its own, so nothing is limited"),
                ("source.address + string(random ())", "differs from request to request"),
            )
        ),
        (
            "GatewayPolicy",
            POLICY % RULE % ("Deny", 'mcp.tool.name == "x"'),
            "spec.traffic.authorization.policy.matchExpressions[0]: reads mcp, which has a value in `backend.mcp.auth",
        ),
        ("GatewayPolicy", OF_MCP % ("Deny", 'mcp.tool.name == "x"'), ""),
        (
            "GatewayPolicy",
            OF_MCP % ("Deny", "has(llm.provider)"),
            "spec.backend.mcp.authorization.policy.matchExpressions[0]: reads llm, which has no value yet: this Deny",
        ),
        (
            "GatewayPolicy",
            POLICY % RULE % ("Require", "has(llm.provider)"),
            "spec.traffic.authorization.policy.matchExpressions[0]: reads llm, which has no value yet: this Require",
        ),
        ("GatewayPolicy", POLICY % RULE % ("Allow", "has(llm.provider)"), ""),
        ("GatewayPolicy", POLICY % RULE % ("Deny", 'request.path == "/mcp.tool"'), ""),
        ("GatewayPolicy", POLICY % RULE % ("Deny", "has(jwt.mcp)"), ""),
        ("GatewayPolicy", POLICY % RULE % ("Deny", 'a2a.method == "tasks/cancel"'), ""),
        (
            "GatewayPolicy",
            POLICY % EARLY % ("Deny", 'a2a.method == "tasks/cancel"'),
            "spec.traffic.authorization.policy.matchExpressions[0]: reads a2a, which has no value in the phase PreRout",
        ),
        ("GatewayPolicy", POLICY % EARLY % ("Allow", 'a2a.method == "tasks/cancel"'), ""),
        ("GatewayPolicy", POLICY % EARLY % ("Deny", 'request.path == "/a2a"'), ""),
    ],
)
def test_what_is_told(kind: str, text: str, beginning: str) -> None:
    found = told(kind, text)
    if beginning:
        (one,) = found
        assert one.startswith(beginning)
    else:
        assert found == []
