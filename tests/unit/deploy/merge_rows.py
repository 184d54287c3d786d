"""Pairs of an object and an overlay of its spec. What Kubernetes makes of them is in `merge_answers.json`, written by
`tests/cluster/test_strategic_merge.py`; ours has to be the same, but for EXCEPTIONS."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.harness import yamls

Json = dict[str, Any]
ANSWERS = Path(__file__).parent / "merge_answers.json"


class Row(NamedTuple):
    name: str
    kind: str
    original: Json
    overlay: Json


POD = """
selector: {matchLabels: {app: web}}
template:
  metadata: {labels: {app: web}, annotations: {a: "1"}}
  spec:
    serviceAccountName: web
    securityContext: {runAsUser: 1, runAsNonRoot: true, sysctls: [{name: a, value: "0"}]}
    containers:
      - name: gatewright
        image: one
        args: [--a, --b]
        env:
          - {name: A, value: "1"}
          - {name: B, value: "2"}
          - {name: C, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        ports: [{name: metrics, containerPort: 15020, protocol: TCP}, {name: ready, containerPort: 15021}]
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {cpu: "1"}}
        volumeMounts: [{name: tmp, mountPath: /tmp}, {name: config, mountPath: /etc/gatewright, readOnly: true}]
        readinessProbe: {httpGet: {path: /ready, port: 15021}, periodSeconds: 5}
      - {name: other, image: two}
    volumes: [{name: tmp, emptyDir: {}}, {name: config, configMap: {name: web}}]
    imagePullSecrets: [{name: first}]
    tolerations: [{key: a, operator: Exists}, {key: b, operator: Equal, value: x, effect: NoSchedule}]
    topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]
    hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]
strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
"""
SERVICE = """
type: LoadBalancer
selector: {app: web}
loadBalancerSourceRanges: [10.0.0.0/8]
ports: [{name: a, port: 80, protocol: TCP, targetPort: 80}, {name: b, port: 443, protocol: TCP, targetPort: 443}]
"""
ACCOUNT = """
automountServiceAccountToken: false
secrets: [{name: a}, {name: b}]
imagePullSecrets: [{name: first}]
"""
BUDGET = "{selector: {matchLabels: {app: web}}, maxUnavailable: 1}"
SCALER = """
scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
maxReplicas: 10
metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
behavior: {scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Pods, value: 1, periodSeconds: 10}]}}
"""
BASES = {
    "Deployment": POD,
    "Service": SERVICE,
    "ServiceAccount": ACCOUNT,
    "PodDisruptionBudget": BUDGET,
    "HorizontalPodAutoscaler": SCALER,
}


def pod(text: str) -> str:
    return f"{{template: {{spec: {{{text}}}}}}}"


def container(text: str) -> str:
    return pod(f"containers: [{{name: gatewright, {text}}}]")


OVERLAYS: dict[str, dict[str, str]] = {
    "Deployment": {
        "nothing": "{}",
        "a scalar is added": "{replicas: 3}",
        "a scalar is replaced": pod("serviceAccountName: other"),
        "a scalar is removed by null": pod("serviceAccountName: null"),
        "null of what is not there": pod("nodeName: null"),
        "a map is merged": pod("securityContext: {runAsUser: 5, fsGroup: 6}"),
        "a field of a map is removed by null": pod("securityContext: {runAsUser: null}"),
        "a map is removed by null": pod("securityContext: null"),
        "a map is deleted": pod("securityContext: {$patch: delete}"),
        "a map that is not there is deleted": pod("affinity: {$patch: delete}"),
        "a map is replaced": pod("securityContext: {$patch: replace, fsGroup: 6}"),
        "a map is replaced, with null in it": pod("securityContext: {$patch: replace, fsGroup: 6, runAsUser: null}"),
        "a map is merged by its word": pod("securityContext: {$patch: merge, fsGroup: 6}"),
        "null in a map that is not there": pod("affinity: {nodeAffinity: {}, podAffinity: null}"),
        "a wrong directive": pod("securityContext: {$patch: remove}"),
        "labels are merged": "{template: {metadata: {labels: {b: c}, annotations: {a: null}}}}",
        "a plain list is replaced": container("args: [--c]"),
        "a plain list is emptied": container("args: []"),
        "a plain list is removed": container("args: null"),
        "an atomic list of objects is replaced": pod("securityContext: {sysctls: [{name: b, value: '1'}]}"),
        "an item is merged": container("image: three"),
        "the second item is merged": pod("containers: [{name: other, image: three}]"),
        "an item is added": pod("containers: [{name: third, image: three}]"),
        "one is merged and one is added": pod("containers: [{name: third, image: x}, {name: gatewright, image: y}]"),
        "the order of the overlay wins": pod("containers: [{name: other, image: x}, {name: gatewright, image: y}]"),
        "an item is deleted": pod("containers: [{name: other, $patch: delete}]"),
        "an item that is not there is deleted": pod("containers: [{name: none, $patch: delete}]"),
        "one is deleted and one is added": pod("containers: [{name: other, $patch: delete}, {name: third}]"),
        "a list is replaced": pod("containers: [{name: third, image: x}, {$patch: replace}]"),
        "a list is replaced by nothing": pod("containers: [{$patch: replace}]"),
        "a list is replaced, with null in it": pod("volumes: [{$patch: replace}, {name: a, emptyDir: null}]"),
        "an item without its key": pod("containers: [{image: x}]"),
        "an item without its key is deleted": pod("containers: [{$patch: delete}]"),
        "a wrong directive in an item": pod("containers: [{name: other, $patch: merge}]"),
        "a list of objects with a text": pod("containers: [other]"),
        "an item is merged to one with a new map": container(
            "livenessProbe: {httpGet: {path: /, port: 1}, periodSeconds: null}"
        ),
        "a new item with null and directives": pod(
            "containers: [{name: third, image: null, securityContext: {$patch: delete}}]"
        ),
        "a variable is added": container("env: [{name: D, value: '4'}]"),
        "a variable is replaced": container("env: [{name: B, value: '5'}]"),
        "a variable is deleted": container("env: [{name: A, $patch: delete}]"),
        "a variable of another form": container("env: [{name: C, value: x, valueFrom: null}]"),
        "variables in another order": container("env: [{name: C, value: x, valueFrom: null}, {name: A, value: y}]"),
        "variables around a new one": container(
            "env: [{name: A, value: x}, {name: D, value: y}, {name: C, valueFrom: null}]"
        ),
        "variables are replaced": container("env: [{$patch: replace}, {name: D, value: y}]"),
        "a port is changed": container("ports: [{containerPort: 15020, name: other}]"),
        "a port is added": container("ports: [{containerPort: 80, hostPort: 80}]"),
        "a port is deleted": container("ports: [{containerPort: 15021, $patch: delete}]"),
        "a limit is added": container("resources: {limits: {memory: 1Gi}}"),
        "limits are replaced": container("resources: {limits: {$patch: replace, memory: 1Gi}}"),
        "a mount is added": container("volumeMounts: [{name: more, mountPath: /more}]"),
        "a mount is changed": container("volumeMounts: [{name: more, mountPath: /tmp}]"),
        "a probe of another kind": container("readinessProbe: {httpGet: null, tcpSocket: {port: 1}}"),
        "retain keys": container("readinessProbe: {$retainKeys: [tcpSocket], tcpSocket: {port: 1}}"),
        "a volume of another kind": pod(
            "volumes: [{name: tmp, $retainKeys: [name, emptyDir], emptyDir: {medium: Memory}}]"
        ),
        "a volume is added": pod("volumes: [{name: more, secret: {secretName: x}}]"),
        "a volume is deleted": pod("volumes: [{name: tmp, $patch: delete}]"),
        "a strategy with retained keys": "{strategy: {$retainKeys: [type], type: Recreate}}",
        "a pull secret is added": pod("imagePullSecrets: [{name: second}]"),
        "a constraint is merged": pod("topologySpreadConstraints: [{topologyKey: zone, maxSkew: 5}]"),
        "an alias is added": pod("hostAliases: [{ip: 10.0.0.2, hostnames: [b]}, {ip: 10.0.0.1, hostnames: [c]}]"),
        "an init container": pod("initContainers: [{name: first, image: x, env: [{name: A, value: '1'}]}]"),
        "affinity": pod(
            "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1}]}}"
        ),
        "a map in place of a list": pod("containers: {name: x}"),
        "a toleration is added": pod("tolerations: [{key: c, operator: Exists}]"),
        "a toleration is changed": pod("tolerations: [{key: b, effect: NoExecute}]"),
    },
    "Service": {
        "a port is changed": "{ports: [{port: 80, nodePort: 30080}]}",
        "a port is added": "{ports: [{port: 9000, name: c}]}",
        "a port is deleted": "{ports: [{port: 80, $patch: delete}]}",
        "another type": "{type: ClusterIP, loadBalancerSourceRanges: null}",
        "ranges are replaced": "{loadBalancerSourceRanges: [192.168.0.0/16]}",
        "a selector is merged": "{selector: {more: x}}",
        "families": "{ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack}",
    },
    "ServiceAccount": {
        "a secret is added": "{secrets: [{name: c}]}",
        "a secret is deleted": "{secrets: [{name: a, $patch: delete}]}",
        "pull secrets are replaced": "{imagePullSecrets: [{name: second}]}",
        "a scalar": "{automountServiceAccountToken: true}",
    },
    "PodDisruptionBudget": {
        "another bound": "{minAvailable: 50%, maxUnavailable: null}",
        "a selector is replaced": "{selector: {matchLabels: {b: c}}}",
        "a policy": "{unhealthyPodEvictionPolicy: AlwaysAllow}",
    },
    "HorizontalPodAutoscaler": {
        "bounds": "{minReplicas: 2, maxReplicas: 5}",
        "metrics are replaced": "{metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization}}}]}",
        "behaviour is merged": "{behavior: {scaleDown: {selectPolicy: Max}, scaleUp: {stabilizationWindowSeconds: 0}}}",
        "policies are replaced": "{behavior: {scaleDown: {policies: []}}}",
    },
}

EXCEPTIONS: dict[str, dict[str, Any]] = {
    "Deployment: a toleration is added": {
        "tolerations": [
            {"key": "c", "operator": "Exists"},
            {"key": "a", "operator": "Exists"},
            {"key": "b", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
        ]
    },
    "Deployment: a toleration is changed": {
        "tolerations": [
            {"key": "a", "operator": "Exists"},
            {"key": "b", "operator": "Equal", "value": "x", "effect": "NoExecute"},
        ]
    },
    "Deployment: a new item with null and directives": {
        "containers": [{"name": "third"}, *yamls.load(POD)["template"]["spec"]["containers"]]
    },
}
"""Where ours differs on purpose: the specification of GatewayParameters has tolerations merged by `key`, and directives
in an item that is added act, where Kubernetes leaves them in the object."""

_PARSED = {kind: yamls.load(text) for kind, text in BASES.items()}
ROWS = [
    Row(f"{kind}: {name}", kind, copy.deepcopy(_PARSED[kind]), yamls.load(overlay))
    for kind, overlays in OVERLAYS.items()
    for name, overlay in overlays.items()
]


def question(row: Row) -> Json:
    """As the oracle is asked. A ServiceAccount has no spec."""
    if row.kind == "ServiceAccount":
        return {"kind": row.kind, "original": row.original, "patch": row.overlay}
    return {"kind": row.kind, "original": {"spec": row.original}, "patch": {"spec": row.overlay}}


def answers() -> dict[str, Json]:
    found: dict[str, Json] = json.loads(ANSWERS.read_text())
    return found
