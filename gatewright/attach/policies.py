"""All policies, one row each, in the order in which they act: what is known of a policy outside its own modules.

Both planes read it: the control plane for models, translation, status and pages, workers to merge. A column is the one
place of what it says. `tests/rules/test_policies.py` compares the rows with the models, the wire, the registry, pages
and tests, and names whatever is missing. The table holds plain data and imports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FRONTEND, TRAFFIC, BACKEND = "frontend", "traffic", "backend"
"""The parts of a GatewayPolicy."""
RULE, GATEWAY, POOL = "rule", "gateway", "pool"
"""A filter of a route's rule that no GatewayPolicy has; a field of a Gateway; one of an InferencePool."""

ALL: Final = "all of them act, the least specific first; an Override keeps out those of more specific levels"
WITH_INLINE: Final = "the policy that wins and the rule's own filter both act, in this order"

SIMPLE, WITH_AI, FULL = "BackendSimple", "BackendWithAI", "BackendFull"
"""Sets of policies for connecting to a backend: each has those of the former ones too."""

HTTP, TCP, UDP = "HTTP", "TCP", "UDP"
"""What routes carry."""

_LISTENING: Final = ("Gateway", "ListenerSet")
_OF_REQUESTS: Final = ("HTTPRoute", "GRPCRoute")
LEVELS: Final = {
    FRONTEND: ("Gateway",),
    TRAFFIC: (*_LISTENING, *_OF_REQUESTS),
    BACKEND: (*_LISTENING, *_OF_REQUESTS, "TCPRoute", "TLSRoute", "UDPRoute", "Service", "GatewayBackend"),
    RULE: _OF_REQUESTS,
    GATEWAY: ("Gateway",),
    POOL: ("InferencePool",),
}
"""Part to the kinds of objects that have policies of it, by themselves or as targets of a GatewayPolicy. What is nearer
to a request stands further on."""


@dataclass(frozen=True, slots=True)
class Waits:
    """A setting that does not work yet: the object that sets it is not accepted, and a security policy refuses what it
    protects."""

    path: str = ""
    """Below the policy, in API names, "[]" for any item; "" is the policy as a whole."""
    reason: str = ""
    in_file: str = ""
    """The path in the standalone file, where it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One policy."""

    name: str
    """Field of the wire's Policy message, and the name of filter, test and page (`docs/policies/NAME.md`)."""
    part: str
    does: str
    """For the list of policies: what it does, in a few words."""
    written: str = ""
    """The attribute of its part's model, where that has another name."""
    in_file: str = ""
    """The same in the standalone file, where that has another name."""
    early: bool = False
    """Of `traffic`: whether it may run before a route is chosen (phase PreRouting). The others act on a route."""
    inline: str = ""
    """How a rule of an HTTPRoute has it: "filter" or "field". Unset, what only rules have is a filter."""
    in_rule: str = ""
    """The attribute of the rule's filter, where that has another name."""
    security: bool = False
    """Whether it refuses what it protects when it cannot act as written. Of others the last good version acts on."""
    merge: str = ""
    """How several act together; "": the most specific acts alone."""
    subset: str = FULL
    """Of `backend`: the smallest set that has it."""
    carries: tuple[str, ...] = (HTTP,)
    """Of `backend`: what routes carry on which it has a meaning. Under others it is refused by decision."""
    is_step: bool = False
    """Of `backend`, and of a pool: whether it acts on requests before the kind of the backend does. Parts of a backend
    (MCP servers, LLM providers) do not take it over: their requests are the kind's own."""
    not_on: tuple[str, ...] = ()
    """Levels of its part on which it has no meaning: a GatewayPolicy with such a target is refused."""
    conditional: bool = False
    """Whether it may be a list of conditions with a policy each."""
    waits: tuple[Waits, ...] = ()

    @property
    def attribute(self) -> str:
        """Its attribute in the model of its part."""
        return self.written or self.name

    @property
    def file_attribute(self) -> str:
        """The same in the standalone file."""
        return self.in_file or self.attribute

    @property
    def rule_attribute(self) -> str:
        """The same in a rule of an HTTPRoute."""
        return self.in_rule or self.attribute

    @property
    def levels(self) -> tuple[str, ...]:
        """The kinds of objects that may have it. One that acts early has a meaning on the first two alone then."""
        return tuple(kind for kind in LEVELS[self.part] if kind not in self.not_on)

    @property
    def page(self) -> str:
        """Below docs/: what a user reads of it."""
        return f"policies/{self.name}.md"

    @property
    def form_in_rules(self) -> str:
        """As what a rule of an HTTPRoute may have it: "filter", "field", or "" where it cannot."""
        return self.inline or ("filter" if self.part == RULE else "")

    @property
    def is_in_rules(self) -> bool:
        """Whether a rule of an HTTPRoute may have it."""
        return bool(self.form_in_rules)

    @property
    def may_be_locked(self) -> bool:
        """Whether an Override takes a rule's own away: of what both may have, and where the rule's does not act beside
        the policy's."""
        return self.part != RULE and bool(self.inline) and self.merge != WITH_INLINE

    @property
    def drops_its_rule(self) -> bool:
        """Of what a rule has: whether a mistake in it drops the rule. Otherwise the rule answers 500, as a filter must
        not be skipped (Gateway API, HTTPRouteFilter)."""
        return self.inline == "field" and not self.security

    @property
    def waits_as_a_whole(self) -> bool:
        """Whether nothing of it works yet."""
        return any(not each.path for each in self.waits)


_CALLS: Final = "gRPC callouts"

POLICIES: Final[tuple[Policy, ...]] = (
    # Of requests: steps in their order, then settings that the proxy itself carries out.
    Policy(name="compression", part=TRAFFIC, does="compresses responses for clients that accept it"),
    Policy(
        name="cors",
        part=TRAFFIC,
        does="says to browsers which sites' scripts may use this one",
        early=True,
        inline="filter",
    ),
    Policy(name="csrf", part=TRAFFIC, does="refuses what another site made a browser send", security=True),
    Policy(
        name="jwt_authentication",
        part=TRAFFIC,
        does="requires a valid token of an issuer that you trust",
        early=True,
        security=True,
    ),
    Policy(
        name="basic_authentication",
        part=TRAFFIC,
        does="requires a valid name and password",
        early=True,
        security=True,
    ),
    Policy(
        name="api_key_authentication",
        part=TRAFFIC,
        does="requires a valid key that you gave out",
        early=True,
        security=True,
    ),
    Policy(
        name="ext_auth",
        part=TRAFFIC,
        does="asks a server whether a request may go on",
        in_file="ext_authz",
        early=True,
        inline="filter",
        in_rule="external_auth",
        security=True,
        conditional=True,
    ),
    Policy(
        name="authorization",
        part=TRAFFIC,
        does="allows, denies and requires by expressions",
        early=True,
        security=True,
        merge=ALL,
    ),
    Policy(
        name="rate_limit",
        part=TRAFFIC,
        does="limits how many requests, or tokens of models, pass",
        security=True,
        conditional=True,
    ),
    Policy(
        name="session_persistence",
        part=RULE,
        does="keeps the requests of a session at one endpoint, by a cookie or a header",
        inline="field",
    ),
    Policy(name="buffer", part=TRAFFIC, does="holds bodies until they are complete"),
    Policy(
        name="ext_proc",
        part=TRAFFIC,
        does="has a server see and change requests and responses",
        early=True,
        security=True,
        conditional=True,
    ),
    Policy(
        name="transformation",
        part=TRAFFIC,
        does="changes headers, bodies and request lines by expressions",
        early=True,
        conditional=True,
    ),
    Policy(
        name="header_modifiers",
        part=TRAFFIC,
        does="sets, adds and removes headers",
        inline="filter",
        merge=WITH_INLINE,
    ),
    Policy(name="url_rewrite", part=RULE, does="changes the host or path that the backend sees", merge=ALL),
    Policy(name="request_redirect", part=RULE, does="sends the client elsewhere", merge=ALL),
    Policy(name="delay", part=TRAFFIC, does="has requests wait before they go on"),
    Policy(name="fault", part=TRAFFIC, does="has some requests wait or fail, for tests of clients"),
    Policy(name="direct_response", part=TRAFFIC, does="answers without a backend", conditional=True),
    Policy(name="timeouts", part=TRAFFIC, does="bounds the time that a request may take", inline="field"),
    Policy(name="retry", part=TRAFFIC, does="tries a request another time, on another endpoint", inline="field"),
    Policy(name="request_mirror", part=RULE, does="sends copies to a second backend", merge=ALL),
    Policy(name="host_rewrite", part=TRAFFIC, does="decides which `Host` the backend sees"),
    Policy(name="upgrades", part=TRAFFIC, does="says which protocols a client may switch to"),
    # Of backends: how they are connected to, and what their kinds do.
    Policy(
        name="backend_http",
        part=BACKEND,
        written="http",
        does="with which version of HTTP backends are spoken to, and how long they may take",
        subset=SIMPLE,
    ),
    Policy(
        name="backend_tcp",
        part=BACKEND,
        written="tcp",
        does="how long a connection to a backend may take, and its keepalive",
        subset=SIMPLE,
        carries=(HTTP, TCP),
    ),
    Policy(
        name="backend_tls",
        part=BACKEND,
        written="tls",
        does="TLS to backends: names, authorities, a client certificate",
        security=True,
        subset=SIMPLE,
        carries=(HTTP, TCP),
    ),
    Policy(
        name="backend_client_certificate",
        part=GATEWAY,
        written="client_certificate_ref",
        does="a Gateway's own certificate for the servers of its backends",
        security=True,
    ),
    Policy(
        name="backend_tunnel",
        part=BACKEND,
        written="tunnel",
        does="sends connections to backends through a forward proxy",
        security=True,
        subset=SIMPLE,
        carries=(HTTP, TCP),
    ),
    Policy(
        name="backend_limits",
        part=BACKEND,
        written="limits",
        does="how much a backend is asked at a time: connections, waiting requests, requests, retries; how long"
        " connections are kept",
        subset=WITH_AI,
        carries=(HTTP, TCP),
    ),
    Policy(
        name="backend_hash",
        part=BACKEND,
        written="hash",
        does="sends requests with the same key to the same endpoint",
    ),
    Policy(
        name="backend_mcp",
        part=BACKEND,
        written="mcp",
        does="which tools, prompts and resources of [MCP servers](mcp/README.md) a client may see and call",
        security=True,
        merge=ALL,  # of its authorization; of the rest the winner's alone (`merge.winner`)
    ),
    Policy(
        name="backend_ai",
        part=BACKEND,
        written="ai",
        does="what becomes of requests to [LLM providers](llm/README.md), and who may use which model",
        security=True,
        merge=ALL,  # as `backend_mcp`
        not_on=("Service",),  # its LLM providers are parts of a GatewayBackend
        subset=WITH_AI,
    ),
    Policy(
        name="health",
        part=BACKEND,
        does="which endpoints get no requests for a while",
        subset=WITH_AI,
        carries=(HTTP, TCP, UDP),
    ),
    Policy(
        name="backend_auth",
        part=BACKEND,
        written="auth",
        does="credentials toward backends: a key, the client's own one, those of clouds",
        security=True,
        subset=SIMPLE,
    ),
    Policy(
        name="backend_ext_auth",
        part=BACKEND,
        written="ext_auth",
        in_file="ext_authz",
        does="asks a server about requests to one backend",
        security=True,
        is_step=True,
    ),
    Policy(
        name="backend_transformation",
        part=BACKEND,
        written="transformation",
        does="changes what one backend gets, and what it answers, by expressions",
        subset=WITH_AI,
        is_step=True,
    ),
    Policy(
        name="endpoint_picker",
        part=POOL,
        written="endpoint_picker_ref",
        does="asks a server which endpoint of an InferencePool serves a request",
        security=True,
        is_step=True,
    ),
    # Of clients' connections, and what is reported about requests.
    Policy(name="frontend_tcp", part=FRONTEND, written="tcp", does="keepalive of clients' connections"),
    Policy(
        name="proxy_protocol",
        part=FRONTEND,
        does="takes the client's address from a load balancer's PROXY header",
        security=True,
    ),
    Policy(
        name="network_authorization",
        part=FRONTEND,
        does="decides who may connect",
        security=True,
        merge=ALL,
    ),
    Policy(
        name="connect",
        part=FRONTEND,
        does="what becomes of CONNECT requests: refused, routed, or a tunnel to another port",
        security=True,
    ),
    Policy(
        name="frontend_http",
        part=FRONTEND,
        written="http",
        does="how connections are carried, how large heads and bodies may be, and whom a Gateway believes about"
        " clients",
        security=True,
    ),
    Policy(
        name="frontend_tls",
        part=FRONTEND,
        written="tls",
        does="which versions, cipher suites, groups and protocols listeners negotiate",
        security=True,
    ),
    Policy(
        name="access_log",
        part=FRONTEND,
        does="which requests have a line, and what it says; lines are sent to a collector by OTLP",
    ),
    Policy(
        name="limits",
        part=FRONTEND,
        does="how much a proxy takes on at a time: connections, requests, bodies",
    ),
    Policy(
        name="tracing",
        part=FRONTEND,
        does="which requests are traced; their spans are sent to a collector by OTLP",
    ),
    Policy(
        name="metrics",
        part=FRONTEND,
        does="labels of the metrics about requests; all metrics are sent to a collector by OTLP",
    ),
)

BY_NAME: Final = {row.name: row for row in POLICIES}
BY_ATTRIBUTE: Final = {(row.part, row.attribute): row for row in POLICIES}
"""Part and attribute to the row."""
BY_FILE: Final = {(row.part, row.file_attribute): row for row in POLICIES}
"""The same for the names of the standalone file."""


def of(*parts: str) -> Iterator[Policy]:
    """The policies of some parts, in their order."""
    return (row for row in POLICIES if row.part in parts)


def named(row: Policy) -> str:
    """How users call it, beginning with its part: `traffic.extAuth`."""
    first, *rest = row.attribute.split("_")
    return ".".join((row.part, first + "".join(map(str.capitalize, rest))))


EARLY: Final = frozenset(row.attribute for row in of(TRAFFIC) if row.early)
"""Attributes of `traffic` that phase PreRouting may set."""
LATE: Final = tuple(row.attribute for row in of(TRAFFIC) if not row.early)
"""The others."""
SECURITY: Final = tuple(row.name for row in of(TRAFFIC, BACKEND) if row.security)
"""Policies that refuse what they protect when they cannot act as written: of `traffic` and `backend`."""
SECURITY_OF_CONNECTIONS: Final = tuple(row.name for row in of(FRONTEND) if row.security)
"""The same of `frontend`: they refuse connections, handshakes, requests, tunnels. By default each of them would be
laxer than what somebody asked for."""
ACCUMULATING: Final = {row.name: row.merge for row in POLICIES if row.merge}
"""Policies of which more than one may act, with how."""
