"""The objects in a cluster that were made for Gateways, as they are now. Pure.

`OwnedKind.versions` and the rest are what a reflector asks of a kind. Objects stay as the API server has them, without
what only it cares for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from controlplane.deploy.names import MANAGED_BY, PRODUCT, name_of
from controlplane.deploy.render import API_VERSIONS
from controlplane.deploy.request import WantedKey
from controlplane.kube.reading.events import CHANGES, REMOVED, Item, opened, tree
from controlplane.translate.keys import ObjectKey
from gatewright.api.schema.names import GATEWAY_API_GROUP

Json = dict[str, Any]  # Any: JSON


class OwnedKind(NamedTuple):
    """A kind of which objects are made."""

    kind: str
    group: str
    versions: tuple[str, ...]
    plural: str
    namespaced: bool = True


KINDS: Final = {
    each.kind: each
    for each in (
        OwnedKind("ServiceAccount", "", ("v1",), "serviceaccounts"),
        OwnedKind("ConfigMap", "", ("v1",), "configmaps"),
        OwnedKind("Secret", "", ("v1",), "secrets"),
        OwnedKind("Service", "", ("v1",), "services"),
        OwnedKind("Deployment", "apps", ("v1",), "deployments"),
        OwnedKind("PodDisruptionBudget", "policy", ("v1",), "poddisruptionbudgets"),
        OwnedKind("HorizontalPodAutoscaler", "autoscaling", ("v2",), "horizontalpodautoscalers"),
    )
}


class LiveChange(NamedTuple):
    """An object as it is now; None: it is gone."""

    key: WantedKey
    body: Json | None


def owner(body: Json) -> ObjectKey | None:
    """The Gateway that an object was made for, in its own namespace; None for one that was not made for any."""
    metadata = body.get("metadata") or {}
    for each in metadata.get("ownerReferences") or ():
        group = str(each.get("apiVersion")).partition("/")[0]
        if each.get("controller") and (group, each.get("kind")) == (GATEWAY_API_GROUP, "Gateway"):
            return ObjectKey(str(metadata.get("namespace") or ""), str(each.get("name")))
    return None


def made_for(key: WantedKey, body: Json) -> ObjectKey | None:
    """The Gateway that an object was made for by us: it owns it, and it has the name that we give. Anyone who writes
    others beside the Gateway can copy our labels and the owner: their addresses are none of the Gateway's, they are not
    the controller's to remove, and there may be any number of them."""
    gateway = owner(body)
    return gateway if gateway is not None and key.name == name_of(key.kind, gateway.name) else None


def is_made_for(body: Json, gateway: ObjectKey) -> bool:
    """Whether an object was made for this Gateway: by its label and its owner. An owner alone is written by anyone who
    wants an object of their own to go with a Gateway, and a label alone is copied."""
    labels = (body.get("metadata") or {}).get("labels") or {}
    return owner(body) == gateway and labels.get(MANAGED_BY) == PRODUCT


class Owned:
    """What lists and watches of one kind come to, as `reflector.Follows` has it."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._present: set[WantedKey] = set()
        self._listed: set[WantedKey] | None = None
        self.resource_version = ""

    def __len__(self) -> int:
        return len(self._present)

    def list_begins(self) -> None:
        self._listed = set()

    def page(self, items: Iterable[Item], version: str) -> list[LiveChange]:
        """Kinds of Kubernetes itself have one version here."""
        return [self._seen(tree(each)) for each in items]

    def list_ends(self, resource_version: str) -> list[LiveChange]:
        listed, self._listed = self._listed or set(), None
        self.resource_version = resource_version
        vanished, self._present = self._present - listed, self._present & listed
        return [LiveChange(key, None) for key in sorted(vanished)]

    def left(self, namespace: str) -> list[LiveChange]:
        """Proxies of a Gateway that is not read any more stay as they are."""
        return []

    def events(self, lines: Iterable[bytes]) -> list[LiveChange]:
        found: dict[WantedKey, LiveChange] = {}
        for line in lines:
            if line.strip():
                for change in self._event(line):
                    found[change.key] = change
        return [*found.values()]

    def _event(self, line: bytes) -> Iterator[LiveChange]:
        type_, item = opened(line)
        value = tree(item)
        metadata = value.get("metadata") or {}
        if type_ == REMOVED:
            key = self._key(value)
            self._present.discard(key)
            yield LiveChange(key, None)
        elif type_ in CHANGES:
            yield self._seen(value)
        if isinstance(metadata.get("resourceVersion"), str):
            self.resource_version = metadata["resourceVersion"]

    def _seen(self, value: Json) -> LiveChange:
        key = self._key(value)
        self._present.add(key)
        if self._listed is not None:
            self._listed.add(key)
        return LiveChange(key, slim(self._kind, value))

    def _key(self, value: Json) -> WantedKey:
        metadata = value.get("metadata") or {}
        return WantedKey(self._kind, str(metadata.get("namespace") or ""), str(metadata.get("name")))


def slim(kind: str, value: Json) -> Json:
    """Without what says nothing to us, and without values of Secrets. Items of lists do not name their kind."""
    metadata = {name: part for name, part in (value.get("metadata") or {}).items() if name != "managedFields"}
    dropped = ("data", "stringData") if kind == "Secret" else ()
    content = {name: part for name, part in value.items() if name not in dropped}
    return {**content, "apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": metadata}


class Live:
    """All that were made for Gateways (`made_for`), and by Gateway."""

    def __init__(self) -> None:
        self.objects: dict[WantedKey, Json] = {}
        self._of: dict[ObjectKey, set[WantedKey]] = {}

    def take(self, changes: Iterable[LiveChange]) -> set[ObjectKey]:
        """The Gateways that this concerns."""
        concerned: set[ObjectKey] = set()
        for key, body in changes:
            before = self.objects.pop(key, None)
            if before is not None and (gateway := made_for(key, before)) is not None:
                kept = self._of[gateway]
                kept.discard(key)
                if not kept:
                    del self._of[gateway]
                concerned.add(gateway)
            if body is not None and (gateway := made_for(key, body)) is not None:
                self.objects[key] = body
                self._of.setdefault(gateway, set()).add(key)
                concerned.add(gateway)
        return concerned

    def of(self, gateway: ObjectKey) -> dict[WantedKey, Json]:
        """Those that were made for a Gateway."""
        return {key: self.objects[key] for key in sorted(self._of.get(gateway, ()))}

    def gateways(self) -> list[ObjectKey]:
        """All that have some."""
        return [*self._of]


def addresses(objects: Iterable[Json]) -> tuple[tuple[str, str], ...]:
    """Types and values, of the Services among the objects of a Gateway."""
    found: dict[tuple[str, str], None] = {}
    for body in objects:
        spec = body.get("spec") or {}
        if "clusterIP" not in spec:
            continue
        for address in _addresses(spec, body.get("status") or {}):
            found[address] = None
    return tuple(found)


def cluster_addresses(objects: Iterable[Json]) -> tuple[str, ...]:
    """Within the cluster, of the Services among the objects of a Gateway."""
    specs = [body.get("spec") or {} for body in objects]
    return tuple(dict.fromkeys(value for spec in specs if "clusterIP" in spec for value in _of_cluster(spec)))


def are_unready(objects: Iterable[Json]) -> bool:
    """Whether a Deployment among the objects of a Gateway has Pods and none of them is ready.

    Its Service has no endpoint yet, although a proxy may have acknowledged its state. A Deployment without a status
    has no Pods, and no proxy.
    """
    statuses = [body.get("status") or {} for body in objects if body.get("kind") == "Deployment"]
    return any(each.get("replicas") and not each.get("readyReplicas") for each in statuses)


def _addresses(spec: Json, status: Json) -> Iterator[tuple[str, str]]:
    if spec.get("type") == "LoadBalancer":
        for each in (status.get("loadBalancer") or {}).get("ingress") or ():
            if each.get("ip"):
                yield "IPAddress", str(each["ip"])
            if each.get("hostname"):
                yield "Hostname", str(each["hostname"])
        return
    yield from (("IPAddress", value) for value in _of_cluster(spec))


def _of_cluster(spec: Json) -> Iterator[str]:
    return (str(each) for each in spec.get("clusterIPs") or [spec["clusterIP"]] if each and each != "None")
