"""What a Gateway asks for as objects: one golden file in full, the others as differences. GOLDEN=write writes them."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from controlplane.deploy.names import GATEWAY_NAME as NAME
from controlplane.deploy.names import MANAGED_OBJECTS, object_name
from controlplane.deploy.render import API_VERSIONS, rendered
from controlplane.deploy.request import Defaults, Layer, RenderingError, Request, ServicePort, WantedObject
from dataplane.bootstrap.parse import parse
from gatewright.api.objects.gateway_parameters import GatewayParametersSpec
from gatewright.api.standalone import standalone
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "deploy"
DEFAULTS = Defaults("1.2.3", xds="gatewright-controller.gatewright-system.svc:18000")
WEB = Request("shop", "web", "1-2-3", "gatewright", (ServicePort(80, "TCP"), ServicePort(443, "TCP")))


def layer(source: str, text: str) -> Layer:
    return Layer(source, GatewayParametersSpec.model_validate(yaml.safe_load(text)))


def with_layers(of_class: str, own: str = "{}") -> Request:
    return replace(WEB, layers=(layer("class", of_class), layer("own", own)))


CASES: dict[str, Request] = {
    "plain": WEB,
    "typed-fields": with_layers(
        """
image: {registry: one.example, tag: "1", pullPolicy: Always}
resources: {requests: {cpu: 200m}, limits: {cpu: 2500m, memory: 64Mi}, claims: [{name: card}]}
shutdown: {min: 1, max: 20}
logging: {level: "info,dataplane.http=debug"}
rawConfig: {config: {admin: off, logging: {level: trace, format: text}}, binds: [{port: 1}]}
""",
        """
image: {tag: "2", digest: "sha256:abc"}
resources: {requests: {memory: 32Mi}}
logging: {format: json}
rawConfig: {config: {session: {key: none}}, binds: []}
""",
    ),
    "environment": with_layers(
        """
env:
  - {name: FIRST, value: one}
  - {name: BOTH, value: of-class}
  - {name: SESSION_KEY, valueFrom: {secretKeyRef: {name: mine, key: k}}}
  - {name: GATEWRIGHT_ZONE, value: here}
""",
        """
env:
  - {name: LATER, value: "$(FIRST) and $$(FIRST)"}
  - {name: BOTH, value: of-gateway}
  - {name: EMPTY}
deployment:
  spec:
    template:
      spec:
        containers:
          - name: gatewright
            env: [{name: POD_NAMESPACE, $patch: delete}, {name: FIRST, value: over}]
""",
    ),
    "mesh": with_layers(
        "istio: {enabled: true, trustDomain: one.example, additionalTrustDomains: [two.example, three.example]}",
        "istio: {network: n1, clusterId: c1, caAddress: 'https://ca.example:15012'}",
    ),
    "budget-and-autoscaler": with_layers(
        "{podDisruptionBudget: {}, horizontalPodAutoscaler: {}}",
        "{horizontalPodAutoscaler: {metadata: {labels: {a: b}}, spec: {minReplicas: 20}}}",
    ),
    "overlays": with_layers(
        """
deployment:
  metadata: {labels: {of: class, kept: "yes"}, annotations: {note: class}}
  spec:
    replicas: 2
    template: {spec: {tolerations: [{key: a, operator: Exists}], nodeSelector: {pool: class, arch: amd64}}}
service:
  metadata: {annotations: {load-balancer: internal}}
  spec: {externalTrafficPolicy: Local, ports: [{port: 80, nodePort: 30080}]}
serviceAccount: {metadata: {annotations: {role: one}}, spec: {imagePullSecrets: [{name: pull}]}}
podDisruptionBudget: {spec: {minAvailable: 1}}
""",
        """
deployment:
  metadata: {labels: {of: gateway}}
  spec:
    replicas: 3
    template:
      spec:
        tolerations: [{key: a, effect: NoExecute}, {key: b, operator: Exists}]
        nodeSelector: {pool: gateway}
        containers:
          - {name: gatewright, resources: {$patch: replace, requests: {cpu: "1"}}, securityContext: {$patch: delete}}
          - {name: side, image: side}
service: {spec: {type: ClusterIP, ports: [{port: 443, $patch: delete}]}}
""",
    ),
    "infrastructure": replace(
        WEB,
        name="a-long-name." + "x" * 200,
        class_name="c" * 100,
        ports=(ServicePort(53, "UDP"), ServicePort(80, "TCP")),
        labels={"app.kubernetes.io/name": "mine", "team": "shop"},
        annotations={"note": "value"},
        addresses=("10.0.0.9", "10.0.0.10"),
    ),
    "without-ports": replace(WEB, ports=()),
}


def shown(objects: tuple[WantedObject, ...]) -> str:
    documents = [{**each.body, **({"random": each.random_key} if each.random_key else {})} for each in objects]
    return yaml.safe_dump_all(json.loads(json.dumps(documents)), sort_keys=False, width=110)  # no anchors


def golden(name: str) -> tuple[Path, str]:
    """The file of a case and what it holds: all of `plain`, of the others what differs from that."""
    text = shown(rendered(CASES[name], DEFAULTS, "CERTIFICATES\n"))
    if name == "plain":
        return GOLDEN / "plain.yaml", text
    plain = shown(rendered(WEB, DEFAULTS, "CERTIFICATES\n"))
    lines = list(difflib.unified_diff(plain.splitlines(), text.splitlines(), n=2, lineterm=""))[2:]
    return GOLDEN / f"{name}.diff", "".join("@@\n" if line.startswith("@@") else f"{line}\n" for line in lines)


@pytest.mark.parametrize("name", CASES)
def test_rendered_as_in_the_golden_file(name: str) -> None:
    file, found = golden(name)
    if os.environ.get("GOLDEN") == "write":
        file.write_text(found)
    assert found == file.read_text()


@pytest.mark.parametrize("policy", ["Always", "IfNotPresent", "Never"])
def test_images_are_pulled_as_it_is_said(policy: str) -> None:
    asked = with_layers(f"image: {{pullPolicy: {policy}}}")
    assert f"imagePullPolicy: {policy}\n" in shown(rendered(asked, DEFAULTS, "c"))


def test_every_golden_file_has_its_case() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_every_object_is_known_as_ours_and_goes_with_its_gateway(name: str) -> None:
    for each in rendered(CASES[name], DEFAULTS, "c"):
        metadata = each.body["metadata"]
        managed, gateway = MANAGED_OBJECTS.split(",")
        label, _, value = managed.partition("=")
        assert metadata["labels"][label] == value and metadata["labels"][gateway] == each_name(each)
        (owner,) = metadata["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == ("1-2-3", True)
        assert (metadata["namespace"], metadata["name"]) == (each.key.namespace, each.key.name)
        assert each.body["apiVersion"] == API_VERSIONS[each.key.kind]
        assert all(len(text) <= 63 for text in metadata["labels"].values())


def each_name(item: WantedObject) -> str:
    return item.key.name.removesuffix("-session-key")


def pod(request: Request) -> Mapping[str, Any]:
    body = next(each.body for each in rendered(request, DEFAULTS, "c") if each.key.kind == "Deployment")
    found: Mapping[str, Any] = body["spec"]["template"]["spec"]
    return found


STAGES = [
    ("typed field of the class", "{image: {tag: one}}", "{}", "ghcr.io/gatewright/gatewright:one"),
    ("typed field of the Gateway", "{image: {tag: one}}", "{image: {tag: two}}", "ghcr.io/gatewright/gatewright:two"),
    ("overlay of the class", "{image: {tag: one}, deployment: IMAGE three}", "{image: {tag: two}}", "three"),
    ("overlay of the Gateway", "{image: {tag: one}, deployment: IMAGE three}", "{deployment: IMAGE four}", "four"),
]


@pytest.mark.parametrize(("_", "of_class", "own", "expected"), STAGES, ids=[row[0] for row in STAGES])
def test_the_later_of_four_stages_wins(_: str, of_class: str, own: str, expected: str) -> None:
    def text(short: str) -> str:
        for word in ("three", "four"):
            containers = f"[{{name: gatewright, image: {word}}}]"
            spec = f"{{spec: {{template: {{spec: {{containers: {containers}}}}}}}}}"
            short = short.replace(f"IMAGE {word}", spec)
        return short

    (container,) = pod(with_layers(text(of_class), text(own)))["containers"]
    assert container["image"] == expected


def test_the_shutdown_of_a_gateway_takes_the_place_of_its_classs() -> None:
    (container,) = pod(with_layers("{shutdown: {min: 1, max: 20}}", "{shutdown: {min: 3, max: 40}}"))["containers"]
    found = {each["name"]: each.get("value") for each in container["env"]}
    assert found["CONNECTION_MIN_TERMINATION_DEADLINE"] == "3s" and found["TERMINATION_GRACE_PERIOD_SECONDS"] == "40"


def test_a_digest_beats_a_tag_and_empty_registries_are_left_out() -> None:
    image = "{image: {registry: '', repository: web, tag: one, digest: 'sha256:abc'}}"
    (container,) = pod(with_layers(image))["containers"]
    assert container["image"] == "web@sha256:abc"


@pytest.mark.parametrize(
    ("limit", "raw", "expected"),
    [
        ("1500m", "{}", "2"),
        ("1", "{}", "1"),
        ("'4'", "{}", "4"),
        ("255500m", "{}", "256"),
        ("2k", "{}", "256"),
        ("1", "{config: {workers: 3}}", None),
        ("'0'", "{}", None),
        ("'-1'", "{}", None),
    ],
)
def test_workers_follow_the_limit_of_the_container(limit: str, raw: str, expected: str | None) -> None:
    request = with_layers(f"{{resources: {{limits: {{cpu: {limit}}}}}, rawConfig: {raw}}}")
    arguments = pod(request)["containers"][0]["args"]
    found = arguments[arguments.index("--workers") + 1] if "--workers" in arguments else None
    assert found == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ("{}", {"cpu": "100m", "memory": "128Mi"}),
        ("{limits: {cpu: 100m, memory: 128Mi}}", {"cpu": "100m", "memory": "128Mi"}),
        ("{limits: {cpu: 99m}}", {"memory": "128Mi"}),
        ("{limits: {cpu: 1, memory: 127Mi}}", {"cpu": "100m"}),
        ("{limits: {cpu: 50m}, requests: {cpu: 200m}}", {"cpu": "200m", "memory": "128Mi"}),
        ("{requests: {cpu: 100m, storage: 1}}", {"cpu": "100m", "memory": "128Mi", "storage": 1}),
    ],
)
def test_a_request_that_nobody_wrote_goes_where_it_is_above_the_limit(
    resources: str, expected: dict[str, object]
) -> None:
    (container,) = pod(with_layers(f"{{resources: {resources}}}"))["containers"]
    assert container["resources"]["requests"] == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [([], True), (["OTHER"], True), (["OTHER", "MORE"], True), (["SESSION_KEY"], False), (["A", "SESSION_KEY"], False)],
)
def test_a_gateway_has_a_secret_unless_users_give_a_session_key(names: list[str], expected: bool) -> None:
    env = ", ".join(f"{{name: {name}, value: x}}" for name in names)
    objects = rendered(with_layers(f"{{env: [{env}]}}"), DEFAULTS, "c")
    assert ("Secret" in [each.key.kind for each in objects]) is expected
    container = next(each.body for each in objects if each.key.kind == "Deployment")["spec"]["template"]["spec"]
    found = {each["name"]: each for each in container["containers"][0]["env"]}
    assert ("valueFrom" in found["SESSION_KEY"]) is expected


@pytest.mark.parametrize("raw", ["{}", "{config: {session: {}}}"])
def test_a_proxy_expects_the_name_in_the_controller_s_certificate(raw: str) -> None:
    def arguments(defaults: Defaults) -> list[str]:
        objects = rendered(with_layers(f"{{rawConfig: {raw}}}"), defaults, "c")
        body = next(each.body for each in objects if each.key.kind == "Deployment")
        found: list[str] = body["spec"]["template"]["spec"]["containers"][0]["args"]
        return found

    named = arguments(replace(DEFAULTS, server_name="controller.example"))
    place = named.index("--xds-server-name")
    assert named[place + 1] == "controller.example"
    assert named[:place] + named[place + 2 :] == arguments(DEFAULTS)


@pytest.mark.parametrize(("scaler", "expected"), [("", 5), (", horizontalPodAutoscaler: {}", None)])
def test_replicas_are_the_autoscaler_s_where_there_is_one(scaler: str, expected: int | None) -> None:
    request = with_layers(f"{{deployment: {{spec: {{replicas: 5}}}}{scaler}}}")
    body = next(each.body for each in rendered(request, DEFAULTS, "c") if each.key.kind == "Deployment")
    assert body["spec"].get("replicas") == expected


@pytest.mark.parametrize(("length", "is_shown"), [(63, True), (64, False)])
def test_the_class_is_a_label_where_its_name_is_short_enough(length: int, is_shown: bool) -> None:
    for each in rendered(replace(WEB, class_name="c" * length), DEFAULTS, "c"):
        labels = each.body["metadata"]["labels"]
        assert labels.get("gateway.networking.k8s.io/gateway-class-name") == ("c" * length if is_shown else None)


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("web", True),
        ("w", True),
        ("w" * 63, True),
        ("w" * 64, False),
        ("8web", False),
        ("web.shop", False),
        ("gw-web-0123456789", False),  # as if made for another one
        ("gw-web-012345678", True),
        ("gw-web-012345678x", True),
    ],
)
def test_objects_are_called_as_their_gateway_where_a_service_may_be(name: str, is_kept: bool) -> None:
    found = object_name(name)
    assert (found == name) is is_kept
    assert len(found) <= 63 and re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", found)
    assert is_kept or (found.startswith("gw-") and found != object_name(f"{name}x"))


def test_what_an_overlay_takes_away_from_a_service_account_is_gone() -> None:
    request = with_layers("{serviceAccount: {spec: {automountServiceAccountToken: null, secrets: [{name: a}]}}}")
    body = next(each.body for each in rendered(request, DEFAULTS, "c") if each.key.kind == "ServiceAccount")
    assert {*body} == {"apiVersion", "kind", "metadata", "secrets"}


@pytest.mark.parametrize("name", [name for name in CASES if name != "typed-fields"])
def test_the_proxy_takes_what_it_is_started_with(name: str) -> None:
    container = pod(CASES[name])["containers"][0]
    assert container["command"] == ["gatewright-proxy"]
    arguments = [each.replace("$(POD_NAME)", "web-1") for each in container["args"]]
    environment = {each["name"]: each.get("value", "web") for each in container["env"]} | {"SESSION_KEY": "ab" * 32}
    settings = parse(arguments, environment)
    request = CASES[name]
    assert (settings.gateway, settings.instance) == (f"{request.namespace}/{request.name}", "web-1")
    assert settings.xds_access.tls and str(settings.xds) == DEFAULTS.xds
    mounted = [Path(each["mountPath"]) for each in container["volumeMounts"]]
    mesh = settings.mesh
    of_mesh = () if mesh is None else (mesh.ca_file, mesh.token_file)
    assert (mesh is None) is (name != "mesh")
    for file in (settings.xds_access.ca_file, settings.xds_access.token_file, *of_mesh):
        assert file is not None and any(folder in file.parents for folder in mounted)
    assert (settings.drain.minimum, settings.drain.maximum) == (10, 60)


def test_the_proxy_reads_the_file_that_it_is_given() -> None:
    raw = "{config: {workers: 3, logging: {level: trace}}, binds: []}"
    objects = rendered(with_layers(f"{{rawConfig: {raw}, logging: {{level: warn}}}}"), DEFAULTS, "c")
    text = next(each.body["data"]["config.yaml"] for each in objects if each.key.kind == "ConfigMap")
    read = standalone.load(text, "config.yaml")
    assert not read.errors
    assert (read.settings.workers, read.settings.logging.level) == (3, "warn")


REFUSED = [
    (
        replace(WEB, labels={"gateway.networking.k8s.io/gateway-name": "other"}),
        "spec.infrastructure.labels: gateway.net",
    ),
    (
        with_layers("{service: {metadata: {labels: {app.kubernetes.io/managed-by: x}}}}"),
        "class: spec.service.metadata.lab",
    ),
    (
        with_layers("{}", "{deployment: {spec: {template: {spec: {volumes: [{}]}}}}}"),
        "own: spec.deployment.spec.template.",
    ),
    (
        with_layers("{serviceAccount: {spec: {spec: x}}}", "{serviceAccount: {spec: {kind: y}}}"),
        "own: spec.serviceAccount.spec.kind",
    ),
    (
        with_layers("{}", "{deployment: {spec: {template: {spec: {serviceAccountName: default}}}}}"),
        "own: spec.deployment.spec.template.spec.serviceAccountName: cannot be changed: the controller knows",
    ),
    (
        with_layers(
            """
deployment:
  spec:
    selector: {matchLabels: {gateway.networking.k8s.io/gateway-name: other}}
    template: {metadata: {labels: {gateway.networking.k8s.io/gateway-name: other}}}
"""
        ),
        'class: spec.deployment.spec.selector.matchLabels["gateway.networking.k8s.io/gateway-name"]: cannot be changed',
    ),
    (
        with_layers("{deployment: {spec: {template: {metadata: {labels: {$patch: replace, a: b}}}}}}"),
        'class: spec.deployment.spec.template.metadata.labels["gateway.networking.k8s.io/gateway-name"]: cannot be',
    ),
    *(
        (with_layers("{}", f"{{{overlay}: {{spec: {{{change}}}}}}}"), f"own: spec.{overlay}.spec.{field}: cannot be ")
        for overlay, change, field in (
            ("podDisruptionBudget", "selector: {}", "selector"),
            ("podDisruptionBudget", "selector: {matchLabels: {app: other}}", "selector"),
            ("podDisruptionBudget", "selector: null", "selector"),
            ("podDisruptionBudget", "$patch: replace, minAvailable: 1", "selector"),
            ("horizontalPodAutoscaler", "scaleTargetRef: {name: other}", "scaleTargetRef"),
            ("horizontalPodAutoscaler", "scaleTargetRef: {kind: StatefulSet}", "scaleTargetRef"),
            ("service", "type: ExternalName, externalName: elsewhere.example", "externalName"),
            ("service", "type: ExternalName", "type"),
            ("service", "externalName: elsewhere.example", "externalName"),
            ("service", "selector: {app: other}", "selector"),
            ("service", "selector: null", "selector"),
            ("service", "$patch: delete", "selector"),
            ("deployment", "template: {spec: {serviceAccount: other}}", "template.spec.serviceAccount"),
        )
    ),
    (with_layers("{deployment: {spec: {$patch: delete}}}"), "class: spec.deployment.spec.selector."),
    (with_layers("{deployment: {spec: {template: 5}}}"), "class: spec.deployment.spec.template.metadata.labels"),
    (with_layers("{deployment: {spec: {$patch: merge}}}"), 'class: spec.deployment.spec["$patch"]: must be delete or'),
]


@pytest.mark.parametrize(("request_", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_what_cannot_be_rendered_is_refused_with_its_place(request_: Request, text: str) -> None:
    with pytest.raises(RenderingError) as refused:
        rendered(request_, DEFAULTS, "c")
    assert text in str(refused.value)


VALUES = st.recursive(
    st.sampled_from([None, True, 0, -1, "", "x", "web", "delete", "replace", "merge", "other"]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "$patch",
                        "$retainKeys",
                        "$deleteFromPrimitiveList/finalizers",
                        "$setElementOrder/containers",
                        "name",
                    ),
                    *(
                        "apiVersion",
                        "kind",
                        "metadata",
                        "namespace",
                        "labels",
                        "ownerReferences",
                        "selector",
                        "matchLabels",
                        "scaleTargetRef",
                        "externalName",
                    ),
                    *(
                        "template",
                        "spec",
                        "containers",
                        "serviceAccountName",
                        "volumes",
                        "hostPath",
                        "ports",
                        "port",
                        "data",
                    ),
                    *(
                        "gateway.networking.k8s.io/gateway-name",
                        "app.kubernetes.io/managed-by",
                        "minReplicas",
                        "secrets",
                    ),
                ]
            ),
            below,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KINDS = ["deployment", "service", "serviceAccount", "podDisruptionBudget", "horizontalPodAutoscaler"]


@given(st.dictionaries(st.sampled_from(KINDS), st.dictionaries(st.just("spec"), VALUES, max_size=1), max_size=5))
def test_no_overlay_leads_to_objects_that_are_not_the_gateway_s(overlays: dict[str, Any]) -> None:
    """Whatever stands in it: it is refused with its place, or name, namespace, owner and labels are ours."""
    try:
        spec = GatewayParametersSpec.model_validate(overlays)
    except ValidationError:
        return
    try:
        objects = rendered(replace(WEB, layers=(Layer("own", spec),)), DEFAULTS, "c")
    except RenderingError as error:
        assert str(error).startswith("own: spec.")
        return
    plain = {each.key: each.body for each in rendered(WEB, DEFAULTS, "c")}
    for key, body in ((each.key, each.body) for each in objects):
        kind, metadata = body["kind"], body["metadata"]
        assert (kind, metadata["namespace"], metadata["name"]) == key and key.namespace == "shop"
        assert metadata["name"] == ("web-session-key" if kind == "Secret" else "web")
        assert body["apiVersion"] == API_VERSIONS[kind]
        assert metadata["ownerReferences"] == plain[objects[0].key]["metadata"]["ownerReferences"]
        assert metadata["labels"].items() >= plain[objects[0].key]["metadata"]["labels"].items()
        if kind == "Deployment":
            assert body["spec"]["selector"]["matchLabels"][NAME] == "web"
            assert body["spec"]["template"]["metadata"]["labels"][NAME] == "web"
            assert body["spec"]["template"]["spec"]["serviceAccountName"] == "web"
        if kind in ("Service", "PodDisruptionBudget"):
            assert NAME in json.dumps(body["spec"]["selector"]) and len(body["spec"]["selector"]) == 1
        if kind == "HorizontalPodAutoscaler":
            assert (body["spec"]["scaleTargetRef"]["kind"], body["spec"]["scaleTargetRef"]["name"]) == (
                "Deployment",
                "web",
            )


def test_nothing_changes_the_request_and_the_same_request_gives_the_same() -> None:
    for request in CASES.values():
        assert rendered(request, DEFAULTS, "c") == rendered(request, DEFAULTS, "c")
