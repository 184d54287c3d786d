"""Units, image and compose file start commands that exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.cli import parser
from controlplane.deploy.pods import USER
from controlplane.deploy.request import CONTROLLER, REGISTRY, REPOSITORY
from controlplane.ratelimit import limits
from dataplane.bootstrap.parse import parse
from gatewright.version import VERSION
from tests.conftest import ROOT

MANIFESTS = ROOT / "manifests"


def accepted(words: list[str]) -> bool:
    """Whether the program takes these arguments; it ends with a usage message otherwise."""
    program, *rest = words
    if program.endswith("gatewright-proxy"):
        parse(rest, {})
    elif rest[0] == "proxy":
        parse(rest[1:], {})
    else:
        parser.build().parse_args(rest)
    return True


@pytest.mark.parametrize("unit", sorted(MANIFESTS.glob("systemd/*.service")), ids=lambda path: str(path.name))
def test_units_start_what_exists(unit: Path) -> None:
    text = unit.read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert accepted(shlex.split(line))
    assert "Type=notify" in text  # both programs say when they are ready
    assert re.findall(r"^\[(\w+)\]$", text, re.MULTILINE) == ["Unit", "Service", "Install"]


def test_the_compose_file_starts_a_proxy() -> None:
    (service,) = yaml.load((MANIFESTS / "compose.yaml").read_text(), yaml.CSafeLoader)["services"].values()
    assert accepted(["gatewright", *service["command"]])
    assert (MANIFESTS / service["build"]["context"] / service["build"]["dockerfile"]).resolve().is_file()


def test_the_kustomization_of_the_page_changes_what_the_controller_has() -> None:
    text = (ROOT / "docs/in-a-cluster.md").read_text()
    (block,) = re.findall(r"^    resources: .*\n(?:    .*\n)+", text, re.MULTILINE)
    kustomization = yaml.load(textwrap.dedent(block), yaml.CSafeLoader)
    (deployment,) = (
        each for each in documents(MANIFESTS / "controller/controller.yaml") if each["kind"] == "Deployment"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (image,) = kustomization["images"]
    assert container["image"].rpartition(":")[0] == image["name"]
    (patch,) = kustomization["patches"]
    assert patch["target"] == {"kind": "Deployment", "name": deployment["metadata"]["name"]}
    added = yaml.load(patch["patch"], yaml.CSafeLoader)
    assert {each["path"] for each in added} == {"/spec/template/spec/containers/0/args/-"}
    assert accepted(["gatewright", *container["args"], *(each["value"] for each in added)])
    values = dict(each["value"].removeprefix("--proxy-image-").split("=") for each in added)
    assert f"{values['registry']}/{values['repository']}" == image["newName"]


def test_the_image_runs_as_no_user_in_particular_and_what_is_in_it_is_locked() -> None:
    text = (MANIFESTS / "Containerfile").read_text()
    assert re.search(r"^USER ([1-9][0-9]*):\1$", text, re.MULTILINE)
    assert "--require-hashes" in text
    for name in re.findall(r"-r (\S+\.txt)", text):
        assert (ROOT / name).is_file()


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_text(), yaml.CSafeLoader))


def container(document: dict[str, Any]) -> dict[str, Any]:
    (found,) = document["spec"]["template"]["spec"]["containers"]
    return found  # type: ignore[no-any-return]


def test_the_controller_in_a_cluster_starts_and_is_reached_where_proxies_look() -> None:
    service, _, deployment = documents(MANIFESTS / "controller" / "controller.yaml")
    found = container(deployment)
    assert accepted(["gatewright", *found["args"]])
    assert service["metadata"]["name"] == CONTROLLER
    ports = {each["name"]: each["containerPort"] for each in found["ports"]}
    (xds,) = [each for each in service["spec"]["ports"] if each["name"] == "xds"]
    assert (xds["port"], xds["targetPort"], ports["xds"]) == (18000, "xds", 18000)
    assert deployment["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == USER
    assert found["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_controller_has_a_limit_of_memory_that_the_page_names() -> None:
    *_, deployment = documents(MANIFESTS / "controller" / "controller.yaml")
    limit = container(deployment)["resources"]["limits"]["memory"]
    _, _, section = (ROOT / "docs" / "deploying.md").read_text().partition("## Memory\n")
    assert f"limit of {limit.removesuffix('i').replace('G', ' G')}iB" in section


def test_there_are_two_controllers_of_which_one_may_be_away() -> None:
    service, budget, deployment = documents(MANIFESTS / "controller" / "controller.yaml")
    assert (budget["kind"], budget["spec"]["maxUnavailable"], deployment["spec"]["replicas"]) == (
        "PodDisruptionBudget",
        1,
        2,
    )
    labels, pod = deployment["spec"]["template"]["metadata"]["labels"], deployment["spec"]["template"]["spec"]
    (spread,) = pod["topologySpreadConstraints"]
    selectors = [
        service["spec"]["selector"],
        *(
            each["matchLabels"]
            for each in (deployment["spec"]["selector"], budget["spec"]["selector"], spread["labelSelector"])
        ),
    ]
    assert all(each == labels for each in selectors)
    assert {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}} in container(deployment)["env"]
    (values,) = documents(MANIFESTS / "helm" / "values.yaml")
    assert values["controller"]["replicas"] == 2


def test_versions_are_those_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version == VERSION
    *_, deployment = documents(MANIFESTS / "controller" / "controller.yaml")
    assert container(deployment)["image"] == f"{REGISTRY}/{REPOSITORY}:{version}"
    (chart,) = documents(MANIFESTS / "helm" / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (version, version)
    (values,) = documents(MANIFESTS / "helm" / "values.yaml")
    assert (values["image"]["registry"], values["image"]["repository"]) == (REGISTRY, REPOSITORY)


def test_a_build_of_the_image_is_not_sent_what_git_ignores() -> None:
    def as_docker_has_it(pattern: str) -> str:
        return pattern.strip("/") if pattern.startswith(("/", ".")) else f"**/{pattern.strip('/')}"

    _, *ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored == [".git", *map(as_docker_has_it, (ROOT / ".gitignore").read_text().split())]


def test_every_file_is_named_in_a_kustomization() -> None:
    for file in (MANIFESTS / part for part in ("base", "controller", "namespace", "everywhere")):
        (kustomization,) = documents(file / "Kustomization")
        named = {each for each in kustomization["resources"] if each.endswith(".yaml")}
        assert named == {each.name for each in file.glob("*.yaml")}
    (whole,) = documents(MANIFESTS / "Kustomization")
    definitions = {f"crds/{each.name}" for each in (MANIFESTS / "crds").glob("*.yaml")}
    assert {*whole["resources"]} == {*definitions, "controller", "default"}
    (default,) = documents(MANIFESTS / "default" / "Kustomization")
    assert (default["namespace"], default["resources"]) == ("default", ["../namespace"])


def test_the_chart_grants_what_the_bases_grant() -> None:
    chart = (MANIFESTS / "helm" / "templates" / "rbac.yaml").read_text()
    base = (MANIFESTS / "base" / "rbac.yaml").read_text()
    assert chart == base.replace("namespace: gatewright-system", "namespace: {{ .Release.Namespace }}")
    role = (MANIFESTS / "base" / "provisioner.yaml").read_text()
    assert role in (MANIFESTS / "helm" / "templates" / "provisioner.yaml").read_text()
    policies = (MANIFESTS / "base" / "admission.yaml").read_text()
    policies = policies.replace("gatewright-system", "{{ .Release.Namespace }}")
    classes = "{{ prepend .Values.admission.gatewayClasses .Values.gatewayClass.name | toJson }}"
    policies = policies.replace('["gatewright"]', classes)
    assert policies in (MANIFESTS / "helm" / "templates" / "admission.yaml").read_text()


def rendered(tool: Callable[[str], str], *settings: str) -> dict[str, dict[str, Any]]:
    """What the chart makes, by kind, namespace and name."""
    command = [tool("helm"), "template", "gatewright", str(MANIFESTS / "helm")]
    command += ["--namespace", "gatewright-system", "--kube-version", "1.31.0"]
    done = subprocess.run([*command, *settings], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {named(each): each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each}


@pytest.mark.process
@pytest.mark.needs("helm")
def test_the_chart_renders_what_the_bases_have(tool: Callable[[str], str]) -> None:
    """With its default values; the namespace is made by whoever installs it, definitions are applied before."""
    made = rendered(tool)
    files = [file for part in ("base", "controller") for file in (MANIFESTS / part).glob("*.yaml")]
    parts = [each for file in files for each in documents(file) if each["kind"] != "Namespace"]
    bases = {named(each): each for each in (*parts, *in_namespace("default"))}
    found = container(made["Deployment gatewright-system/gatewright-controller"])
    # The chart says itself which images proxies have, and when one is pulled.
    found["args"] = [each for each in found["args"] if not each.startswith("--proxy-image-")]
    del found["imagePullPolicy"]
    assert made == bases


@pytest.mark.process
@pytest.mark.needs("helm")
def test_the_chart_lets_proxies_be_made_in_some_namespaces_in_all_or_nowhere(tool: Callable[[str], str]) -> None:
    some = rendered(tool, "--set", "proxy.namespaces={shop,edge}")
    assert "ClusterRoleBinding gatewright-provisioner" not in some
    for space in ("shop", "edge"):
        for document in in_namespace(space):
            assert some[named(document)] == document
    everywhere = rendered(tool, "--set", "proxy.namespaces={*}")
    (binding,) = documents(MANIFESTS / "everywhere" / "clusterrolebinding.yaml")
    assert everywhere[named(binding)] == binding
    assert not [each for each in everywhere if each.startswith("NetworkPolicy") and "proxies" in each]
    none = rendered(tool, "--set", "proxy.provisioning=false", "--set", "proxy.namespaces={shop}")
    assert not [each for each in none if "provisioner" in each or "proxies" in each]
    assert "--no-provisioning" in container(none["Deployment gatewright-system/gatewright-controller"])["args"]


@pytest.mark.process
@pytest.mark.needs("helm")
def test_the_chart_asks_for_grants_where_it_is_told_to(tool: Callable[[str], str]) -> None:
    made = rendered(tool, "--set", "mcp.selectorsNeedGrants=true")
    assert (
        "--mcp-selectors-need-grants" in container(made["Deployment gatewright-system/gatewright-controller"])["args"]
    )


@pytest.mark.process
@pytest.mark.needs("helm")
@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("networkPolicy.enabled=false", "at '': additional properties 'networkPolicy' not allowed"),
        ("proxy.image.tagg=1.0.0", "at '/proxy/image': additional properties 'tagg' not allowed"),
        ("proxy.namespaces={}", "at '/proxy/namespaces/0': minLength: got 0, want 1"),
        ("admission.gatewayClasses=edge", "at '/admission/gatewayClasses': got string, want array"),
        ("gatewayClass.parametersRef.name=edge", "properties 'namespace' required, if 'name' exists"),
    ],
)
def test_the_chart_refuses_values_that_would_change_nothing(
    tool: Callable[[str], str], setting: str, error: str
) -> None:
    command = [tool("helm"), "template", "gatewright", str(MANIFESTS / "helm"), "--kube-version", "1.31.0"]
    done = subprocess.run([*command, "--set", setting], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and error in done.stderr


def test_the_schema_of_the_chart_has_what_its_values_have() -> None:
    def names(schema: dict[str, Any], where: str = "") -> set[str]:
        found = schema.get("properties", {})
        return {where}.union(*(names(each, f"{where}.{name}") for name, each in found.items()))

    def written(value: object, where: str = "") -> set[str]:
        parts = value.items() if isinstance(value, dict) else ()
        return {where}.union(*(written(each, f"{where}.{name}") for name, each in parts))

    (values,) = documents(MANIFESTS / "helm" / "values.yaml")
    del values["controller"]["resources"]
    del values["networkPolicies"]["xdsFrom"], values["networkPolicies"]["metricsFrom"]
    schema = json.loads((MANIFESTS / "helm" / "values.schema.json").read_text())
    whole = {".controller.resources", ".networkPolicies.xdsFrom", ".networkPolicies.metricsFrom"}
    unset = {".global", ".gatewayClass.parametersRef.name", ".gatewayClass.parametersRef.namespace"}
    assert names(schema) == written(values) | whole | unset


@pytest.mark.process
@pytest.mark.needs("helm")
def test_the_chart_makes_no_proxies_in_namespaces_of_kubernetes(tool: Callable[[str], str]) -> None:
    command = [tool("helm"), "template", "gatewright", str(MANIFESTS / "helm"), "--kube-version", "1.31.0"]
    command += ["--set", "proxy.namespaces={kube-system}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "proxy.namespaces: Gatewright makes no proxies in kube-system" in done.stderr


@pytest.mark.process
@pytest.mark.needs("helm")
def test_the_chart_can_leave_out_policies_and_say_who_reads_metrics(tool: Callable[[str], str]) -> None:
    made = rendered(tool, "--set", "admission.enabled=false", "--set", "networkPolicies.enabled=false")
    assert not [each for each in made if each.startswith(("ValidatingAdmission", "NetworkPolicy"))]
    more = rendered(tool, "--set", "admission.gatewayClasses={edge}", "--set", "gatewayClass.name=main")
    checked = more["ValidatingAdmissionPolicy gatewright-infrastructure"]["spec"]["variables"][0]["expression"]
    assert checked == 'object.spec.gatewayClassName in ["main","edge"]'
    peers = '[{"podSelector": {"matchLabels": {"app": "prometheus"}}}]'
    made = rendered(tool, "--set-json", f"networkPolicies.metricsFrom={peers}")
    policies = [each for name, each in made.items() if name.startswith("NetworkPolicy")]
    assert len(policies) == 2
    for policy, port in zip(policies, (18002, 15020), strict=True):
        (rule,) = [each for each in policy["spec"]["ingress"] if each["ports"][0]["port"] == port]
        assert rule["from"] == [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]


ANYBODY = None
METRICS = [{"namespaceSelector": {"matchLabels": {"gatewright.dev/metrics": "true"}}}]
MANAGED = {"matchLabels": {"app.kubernetes.io/managed-by": "gatewright"}}
PROXIES = [{"namespaceSelector": {}, "podSelector": MANAGED}]
CONTROLLERS = [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "gatewright-controller"}}}]


def who_reaches(policy: dict[str, Any], protocol: str, port: int) -> list[object]:
    """Peers of the rules that are about a port; `ANYBODY` of a rule without."""
    rules = policy["spec"]["ingress"]
    return [rule.get("from", ANYBODY) for rule in rules if any(covers(each, protocol, port) for each in rule["ports"])]


def covers(row: dict[str, Any], protocol: str, port: int) -> bool:
    last = row.get("endPort", row["port"])
    return bool(row["protocol"] == protocol and row["port"] <= port <= last)


def test_who_reaches_which_port_of_the_controllers() -> None:
    (policy,) = documents(MANIFESTS / "controller" / "networkpolicy.yaml")
    *_, deployment = documents(MANIFESTS / "controller" / "controller.yaml")
    assert policy["spec"]["podSelector"] == deployment["spec"]["selector"]
    expected = {18000: [PROXIES], 18001: [], 18002: [METRICS], 18003: [ANYBODY], 18004: [CONTROLLERS]}
    assert {port: who_reaches(policy, "TCP", port) for port in expected} == expected
    assert {each["containerPort"] for each in container(deployment)["ports"]} == {18000, 18002, 18003, 18004}


def test_the_rate_limit_server_starts_as_it_is_written_and_only_proxies_ask_it() -> None:
    config, claim, service, deployment, policy = documents(MANIFESTS / "ratelimit" / "ratelimit.yaml")
    words = container(deployment)["args"]
    found = parser.build().parse_args(words)
    listened = {int(each.rpartition(":")[2]) for each in (found.listen, found.stats)}
    assert {each["containerPort"] for each in container(deployment)["ports"]} == listened
    assert deployment["spec"]["replicas"] == 1 and deployment["spec"]["strategy"] == {"type": "Recreate"}
    mounts = {each["name"]: each["mountPath"] for each in container(deployment)["volumeMounts"]}
    assert found.limits == mounts["limits"] and Path(found.store).parent == Path(mounts["counted"])
    volumes = {each["name"]: each for each in deployment["spec"]["template"]["spec"]["volumes"]}
    assert volumes["limits"]["configMap"]["name"] == config["metadata"]["name"]
    assert volumes["counted"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert policy["spec"]["podSelector"] == deployment["spec"]["selector"]
    assert {port: who_reaches(policy, "TCP", port) for port in (8081, 18082, 18081)} == {
        8081: [PROXIES],
        18082: [ANYBODY],
        18081: [],
    }
    assert limits.read((name, text.encode()) for name, text in config["data"].items()).domains == ["example"]


def test_who_reaches_which_port_of_the_proxies() -> None:
    """Every port that a listener may have is open; metrics are for who is labelled for them."""
    (policy,) = [each for each in in_namespace("shop") if each["kind"] == "NetworkPolicy"]
    assert policy["spec"]["podSelector"] == MANAGED
    closed = {15000: [], 15020: [METRICS]}
    for port in range(1, 65536):
        assert who_reaches(policy, "TCP", port) == closed.get(port, [ANYBODY]), port
        assert who_reaches(policy, "UDP", port) == [ANYBODY], port


def in_namespace(space: str) -> list[dict[str, Any]]:
    """What `kubectl apply -n SPACE -k manifests/namespace` makes."""
    found = [each for file in sorted((MANIFESTS / "namespace").glob("*.yaml")) for each in documents(file)]
    return [{**each, "metadata": {**each["metadata"], "namespace": space}} for each in found]


def named(document: dict[str, Any]) -> str:
    metadata = document["metadata"]
    place = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    return f"{document['kind']} {place}{metadata['name']}"
