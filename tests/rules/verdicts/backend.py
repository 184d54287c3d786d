"""Verdicts on GatewayBackend but for LLM providers (1-resources, GatewayBackend, StaticBackend to MCPBackend)."""

from __future__ import annotations

from tests.rules.verdicts.common import (
    D,
    P,
    R,
    X,
    long_string,
    port,
    section_name,
    short_string,
)
from tests.rules.verdicts.providers import AI
from tests.rules.verdicts.references import (
    LABEL_SELECTOR,
    LOCAL_SERVICE,
)
from tests.rules.verdicts.subsets import AI_ONLY, ANY_BACKEND, MCP_ONLY, SIMPLE
from tests.rules.verdicts.table import Nested, Rows, shape
from tests.rules.verdicts.words import (
    alone,
    byte_size,
    enum,
    exactly_one,
    given,
    invalid,
    items,
    nested,
    required,
    text,
    unknown,
    valid,
)

_HOST = R + "| host | ShortString | optional, for TCP backends |"
_PORT = R + "| port | integer | optional, 1 to 65535, for TCP backends |"
_UNIX = R + "| unixPath | string | optional, minimum length 1"
STATIC = shape(
    {"host": "example.com", "port": 443},
    short_string("host", _HOST),
    port("port", _PORT),
    valid("", {"host": "10.0.0.1", "port": 80}, _HOST),
    valid("", {"host": "::1", "port": 80}, _HOST),
    given({}, text("unixPath", 1, None, _UNIX)),
    invalid("unixPath", "/run/x.sock", R + "mutually exclusive with host/port"),
    given({"host": "a"}, invalid("unixPath", "/run/x.sock", R + "mutually exclusive with host/port")),
    given({"port": 1}, invalid("unixPath", "/run/x.sock", R + "mutually exclusive with host/port")),
    invalid("", {}, R + "static host, IP or Unix domain socket"),
    valid("", {"host": "a"}, _PORT),
    invalid("", {"port": 1}, _HOST),
    unknown("path", "/", _HOST),
)

_A2A_HOST = R + "| host | ShortString | required, length 1 to 256 |"
_A2A_PORT = R + "| port | integer | required, 1 to 65535 |"
A2A = shape(
    {"host": "a", "port": 1},
    required("host", _A2A_HOST),
    short_string("host", _A2A_HOST),
    required("port", _A2A_PORT),
    port("port", _A2A_PORT),
)

_ARN = R + "| agentRuntime.agentRuntimeArn | string | required"
_QUALIFIER = R + "| agentRuntime.qualifier | string | optional"
_RUNTIME = R + "| agentRuntime | CloudAAgentRuntimeBackend | optional; the only variant |"
AWS = shape(
    {"agentRuntime": {"agentRuntimeArn": "arn"}},
    invalid("", {}, _RUNTIME),
    nested(
        "agentRuntime",
        shape(
            {"agentRuntimeArn": "arn"},
            required("agentRuntimeArn", _ARN),
            text("agentRuntimeArn", None, None, _ARN),
            text("qualifier", None, None, _QUALIFIER),
        ),
        _RUNTIME,
    ),
)

_DYNAMIC = R + "| dynamicForwardProxy | DynamicForwardProxyBackend |"
DYNAMIC = shape({}, valid("", {}, _DYNAMIC), unknown("host", "a", _DYNAMIC))

# MCP.

_TARGETS = R + "| targets | array of McpTargetSelector | required, 1 to 32 items."
_TARGET = R + "McpTargetSelector: `name` (SectionName, required); exactly one of `selector` (McpSelector) or `static`"
_SELECTOR = R + "McpSelector: `namespaces` (LabelSelector; if unset only the namespace of the backend is searched)"
_MCP_HOST = R + "| host | ShortString | optional |"
_MCP_REF = R + "| backendRef | LocalObjectReference | optional; a same-namespace Service by name"
_MCP_PATH = R + "| path | LongString | optional; default `/sse` for protocol `SSE`"
_MCP_POLICIES = R + "| policies | BackendSimple | optional; allowed only on host-based targets, not backendRef."

MCP_STATIC = shape(
    {"host": "a", "port": 1},
    exactly_one(
        R + "McpTarget (exactly one of `host`, `backendRef`):",
        {"host": "a", "backendRef": {"name": "s"}},
        none={"port": 1},
    ),
    short_string("host", _MCP_HOST),
    Nested("backendRef", LOCAL_SERVICE, _MCP_REF, {"port": 1}),
    required("port", _A2A_PORT),
    port("port", _A2A_PORT),
    long_string("path", _MCP_PATH),
    enum("protocol", ("StreamableHTTP", "SSE"), R + "| protocol | enum `StreamableHTTP`, `SSE` | optional |"),
    nested("policies", SIMPLE, _MCP_POLICIES),
    invalid("", {"backendRef": {"name": "s"}, "port": 1, "policies": {}}, _MCP_POLICIES),
)


def _targets() -> Rows:
    def target(n: int) -> dict[str, object]:
        return {"name": f"t{n}", "static": {"host": "a", "port": 1}}

    yield required("targets", _TARGETS)
    yield from items("targets", 1, 32, P + "| MCP targets per backend | 1 to 32 |", target)
    yield invalid("targets", [target(0), target(0)], D + "unique target names")


MCP = shape(
    {"targets": [{"name": "t", "static": {"host": "a", "port": 1}}]},
    _targets(),
    byte_size("maxAnswerSize", X + "the largest answer of MCP servers that is read whole"),
    *(
        valid("maxAnswerSize", good, X + "the largest answer of MCP servers, 1 KiB to 64 MiB")
        for good in (1024, "64Mi", "8mb")
    ),
    *(
        invalid("maxAnswerSize", bad, X + "the largest answer of MCP servers, 1 KiB to 64 MiB")
        for bad in (1023, 64 * 2**20 + 1, "65Mi", "1000")
    ),
    Nested(
        "targets[0]",
        shape(
            {"name": "t", "static": {"host": "a", "port": 1}},
            required("name", _TARGET),
            section_name("name", _TARGET),
            exactly_one(_TARGET, {"selector": {}, "static": {"host": "a", "port": 1}}, none={"name": "t"}),
            Nested(
                "selector",
                shape(
                    {},
                    nested("namespaces", LABEL_SELECTOR, _SELECTOR),
                    nested("services", LABEL_SELECTOR, _SELECTOR),
                    unknown("pods", {}, _SELECTOR),
                ),
                _TARGET,
                {"name": "t"},
            ),
            nested("static", MCP_STATIC, _TARGET),
        ),
        _TARGET,
    ),
    valid("failureMode", "FailOpen", R + "| FailureMode | enum `FailClosed`, `FailOpen` |"),
    enum("sessionRouting", ("Stateful", "Stateless"), R + "| sessionRouting | enum `Stateful`, `Stateless` |"),
    enum(
        "failureMode", ("FailClosed", "FailOpen"), R + "| failureMode | FailureMode | optional, default `FailClosed` |"
    ),
)

_ONE = R + "must set exactly one of `ai`, `static`, `dynamicForwardProxy`, `mcp`, `cloudA`, `a2a`"
_POLICIES = R + "| policies | BackendFull | policies for connecting to this backend"
SPEC = shape(
    {"static": {"host": "example.com", "port": 443}},
    required("", R + "`spec` (required) must set exactly one of"),
    exactly_one(
        _ONE,
        {
            "ai": {"provider": {"openai": {}}},
            "static": STATIC.least,
            "dynamicForwardProxy": {},
            "mcp": MCP.least,
            "aws": AWS.least,
            "a2a": A2A.least,
        },
    ),
    alone("static", STATIC, R + "| static | StaticBackend | static host, IP or Unix domain socket |"),
    alone("a2a", A2A, R + "| a2a | A2ABackend | A2A agent |"),
    alone("ai", AI, R + "| ai | AIBackend | LLM backend |"),
    alone("mcp", MCP, R + "| mcp | MCPBackend | MCP backend |"),
    alone("dynamicForwardProxy", DYNAMIC, _DYNAMIC),
    alone("aws", AWS, R + "| cloudA | CloudABackend | cloud-A service backend; exactly one of `agentRuntime` |"),
    nested("policies", ANY_BACKEND, _POLICIES),
    Nested("policies", AI_ONLY, _POLICIES, {"ai": {"provider": {"openai": {}}}}),
    Nested("policies", MCP_ONLY, _POLICIES, {"mcp": MCP.least}),
    invalid("policies", {"ai": {}}, P + "| ai | BackendAI | only for backends of type `ai` |"),
    invalid("policies", {"mcp": {}}, P + "| mcp | BackendMCP | only for backends of type `mcp` |"),
    unknown("grpc", {}, _ONE),
)
