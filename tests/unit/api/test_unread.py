"""A GatewayPolicy with a mistake: what is still known of it, so that its guards refuse what they would have guarded."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.decode import documents
from gatewright.api.objects.backend_tls_policy import BackendTLSPolicy
from gatewright.api.objects.gateway_policy import GatewayPolicy

GATEWAY = "{group: gateway.networking.k8s.io, kind: Gateway, name: web}"
ROUTE = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}"
SERVICE = '{group: "", kind: Service, name: shop}'
MISTAKE = "timeouts: {request: soon}"


def remains(spec: str, metadata: str = "{name: p, namespace: ns}") -> GatewayPolicy | None:
    """What is left of an invalid policy."""
    (decoded,) = documents.decode(
        f"apiVersion: gatewright.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {metadata}\nspec:\n  {spec}\n", "f.yaml"
    )
    assert decoded.verdict == "invalid" and decoded.item is None
    assert decoded.remains is None or isinstance(decoded.remains, GatewayPolicy)
    return decoded.remains


def left(spec: str) -> GatewayPolicy:
    found = remains(spec)
    assert found is not None and found.unread is not None
    return found


def targets(*refs: str) -> str:
    return f"targetRefs: [{', '.join(refs)}]\n  "


def test_where_it_acts_and_what_it_guards() -> None:
    found = left(targets(GATEWAY, ROUTE) + f"traffic: {{csrf: {{}}, cors: {{}}, authorization: {{}}, {MISTAKE}}}")
    assert found.unread is not None
    assert found.unread.security == {"csrf", "authorization"}
    assert str(found.key) == "GatewayPolicy ns/p"
    assert [(each.kind, each.name) for each in found.spec.target_refs or ()] == [
        ("Gateway", "web"),
        ("HTTPRoute", "shop"),
    ]
    assert found.spec.target_selectors is None
    assert (found.spec.traffic is None or not found.spec.traffic.model_fields_set) and found.spec.strategy is None


def test_a_selector_stays_as_well() -> None:
    selector = "{group: gateway.networking.k8s.io, kind: Gateway, matchLabels: {a: b}}"
    found = left(f"targetSelectors: [{selector}]\n  traffic: {{csrf: {{}}, {MISTAKE}}}")
    assert found.spec.target_refs is None
    assert [each.match_labels for each in found.spec.target_selectors or ()] == [{"a": "b"}]


@pytest.mark.parametrize(
    ("traffic", "guards"),
    [
        (f"{{jwtAuthentication: {{}}, {MISTAKE}}}", {"jwt_authentication"}),
        (f"{{rateLimit: 3, extAuth: {{}}, {MISTAKE}}}", {"rate_limit", "ext_auth"}),
        (
            f"{{apiKeyAuthentication: {{}}, basicAuthentication: {{}}, {MISTAKE}}}",
            {"api_key_authentication", "basic_authentication"},
        ),
        (f"{{autorization: {{}}, {MISTAKE}}}", {"authorization"}),  # misspelt
        ("[csrf]", {"authorization"}),
        ("off", {"authorization"}),
    ],
)
def test_what_is_misspelt_may_have_been_a_guard(traffic: str, guards: set[str]) -> None:
    unread = left(targets(GATEWAY) + f"traffic: {traffic}").unread
    assert unread is not None and unread.security == guards


@pytest.mark.parametrize(
    "spec",
    [
        f"traffic: {{csrf: {{}}, {MISTAKE}}}",  # no target
        "targetRefs: all\n  traffic: {csrf: {}}",
        targets("{kind: Gateway}") + f"traffic: {{csrf: {{}}, {MISTAKE}}}",
        targets(SERVICE) + f"traffic: {{csrf: {{}}, {MISTAKE}}}",  # no place for settings of requests
        "[]",
    ],
)
def test_what_has_no_place_leaves_nothing(spec: str) -> None:
    assert remains(spec) is None


@pytest.mark.parametrize(
    ("backend", "guards"),
    [
        ("{tls: {sni: 3}}", {"backend_tls"}),
        ("{mcp: {authorization: 3}}", {"backend_mcp"}),
        ("{auth: 3, extAuth: 3, health: {}}", {"backend_auth", "backend_ext_auth"}),
        ("{tsl: {}}", {"backend_tls"}),  # misspelt
        ("{htttp: {}}", set()),
        ("{tls: null, http: 3}", set()),
    ],
)
def test_guards_of_backends(backend: str, guards: set[str]) -> None:
    unread = left(targets(GATEWAY) + f"backend: {backend}").unread
    assert unread is not None and unread.security == guards


@pytest.mark.parametrize("rest", [f"traffic: {{{MISTAKE}}}", "backend: {http: 3}"])
def test_what_guards_nothing_leaves_its_place_for_a_status(rest: str) -> None:
    found = left(targets(GATEWAY) + rest)
    assert found.unread is not None and found.unread.security == set()
    assert [each.name for each in found.spec.target_refs or ()] == ["web"]


def test_what_has_no_good_name_leaves_nothing() -> None:
    spec = targets(GATEWAY) + f"traffic: {{csrf: {{}}, {MISTAKE}}}"
    assert remains(spec, "{name: Not_A_Name}") is None
    assert remains(spec, "{name: [p]}") is None


def test_of_several_targets_those_that_can_be_read_stay() -> None:
    found = left(targets(GATEWAY, SERVICE, "{kind: 3}", ROUTE) + f"traffic: {{csrf: {{}}, {MISTAKE}}}")
    assert [each.name for each in found.spec.target_refs or ()] == ["web", "shop"]


SOON = 'must be a duration such as 500ms, 3s, 5m or 1h30m, got "soon"'


@pytest.mark.parametrize(
    ("mistakes", "told"),
    [
        ("timeouts: {request: soon}", "spec.traffic.timeouts.request: "),
        ("a: 1, b: 2", "spec.traffic.a: "),
    ],
)
def test_it_says_what_is_wrong(mistakes: str, told: str) -> None:
    unread = left(targets(GATEWAY) + f"traffic: {{csrf: {{}}, {mistakes}}}").unread
    assert unread is not None and unread.message.startswith(told)


@pytest.mark.parametrize(("count", "ending"), [(1, ""), (2, ""), (8, ""), (9, "; and 1 more"), (11, "; and 3 more")])
def test_eight_mistakes_are_named(count: int, ending: str) -> None:
    mistakes = ", ".join(f"zzz{number}: 1" for number in range(count))
    unread = left(targets(GATEWAY) + f"traffic: {{csrf: {{}}, {mistakes}}}").unread
    assert unread is not None
    named, _, more = unread.message.partition("; and ")
    assert [part.partition(":")[0] for part in named.split("spec.traffic.")[1:]] == [
        f"zzz{number}" for number in range(min(count, 8))
    ]
    assert (f"; and {more}" if more else "") == ending
    assert unread.message.endswith(ending) and not unread.message.endswith("x")


def inheritance(found: GatewayPolicy) -> Any:
    return found.spec.strategy.inheritance if found.spec.strategy is not None else None


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("", None),
        ("strategy: {inheritance: Default}", None),
        ("strategy: {inheritance: Override}", "Override"),
        ("strategy: {inheritance: Overrides}", "Override"),  # cannot be read: a more specific one must not open it
        ("strategy: {inheritence: Override}", "Override"),
        ("strategy: Override", "Override"),
        ("strategy: {}", None),
    ],
)
def test_what_may_have_been_meant_as_an_override_is_one(strategy: str, expected: str | None) -> None:
    found = left(targets(GATEWAY) + f"traffic: {{csrf: {{}}, {MISTAKE}}}\n  {strategy}")
    assert inheritance(found) == expected


@pytest.mark.parametrize(
    ("refs", "phase", "expected"),
    [
        ((GATEWAY,), "PreRouting", "PreRouting"),
        ((GATEWAY, ROUTE), "PreRouting", None),  # a route has no such phase
        ((GATEWAY,), "PostRouting", None),
        ((GATEWAY,), "Routing", None),
    ],
)
def test_its_phase_counts_where_all_targets_have_it(refs: tuple[str, ...], phase: str, expected: str | None) -> None:
    found = left(targets(*refs) + f"traffic: {{phase: {phase}, csrf: {{}}, {MISTAKE}}}")
    traffic = found.spec.traffic
    assert (traffic.phase if traffic is not None and "phase" in traffic.model_fields_set else None) == expected


@pytest.mark.parametrize(
    ("rest", "guards"),
    [
        ("frontend: {networkAuthorisation: {}}", {"network_authorization"}),
        ("frontend: {NETWORK: {}}", {"network_authorization"}),
        ("frontend: {proxyProtocols: {}}", {"proxy_protocol"}),
        ("frontend: {connects: {}}", {"connect"}),
        ("frontend: {tlss: {}, https: {}}", {"frontend_tls", "frontend_http"}),
        ("frontend: {accessLogs: {}}", set()),
        ("frontend: 7", set()),
        ("backend: {tls: {no: 1}}", {"backend_tls"}),
        ("backend: {tls: 7}", {"backend_tls"}),
        ("backend: {http: 7}", set()),
        ("backend: 7", set()),
        (
            "traffic: {csrf: {no: 1}}\n  frontend: {connects: {}}\n  backend: {tls: 1}",
            {"csrf", "connect", "backend_tls"},
        ),
    ],
)
def test_guards_of_connections_on_both_sides(rest: str, guards: set[str]) -> None:
    unread = left(targets(GATEWAY) + rest).unread
    assert unread is not None and unread.security == guards


def test_what_is_about_tls_to_backends_may_be_at_a_service() -> None:
    found = left(targets(SERVICE, GATEWAY) + "backend: {tls: {no: 1}}")
    assert [each.kind for each in found.spec.target_refs or ()] == ["Service", "Gateway"]
    assert [each.kind for each in left(targets(SERVICE, GATEWAY) + "backend: {http: 1}").spec.target_refs or ()] == [
        "Gateway"
    ]


def remains_of_tls(spec: str, metadata: str = "{name: p, namespace: ns}") -> BackendTLSPolicy | None:
    (decoded,) = documents.decode(
        f"apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {metadata}\nspec: {spec}\n", "f"
    )
    assert decoded.verdict == "invalid" and decoded.item is None
    assert decoded.remains is None or isinstance(decoded.remains, BackendTLSPolicy)
    return decoded.remains


SHOP = '{group: "", kind: Service, name: shop}'
PORT = '{group: "", kind: Service, name: cart, sectionName: web}'


@pytest.mark.parametrize(
    ("targets", "left"),
    [
        (f"[{SHOP}]", [("shop", None)]),
        (f"[{SHOP}, {PORT}]", [("shop", None), ("cart", "web")]),
        (f"[7, {SHOP}, {{kind: 3}}]", [("shop", None)]),
        (f"[{PORT.replace('web', 'Not_A_Name')}]", [("cart", None)]),  # what was meant is a part of it
        (f"[{PORT.replace('sectionName', 'section')}]", [("cart", None)]),
        (f"[{SHOP}, {SHOP}]", [("shop", None), ("shop", None)]),
    ],
)
def test_services_of_a_tls_policy_that_is_not_valid(targets: str, left: list[tuple[str, str | None]]) -> None:
    found = remains_of_tls(f"{{targetRefs: {targets}, validation: {{hostname: 7}}}}")
    assert found is not None and str(found.key) == "BackendTLSPolicy ns/p"
    assert [(each.name, each.section_name) for each in found.spec.target_refs] == left
    assert "spec.validation.hostname: must be a string, got 7: YAML" in found.unread


@pytest.mark.parametrize("spec", ["7", "{targetRefs: 7}", "{targetRefs: []}", "{targetRefs: [7]}", "{validation: 7}"])
def test_of_a_tls_policy_that_names_no_service_nothing_is_left(spec: str) -> None:
    assert remains_of_tls(spec) is None
    assert remains_of_tls(f"{{targetRefs: [{SHOP}], validation: 7}}", "{name: Not_A_Name}") is None
