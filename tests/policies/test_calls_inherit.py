"""What calls inherit, as one table: every place that can begin a call, every setting of how to connect, every level
that it is set at. A cell acts, or the table says why not. `-s` prints it.

The rule is `upstream/calls/levels`; which of several levels wins is `test_backend_levels`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from dataplane.export.exporter import Exporter
from dataplane.upstream.calls import Sending
from dataplane.upstream.lease import Backend, BackendPlan
from tests.fakes.both_planes import BothPlanes
from tests.fakes.tokens import Issuer
from tests.fakes.web_objects import WEB

KEY = "backend/gatewaybackend/default/far"
SOCKET = "/run/far.sock"
ISSUER = "https://idp.test/realms/r"
ANN = Issuer(issuer=ISSUER)

OBJECTS = (
    WEB
    + """---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: far}
spec:
  static: ADDRESS
  OWN
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: near}
spec:
  static: {host: 10.0.0.8, port: 9000}
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: tools}
spec:
  mcp: {targets: [{name: one, static: MCP_TARGET}]}
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: models}
spec:
  ai: {groups: [{providers: [{name: one, openai: {model: m}, PROVIDER}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: web}]
  rules:
    - name: pay
      FILTERS
      backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: TARGET}]
    - name: known
      matches: [{path: {type: Exact, value: /far}}]
      backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: far}]
"""
)
POLICY = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{target}]
  {spec}
"""


def _gateway(section: str = "") -> str:
    return f"{{group: gateway.networking.k8s.io, kind: Gateway, name: web{section}}}"


def _route(section: str = "") -> str:
    return f"{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop{section}}}"


def _backend(name: str) -> str:
    return f"{{group: gatewright.dev, kind: GatewayBackend, name: {name}}}"


TO_FAR: Final = f"backendRef: {_backend('far')}"
OWN: Final = "own"
LEVELS: Final = {
    "Gateway": _gateway(),
    "listener": _gateway(", sectionName: http"),
    "route": _route(),
    "rule": _route(", sectionName: pay"),
    "backend": _backend("far"),
    OWN: "",
}
"""Where a policy is attached; the last stands in the called backend itself."""

# --- settings: as written, and whether a call has them


@dataclass(frozen=True)
class Setting:
    written: str
    acts: Callable[[Any, Any], bool]
    """Given the plan and the holder of a call."""


def _times(plan: Any, holder: Any) -> bool:
    """It is in the plan, and is the time that the call has."""
    if isinstance(holder, Sending):
        return plan.request_timeout == 7.0 == holder.head_by - holder.started
    return plan.request_timeout == 7.0 == holder.attempt_deadline - holder.context.clock()


SETTINGS: Final = {
    "tls": Setting("tls: {sni: far.test}", lambda plan, _: bool(plan.transport.tls.sni == "far.test")),
    "requestTimeout": Setting("http: {requestTimeout: 7s}", _times),
    "connectTimeout": Setting(
        "tcp: {connectTimeout: 3s}", lambda plan, _: bool(plan.transport.tcp.connect_timeout == 3.0)
    ),
    "limits": Setting(
        "limits: {maxRequests: 5, maxConnections: 2}",
        lambda plan, holder: bool(
            plan.rules.backend_limits.requests == 5 and plan.transport.quota is not None and holder.counted is not None
        ),
    ),
    "health": Setting(
        "health: {eviction: {duration: 60s}}", lambda plan, _: bool(plan.rules.health.eviction.duration == 60.0)
    ),
}
ALL_SETTINGS: Final = {name: each.written for name, each in SETTINGS.items()}

# --- places that begin a call

PLAIN: Final = ("GET", "/", (), "")
MESSAGE: Final = ("accept: application/json, text/event-stream", "content-type: application/json")
CHAT: Final = (
    "POST",
    "/v1/chat/completions",
    ("content-type: application/json",),
    json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
)
HELLO: Final = ("POST", "/", MESSAGE, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}))
JWT: Final = f"""
    jwtAuthentication:
      mcp: {{provider: Keycloak}}
      providers:
      - issuer: {ISSUER}
        jwks: {{remote: {{jwksPath: certs, {TO_FAR}}}}}
"""
DISCOVERY: Final = "/.well-known/oauth-authorization-server/mcp"
REGISTRATION: Final = json.dumps({"redirect_uris": ["http://localhost/cb"]})
METADATA: Final = json.dumps(
    {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/auth",
        "token_endpoint": f"{ISSUER}/token",
        "registration_endpoint": f"{ISSUER}/register",
        "code_challenge_methods_supported": ["S256"],
    }
).encode()
KEYS: Final = ANN.key_set().encode()
NO_NAME: Final = "a server that no configuration names: policies are for those that it does"
SHARED: Final = "one for all requests: Gateway only"
NO_FIELD: Final = "no field: attached to the target by name"
UNROUTED: Final = "there is no route yet"


@dataclass(frozen=True)
class Place:
    asks: tuple[str, str, tuple[str, ...], str]
    """Method, path, header lines and body of a request that leads to the call."""
    target: str = "near"
    filters: str = ""
    policy: tuple[str, str] | None = None
    """Where it is attached, and what it says."""
    reason: str = ""
    """Why nothing acts at these levels."""
    not_at: tuple[str, ...] = ()
    lacks: tuple[str, tuple[str, ...]] = ("", ())
    """Why these settings cannot be written in the called backend itself."""
    has_socket: bool = True
    """Its address may be a Unix socket."""
    key: str = KEY
    attached: str = LEVELS["backend"]
    """Where policies are attached for the called backend."""
    exports: bool = False
    """It is what a request leaves for a collector that is sent."""
    which: Callable[[bytes], bool] = bool
    """By the target of the call, where several go to the same backend."""


EXT_AUTH: Final = f"extAuth: {{{TO_FAR}, http: {{}}}}"
PROCESSOR: Final = f"{{remote: {{{TO_FAR}}}, methods: {{initialize: Request}}}}"
PLACES: Final = {
    "request": Place(PLAIN, target="far"),
    "mirror": Place(PLAIN, filters=f"filters: [{{type: RequestMirror, requestMirror: {{{TO_FAR}}}}}]"),
    "extAuth": Place(PLAIN, policy=(_route(), f"traffic: {{{EXT_AUTH}}}")),
    "extAuth, PreRouting": Place(
        PLAIN,
        policy=(_gateway(), f"traffic: {{phase: PreRouting, {EXT_AUTH}}}"),
        reason=UNROUTED,
        not_at=("route", "rule"),
    ),
    "guardrails": Place(
        HELLO,
        target="tools",
        policy=(
            _backend("tools"),
            f"backend: {{mcp: {{guardrails: {{processors: [{PROCESSOR}]}}}}}}",
        ),
    ),
    "MCP target": Place(
        HELLO,
        target="tools",
        lacks=(NO_FIELD, ("limits", "health")),
        has_socket=False,
        key="backend/gatewaybackend/default/tools/one",
        attached=_backend("tools, sectionName: one"),
    ),
    "collector": Place(
        PLAIN,
        policy=(_gateway(), f"frontend: {{tracing: {{{TO_FAR}, protocol: HTTP, randomSampling: 'true'}}}}"),
        reason=SHARED,
        not_at=("listener", "route", "rule"),
        exports=True,
    ),
    "LLM provider": Place(
        CHAT,
        target="models",
        has_socket=False,
        key="backend/gatewaybackend/default/models/one",
        attached=_backend("models, sectionName: one"),
    ),
    "JWKS": Place(
        ("GET", "/", (f"authorization: Bearer {ANN.token()}",), ""),
        policy=(_route(), f"traffic:{JWT}"),
        reason=SHARED,
        not_at=("listener", "route", "rule"),
        which=lambda target: b"certs" in target,
    ),
    "OAuth metadata": Place(
        ("GET", DISCOVERY, (), ""),
        policy=(_route(), f"traffic:{JWT}"),
        reason=SHARED,
        not_at=("listener", "route", "rule"),
        which=lambda target: b".well-known" in target,
    ),
    "OAuth registration": Place(
        ("POST", f"{DISCOVERY}/client-registration", (), REGISTRATION),
        policy=(_route(), f"traffic:{JWT}"),
        which=lambda target: b"registrations" in target,
    ),
}


def configured(
    place: Place, level: str, address: str = "{host: 10.0.0.9, port: 9001}", settings: dict[str, str] = ALL_SETTINGS
) -> str:
    made = placed(place, level, ", ".join(each for name, each in settings.items() if name not in place.lacks[1]))
    made = made.replace("ADDRESS", address)
    if level and level != OWN:
        target = place.attached if level == "backend" else LEVELS[level]
        spec = f"backend: {{{', '.join(settings.values())}}}"
        made += POLICY.format(name="settings", target=target, spec=spec)
    return made


def placed(place: Place, level: str, own: str) -> str:
    """The objects; at the last level `own` stands in the called backend itself."""
    own = f"policies: {{{own}}}" if level == OWN else ""
    in_part = f", {own}" if own and place.key != KEY else ""
    return (
        OBJECTS.replace("OWN", "" if in_part else own)
        .replace("FILTERS", place.filters)
        .replace("MCP_TARGET", f"{{host: 10.0.0.9, port: 9001{in_part if place.target == 'tools' else ''}}}")
        .replace("PROVIDER", f"host: 10.0.0.9, port: 9001{in_part if place.target == 'models' else ''}")
        .replace("TARGET", place.target)
    )


class Seen:
    """A kind of backend that notes who is sent to the called one."""

    def __init__(self, inner: Backend, key: str, begun: list[tuple[Any, Any]]) -> None:
        self.inner, self.key, self.begun = inner, key, begun

    def begin(self, holder: Any, plan: BackendPlan, leases: Any) -> None:
        self.inner.begin(holder, plan, leases)
        if plan.key == self.key:
            self.begun.append((plan, holder))


Look = Callable[[Any, Any], Any]


# Tests have an event loop, though nothing turns it: a fetch of keys that fails asks it for a time.


def seen(place: Place, look: Look, level: str = "", **more: Any) -> Any:
    """What `look` says of the plan and the holder of the call, while it is under way."""
    proxy = BothPlanes(configured(place, level, **more))
    begun: list[tuple[Any, Any]] = []
    leases = proxy.context.leases
    leases.backends = {name: Seen(row, place.key, begun) for name, row in leases.backends.items()}
    proxy.connector.hold = True
    left: list[tuple[Any, ...]] = []
    proxy.context.exporters.add = lambda *given: left.append(given)  # type: ignore[method-assign]  # no loop turns
    if place.policy is not None:  # now that its backend is known: some begin with a call
        proxy.load(POLICY.format(name="calls", target=place.policy[0], spec=place.policy[1]))
    method, path, lines, body = place.asks
    client = proxy.connect_to(0)
    head = [f"{method} {path} HTTP/1.1", "host: idp.test", *lines, f"content-length: {len(body)}", "", ""]
    client.send(("\r\n".join(head) + body).encode())
    if place.exports:
        export(proxy, left)
    found = [each for each in begun if place.which(each[1].target)]
    if not found:  # what it begins with comes first
        proxy.connector.release()
        for upstream in proxy.connector.upstreams:
            body = KEYS if b"/certs" in upstream.received else METADATA
            upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        found = [each for each in begun if place.which(each[1].target)]
    assert found, "it was not called"
    said = look(*found[0])
    client.lose()
    proxy.connector.refuse = "the test is over"
    proxy.connector.release()
    return said


def export(proxy: BothPlanes, left: list[tuple[Any, ...]]) -> None:
    """The request ends, and what it leaves is sent."""
    proxy.connector.release()
    proxy.endpoints_answer()
    proxy.connector.hold = True
    (_, collector, make, _) = left[0]
    exporter = Exporter[Any](make(), collector, proxy.context.calls, proxy.context.spawn, lambda *_: None)
    proxy.context.spawn(exporter._send(b""))  # type: ignore[arg-type]  # what it answers is for nobody


def acting(plan: Any, holder: Any) -> set[str]:
    return {name for name, setting in SETTINGS.items() if _has(setting, plan, holder)}


def _has(setting: Setting, plan: Any, holder: Any) -> bool:
    try:
        return setting.acts(plan, holder)
    except AttributeError:  # there is no transport, or there are no rules
        return False


def cell(row: Place, setting: str, level: str) -> str:
    """What the table says: `acts`, or why not."""
    if level in row.not_at:
        return row.reason
    return row.lacks[0] if level == OWN and setting in row.lacks[1] else "acts"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("place", PLACES)
async def test_what_a_call_takes_from_a_level(place: str, level: str) -> None:
    row = PLACES[place]
    expected = {name for name in SETTINGS if cell(row, name, level) == "acts"}
    assert seen(row, acting, level) == expected


@pytest.mark.parametrize("place", PLACES)
async def test_without_policies_nothing_acts(place: str) -> None:
    assert seen(PLACES[place], acting) == set()


@pytest.mark.parametrize("place", [name for name, each in PLACES.items() if each.has_socket])
async def test_every_call_reaches_a_socket(place: str) -> None:
    address = f"{{unixPath: {SOCKET}}}"
    assert seen(PLACES[place], lambda _, holder: holder.endpoint.unix_path, address=address) == SOCKET


TUNNEL: Final = {"tunnel": f"tunnel: {{backendRef: {_backend('near')}}}"}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("place", PLACES)
async def test_which_tunnel_a_call_goes_through(place: str, level: str) -> None:
    """That of a level that says how it is connected to; a proxy's own way goes past all of them."""
    tunnel = seen(PLACES[place], _tunnel, level, settings=TUNNEL)
    assert tunnel == ("backend/gatewaybackend/default/near" if cell(PLACES[place], "tunnel", level) == "acts" else "")


def _tunnel(plan: Any, _: Any) -> str:
    return plan.transport.tunnel.backend if plan.transport is not None and plan.transport.tunnel is not None else ""


def test_the_table_has_a_word_in_each_cell() -> None:
    lines = ["", "| call | setting | " + " | ".join(LEVELS) + " |", "|---" * (len(LEVELS) + 2) + "|"]
    for place, row in PLACES.items():
        for setting in (*SETTINGS, *TUNNEL):
            cells = [cell(row, setting, level) for level in LEVELS]
            assert all(cells), f"{place}, {setting}"
            lines.append(f"| {place} | {setting} | {' | '.join(cells)} |")
        own = "acts" if row.has_socket else "no field: a target has a host or a Service"
        cells = ["an address is a backend's own"] * (len(LEVELS) - 1) + [own]
        lines.append(f"| {place} | unix socket | {' | '.join(cells)} |")
    cells = [NO_NAME] * len(LEVELS)
    lines += [f"| token server | {setting} | {' | '.join(cells)} |" for setting in (*SETTINGS, *TUNNEL)]
    print("\n".join(lines))
