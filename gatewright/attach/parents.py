"""Whether a listener takes a route that names its object as a parent (Gateway API, ParentReference and AllowedRoutes).

The one function for both planes: proxies place routes with it, the control plane writes conditions and counts with it.
So nothing that a route says of itself takes it past what the listener's owner allows. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from gatewright.attach.hostnames import meeting

PARENT_KINDS: Final = ("Gateway", "ListenerSet")
"""Kinds of objects that have listeners."""


class Owner(NamedTuple):
    """An object that has listeners."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Parent(NamedTuple):
    """Listeners as a route names them. Those of a Gateway are its own, never those of its ListenerSets."""

    owner: Owner
    section: str
    """Of one listener; "" is all of them."""
    port: int = 0
    """0 is any."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What a listener takes."""

    kinds: frozenset[str] = frozenset()
    namespaces: frozenset[str] | None = frozenset()
    """None: all."""


NOTHING: Final = Admission()


class Site(NamedTuple):
    """A listener as routes see it."""

    owner: Owner
    section: str
    port: int
    hostname: str
    """"" is any host."""
    admits: Admission


class Verdict(IntEnum):
    """How far a route gets at a listener, by its kind and namespace: the first reason against it, or TAKEN."""

    NOT_NAMED = 0
    OTHER_KIND = 1
    OTHER_NAMESPACE = 2
    TAKEN = 3


def judge(parent: Parent, site: Site, kind: str, namespace: str) -> Verdict:
    """What a listener says to the routes of a kind and a namespace that name this parent; hostnames come after."""
    if parent.owner != site.owner or parent.section not in ("", site.section) or parent.port not in (0, site.port):
        return Verdict.NOT_NAMED
    admits = site.admits
    if kind not in admits.kinds:
        return Verdict.OTHER_KIND
    if admits.namespaces is not None and namespace not in admits.namespaces:
        return Verdict.OTHER_NAMESPACE
    return Verdict.TAKEN


def attached(parent: Parent, site: Site, kind: str, namespace: str, hostnames: Sequence[str]) -> tuple[str, ...] | None:
    """The route's own hostnames that a listener serves; () for any host, None when it does not take the route."""
    if judge(parent, site, kind, namespace) is not Verdict.TAKEN:
        return None
    return meeting(site.hostname, hostnames)
