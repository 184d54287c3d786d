"""What the operator may see of a running controller, and its JSON form.

The composition root answers `Facts` from the packages that know; `server` serves them. No secret value gets in here:
the objects come without content for kinds that hold secrets.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from controlplane.admin import metrics
from controlplane.snapshot import shown
from gatewright.api.text.problem import Problem

Json = dict[str, Any]  # Any: JSON

# Type, state and what it means; `status` prints these words.
SYNCED, STALE, REFUSED, WAITING = "Synced", "Stale", "Refused", "Waiting"
"""It has the newest state; an older one; all of a state but what it refuses; none yet."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A resource that a proxy would not take, and why."""

    resource: str
    message: str


@dataclass(frozen=True, slots=True)
class ProxyRow:
    """One connected proxy. Versions are content hashes of whole states, secrets among them, and shown in part;
    `lag` is how long it has been behind."""

    gateway: str
    instance: str
    wanted: str
    acknowledged: str
    lag_seconds: float
    refusals: tuple[Refusal, ...] = ()
    endpoints: tuple[Json, ...] = ()
    """Those that are not well, as it reports them (`xds/protocol/reports.EndpointTrouble`)."""
    controller: str = ""
    """The controller that it is connected to, where that is another one, which reports its answers alone: nothing is
    known of its lag and its endpoints."""

    @property
    def state(self) -> str:
        if self.refusals:
            return REFUSED
        if not self.acknowledged:
            return WAITING
        return SYNCED if self.acknowledged == self.wanted else STALE


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """One object with its status, as Kubernetes would show it; `file` is where it comes from."""

    kind: str
    namespace: str
    name: str
    generation: int
    file: str
    status: Json
    ignored: str = ""
    """Why the controller does not act on it, of an object without a status."""
    foreign: bool = False
    """Whether that is in order: it belongs to another controller."""

    def matches(self, wanted: Selector) -> bool:
        return (
            self.kind.lower() == wanted.kind.lower()
            and wanted.name in ("", self.name)
            and wanted.namespace in ("", self.namespace)
        )


@dataclass(frozen=True, slots=True)
class Selector:
    """Which objects: KIND, KIND/NAME or KIND/NAMESPACE/NAME; a kind is written in any case."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Raises ValueError, naming the forms."""
        parts = text.split("/")
        if not 1 <= len(parts) <= 3 or not all(parts):
            raise ValueError(f"{text!r} names no object; write KIND, KIND/NAME or KIND/NAMESPACE/NAME")
        return cls(parts[0], parts[1] if len(parts) == 3 else "", parts[-1] if len(parts) > 1 else "")


# Kinds with conditions: the Gateway API reason of an object that cannot be read. Kubernetes never stores such an
# object; a folder may hold one, and without an earlier good state nothing else would speak of it.
_UNREADABLE = {
    "GatewayClass": "InvalidParameters",
    "Gateway": "Invalid",
    "ListenerSet": "Invalid",
    "HTTPRoute": "UnsupportedValue",
    "GRPCRoute": "UnsupportedValue",
    "TLSRoute": "UnsupportedValue",
    "TCPRoute": "UnsupportedValue",
    "UDPRoute": "UnsupportedValue",
    "GatewayBackend": "Invalid",
    "GatewayPolicy": "Invalid",
    "GatewayParameters": "InvalidParameters",
    "BackendTLSPolicy": "Invalid",
    "InferencePool": "Invalid",
}


def unreadable(problems: Iterable[Problem], known: Container[tuple[str, str, str]]) -> Iterator[ObjectRow]:
    """A row with `Accepted=False` for each object that the files hold but that is wrong from the start."""
    found: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems:
        kind, _, path = problem.object.partition(" ")
        namespace, _, name = path.rpartition("/")
        key = (kind, namespace, name)
        if problem.severity == "error" and kind in _UNREADABLE and name and key not in known:
            found.setdefault(key, []).append(problem)
    for key, its in found.items():
        message = "; ".join(f"{each.path}: {each.message}" if each.path else each.message for each in its)
        condition = {"type": "Accepted", "status": "False", "reason": _UNREADABLE[key[0]], "message": message}
        yield ObjectRow(*key, 0, its[0].file, {"conditions": [condition | {"observedGeneration": 0}]})


class Facts(Protocol):
    """The questions that the admin API asks the controller. Every answer is of this moment."""

    def about(self) -> Json:
        """Version, process id, source and readiness."""

    def proxies(self) -> Sequence[ProxyRow]: ...

    def objects(self) -> Iterable[ObjectRow]: ...

    def problems(self) -> Sequence[Problem]: ...

    def pending(self) -> Sequence[str]:
        """What keeps the controller from being ready; nothing when it is."""

    def is_broken(self) -> bool:
        """Whether only another process can go on."""

    def numbers(self) -> metrics.Values:
        """What the page of metrics shows."""

    def notes(self) -> Sequence[str]:
        """What is worth knowing and belongs to no object: for example that there is no Gateway at all."""

    def trace(self, row: ObjectRow) -> Json:
        """The way of an object's change, as `trace.Trace` has it in JSON."""

    def content(self, kind: str, namespace: str, name: str) -> Json | None:
        """The object as decoded, None when there is no such object; kinds that hold secrets without their values."""


def shown_proxy(row: ProxyRow) -> Json:
    """A row in JSON: its state is judged by whole versions, of which only a part is shown."""
    return asdict(row) | {"state": row.state, "wanted": shown(row.wanted), "acknowledged": shown(row.acknowledged)}


def selected(facts: Facts, selectors: Sequence[Selector]) -> list[ObjectRow]:
    """The objects that match a selector, or all, by kind and name."""
    objects = [row for row in facts.objects() if not selectors or any(row.matches(wanted) for wanted in selectors)]
    return sorted(objects, key=lambda row: (row.kind, row.namespace, row.name))


def traces(facts: Facts, selectors: Sequence[Selector]) -> Json:
    """The body of `/api/trace`."""
    found = [facts.trace(row) for row in selected(facts, selectors)]
    return {"controller": facts.about(), "notes": list(facts.notes()), "traces": found}


def status(facts: Facts, selectors: Sequence[Selector]) -> Json:
    """The body of `/api/status`: everything, or the objects that match a selector."""
    return {
        "controller": facts.about(),
        "notes": list(facts.notes()),
        "proxies": [shown_proxy(row) for row in facts.proxies()],
        "objects": [asdict(row) for row in selected(facts, selectors)],
        "problems": [problem.as_json() for problem in facts.problems()],
    }
