"""The agent's last good state: one table of resources from its sources, and what changed for the workers. Pure.

Neither source removes the other's keys. Where both have a key, the control plane's resource is in effect (typed fields
win over `rawConfig`) and the file's comes back when that one goes. A port that both claim stays with the
source that has it; the other's bind is held back, with an error naming both, until the port is free. The third
source is the agent itself: what its part in a mesh comes to (`agent/mesh`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from google.protobuf.message import DecodeError

from dataplane.link.messages import RESOURCE, TYPE_URLS, Record
from gatewright.wire.v1 import bind_pb2, resource_pb2

XDS, FILE, MESH = "xds", "file", "mesh"
SOURCES = (XDS, FILE, MESH)
"""First wins."""

Key = tuple[str, str]
"""Type URL and name."""

BIND_PREFIX = "bind/"


class Resources:
    """The table. `update` or `replace`, then `judge` with the workers' verdict; `good`, then `unjudged`, fill a new
    worker, between the two calls as well.

    What workers refuse, or may refuse yet, stays beside its last good version, since a new worker has to come to the
    same end: a policy that cannot be applied refuses the traffic that it covers.
    """

    def __init__(self) -> None:
        self._given: dict[str, dict[Key, bytes]] = {source: {} for source in SOURCES}
        self._effective: dict[Key, bytes] = {}
        self._refused: dict[Key, bytes | None] = {}
        """Refused now -> last good version, None when there never was one."""
        self._before: dict[Key, bytes | None] = {}
        """Values before the last update, of what it changed."""
        self._binds: dict[tuple[str, Key], bind_pb2.Bind] = {}
        self._held_back: dict[tuple[str, Key], str] = {}

    def update(self, source: str, records: Iterable[Record]) -> list[Record]:
        """Take a source's changes; answers what changes for workers, in the same order."""
        touched: dict[Key, None] = {}
        for record in records:
            key = (record.type_url, record.name)
            self._set(source, key, record.value)
            touched[key] = None
        for key in self._share_ports():
            touched.setdefault(key, None)
        return [Record(*key, value) for key, value in self._updated(touched)]

    def replace(self, source: str, records: Iterable[Record]) -> list[Record]:
        """As `update`, with everything that the source has now: what it does not name any more is gone."""
        wanted = list(records)
        names = {(record.type_url, record.name) for record in wanted}
        gone = [Record(*key, None) for key in self._given[source] if key not in names]
        return self.update(source, [*wanted, *gone])

    def conflicts(self, source: str) -> dict[str, str]:
        """Name -> reason of the source's resources that are held back now."""
        return {key[1]: reason for (owner, key), reason in self._held_back.items() if owner == source}

    def judge(self, refused: Collection[str]) -> None:
        """The workers' verdict after the last update: names of all that they refuse now. What they refused before and
        do not refuse any more is good, also when the change of another resource made it so (of two listeners with one
        hostname, the first went)."""
        for key, before in self._before.items():
            if key[1] in refused and key in self._effective:
                self._refused.setdefault(key, before)
        for key in [key for key in self._refused if key[1] not in refused or key not in self._effective]:
            del self._refused[key]
        self._before = {}

    def good(self) -> Iterator[Record]:
        """The last good version of everything, endpoints before what uses them. What is not judged yet is not good."""
        for type_url in TYPE_URLS:
            for key, value in self._effective.items():
                good = self._refused[key] if key in self._refused else self._before.get(key, value)
                if key[0] == type_url and good is not None:
                    yield Record(*key, good)

    def unjudged(self) -> Iterator[Record]:
        """The newest version of what is refused or not judged yet, endpoints first."""
        keys = [key for key in {**self._refused, **self._before} if key in self._effective]
        return (Record(*key, self._effective[key]) for type_url in TYPE_URLS for key in keys if key[0] == type_url)

    def is_refused(self, name: str) -> bool:
        return any((type_url, name) in self._refused for type_url in TYPE_URLS)

    def has(self, source: str, name: str) -> bool:
        """Whether the source gave a resource of this name."""
        return any((type_url, name) in self._given[source] for type_url in TYPE_URLS)

    def source_of(self, type_url: str, name: str) -> str:
        """Which source's resource is in effect; empty for none."""
        return next((source for source in SOURCES if self._counts(source, (type_url, name))), "")

    def count(self, source: str) -> int:
        """Resources that the source gave."""
        return len(self._given[source])

    def _set(self, source: str, key: Key, value: bytes | None) -> None:
        given = self._given[source]
        if value is None:
            given.pop(key, None)
        else:
            given[key] = value
        if key[0] == RESOURCE and key[1].startswith(BIND_PREFIX):
            bind = None if value is None else _bind_of(value)
            if bind is None:
                self._binds.pop((source, key), None)
            else:
                self._binds[source, key] = bind

    def _share_ports(self) -> set[Key]:
        """Decide which binds are held back; answers those for which that changed."""
        before = self._held_back
        granted: dict[tuple[str, Key], bind_pb2.Bind] = {}
        held_back: dict[tuple[str, Key], str] = {}
        # Who has a port keeps it; among newcomers the order of the sources decides.
        for claim in sorted(self._binds, key=self._turn):
            bind = self._binds[claim]
            rival = next((c for c, other in granted.items() if c[0] != claim[0] and _overlap(bind, other)), None)
            if rival is None or rival[1] == claim[1]:
                granted[claim] = bind
            else:
                held_back[claim] = (
                    f"port {bind.port} is claimed by {claim[1][1]} ({claim[0]}) and by {rival[1][1]} ({rival[0]}),"
                    f" which has it; change one of them"
                )
        self._held_back = held_back
        return {claim[1] for claim in before.keys() ^ held_back.keys()}

    def _turn(self, claim: tuple[str, Key]) -> tuple[bool, int, Key]:
        source, key = claim
        is_newcomer = claim in self._held_back or key not in self._effective
        return is_newcomer, SOURCES.index(source), key

    def _counts(self, source: str, key: Key) -> bool:
        return key in self._given[source] and (source, key) not in self._held_back

    def _updated(self, keys: Iterable[Key]) -> Iterator[tuple[Key, bytes | None]]:
        """Bring `keys` up to date; yields those whose value in effect is another now."""
        for key in keys:
            value = None
            for source in SOURCES:
                if self._counts(source, key):
                    value = self._given[source][key]
                    break
            before = self._effective.get(key)
            if value == before:
                continue
            self._before[key] = before
            if value is None:
                del self._effective[key]
            else:
                self._effective[key] = value
            yield key, value


def _bind_of(value: bytes) -> bind_pb2.Bind | None:
    """The bind in a resource; None when it cannot be read (the workers refuse it, with the reason)."""
    resource = resource_pb2.Resource()
    try:
        resource.ParseFromString(value)
    except DecodeError:
        return None
    return resource.bind if resource.HasField("bind") else None


def _overlap(one: bind_pb2.Bind, other: bind_pb2.Bind) -> bool:
    """Whether both cannot listen: the same port, and a common address or "every address"."""
    if one.port != other.port:
        return False
    return not one.addresses or not other.addresses or not set(one.addresses).isdisjoint(other.addresses)
