"""The third output: what a Gateway of our class wants to exist, with a toy deployer that makes it so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from controlplane.deploy.names import object_name
from controlplane.deploy.request import Defaults
from controlplane.derive import Change
from controlplane.translate.conditions import Condition
from controlplane.translate.fleet import FleetView
from controlplane.translate.gateway.wanted import Failure, Outcome, Provisioner, Wanted
from controlplane.translate.keys import ObjectKey
from tests.unit.translate.golden import World, objects
from tests.unit.translate.test_program import CLASS, FOREIGN_CLASS, GATEWAY

GW = ObjectKey("default", "gw")
KINDS = ["ServiceAccount", "ConfigMap", "Secret", "Service", "Deployment"]
PROVISIONER = Provisioner(Defaults("1.0"), "CERTIFICATE")
PARAMETERS = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayParameters
metadata: {name: %s, namespace: default, generation: 1}
spec: %s
"""


class Deployer:
    """A toy cluster, and who fills it: what was made, and each call that this took."""

    def __init__(self) -> None:
        self.gateways: dict[ObjectKey, Wanted] = {}
        self.calls: list[str] = []

    def __call__(self, changes: Sequence[Change[ObjectKey, Wanted]]) -> None:
        for key, old, new in changes:
            assert self.gateways.get(key) == old
            if new is None:
                del self.gateways[key]
            else:
                self.gateways[key] = new
            self.calls.append(f"{'make' if old is None else 'mend' if new is not None else 'remove'} {key}")

    def kinds(self, key: ObjectKey = GW) -> list[str]:
        return [each.key.kind for each in self.gateways[key].objects]

    def body(self, kind: str) -> Any:
        return next(each.body for each in self.gateways[GW].objects if each.key.kind == kind)


def deployed(*texts: str) -> tuple[World, Deployer]:
    made, deployer = World(), Deployer()
    made.program.wanted.subscribe(deployer)
    provision(made, PROVISIONER)
    made.put("\n---\n".join(texts))
    return made, deployer


def provision(made: World, provisioner: Provisioner) -> None:
    for _ in made.program.provision(provisioner):
        pass


def heard(made: World, kind: str = "Gateway", key: ObjectKey = GW) -> dict[str, str]:
    status = made.program.status(kind, *key) or {}
    return {each["type"]: f"{each['status']} {each['reason']}: {each['message']}" for each in status["conditions"]}


def outcome(made: World, found: Outcome | None) -> None:
    for _ in made.program.outcomes({str(GW): found}):
        pass


def test_a_gateway_wants_proxies_and_an_address_with_its_ports() -> None:
    more = GATEWAY.replace("  listeners:\n", "  listeners:\n    - {name: more, protocol: UDP, port: 8080}\n")
    made, deployer = deployed(CLASS, GATEWAY)
    assert deployer.kinds() == KINDS
    assert [each["port"] for each in deployer.body("Service")["spec"]["ports"]] == [80]
    before = deployer.body("Deployment")
    made.put(more)
    ports = deployer.body("Service")["spec"]["ports"]
    assert [(each["name"], each["port"], each["protocol"]) for each in ports] == [
        ("tcp-80", 80, "TCP"),
        ("udp-8080", 8080, "UDP"),
    ]
    assert deployer.body("Deployment") == before  # a port replaces no pod
    assert deployer.calls == ["make default/gw", "mend default/gw"]


def test_there_is_no_service_without_ports_and_nothing_without_the_gateway() -> None:
    made, deployer = deployed(CLASS, GATEWAY)
    made.put(GATEWAY.replace("protocol: HTTP", "protocol: example.com/quic"))
    assert "Service" not in deployer.kinds()
    made.put(FOREIGN_CLASS)
    assert deployer.gateways == {}
    made.put(CLASS + GATEWAY)
    made.apply([(kind, key, None) for kind, key, _ in objects(GATEWAY)])
    assert deployer.gateways == {}


def test_what_runs_goes_on_while_a_gateway_is_not_accepted() -> None:
    made, deployer = deployed(CLASS, GATEWAY)
    made.put(GATEWAY.replace("  listeners:", "  addresses: [{type: NamedAddress, value: a}]\n  listeners:"))
    assert deployer.gateways[GW].as_it_is


def test_nothing_is_made_before_it_is_known_whom_proxies_trust() -> None:
    made, deployer = World(), Deployer()
    made.program.wanted.subscribe(deployer)
    provision(made, Provisioner(Defaults("1.0")))
    made.put(CLASS + GATEWAY)
    assert deployer.gateways[GW].as_it_is
    assert heard(made)["Programmed"].startswith("False Pending: the certificates that proxies trust")
    provision(made, PROVISIONER)
    assert deployer.body("ConfigMap")["data"] == {"xds-ca.crt": "CERTIFICATE"}


def test_a_late_deployer_gets_all_that_is_wanted_and_a_change_of_nothing_calls_nobody() -> None:
    made, _ = deployed(CLASS, GATEWAY)
    late = Deployer()
    made.program.wanted.subscribe(late)
    assert late.gateways == dict(made.program.wanted.present()) and late.kinds() == KINDS
    made.put(GATEWAY.replace("name: gw,", "name: gw, labels: {a: b},"))
    assert late.calls == ["make default/gw"]


def test_resources_leave_before_the_deployer_is_called() -> None:
    made, order = World(), list[str]()
    made.program.resources.subscribe(lambda _: order.append("resources"))
    made.program.wanted.subscribe(lambda _: order.append("wanted"))
    made.put(CLASS + GATEWAY)
    assert order == ["resources", "wanted"]


def referring(name: str) -> str:
    reference = f"{{group: gatewright.dev, kind: GatewayParameters, name: {name}}}"
    return GATEWAY.replace("  listeners:", f"  infrastructure: {{parametersRef: {reference}}}\n  listeners:")


def class_with(name: str) -> str:
    reference = f"{{group: gatewright.dev, kind: GatewayParameters, namespace: default, name: {name}}}"
    return CLASS.replace("spec: {", f"spec: {{parametersRef: {reference}, ", 1)


def test_parameters_of_the_gateway_win_over_those_of_its_class() -> None:
    of_class = PARAMETERS % ("of-class", "{image: {tag: a, registry: one.example}, logging: {level: debug}}")
    made, deployer = deployed(class_with("of-class"), of_class, PARAMETERS % ("own", "{image: {tag: b}}"))
    made.put(referring("own"))
    (container,) = deployer.body("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "one.example/gatewright/gatewright:b"
    assert container["args"][container["args"].index("--log-level") + 1] == "debug"
    assert heard(made, "GatewayParameters", ObjectKey("default", "own")) == {"Accepted": "True Accepted: "}
    made.put(PARAMETERS % ("own", "{image: {tag: c}}"))
    (container,) = deployer.body("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"].endswith(":c")


BAD: list[tuple[str, str]] = [
    ("{deployment: {spec: {template: {$patch: x}}}}", 'spec.deployment.spec.template["$patch"]: must be delete or'),
    ("{deployment: {spec: {template: {spec: {containers: [{}]}}}}}", "containers[0]: must have name"),
    ("{service: {metadata: {labels: {app.kubernetes.io/managed-by: me}}}}", "is set by the controller"),
    ("{serviceAccount: {spec: {metadata: {}}}}", "spec.serviceAccount.spec.metadata: cannot be changed"),
    ("{rawConfig: {binds: 5}}", "spec.rawConfig.binds: "),
    (
        "{rawConfig: {backends: [{name: b, mcp: {targets: [{name: t, stdio: {cmd: sh}}]}}], binds: []}}",
        "spec.rawConfig: target t: stdio is for the file of a proxy without a controller",
    ),
]


@pytest.mark.parametrize(("spec", "why"), BAD, ids=[why for _, why in BAD])
def test_parameters_that_cannot_be_used_change_nothing_that_runs(spec: str, why: str) -> None:
    made, deployer = deployed(CLASS, PARAMETERS % ("own", "{}"), referring("own"))
    assert not deployer.gateways[GW].as_it_is
    made.put(PARAMETERS % ("own", spec))
    own = heard(made, "GatewayParameters", ObjectKey("default", "own"))["Accepted"]
    assert own.startswith("False InvalidParameters: ") and why in own
    gateway = heard(made)["Accepted"]
    assert gateway.startswith("False InvalidParameters: GatewayParameters default/own is not accepted: ")
    assert deployer.gateways[GW].as_it_is
    made.put(PARAMETERS % ("own", "{}"))
    assert heard(made)["Accepted"].startswith("True Accepted") and not deployer.gateways[GW].as_it_is


@pytest.mark.parametrize("text", [class_with("none") + GATEWAY, CLASS + referring("none")], ids=["class", "gateway"])
def test_parameters_that_are_not_there_are_named(text: str) -> None:
    made, deployer = deployed(text)
    assert "GatewayParameters default/none does not exist" in heard(made)["Accepted"]
    assert heard(made)["Accepted"].startswith("False InvalidParameters: ")
    assert deployer.gateways[GW].as_it_is
    refused = heard(made, "GatewayClass", ObjectKey("", "gatewright"))["Accepted"].startswith("False InvalidParameters")
    assert refused == ("parametersRef" in text.partition("kind: Gateway\n")[0])


def test_a_class_names_parameters_of_a_namespace() -> None:
    made, _ = deployed(class_with("a").replace("namespace: default, ", ""), GATEWAY)
    told_ = heard(made, "GatewayClass", ObjectKey("", "gatewright"))["Accepted"]
    assert told_.startswith("False InvalidParameters: spec.parametersRef.namespace: is required")


def test_parameters_of_a_mesh_are_accepted() -> None:
    made, deployer = deployed(CLASS, PARAMETERS % ("own", "{istio: {enabled: true, network: n}}"), referring("own"))
    assert heard(made, "GatewayParameters", ObjectKey("default", "own"))["Accepted"].startswith("True ")
    assert heard(made)["Accepted"].startswith("True ") and not deployer.gateways[GW].as_it_is


def test_a_listener_in_the_place_of_a_mesh_is_refused_by_name() -> None:
    listeners = referring("own").replace("port: 80", "port: 15008")
    assert "port: 15008" in listeners
    made, _ = deployed(CLASS, PARAMETERS % ("own", "{istio: {enabled: true}}"), listeners)
    said = heard(made)["Accepted"]
    assert said.startswith("False InvalidParameters: listener of port 15008: a proxy in a mesh"), said
    made, _ = deployed(CLASS, PARAMETERS % ("own", "{istio: {enabled: false}}"), listeners)
    assert heard(made)["Accepted"].startswith("True ")


def test_addresses_are_those_of_the_service() -> None:
    made, _ = deployed(CLASS, GATEWAY)
    assert heard(made)["Programmed"].startswith("False AddressNotAssigned: ")
    outcome(made, Outcome((("IPAddress", "10.0.0.1"), ("Hostname", "a.example"))))
    assert heard(made)["Programmed"].startswith("False Pending: 0 proxies")
    assert (made.program.status("Gateway", *GW) or {})["addresses"] == [
        {"type": "IPAddress", "value": "10.0.0.1"},
        {"type": "Hostname", "value": "a.example"},
    ]
    outcome(made, None)
    assert (made.program.status("Gateway", *GW) or {})["addresses"] == []


def test_nothing_is_programmed_while_no_pod_is_ready() -> None:
    """A proxy may have said that it serves before its Service sends anybody there."""
    made, _ = deployed(CLASS, GATEWAY)
    address = (("IPAddress", "10.0.0.1"),)
    made.program.fleet(str(GW), FleetView(1, 1))
    outcome(made, Outcome(address, is_unready=True))
    assert heard(made)["Programmed"] == "False Pending: none of its Pods is ready"
    outcome(made, Outcome(address))
    assert heard(made)["Programmed"].startswith("True Programmed: ")


ASKED: list[tuple[str, tuple[tuple[str, str], ...], str]] = [
    ("{value: 10.0.0.1}", (), "False AddressNotAssigned: "),
    ("{value: 10.0.0.1}", (("IPAddress", "10.0.0.1"),), "False Pending: "),
    ("{value: 10.0.0.1}", (("IPAddress", "10.0.0.2"),), "False AddressNotUsable: not assigned: 10.0.0.1; assigned: "),
    ("{value: 10.0.0.1}, {value: 10.0.0.2}", (), "False AddressNotUsable: not assigned: 10.0.0.1, 10.0.0.2; "),
    ("{type: Hostname, value: a.example}", (), "False AddressNotUsable: "),
    ("{type: Hostname, value: a.example}", (("Hostname", "a.example"),), "False Pending: "),
    ("{type: IPAddress}", (("IPAddress", "10.0.0.2"),), "False Pending: "),
]


@pytest.mark.parametrize(("asked", "given", "expected"), ASKED)
def test_an_address_that_is_asked_for(asked: str, given: tuple[tuple[str, str], ...], expected: str) -> None:
    made, deployer = deployed(CLASS, GATEWAY.replace("  listeners:", f"  addresses: [{asked}]\n  listeners:"))
    outcome(made, Outcome(given))
    assert heard(made)["Accepted"].startswith("True Accepted")
    assert heard(made)["Programmed"].startswith(expected)
    first = "10.0.0.1" if "value: 10.0.0.1" in asked else None
    assert deployer.body("Service")["spec"].get("loadBalancerIP") == first


LOCAL = "{routability: Cluster}"
LB, HERE = (("IPAddress", "10.0.0.1"),), ("10.96.0.1", "fd00::1")
IN_CLUSTER = [{"type": "IPAddress", "value": each, "routability": "Cluster"} for each in HERE]
OUTSIDE = {"type": "IPAddress", "value": "10.0.0.1"}
ROUTABLE: list[tuple[str, Outcome, str, list[dict[str, str]]]] = [
    (LOCAL, Outcome(), "False AddressNotAssigned: ", []),
    (LOCAL, Outcome((("IPAddress", HERE[0]),), cluster_addresses=HERE), "False Pending: ", IN_CLUSTER),
    (f"{LOCAL}, {{type: IPAddress}}", Outcome((), cluster_addresses=HERE), "False AddressNotAssigned: ", IN_CLUSTER),
    (f"{LOCAL}, {{}}", Outcome(LB, cluster_addresses=HERE), "False Pending: ", [OUTSIDE, *IN_CLUSTER]),
    ("{value: 10.96.0.1, routability: Cluster}", Outcome(cluster_addresses=HERE), "False Pending: ", IN_CLUSTER),
    (
        "{value: 10.96.0.2, routability: Cluster}",
        Outcome(cluster_addresses=HERE),
        "False AddressNotUsable: not assigned: 10.96.0.2; ",
        IN_CLUSTER,
    ),
    # An address that only the cluster reaches is none that was asked for without a word.
    (f"{{value: 10.96.0.1}}, {LOCAL}", Outcome(LB, cluster_addresses=HERE), "False AddressNotUsable: ", []),
    ("{}", Outcome(LB, cluster_addresses=HERE), "False Pending: ", [OUTSIDE]),
]


@pytest.mark.parametrize(("asked", "given", "expected", "addresses"), ROUTABLE)
def test_an_address_of_the_cluster(asked: str, given: Outcome, expected: str, addresses: list[dict[str, str]]) -> None:
    made, _ = deployed(CLASS, GATEWAY.replace("  listeners:", f"  addresses: [{asked}]\n  listeners:"))
    outcome(made, given)
    assert heard(made)["Accepted"].startswith("True Accepted")
    assert heard(made)["Programmed"].startswith(expected)
    status = made.program.status("Gateway", "default", "gw")
    assert status is not None and (not addresses or status["addresses"] == addresses)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (LOCAL, {"type": "ClusterIP"}),
        (f"{LOCAL}, {{}}", {"type": "LoadBalancer"}),
        ("{}", {"type": "LoadBalancer"}),
        ("{value: 10.96.0.9, routability: Cluster}", {"type": "ClusterIP", "clusterIP": "10.96.0.9"}),
        (
            "{value: 10.96.0.9, routability: Cluster}, {value: 10.0.0.1}",
            {"type": "LoadBalancer", "clusterIP": "10.96.0.9", "loadBalancerIP": "10.0.0.1"},
        ),
    ],
)
def test_the_service_is_as_reachable_as_was_asked(asked: str, expected: dict[str, str]) -> None:
    _, deployer = deployed(CLASS, GATEWAY.replace("  listeners:", f"  addresses: [{asked}]\n  listeners:"))
    spec = deployer.body("Service")["spec"]
    assert {name: spec[name] for name in ("type", "clusterIP", "loadBalancerIP") if name in spec} == expected


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("{routability: example.com/vpc}", "addresses of routability example.com/vpc are not supported"),
        ("{type: Hostname, value: a.example, routability: Cluster}", "a host name of routability Cluster "),
    ],
)
def test_a_routability_that_nobody_here_knows(asked: str, why: str) -> None:
    made, deployer = deployed(CLASS, GATEWAY)
    made.put(GATEWAY.replace("  listeners:", f"  addresses: [{asked}]\n  listeners:"))
    assert heard(made)["Accepted"].startswith(f"False UnsupportedAddress: {why}")
    assert deployer.gateways[GW].as_it_is, "what runs goes on"


def test_what_infrastructure_says_is_on_every_object() -> None:
    said = "infrastructure: {labels: {team: edge}, annotations: {example.com/note: x}}"
    _, deployer = deployed(CLASS, GATEWAY.replace("  listeners:", f"  {said}\n  listeners:"))
    for kind in ("ServiceAccount", "ConfigMap", "Service", "Deployment"):
        metadata = deployer.body(kind)["metadata"]
        assert metadata["labels"]["team"] == "edge"
        assert metadata["labels"]["gateway.networking.k8s.io/gateway-name"] == "gw"
        assert metadata["annotations"]["example.com/note"] == "x"
    pods = deployer.body("Deployment")["spec"]["template"]["metadata"]
    assert (pods["labels"]["team"], pods["annotations"]["example.com/note"]) == ("edge", "x")


def test_infrastructure_that_would_hide_whose_objects_they_are_changes_nothing_that_runs() -> None:
    made, deployer = deployed(CLASS, GATEWAY)
    said = "infrastructure: {labels: {gateway.networking.k8s.io/gateway-name: other}}"
    made.put(GATEWAY.replace("  listeners:", f"  {said}\n  listeners:"))
    why = "spec.infrastructure.labels: gateway.networking.k8s.io/gateway-name is set by the controller"
    assert heard(made)["Accepted"] == f"False InvalidParameters: {why}"
    assert deployer.gateways[GW].as_it_is


def test_a_failure_is_a_condition_of_the_gateway() -> None:
    made, _ = deployed(CLASS, GATEWAY)
    outcome(made, Outcome(failure=Failure(Condition("Accepted", False, "InvalidParameters", "refused"))))
    assert heard(made)["Accepted"] == "False InvalidParameters: refused"
    outcome(made, Outcome(failure=Failure(Condition("Programmed", False, "NoResources", "quota"))))
    assert heard(made)["Programmed"] == "False NoResources: quota"


@pytest.mark.parametrize("name", ["a.b", "9a", "x" * 64, "a" + ".b" * 120])
def test_a_name_that_no_service_can_have_is_made_one_that_it_can(name: str) -> None:
    made = object_name(name)
    assert len(made) <= 63 and made.replace("-", "").isalnum() and made[0].isalpha() and made[-1].isalnum()
    assert made != object_name(name + "c")


def test_names_of_two_gateways_never_meet() -> None:
    names = ["a.b", "a-b", object_name("a.b"), "gw", "x" * 64, "x" * 65]
    assert len({object_name(name) for name in names}) == len(names)
