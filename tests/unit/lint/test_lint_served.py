"""Lint of what a folder would serve: listeners, routes below them, and what comes from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from controlplane.lint import elsewhere
from controlplane.lint.lint import lint_paths
from gatewright.api.lint.lint import Folder
from gatewright.api.objects.gateway import Gateway
from gatewright.api.schema.metadata import KubeObject, ObjectKey

API = "apiVersion: gateway.networking.k8s.io/v1\n"
CLASS = API + "kind: GatewayClass\nmetadata: {name: gatewright}\nspec: {controllerName: gatewright.dev/controller}\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: shop}\nspec: {ports: [{port: 80}, {port: 81}]}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: users}\nstringData: {other: x}\n"


def gateway(*listeners: str) -> str:
    rows = ", ".join(f"{{{each}}}" for each in listeners)
    return f"{API}kind: Gateway\nmetadata: {{name: web}}\nspec: {{gatewayClassName: gatewright, listeners: [{rows}]}}\n"


def route(parent: str = "name: web", more: str = "", rule: str = "backendRefs: [{name: shop, port: 80}]") -> str:
    spec = f"{{{more}parentRefs: [{{{parent}}}], rules: [{{{rule}}}]}}"
    return f"{API}kind: HTTPRoute\nmetadata: {{name: shop}}\nspec: {spec}\n"


def policy(settings: str, target: str = "name: web") -> str:
    reference = f"{{group: gateway.networking.k8s.io, kind: Gateway, {target}}}"
    head = "apiVersion: gatewright.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {name: p}\nspec:\n"
    return f"{head}  targetRefs: [{reference}]\n  traffic: {{{settings}}}\n"


def found(folder: Path, *texts: str, others: tuple[str, ...] = ()) -> list[str]:
    """Code, severity, field and message of each problem of a folder with these files."""
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text)
    report = lint_paths([folder], others)
    return [f"{each.code} {each.severity} {each.path}: {each.message}" for each in report.problems]


A = "name: a, port: 80, protocol: HTTP"


def test_what_can_be_served_has_no_problem(tmp_path: Path) -> None:
    assert found(tmp_path, CLASS, gateway(A), SERVICE, route()) == []


@pytest.mark.parametrize(
    ("listeners", "routed", "expected"),
    [
        ((A, "name: b, port: 80, protocol: TCP"), route(), None),
        (
            (A, "name: b, port: 81, protocol: HTTP, hostname: b.example"),
            route("name: web, sectionName: b", "hostnames: [a.example], "),
            "none of a.example meets a listener's hostname (b.example)",
        ),
        ((A,), route("name: web, sectionName: b"), "the Gateway has no listener with name b"),
        ((A,), route("name: web, port: 81"), "the Gateway has no listener with port 81"),
        (
            (A, "name: s, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: c}]}"),
            route("name: web, sectionName: s"),
            "no listener serves it: listener s: no certificate can be used, so every handshake fails",
        ),
        (
            (f"{A}, allowedRoutes: {{kinds: [{{kind: GRPCRoute}}]}}",),
            route(),
            "no listener admits kind HTTPRoute",
        ),
        (
            (A, "name: r, port: 15020, protocol: HTTP"),
            route("name: web, sectionName: r"),
            "no listener serves it: listener r: port 15020 is reserved: the proxy serves its metrics there",
        ),
    ],
)
def test_a_route_that_nobody_takes(
    listeners: tuple[str, ...], routed: str, expected: str | None, tmp_path: Path
) -> None:
    problems = found(tmp_path, CLASS, gateway(*listeners), SERVICE, routed)
    said = [each for each in problems if each.startswith("not-attached")]
    if expected is None:
        causes = [each for each in problems if "conflicts with listener" in each]
        assert causes and said
    else:
        assert said == [f"not-attached error spec.parentRefs[0]: {expected}"]


def test_listeners_that_conflict_beside_one_that_serves(tmp_path: Path) -> None:
    listeners = (A, "name: b, port: 81, protocol: HTTP", "name: c, port: 81, protocol: TCP")
    problems = found(tmp_path, CLASS, gateway(*listeners), SERVICE, route("name: web, sectionName: a"))
    assert [each for each in problems if each.startswith("bad-condition")] == [
        f"bad-condition error spec.listeners[{index}]: conflicts with listener {other} on port 81: their protocols"
        " cannot share a port"
        for index, other in ((1, "c"), (2, "b"))
    ]


def test_a_gateway_that_opens_no_port_names_all_causes(tmp_path: Path) -> None:
    problems = found(
        tmp_path,
        CLASS,
        gateway("name: a, port: 15000, protocol: HTTP", "name: t, port: 15020, protocol: TCP"),
    )
    (said,) = [each for each in problems if each.startswith("serves-nothing")]
    assert "a: port 15000 is reserved" in said and "t: port 15020 is reserved" in said


def test_namespaces_that_a_listener_selects(tmp_path: Path) -> None:
    selecting = f"{A}, allowedRoutes: {{namespaces: {{from: Selector, selector: {{matchLabels: {{team: a}}}}}}}}"
    texts = [CLASS, gateway(selecting), SERVICE, route()]
    assert found(tmp_path, *texts) == [], "labels of the namespace are in none of the files"
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: %s}}\n"
    assert found(tmp_path, *texts, namespace % "a") == []
    assert found(tmp_path, *texts, namespace % "b") == [
        "not-attached error spec.parentRefs[0]: no listener admits routes from namespace default"
    ]


def test_a_gateway_of_another_controller_hides_nothing_of_ours(tmp_path: Path) -> None:
    theirs = CLASS.replace("name: gatewright", "name: other").replace("gatewright.dev/controller", "other.dev/x")
    first = (
        gateway(A).replace("name: web", "name: a").replace("gatewayClassName: gatewright", "gatewayClassName: other")
    )
    ours = gateway("name: x, port: 15020, protocol: HTTP")
    (said,) = found(tmp_path, CLASS, theirs, first, ours)
    assert said.startswith("serves-nothing error spec.listeners: open no port: x: ")
    (said,) = found(tmp_path, CLASS, theirs, first, gateway(A).replace("gatewright, ", "nobody, "))
    assert said.startswith("unknown-class error spec.gatewayClassName: ") and said.endswith("no nobody")


def stood_in(folder: Path, monkeypatch: pytest.MonkeyPatch, *texts: str) -> dict[str, list[str]]:
    """What is added to a folder: of each Gateway its class and listeners, of each class nothing."""
    made: dict[str, list[str]] = {}
    stand_ins = elsewhere.stand_ins

    def kept(known: Folder) -> Mapping[ObjectKey, KubeObject]:
        found = stand_ins(known)
        for key, item in found.items():
            made[f"{key.kind} {key.namespace}/{key.name}".replace(" /", " ")] = (
                [item.spec.gateway_class_name, *(f"{each.name} {each.port}" for each in item.spec.listeners)]
                if isinstance(item, Gateway)
                else []
            )
        return found

    monkeypatch.setattr(elsewhere, "stand_ins", kept)
    found(folder, *texts)
    return made


EDGE = "Gateway default/edge"
SET = f"{API}kind: ListenerSet\nmetadata: {{name: s}}\nspec: {{parentRef: {{name: edge}}, listeners: [{{{A}}}]}}\n"


@pytest.mark.parametrize(
    ("texts", "made"),
    [
        ([route("name: edge")], {EDGE: ["gatewright", "any 20000"]}),
        ([route("name: edge, sectionName: s")], {EDGE: ["gatewright", "s 20000"]}),
        ([route("name: edge, port: 8443")], {EDGE: ["gatewright", "port-8443 8443"]}),
        ([route("name: edge, sectionName: s, port: 8443")], {EDGE: ["gatewright", "s 8443"]}),
        (
            [route("name: edge, sectionName: s}, {name: edge, sectionName: t")],
            {EDGE: ["gatewright", "s 20000", "t 20001"]},
        ),
        (
            [
                route("name: edge, port: 20000"),
                route("name: edge, sectionName: s").replace("name: shop}", "name: b}", 1),
            ],
            {EDGE: ["gatewright", "port-20000 20000", "s 20001"]},
        ),
        (
            [route("name: edge, namespace: a}, {name: edge, namespace: b")],
            {"Gateway a/edge": ["gatewright", "any 20000"], "Gateway b/edge": ["gatewright", "any 20000"]},
        ),
        ([route("kind: ListenerSet, name: edge")], {}),
        ([route("kind: Service, group: '', name: edge")], {}),
        ([SET], {EDGE: ["gatewright", "any 20000"]}),
        ([policy("timeouts: {request: 1s}", "name: edge")], {EDGE: ["gatewright", "any 20000"]}),
        ([policy("timeouts: {request: 1s}", "name: edge, sectionName: s")], {EDGE: ["gatewright", "s 20000"]}),
        ([gateway(A), route()], {}),
    ],
)
def test_what_stands_for_what_comes_from_elsewhere(
    texts: list[str], made: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a class of ours, where a Gateway stands for another or has none."""
    named = made or any("gatewayClassName" in text for text in texts)
    classes: dict[str, list[str]] = {"GatewayClass gatewright": []} if named else {}
    assert stood_in(tmp_path, monkeypatch, *texts) == {**classes, **made}


def test_a_class_of_that_name_may_be_somebody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stood_in(tmp_path, monkeypatch, CLASS, route("name: edge")) == {
        "GatewayClass gatewright-elsewhere": [],
        EDGE: ["gatewright-elsewhere", "any 20000"],
    }


def test_what_comes_from_elsewhere_is_as_it_is_wanted(tmp_path: Path) -> None:
    away = route("name: edge, namespace: infra, sectionName: s, port: 8443", "hostnames: [a.example], ")
    assert found(tmp_path, SERVICE, away) == []
    other = CLASS.replace("gatewright.dev/controller", "example.com/other")
    assert found(tmp_path, SERVICE, away, other) == [], "a class of that name is somebody else's"
    assert found(tmp_path, SERVICE, route(), others=("Gateway",)) == []
    assert [each.partition(" ")[0] for each in found(tmp_path, SERVICE, route())] == ["leads-nowhere"]


def test_policies_of_a_gateway_from_elsewhere_are_compared(tmp_path: Path) -> None:
    both = (policy("cors: {}"), policy("cors: {}").replace("name: p}", "name: q}"))
    (said,) = found(tmp_path, *both, others=("Gateway",))
    assert said.startswith("no-effect warning spec.traffic.cors: has no effect on Gateway default/web: GatewayPolicy")


def test_sections_of_a_gateway_with_another_mistake(tmp_path: Path) -> None:
    tls = "name: t, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: c}]}"
    problems = found(tmp_path, CLASS, gateway(A, tls), policy("cors: {}", "name: web, sectionName: b"))
    assert any(each.startswith("unknown-section warning spec.targetRefs[0].sectionName") for each in problems)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("name: users", ["bad-condition error spec.tls.backend.clientCertificateRef: Secret default/users has no entry"
         " tls.crt and tls.key"]),
        ("name: c, namespace: vault", ["not-granted error spec.tls.backend.clientCertificateRef: Secret vault/c: no"
         " ReferenceGrant in namespace vault permits Gateways of namespace default"]),
    ],
)  # fmt: skip
def test_a_certificate_of_a_gateway_that_cannot_be_used(reference: str, expected: list[str], tmp_path: Path) -> None:
    tls = f"spec: {{tls: {{backend: {{clientCertificateRef: {{{reference}}}}}}}, "
    assert found(tmp_path, CLASS, gateway(A).replace("spec: {", tls), SECRET) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("backendRefs: [{name: shop, port: 82}]", "lacks-part warning spec.rules[0].backendRefs[0].port: Service"
         " default/shop has no port 82; it has 80, 81"),
        ("backendRefs: [{name: shop, kind: Vault, group: x.example}]", "bad-condition error"
         " spec.rules[0].backendRefs[0]: x.example/Vault shop: backends are Services, GatewayBackends and"
         " InferencePools"),
        ("name: bare", "no-backend error spec.rules[0]: has no backendRefs and no RequestRedirect, so every request"
         " that it matches gets 500"),
    ],
)  # fmt: skip
def test_backends_that_cannot_be_used(rule: str, expected: str, tmp_path: Path) -> None:
    assert found(tmp_path, CLASS, gateway(A), SERVICE, route(rule=rule)) == [expected]


@pytest.mark.parametrize(
    ("settings", "target", "is_answered"),
    [
        ("directResponse: {status: 200}", "name: web", True),
        ("directResponse: {status: 200}", "name: web, sectionName: a", True),
        ("cors: {}", "name: web", False),
    ],
)
def test_a_rule_that_a_policy_answers(settings: str, target: str, is_answered: bool, tmp_path: Path) -> None:
    problems = found(tmp_path, CLASS, gateway(A), route(rule="name: bare"), policy(settings, target))
    assert [each.partition(" ")[0] for each in problems] == ([] if is_answered else ["no-backend"])


def test_a_service_without_endpoints_and_a_secret_without_the_entry(tmp_path: Path) -> None:
    external = SERVICE.replace("spec: {", "spec: {type: ExternalName, externalName: a.example, ")
    assert found(tmp_path, CLASS, gateway(A), external, route()) == [
        "bad-condition error spec.rules[0].backendRefs[0]: Service default/shop is of type ExternalName, which has no"
        " endpoints"
    ]
    users = policy("basicAuthentication: {secretRef: {name: users}}")
    assert found(tmp_path, CLASS, gateway(A), SERVICE, route(), SECRET, users) == [
        "lacks-part warning spec.traffic.basicAuthentication.secretRef: Secret default/users has no entry .htaccess"
    ]


def test_a_foreign_gateway_beside_one_of_ours_is_no_problem(tmp_path: Path) -> None:
    theirs = CLASS.replace("gatewright.dev/controller", "example.com/other").replace("name: gatewright", "name: theirs")
    other = (
        gateway(A)
        .replace("name: web", "name: other")
        .replace("gatewayClassName: gatewright", "gatewayClassName: theirs")
    )
    assert found(tmp_path, CLASS, theirs, gateway(A), other, SERVICE, route()) == []


@pytest.mark.parametrize("controller", ["gatewright.dev/controller", "example.com/other"])
def test_an_override_on_a_gateway_from_elsewhere(controller: str, tmp_path: Path) -> None:
    """Also where a class of the stand-in's name is somebody else's; routes of every namespace attach."""
    lock = policy("timeouts: {request: 1s}", "name: edge").replace("{name: p}", "{name: p, namespace: infra}")
    lock = lock.replace("spec:", "spec:\n  strategy: {inheritance: Override}")
    own = route("name: edge, namespace: infra", rule="timeouts: {request: 2s}, backendRefs: [{name: shop, port: 80}]")
    texts = (CLASS.replace("gatewright.dev/controller", controller), SERVICE, lock, own)
    assert found(tmp_path, *texts, others=("Gateway",)) == [
        "no-effect warning spec.rules[0].timeouts: has no effect: GatewayPolicy infra/p on Gateway infra/edge overrides"
        " it"
    ]


@pytest.mark.parametrize("locked", [0, 1])
def test_an_override_on_a_rule_concerns_that_rule_alone(locked: int, tmp_path: Path) -> None:
    """Also beside one without a name."""
    own = "timeouts: {request: 2s}, backendRefs: [{name: shop, port: 80}]"
    named = ["name: x, ", ""] if locked == 0 else ["", "name: x, "]
    rules = "}, {".join(f"{name}matches: [{{path: {{value: /{n}}}}}], {own}" for n, name in enumerate(named))
    lock = policy("timeouts: {request: 1s}", "name: shop, sectionName: x").replace("kind: Gateway,", "kind: HTTPRoute,")
    lock = lock.replace("spec:", "spec:\n  strategy: {inheritance: Override}")
    problems = found(tmp_path, CLASS, gateway(A), SERVICE, route(rule=rules), lock)
    assert [each.partition(": ")[0] for each in problems] == [f"no-effect warning spec.rules[{locked}].timeouts"]


def test_a_folder_of_a_gateway_alone_lacks_its_class(tmp_path: Path) -> None:
    assert [each.partition(" ")[0] for each in found(tmp_path, gateway(A))] == ["unknown-class"]


def test_routes_below_a_listener_set_of_a_gateway_from_elsewhere(tmp_path: Path) -> None:
    listeners = (
        f"{API}kind: ListenerSet\nmetadata: {{name: more}}\nspec:\n"
        f"  parentRef: {{name: edge, namespace: infra}}\n  listeners: [{{{A}, hostname: a.example}}]\n"
    )
    parent = "name: more, kind: ListenerSet"
    assert found(tmp_path, SERVICE, listeners, route(parent, "hostnames: [a.example], ")) == []
    assert found(tmp_path, SERVICE, listeners, route(parent, "hostnames: [b.example], ")) == [
        "not-attached error spec.parentRefs[0]: none of b.example meets a listener's hostname (a.example)"
    ]


def test_conditions_stand_at_what_they_are_about(tmp_path: Path) -> None:
    """Of a route at the reference to each parent, of a policy at the whole."""
    mirrored = "backendRefs: [{name: shop, port: 80, filters: [{type: RequestMirror, requestMirror: {backendRef: "
    mirrored += "{name: shop, port: 80}}}]}]"
    problems = found(
        tmp_path,
        CLASS,
        gateway(A, A.replace("name: a, port: 80", "name: a2, port: 81")),
        SERVICE,
        route("name: web, sectionName: a}, {name: web, sectionName: a2", rule=mirrored),
    )
    assert [each.partition(": ")[0] for each in problems] == ["bad-condition error spec.parentRefs[0]"]


def test_a_part_of_a_backend_that_is_not_there(tmp_path: Path) -> None:
    backend = "apiVersion: gatewright.dev/v1alpha1\nkind: GatewayBackend\nmetadata: {name: shop}\n"
    backend += "spec: {static: {host: shop.example, port: 80}}\n"
    head = "apiVersion: gatewright.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {name: p}\nspec:\n"
    target = "{group: gatewright.dev, kind: GatewayBackend, name: shop, sectionName: a}"
    text = f"{head}  targetRefs: [{target}]\n  backend: {{http: {{}}}}\n"
    problems = found(tmp_path, CLASS, gateway(A), SERVICE, route(), backend, text)
    assert problems == [
        'unknown-section warning spec.targetRefs[0].sectionName: GatewayBackend default/shop has no part "a"'
    ]
