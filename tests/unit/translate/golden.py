"""Reads and writes golden cases: objects in, resources per Gateway and statuses out, as YAML that a person can read.

`tests/golden/<case>.in.yaml` holds objects and at most one document `kind: Fleet` with what is known of the proxies
(`fleet`: by Gateway; `refusals`: by Gateway and resource). `<case>.out.yaml` is what must come out, without what every
object shares (`brief`); a condition is one line: `Type=Status Reason (generation): message`. Run the tests with
GOLDEN=write to write it anew, and read the diff.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.json_format import MessageToDict

from controlplane.derive import Change
from controlplane.facts import Fact
from controlplane.translate.fleet import FleetView
from controlplane.translate.keys import RESOURCE_TYPE, ResourceKey
from controlplane.translate.program import Message, Program
from gatewright.api.decode import documents
from gatewright.api.schema import metadata as api
from gatewright.api.schema.metadata import KubeObject
from gatewright.wire.v1 import backend_pb2, resource_pb2
from tests.harness import yamls

FOLDER = Path(__file__).parents[2] / "golden"
NOW = 1_800_000_000.0

ResourceChange = tuple[str, str, str, bytes | None]
"""Gateway, type URL, resource name, and the serialised message or None when it is gone."""

Edit = tuple[str, tuple[str, str], KubeObject | None]


@dataclass
class Case:
    """One input file."""

    objects: list[Edit]
    fleet: dict[str, FleetView] = field(default_factory=dict)
    refusals: dict[str, dict[str, str]] = field(default_factory=dict)


def read(path: Path) -> Case:
    """The case of a file; every object in it must be one that the API accepts."""
    case = Case([])
    for line, text in documents.split_documents(path.read_text()):
        value = yamls.load(text)
        if value["kind"] == "Fleet":
            case.fleet = {name: FleetView(**view) for name, view in value.get("fleet", {}).items()}
            case.refusals = value.get("refusals", {})
        else:
            case.objects += objects(text, f"{path.name}:{line}")
    return case


def objects(text: str, file: str = "test.yaml") -> list[Edit]:
    """The edits that put the objects of a text."""
    edits: list[Edit] = []
    for decoded in documents.decode(text, file):
        assert decoded.verdict != "invalid" and decoded.key and decoded.item, [str(each) for each in decoded.problems]
        edits.append((decoded.key.kind, (decoded.key.namespace, decoded.key.name), decoded.item))
    return edits


def facts(edits: Iterable[Edit]) -> list[Fact]:
    return [Fact(api.ObjectKey(kind, *key), model) for kind, key, model in edits]


class World:
    """A program and all that it has told: the resources in force, and every batch."""

    def __init__(self, *, selectors_need_grants: bool = False) -> None:
        self.now = NOW
        self.program = Program(lambda: self.now, selectors_need_grants=selectors_need_grants)
        self.resources: dict[tuple[str, str, str], bytes] = {}
        self.batches: list[list[ResourceChange]] = []
        self.program.resources.subscribe(self._note)

    def _note(self, changes: Sequence[Change[ResourceKey, Message]]) -> None:
        batch = [
            (str(key.gateway), key.type_url, key.name, None if new is None else new.content) for key, _, new in changes
        ]
        self.batches.append(batch)
        for gateway, type_url, name, data in batch:
            if data is None:
                del self.resources[gateway, type_url, name]
            else:
                assert self.resources.get((gateway, type_url, name)) != data, "told, but not changed"
                self.resources[gateway, type_url, name] = data

    def put(self, text: str) -> None:
        self.apply(objects(text))

    def apply(self, edits: Iterable[Edit]) -> None:
        self.program.apply(facts(edits))

    def load(self, case: Case) -> None:
        self.apply(case.objects)
        self.news(case)

    def news(self, case: Case) -> None:
        for name, view in case.fleet.items():
            self.program.fleet(name, view)
        for name, refusals in case.refusals.items():
            self.program.refuse(name, refusals)

    def conditions(self, kind: str, name: str, *, namespace: str = "default", entry: int | None = None) -> list[str]:
        """One line per condition of an object, or of its `entry`-th parent."""
        body = self.program.status(kind, namespace, name)
        assert body is not None, f"{kind} {namespace}/{name} has no status"
        return [line(each) for each in (body if entry is None else body["parents"][entry])["conditions"]]

    def messages(self, gateway: str = "default/gw") -> dict[str, Any]:
        """The resources of one Gateway by name, as dictionaries."""
        return {
            name: readable(type_url, data)
            for (owner, type_url, name), data in sorted(self.resources.items())
            if owner == gateway
        }

    def output(self) -> dict[str, Any]:
        """What a golden file holds."""
        gateways = sorted({gateway for gateway, _, _ in self.resources})
        return {
            "resources": {gateway: self.messages(gateway) for gateway in gateways},
            "statuses": {
                " ".join((kind, f"{namespace}/{name}" if namespace else name)): _condensed(body)
                for (kind, namespace, name), body in sorted(self.program.statuses().items())
            },
        }


def readable(type_url: str, data: bytes) -> dict[str, Any]:
    """A message without what its name says already."""
    message = resource_pb2.Resource() if type_url == RESOURCE_TYPE else backend_pb2.Endpoint()
    message.MergeFromString(data)
    fields = _ordered(message, MessageToDict(message, preserving_proto_field_name=True))
    return {name: value for name, value in fields.items() if name not in ("key", "min_revision")}


def _ordered(message: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """With the entries of maps in the order of their keys: a message has them in any."""
    for descriptor, value in message.ListFields():
        name, below = descriptor.name, descriptor.message_type
        if below is not None and below.GetOptions().map_entry:
            held = below.fields_by_name["value"].message_type is not None
            fields[name] = {
                str(key): _ordered(value[key], fields[name][_text(key)]) if held else fields[name][_text(key)]
                for key in sorted(value)
            }
        elif below is not None and name in fields:
            parts = zip(value, fields[name], strict=True) if descriptor.is_repeated else [(value, fields[name])]
            for part, shown in parts:
                if isinstance(shown, dict):  # well-known types are texts
                    _ordered(part, shown)
    return fields


def _text(key: Any) -> str:
    """A key of a map as JSON has it."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def line(condition: dict[str, Any]) -> str:
    assert set(condition) == {
        "type", "status", "reason", "message", "observedGeneration", "lastTransitionTime"
    }  # fmt: skip
    head = f"{condition['type']}={condition['status']} {condition['reason']} ({condition['observedGeneration']})"
    return f"{head}: {condition['message']}" if condition["message"] else head


def _condensed(value: Any) -> Any:
    if isinstance(value, list):
        return [_condensed(each) for each in value]
    if not isinstance(value, dict):
        return value
    condensed = {name: _condensed(each) for name, each in value.items() if name not in ("conditions", "supportedKinds")}
    if "supportedKinds" in value:
        condensed["supportedKinds"] = [each["kind"] for each in value["supportedKinds"]]
    if "supportedFeatures" in value:
        condensed["supportedFeatures"] = f"{len(value['supportedFeatures'])} names"
    if "conditions" in value:
        condensed["conditions"] = [line(each) for each in value["conditions"]]
    return condensed


GOOD = {
    "GatewayClass": ("Accepted", "SupportedVersion"),
    "Gateway": ("Accepted", "Programmed"),
    "GatewayBackend": ("Accepted", "ResolvedRefs", "Programmed"),
    "GatewayPolicy": ("Accepted", "Attached", "ResolvedRefs"),
    "listeners": ("Accepted", "Programmed", "ResolvedRefs"),
    "parents": ("Accepted", "ResolvedRefs"),
    "ancestors": ("Accepted", "Attached", "ResolvedRefs"),
}
"""The conditions of an object, and of an entry of its lists. True all of them, in this order and without a message,
they are `good` in a file; but for `Programmed`, which no proxy has answered for, they are `good, no proxies`."""
_NO_PROXIES = "Programmed=False Pending ({}): 0 proxies connected"


def brief(output: dict[str, Any]) -> dict[str, Any]:
    """What `World.output` gave without what every object shares: the source and the order that a name says already, the
    name of the controller, conditions as they are when all is well; references as texts. Nothing else is lost."""
    return {
        "resources": {
            gateway: {name: _brief_message(name, fields) for name, fields in messages.items()}
            for gateway, messages in output["resources"].items()
        },
        "statuses": {name: _brief_status(name.split()[0], body) for name, body in output["statuses"].items()},
    }


def _brief_message(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {kind: _brief_resource(name, body) if isinstance(body, dict) else body for kind, body in fields.items()}


def _brief_resource(name: str, body: dict[str, Any]) -> dict[str, Any]:
    source = body.get("source", {})
    owner = f"{source.get('namespace')}/{source.get('name')}"
    shared: dict[str, Any] = {"order": f" {owner}"}
    if f"/{owner}/" in f"{name}/" and (source.get("kind") == "GatewayPolicy" or source.get("kind", "").lower() in name):
        shared["source"] = source
    return {field: _referring(value) for field, value in body.items() if shared.get(field) != value}


def _referring(value: Any) -> Any:
    """References to objects as texts."""
    if isinstance(value, list):
        return [_referring(each) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"kind", "namespace", "name"}:
        return f"{value['kind']} {value['namespace']}/{value['name']}"
    if set(value) == {"object"}:
        return _referring(value["object"])
    return {name: _referring(each) for name, each in value.items()}


def _brief_status(place: str, value: Any) -> Any:
    """`place`: the kind of an object, or the name of the list that an entry is of."""
    if isinstance(value, list):
        return [_brief_status(place, each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in value.items():
        if name == "conditions":
            found[name] = _brief_conditions(place, each)
        elif name == "ancestorRef" and set(each) == {"group", "kind", "namespace", "name"}:
            found[name] = f"{each['group']} {each['kind']} {each['namespace']}/{each['name']}"
        elif (name, each) != ("controllerName", "gatewright.dev/controller"):
            found[name] = _brief_status(name, each)
    return found


def _brief_conditions(place: str, lines: list[str]) -> list[str] | str:
    generation = lines[0].partition("(")[2].partition(")")[0] if lines else ""
    good = [f"{each}=True {each} ({generation})" for each in GOOD.get(place, ())]
    if lines == good:
        return f"good ({generation})"
    waiting = [_NO_PROXIES.format(generation) if each.startswith("Programmed=") else each for each in good]
    return f"good, no proxies ({generation})" if lines == waiting and waiting != good else lines


class _Dumper(yaml.SafeDumper):
    """What holds no further collection is on one line; but sentences have a line each."""

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        has_sentences = any(isinstance(each, str) and " " in each for each in sequence)
        return super().represent_sequence(tag, sequence, False if has_sentences else flow_style)


def dumped(output: dict[str, Any]) -> str:
    return yaml.dump(output, Dumper=_Dumper, sort_keys=False, width=120, default_flow_style=None)
