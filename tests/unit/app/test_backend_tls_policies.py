"""Backends under a BackendTLSPolicy, from YAML to sockets: what it asks for, or an error; never a byte in plaintext."""

from __future__ import annotations

import pytest

from controlplane.derive import TransformError
from controlplane.translate.backend import backend_tls
from controlplane.translate.conditions import UNTRANSLATED
from dataplane.table.plans import BackendPlan
from tests.fakes.both_planes import BothPlanes
from tests.fakes.certificates import Authority
from tests.outside.dialects.objects import ALL, GATEWAY, NEXT, SHOP, policy, route, service

BASE = GATEWAY + SHOP + NEXT
SHOP_AT, NEXT_AT = "127.0.0.1:3000", "127.0.0.1:3001"


GOOD, BAD = "wellKnownCACertificates: System", "wellKnownCACertificates: example.com/Own"


def tls(name: str = "tls", target: str = "name: shop", kind: str = "group: '', kind: Service", ca: str = BAD) -> str:
    """One that cannot be honoured, unless `ca` can."""
    return f"""\
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{{{kind}, {target}}}]
  validation: {{hostname: shop.example.com, {ca}}}
"""


def accepted(planes: BothPlanes, name: str = "tls") -> str:
    (entry,) = (planes.world.program.status("BackendTLSPolicy", "default", name) or {})["ancestors"]
    (found,) = (each for each in entry["conditions"] if each["type"] == "Accepted")
    return f"{found['status']} {found['reason']}: {found['message']}"


def test_it_answers_500_until_the_policy_goes() -> None:
    planes = BothPlanes(BASE + ALL)
    assert planes.ask() == (200, "ok") and planes.reached() == [SHOP_AT]
    planes.load(tls())
    assert planes.ask() == (500, "backend cannot be used") and planes.reached() == []
    assert planes.ask(method="POST", body="x")[0] == 500 and planes.reached() == []
    assert accepted(planes).startswith("False Invalid: wellKnownCACertificates example.com/Own is not known; ")
    (*_, line) = planes.log_lines()
    assert (
        " reason=BackendRefused" in line
        and "BackendTLSPolicy default/tls is not accepted: wellKnownCACertificates" in line
    )
    planes.remove("BackendTLSPolicy", "tls")
    assert planes.ask() == (200, "ok") and planes.reached() == [SHOP_AT]


def plan(planes: BothPlanes, key: str = "backend/service/default/shop/80") -> BackendPlan:
    return planes.context.current.table.backends[key]


def test_one_that_is_honoured() -> None:
    names = "subjectAltNames: [{type: Hostname, hostname: a.example}, {type: URI, uri: 'spiffe://here/shop'}]"
    planes = BothPlanes(BASE + ALL)
    assert plan(planes).transport is None
    planes.load(tls(ca=GOOD))
    made = plan(planes).transport
    assert accepted(planes) == "True Accepted: "
    assert made is not None and (made.server_name, made.names) == ("shop.example.com", ("shop.example.com",))
    planes.load(tls(ca=f"{GOOD}, {names}"))
    made = plan(planes).transport
    assert made is not None and (made.server_name, made.names) == (
        "shop.example.com",
        ("a.example", "spiffe://here/shop"),
    )
    planes.remove("BackendTLSPolicy", "tls")
    assert plan(planes).transport is None


def attached(target: str, tls: str) -> str:
    return f"""\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: p}}
spec: {{targetRefs: [{{{target}}}], backend: {{tls: {tls}}}}}
"""


@pytest.mark.parametrize(
    "target",
    ["group: gateway.networking.k8s.io, kind: Gateway, name: gw", "group: '', kind: Service, name: shop"],
)
def test_it_wins_over_a_gateway_policy(target: str) -> None:
    planes = BothPlanes(BASE + ALL + attached(target, "{sni: other.example}") + tls(ca=GOOD))
    made = plan(planes).transport
    assert made is not None and made.server_name == "shop.example.com"


def test_a_gateway_backend_s_own_wins_over_it() -> None:
    backend = """\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: outside}
spec: {static: {host: 127.0.0.1}, policies: {tls: {sni: own.example}}}
"""
    leads = route("  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: outside}]}]")
    target = tls(target="name: outside", kind="group: gatewright.dev, kind: GatewayBackend", ca=GOOD)
    planes = BothPlanes(GATEWAY + backend + leads + target)
    found = plan(planes, "backend/gatewaybackend/default/outside")
    assert found.transport is not None and found.transport.server_name == "own.example"
    assert [each.label for each in found.endpoints] == ["127.0.0.1:443"], "without a port: that of TLS"


def test_a_port_that_speaks_tls() -> None:
    """appProtocol says it, and nobody says how: the system's authorities, the Service's name."""
    spoken = SHOP.replace("{name: http, port: 80}]}", "{name: http, port: 80, appProtocol: https}]}")
    assert spoken != SHOP
    planes = BothPlanes(GATEWAY + spoken + NEXT + ALL)
    made = plan(planes).transport
    assert made is not None and made.names == ("shop.default.svc.cluster.local",)
    planes.load(tls(ca=GOOD))
    made = plan(planes).transport
    assert made is not None and made.names == ("shop.example.com",)


def test_it_is_so_from_the_first_state_on() -> None:
    planes = BothPlanes(BASE + ALL + tls())
    assert planes.ask()[0] == 500
    assert planes.connector.upstreams == []


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("name: shop, sectionName: http", 500),
        ("name: shop, sectionName: '80'", 500),
        ("name: shop, sectionName: x", 200),
    ],
)
def test_a_port_of_the_service(target: str, status: int) -> None:
    planes = BothPlanes(BASE + ALL + tls(target=target))
    assert planes.ask()[0] == status


def test_the_other_ports_and_services_serve() -> None:
    ports = SHOP.replace("{name: http, port: 80}]}", "{name: http, port: 80}, {name: https, port: 443}]}")
    planes = BothPlanes(GATEWAY + ports + NEXT + ALL + tls(target="name: shop, sectionName: https"))
    assert planes.ask()[0] == 200
    planes.load(route("  rules: [{backendRefs: [{name: shop, port: 443}]}]"))
    assert planes.ask()[0] == 500
    planes.load(route("  rules: [{backendRefs: [{name: next, port: 80}]}]"))
    assert planes.ask()[0] == 200 and planes.reached()[-1] == NEXT_AT


def test_its_share_of_requests_is_refused() -> None:
    weighted = "  rules: [{backendRefs: [{name: shop, port: 80, weight: 1}, {name: next, port: 80, weight: 1}]}]"
    planes = BothPlanes(BASE + route(weighted) + tls())
    planes.context.random = lambda: 0.0
    assert planes.ask()[0] == 500
    planes.context.random = lambda: 0.9
    assert planes.ask()[0] == 200 and planes.reached() == [NEXT_AT]


def test_retries_do_not_reach_it() -> None:
    planes = BothPlanes(
        BASE + route("  rules: [{retry: {attempts: 3, codes: [500]}, backendRefs: [{name: shop, port: 80}]}]") + tls()
    )
    assert planes.ask()[0] == 500
    assert planes.connector.upstreams == []


def test_a_mirror_gets_nothing() -> None:
    mirror = "filters: [{type: RequestMirror, requestMirror: {backendRef: {name: shop, port: 80}}}]"
    planes = BothPlanes(BASE + route(f"  rules: [{{{mirror}, backendRefs: [{{name: next, port: 80}}]}}]"))
    assert planes.ask()[0] == 200 and sorted(planes.reached()) == [SHOP_AT, NEXT_AT]
    planes.load(tls())
    assert planes.ask()[0] == 200 and planes.reached() == [NEXT_AT]


def test_calls_of_policies_fail_closed() -> None:
    asks = policy("    extAuth: {backendRef: {name: next, port: 80}, http: {}}")
    planes = BothPlanes(BASE + ALL + asks)
    assert planes.ask()[0] == 200 and planes.reached() == [NEXT_AT, SHOP_AT]
    planes.load(tls(target="name: next"))
    assert planes.ask()[0] == 403 and planes.reached() == []
    assert "BackendTLSPolicy default/tls is not accepted: wellKnownCACertificates" in planes.log_lines()[-1]
    assert accepted(planes).startswith("False Invalid: ")  # the policy that calls it is a use of it


def test_calls_by_grpc_routes_are_unavailable() -> None:
    calls = ALL.replace("kind: HTTPRoute", "kind: GRPCRoute")
    planes = BothPlanes(BASE + calls + tls())
    client = planes.connect()
    client.send(
        b"POST /a.A/B HTTP/1.1\r\nhost: shop.example.com\r\ncontent-type: application/grpc\r\ncontent-length: 5\r\n\r\n"
        b"\0\0\0\0\0"
    )
    assert b"\r\ngrpc-status: 14\r\n" in client.received
    assert planes.connector.upstreams == []


def test_a_gateway_backend() -> None:
    backend = """\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: outside}
spec: {static: {host: 127.0.0.1, port: 3002}}
"""
    leads = route("  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: outside}]}]")
    planes = BothPlanes(GATEWAY + backend + leads)
    assert planes.ask()[0] == 200
    planes.load(tls(target="name: outside", kind="group: gatewright.dev, kind: GatewayBackend"))
    assert planes.ask()[0] == 500 and planes.reached() == ["127.0.0.1:3002"]


def test_endpoints_that_come_later_get_nothing_either() -> None:
    without, endpoints = SHOP.split("---\napiVersion: discovery", 1)
    planes = BothPlanes(GATEWAY + without + ALL + tls())
    assert planes.ask()[0] == 500
    planes.load("---\napiVersion: discovery" + endpoints)
    assert planes.ask()[0] == 500 and planes.connector.upstreams == []
    planes.remove("BackendTLSPolicy", "tls")
    assert planes.ask()[0] == 200


def test_a_policy_in_another_namespace_says_nothing() -> None:
    planes = BothPlanes(BASE + ALL + tls().replace("{name: tls}", "{name: tls, namespace: other}"))
    assert planes.ask()[0] == 200


def test_the_older_counts_and_the_next_when_it_goes() -> None:
    planes = BothPlanes(BASE + ALL + tls("b") + tls("a"))
    assert accepted(planes, "a").startswith("False Invalid: ")
    assert accepted(planes, "b") == "False Conflicted: BackendTLSPolicy default/a counts for Service default/shop"
    planes.remove("BackendTLSPolicy", "a")
    assert accepted(planes, "b").startswith("False Invalid: ")
    assert planes.ask()[0] == 500
    planes.remove("BackendTLSPolicy", "b")
    assert planes.ask()[0] == 200


def test_a_ca_that_comes_later_is_noticed() -> None:
    named = "caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]"
    planes = BothPlanes(BASE + ALL + tls(ca=named))
    assert accepted(planes).startswith("False NoValidCACertificate: ConfigMap default/ca does not exist; ")
    planes.load("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ca}\ndata: {ca.crt: text}\n")
    assert accepted(planes).startswith("False NoValidCACertificate: ConfigMap default/ca has an entry ca.crt that ")
    planes.remove("ConfigMap", "ca")
    assert accepted(planes).startswith("False NoValidCACertificate: ConfigMap default/ca does not exist; ")


def test_a_gateway_that_stops_sending_there_is_no_ancestor() -> None:
    planes = BothPlanes(BASE + service("third", 3002) + ALL + tls())
    assert accepted(planes)
    planes.load(route("  rules: [{backendRefs: [{name: third, port: 80}]}]"))
    assert planes.world.program.status("BackendTLSPolicy", "default", "tls") == {"ancestors": []}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("hostname: shop.example.com", "hostname: 'not a name'"),
        ("hostname: shop.example.com, ", ""),
        (BAD, f"{BAD}, typo: 1"),
        ("name: shop}", "name: shop, sectionName: 'not a name'}"),
        ("name: shop}", "name: shop}, {kind: Service}"),
        (f"  validation: {{hostname: shop.example.com, {BAD}}}", ""),
    ],
)
def test_one_with_a_mistake_closes_what_it_names(right: str, wrong: str) -> None:
    planes = BothPlanes(BASE + ALL)
    assert right in tls()
    planes.save(tls().replace(right, wrong))
    assert planes.ask()[0] == 500 and planes.reached() == []
    assert accepted(planes).startswith("False Invalid: not valid: spec.")
    assert accepted(planes).endswith("; requests to its targets are answered with 500")
    planes.save("")
    assert planes.ask()[0] == 200


def test_one_that_gets_a_mistake_keeps_its_last_good_version() -> None:
    planes = BothPlanes(BASE + ALL)
    planes.save(tls())
    planes.save(tls().replace("hostname: shop.example.com", "hostname: 'not a name'"))
    assert planes.ask()[0] == 500
    assert accepted(planes).startswith("False Invalid: not valid: spec.validation.hostname: ")


def test_one_without_readable_targets_closes_nothing() -> None:
    planes = BothPlanes(BASE + ALL)
    planes.save(tls().replace("name: shop", "name: 'not a name'"))
    planes.save(tls().replace("{name: tls}", "{name: 'not a name'}"))
    planes.save("apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {name: a}\nspec: 1\n")
    assert planes.ask()[0] == 200


# --- what `backend.tls` names: Secrets and ConfigMaps, of policies and of GatewayBackends

AUTHORITY = Authority()
CLIENT = AUTHORITY.issue("gateway.example", client=True)


def indented(text: bytes) -> str:
    return "".join(f"    {line}\n" for line in text.decode().splitlines())


CA = f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: ca}}\ndata:\n  ca.crt: |\n{indented(AUTHORITY.pem)}"
PAIR = (
    "---\napiVersion: v1\nkind: Secret\nmetadata: {name: client}\nstringData:\n"
    f"  tls.crt: |\n{indented(CLIENT.chain)}  tls.key: |\n{indented(CLIENT.key)}"
)
NAMES = "{caCertificateRefs: [{name: ca}], mtlsCertificateRef: [{name: client}]}"
OUTSIDE = "backend/gatewaybackend/default/outside"
OWN = f"""\
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {{name: outside}}
spec: {{static: {{host: 127.0.0.1, port: 3002}}, policies: {{tls: {NAMES}}}}}
"""


def resolved(planes: BothPlanes, kind: str, name: str) -> str:
    status = planes.world.program.status(kind, "default", name) or {}
    conditions = status["conditions"] if kind == "GatewayBackend" else status["ancestors"][0]["conditions"]
    (found,) = (each for each in conditions if each["type"] == "ResolvedRefs")
    return f"{found['status']} {found['reason']}: {found['message']}"


@pytest.mark.parametrize(
    ("texts", "key", "kind", "name"),
    [
        (
            BASE + ALL + attached("group: '', kind: Service, name: shop", NAMES),
            "backend/service/default/shop/80",
            "GatewayPolicy",
            "p",
        ),
        (
            GATEWAY
            + OWN
            + route("  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: outside}]}]"),
            OUTSIDE,
            "GatewayBackend",
            "outside",
        ),
    ],
)
def test_what_it_names(texts: str, key: str, kind: str, name: str) -> None:
    planes = BothPlanes(texts)
    assert planes.ask()[0] == 500 and planes.reached() == [], "never plain text"
    assert resolved(planes, kind, name).startswith("False SecretNotFound: Secret default/client does not exist")
    planes.load(PAIR)
    assert planes.ask()[0] == 500
    assert resolved(planes, kind, name) == "False ConfigMapNotFound: ConfigMap default/ca does not exist"
    planes.load(CA)
    first = plan(planes, key).transport
    assert first is not None and plan(planes, key).refused == ""
    assert resolved(planes, kind, name).startswith("True ResolvedRefs")
    planes.load(CA.replace("name: ca}", "name: ca, labels: {a: b}}"))
    assert plan(planes, key).transport == first, "the same certificates"
    planes.remove("Secret", "client")
    assert planes.ask()[0] == 500 and planes.reached() == []


def test_a_policy_with_a_mistake_closes_what_it_would_secure() -> None:
    planes = BothPlanes(BASE + ALL)
    planes.save(attached("group: '', kind: Service, name: shop", "{sni: 'not a name'}"))
    assert planes.ask()[0] == 500 and planes.reached() == []
    planes.save(attached("group: '', kind: Service, name: shop", "{}"))
    assert plan(planes).transport is not None


PORTS = SHOP.replace("{name: http, port: 80}]}", "{name: http, port: 80}, {name: https, port: 443}]}")
SECURE = tls(target="name: shop, sectionName: https", ca=GOOD)


@pytest.mark.parametrize("before", ["", SECURE], ids=["the first one", "where another one counts for another port"])
def test_a_bug_where_it_is_decided_which_one_counts_closes_the_backend(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of what was decided before is kept: a policy that came since would be passed over."""
    planes = BothPlanes(GATEWAY + PORTS + NEXT + ALL + before)
    assert planes.ask()[0] == 200
    planes.reached()

    def buggy(*_: object) -> backend_tls.Firsts:
        raise IndexError("out of range")

    with monkeypatch.context() as patch:
        patch.setattr(backend_tls, "firsts", buggy)
        with pytest.raises(TransformError, match="out of range"):
            planes.load(tls("whole", ca=GOOD))
        planes.load(NEXT)  # what the batch with the bug changed arrives as well
    assert planes.ask() == (500, "backend cannot be used") and planes.reached() == []
    assert accepted(planes, "whole") == f"False Invalid: {UNTRANSLATED}; requests to its targets are answered with 500"
    (*_, line) = planes.log_lines()
    assert "which BackendTLSPolicy counts for it is not known" in line
    planes.load(tls("whole", ca=f"{GOOD}, subjectAltNames: [{{type: Hostname, hostname: a.example}}]"))
    assert plan(planes).transport is not None and plan(planes).refused == ""
    assert accepted(planes, "whole") == "True Accepted: "
