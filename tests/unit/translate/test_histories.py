"""Any history of edits ends where a fresh program ends that is given the last objects, in whatever order.

The objects are few and refer to each other in every way, so that each edit can break, mend, move or uncover something.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.translate.fleet import FleetView
from tests.unit.translate.golden import Edit, World, facts, objects


def gateway(name: str, listeners: str, class_name: str = "ours") -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: {name}, namespace: a}}
spec: {{gatewayClassName: {class_name}, listeners: [{listeners}]}}
"""


def route(namespace: str, name: str, parents: str, rest: str) -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{parentRefs: [{parents}], {rest}}}
"""


def calls(parents: str, rest: str) -> str:
    """Of the name of an HTTPRoute."""
    return route("a", "r", parents, rest).replace("kind: HTTPRoute", "kind: GRPCRoute")


def stream(kind: str, parents: str, backends: str, more: str = "") -> str:
    rest = f"{more + ', ' if more else ''}rules: [{{backendRefs: [{backends}]}}]"
    return route("a", "s", parents, rest).replace("kind: HTTPRoute", f"kind: {kind}")


def service(namespace: str, ports: str) -> str:
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: s, namespace: {namespace}}}
spec: {{ports: [{ports}]}}
"""


def endpoints(addresses: str) -> str:
    return f"""
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: s-1, namespace: a, labels: {{kubernetes.io/service-name: s}}}}
addressType: IPv4
ports: [{{port: 8080}}]
endpoints: [{addresses}]
"""


def gateway_class(controller: str) -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: ours}}
spec: {{controllerName: {controller}}}
"""


GRANT = """
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: g, namespace: b}
spec:
  from:
    - {group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: a}
    - {group: gatewright.dev, kind: GatewayPolicy, namespace: a}
  to: [{group: "", kind: Service}]
"""
BACKEND = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: x, namespace: a}
spec: {%s}
"""
POLICY = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p, namespace: a}
spec: {targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {}}], traffic: {}}
"""


def policy(name: str, targets: str, rest: str) -> str:
    return f"""
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}, namespace: a}}
spec: {{targetRefs: [{targets}], {rest}}}
"""


SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: k, namespace: a, labels: {keys: %s}}
stringData: {%s}
"""
ON_ONE = "{group: gateway.networking.k8s.io, kind: Gateway, name: one}"
ON_HTTP = "{group: gateway.networking.k8s.io, kind: Gateway, name: one, sectionName: http}"
ON_R = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}"
ON_CALLS = "{group: gateway.networking.k8s.io, kind: GRPCRoute, name: r, sectionName: n}"
KEYS = "apiKeyAuthentication: {secretSelector: {matchLabels: {keys: mine}}}"
USERS = "basicAuthentication: {secretRef: {name: k}}"
ASKS = "extAuth: {backendRef: {name: s, namespace: b, port: 80}, http: {}}"
HTTP = "{name: http, protocol: HTTP, port: 80}"
OPEN = (
    "{name: open, protocol: HTTP, port: 81, hostname: '*.test', allowedRoutes: {namespaces: {from: Selector, "
    "selector: {matchLabels: {open: 'yes'}}}}}"
)
CA = """
apiVersion: v1
kind: ConfigMap
metadata: {name: ca, namespace: a}
data: {%s: text}
"""


def tls(name: str, target: str) -> str:
    return f"""
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: {name}, namespace: a}}
spec:
  targetRefs: [{target}]
  validation: {{hostname: up.test, caCertificateRefs: [{{group: "", kind: ConfigMap, name: ca}}]}}
"""


TCP = "{name: tcp, protocol: TCP, port: 80}"
TO_A = "{name: s, port: 80}"
TO_B = "{name: s, namespace: b, port: 80}"
TO_X = "{group: gatewright.dev, kind: GatewayBackend, name: x}"
TO_BOTH = f"{{backendRefs: [{TO_B}, {TO_X}]}}"
STICKY = "{sessionPersistence: {header: {name: h}, type: Header}}"

VARIANTS: list[Edit] = [
    edit
    for text in (
        gateway_class("gatewright.dev/controller"),
        gateway_class("example.com/other"),
        gateway("one", HTTP),
        gateway("one", f"{HTTP}, {TCP}, {OPEN}"),
        gateway("one", HTTP, "nobodys"),
        gateway("two", OPEN),
        gateway("two", f"{OPEN}, {HTTP}"),
        route("a", "r", "{name: one}", f"rules: [{{backendRefs: [{TO_A}]}}]"),
        route(
            "a", "r", "{name: one}, {name: two}", f"hostnames: [x.test, y], rules: [{{backendRefs: [{TO_B}, {TO_X}]}}]"
        ),
        route(
            "a",
            "r",
            "{name: two, sectionName: open}",
            "rules: [{sessionPersistence: {header: {name: h}, type: Header}}]",
        ),
        route("b", "r", "{name: two, namespace: a}", f"rules: [{{backendRefs: [{TO_A}]}}, {{backendRefs: [{TO_A}]}}]"),
        route("b", "r", "{name: one, namespace: a}, {name: two, namespace: a}", "hostnames: ['*.test']"),
        calls("{name: one}", f"rules: [{{name: n, backendRefs: [{TO_A}]}}]"),
        calls("{name: one}, {name: two}", f"hostnames: [x.test, y], rules: [{{backendRefs: [{TO_B}, {TO_X}]}}]"),
        calls("{name: two, sectionName: open}", f"rules: [{STICKY}]"),
        stream("TCPRoute", "{name: one}", TO_A),
        stream("TCPRoute", "{name: one, sectionName: tcp}, {name: two}", f"{TO_B}, {TO_X}"),
        stream("UDPRoute", "{name: one}", TO_A),
        stream("TLSRoute", "{name: two}", TO_X, "hostnames: [x.test]"),
        service("a", "{port: 80}, {port: 80, protocol: UDP}"),
        service("a", "{port: 80}"),
        service("a", "{port: 80, appProtocol: http}, {name: more, port: 81}"),
        service("b", "{port: 80}"),
        endpoints("{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}"),
        endpoints("{addresses: [10.0.0.2], conditions: {ready: false, serving: true, terminating: true}}"),
        GRANT,
        BACKEND % "static: {host: h.test, port: 80}",
        BACKEND % "a2a: {host: h.test, port: 80}",
        POLICY,
        policy("p", f"{ON_ONE}, {ON_R}", f"traffic: {{csrf: {{}}, {USERS}}}"),
        policy("p", ON_HTTP, f"strategy: {{inheritance: Override}}, traffic: {{csrf: {{}}, {ASKS}}}"),
        policy("q", ON_R, f"traffic: {{csrf: {{}}, {KEYS}}}"),
        policy("q", f"{ON_CALLS}, {ON_R}", f"traffic: {{csrf: {{}}, {ASKS}}}"),
        policy("q", f"{ON_HTTP}, {ON_ONE}", f"traffic: {{phase: PreRouting, {ASKS}}}"),
        policy("q", f"{ON_ONE}", "traffic: {extProc: {backendRef: {name: s, port: 80}}}"),
        SECRET % ("mine", "a: b"),
        SECRET % ("mine", "a: c, .htaccess: 'a:b'"),
        SECRET % ("yours", "a: b"),
        CA % "ca.crt",
        CA % "other",
        tls("t", "{group: '', kind: Service, name: s}"),
        tls("t", "{group: gatewright.dev, kind: GatewayBackend, name: x}"),
        tls("u", "{group: '', kind: Service, name: s, sectionName: more}"),
        tls("u", "{group: '', kind: Service, name: s}, {group: gatewright.dev, kind: GatewayBackend, name: x}"),
        "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {open: 'yes'}}}",
        "{apiVersion: v1, kind: Namespace, metadata: {name: b, labels: {open: 'yes'}}}",
    )
    for edit in objects(text)
]
START = list({(kind, key): (kind, key, model) for kind, key, model in reversed(VARIANTS)}.values())
"""The first variant of each object: from here most edits have consequences."""
REMOVALS = [(kind, key, None) for kind, key, _ in VARIANTS if kind != "GatewayClass"]
"""Not of classes: Gateways outlive theirs, which a fresh start learns from written statuses (test_class_claims)."""

NAMES = ["a/one", "a/two"]
REFUSALS = st.dictionaries(
    st.sampled_from(
        [
            "route/httproute/a/r/0",
            "bind/a/one/80",
            "backend/service/a/s/80",
            "backend/gatewaybackend/a/x",
            "policy/a/p/csrf",
            "secret/a/k",
        ]
    ),
    st.sampled_from(["no", "never"]),
)
VIEWS = st.sampled_from([None, FleetView(1, 0), FleetView(2, 2)])
STEP = st.one_of(
    st.tuples(st.just("apply"), st.lists(st.sampled_from(VARIANTS + REMOVALS[::2]), max_size=6)),
    st.tuples(st.just("fleet"), st.tuples(st.sampled_from(NAMES), VIEWS)),
    st.tuples(st.just("refuse"), st.tuples(st.sampled_from(NAMES), REFUSALS)),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(STEP, max_size=14), st.randoms(use_true_random=False))
def test_any_history_ends_where_a_fresh_start_ends(steps: list[tuple[str, Any]], random: Any) -> None:
    lived = World()
    lived.apply(START)
    known: dict[Any, Edit] = {(kind, key): (kind, key, model) for kind, key, model in START}
    news: dict[Any, Any] = {}
    for step, value in steps:
        if step == "apply":
            lived.apply(value)
            known.update({(kind, key): (kind, key, model) for kind, key, model in value})
        else:
            getattr(lived.program, step)(*value)
            news[step, value[0]] = value
    fresh = World()
    for (step, _), value in news.items():
        getattr(fresh.program, step)(*value)
    edits = [edit for edit in known.values() if edit[2] is not None]
    random.shuffle(edits)
    for edit in edits:
        fresh.apply([edit])
    assert lived.resources == fresh.resources
    assert lived.program.statuses() == fresh.program.statuses()
    readers = [row["readers"] for row in lived.program.dump()]
    assert readers == [row["readers"] for row in fresh.program.dump()], "a reading was not forgotten"


@settings(max_examples=35, deadline=None)
@given(st.lists(st.lists(st.sampled_from(VARIANTS + REMOVALS[::2]), max_size=8), max_size=8))
def test_in_slices_resources_come_as_a_whole_then_statuses_and_the_end_is_the_same(batches: list[list[Edit]]) -> None:
    sliced, whole = World(), World()
    for batch in [START, *batches]:
        whole.apply(batch)
        statuses, resources = dict(sliced.program.statuses()), dict(sliced.resources)
        for _ in sliced.program.steps(facts(batch)):
            assert sliced.program.statuses() == statuses
            assert sliced.resources in (resources, whole.resources)
        assert sliced.program.statuses() == whole.program.statuses()
        assert sliced.resources == whole.resources
    assert sliced.batches == whole.batches
    assert sliced.program.runs() == whole.program.runs()
