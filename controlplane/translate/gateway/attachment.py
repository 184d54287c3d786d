"""What the objects that routes name as parents answer to them (Gateway API, RouteParentStatus).

In two steps. The routes of one kind and namespace that name the same listeners are a class: which of them take its
routes, by `gatewright.attach`, is found once for all. Hostnames come after, for each route. So one listener more is
looked at once for each class, and no route notices as long as its own verdict is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.translate.conditions import Condition, joined
from controlplane.translate.keys import ObjectKey, RouteClass
from gatewright.api.schema.names import GATEWAY_API_GROUP
from gatewright.api.schema.references import ParentReference
from gatewright.attach.hostnames import ANY_ROUTE, listener_marks, meeting, route_marks
from gatewright.attach.parents import PARENT_KINDS, Owner, Site, Verdict, judge
from gatewright.attach.parents import Parent as Named


class Listening(NamedTuple):
    """A listener with its verdict."""

    site: Site
    protocol: str
    cause: str
    """Why no proxy has it; "" for one that is served."""
    reach: frozenset[str] | None
    """Namespaces whose routes it may come to admit, whatever their labels; None: all."""
    failing: str = ""
    """Why no request comes through it although proxies have it."""
    passes_on: bool = False
    """Bytes and datagrams go on as they come."""

    @property
    def served(self) -> bool:
        """Whether proxies have it."""
        return not self.cause

    @property
    def serves(self) -> bool:
        """Whether requests come through it."""
        return not self.cause and not self.failing


@dataclass(frozen=True, slots=True)
class ParentPlan:
    """An object with listeners, as routes see it."""

    owner: Owner
    gateway: ObjectKey
    """The Gateway that it is, or that its listeners are added to."""
    listeners: tuple[Listening, ...]


@dataclass(frozen=True, slots=True)
class ClassListeners:
    """The listeners that take a class of routes, up to their hostnames."""

    gateway: ObjectKey
    by_parent: tuple[tuple[Listening, ...], ...]
    """In the order of the class's parents."""

    @property
    def distinct(self) -> Iterable[Listening]:
        """Each once, by whichever parents."""
        return dict.fromkeys(each for found in self.by_parent for each in found)


@dataclass(frozen=True, slots=True)
class ClassAnswer:
    """The answer to a class of routes before hostnames are compared. One listener more rarely changes it."""

    gateway: ObjectKey
    is_sent: bool
    """Its routes travel to the proxies of the Gateway, which know what their listeners admit: also where none admits
    them now, and one may by the labels of their namespace."""
    refused: tuple[Condition | None, ...]
    """For each of the class's parents."""


@dataclass(frozen=True, slots=True)
class Parent:
    """What became of one parentRef that names an object managed by Gatewright."""

    position: int
    """Of the parentRef in the route, whose status entry echoes it as written."""
    route_class: RouteClass
    number: int
    """Of the parent in the class."""
    gateway: ObjectKey
    is_sent: bool
    refused: Condition | None = None
    unserved: str = ""
    """Why no listener serves the route although some admit it."""

    @property
    def named(self) -> Named:
        return self.route_class.parents[self.number]


class Mark(NamedTuple):
    """One hostname's mark of one parent of a class: there is a listener that has it."""

    route_class: RouteClass
    number: int
    """Of the parent in the class."""
    served: bool
    """Of listeners that are served alone, or of all."""
    mark: str


def owner_of(reference: ParentReference, namespace: str) -> Owner | None:
    """The object that a parentRef names, or None when it is none that has listeners."""
    if reference.group != GATEWAY_API_GROUP or reference.kind not in PARENT_KINDS:
        return None
    return Owner(reference.kind, reference.namespace or namespace, reference.name)


def named(namespace: str, references: Sequence[ParentReference]) -> Iterator[tuple[int, Named]]:
    """The parents of a route of this namespace, with the positions of their references."""
    for position, reference in enumerate(references):
        owner = owner_of(reference, namespace)
        if owner is not None:
            yield position, Named(owner, reference.section_name or "", reference.port or 0)


def classes(kind: str, namespace: str, references: Sequence[ParentReference]) -> list[RouteClass]:
    """The classes of a route, one for each object that it names."""
    by_owner: dict[Owner, set[Named]] = {}
    for _, parent in named(namespace, references):
        by_owner.setdefault(parent.owner, set()).add(parent)
    return [RouteClass(owner, kind, namespace, tuple(sorted(found))) for owner, found in by_owner.items()]


def class_listeners(key: RouteClass, plan: ParentPlan) -> ClassListeners:
    """The listeners that take the routes of a class, up to their hostnames."""
    taken = (
        tuple(each for each in plan.listeners if judge(parent, each.site, key.kind, key.namespace) is Verdict.TAKEN)
        for parent in key.parents
    )
    return ClassListeners(plan.gateway, tuple(taken))


def class_answer(key: RouteClass, plan: ParentPlan) -> ClassAnswer:
    """The answer to the routes of a class before hostnames are compared."""
    return ClassAnswer(
        plan.gateway,
        any(
            each.served and key.kind in each.site.admits.kinds and (each.reach is None or key.namespace in each.reach)
            for each in plan.listeners
        ),
        tuple(_refused(key, parent, plan) for parent in key.parents),
    )


def marks(key: RouteClass, listeners: ClassListeners) -> Iterator[Mark]:
    """What routes have to look for to meet one of these listeners."""
    for number, found in enumerate(listeners.by_parent):
        for served in (True, False):
            for hostname in {each.site.hostname for each in found if each.serves or not served}:
                for mark in listener_marks(hostname):
                    yield Mark(key, number, served, mark)


class Hostnames(NamedTuple):
    """Those of a route, and how it looks for listeners that they meet."""

    own: Sequence[str]
    is_there: Callable[[Mark], bool]
    """Whether a listener has this mark. No further mark is asked for when one has."""
    listeners: Callable[[RouteClass], ClassListeners | None]
    """Read for the message of a refusal alone."""

    def meet(self, key: RouteClass, number: int, served: bool) -> bool:
        """Whether a listener by this parent of the class has one of them."""
        return any(self.is_there(Mark(key, number, served, mark)) for mark in route_marks(self.own))


def attach(position: int, key: RouteClass, parent: Named, answer: ClassAnswer, hostnames: Hostnames) -> Parent:
    """The verdict over one parentRef."""
    number = key.parents.index(parent)
    refused, unserved = answer.refused[number], ""
    if refused is None and not hostnames.meet(key, number, served=True):
        listeners = hostnames.listeners(key)
        found = listeners.by_parent[number] if listeners is not None else ()
        if hostnames.meet(key, number, served=False):
            unserved = _causes(each for each in found if meeting(each.site.hostname, hostnames.own) is not None)
        else:
            refused = _no_hostname(found, hostnames.own)
    return Parent(position, key, number, answer.gateway, answer.is_sent, refused, unserved)


def _refused(key: RouteClass, parent: Named, plan: ParentPlan) -> Condition | None:
    """The first reason, in the order of Gateway API, of the listener at which the routes get farthest."""
    verdicts = [judge(parent, each.site, key.kind, key.namespace) for each in plan.listeners]
    verdict = max(verdicts, default=Verdict.NOT_NAMED)
    if verdict is Verdict.TAKEN:
        return None
    if verdict is Verdict.NOT_NAMED:
        return _no_parent(parent)
    if verdict is Verdict.OTHER_KIND:
        # A listener of a protocol that is not supported admits no kind: that is the cause, not the route's kind.
        named = [each for each, said in zip(plan.listeners, verdicts, strict=True) if said is not Verdict.NOT_NAMED]
        why = _causes(each for each in named if not each.site.admits.kinds) or f"no listener admits kind {key.kind}"
    else:
        why = f"no listener admits routes from namespace {key.namespace}"
    return Condition("Accepted", False, "NotAllowedByListeners", why)


def _causes(listeners: Iterable[Listening]) -> str:
    """What is wrong with each of the listeners that cannot be served, or else with their Gateway."""
    return joined([*dict.fromkeys(why for each in listeners if (why := each.cause or each.failing))])


def _no_parent(parent: Named) -> Condition:
    wanted = [f"{what} {value}" for what, value in (("name", parent.section), ("port", parent.port)) if value]
    what = f"no listener with {' and '.join(wanted)}" if wanted else "no listener"
    return Condition("Accepted", False, "NoMatchingParent", f"the {parent.owner.kind} has {what}")


def _no_hostname(listeners: Sequence[Listening], hostnames: Sequence[str]) -> Condition:
    theirs = ", ".join(sorted({each.site.hostname for each in listeners}))
    return Condition(
        "Accepted",
        False,
        "NoMatchingListenerHostname",
        f"none of {', '.join(hostnames)} meets a listener's hostname ({theirs})",
    )


class Counting(NamedTuple):
    """The routes of a class that may count."""

    size: Callable[[RouteClass], int]
    marked: Callable[[RouteClass, str], int]
    """Those whose hostnames have a mark."""
    which: Callable[[RouteClass, str], Iterable[ObjectKey]]
    """The same, by key."""


def count(key: RouteClass, hostname: str, routes: Counting) -> int:
    """How many routes of a class meet a listener's hostname."""
    if not hostname:
        return routes.size(key)
    # A route without hostnames has no other mark; one with several hostnames may have several.
    found = [mark for mark in listener_marks(hostname) if mark != ANY_ROUTE and routes.marked(key, mark)]
    if len(found) > 1:
        named = len(set().union(*(routes.which(key, mark) for mark in found)))
    else:
        named = sum(routes.marked(key, mark) for mark in found)
    return named + routes.marked(key, ANY_ROUTE)
