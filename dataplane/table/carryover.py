"""What outlives a swap: endpoints, with their idle connections and scores, and what policies remember.

Equal endpoints are one object, whichever backends and tables name them; the applier takes one per reference and gives
it back after the swap that drops it. `Env.carryover` is this object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from dataplane.upstream.endpoint import Endpoint

StateT = TypeVar("StateT")

Identity = tuple[str, int, str, str]
"""Address, port, path of a Unix socket, workload."""


def _usual(address: str) -> str:
    """An IPv6 address as all spell it (RFC 5952)."""
    try:
        return str(ip_address(address))
    except ValueError:
        return address


class Carryover:
    def __init__(self) -> None:
        self._endpoints: dict[Identity, Endpoint] = {}
        self._workloads: Counter[tuple[str, int]] = Counter()
        """Of these the addresses and ports of workloads, which may follow each other there."""
        self._taken: dict[Endpoint, int] = {}
        self._states: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def kept(self, key: str, make: Callable[[], StateT]) -> StateT:
        """What a policy remembers (caches, keys), by its carry-over key (`Origin.key`): that of the policy before, or a
        new one. It lives as long as a filter holds it; the next table's are built before the old one's go."""
        state: StateT | None = self._states.get(key)
        if state is None:
            state = self._states[key] = make()
        return state

    def take(self, address: str, port: int, unix_path: str = "", workload: str = "") -> Endpoint:
        """The endpoint of an address: the known one, or a new one. Each taking is given back once. `workload`: as
        `Pool.workload`; another one at the same address is another endpoint."""
        address = _usual(address) if ":" in address else address
        identity = (address, port, unix_path, workload)
        endpoint = self._endpoints.get(identity)
        if endpoint is None:
            endpoint = self._endpoints[identity] = Endpoint(address, port, unix_path, workload)
            if workload:
                self._workloads[address, port] += 1
        self._taken[endpoint] = self._taken.get(endpoint, 0) + 1
        return endpoint

    def holds(self, address: str, port: int) -> bool:
        """Whether a backend has this endpoint. `address`: in its usual spelling."""
        return (address, port, "", "") in self._endpoints or (address, port) in self._workloads

    def give_back(self, endpoint: Endpoint) -> Iterator[None]:
        """One reference less; after the last one its idle connections are closed, one to a step."""
        self._taken[endpoint] -= 1
        if not self._taken[endpoint]:
            del self._taken[endpoint]
            del self._endpoints[endpoint.address, endpoint.port, endpoint.unix_path, endpoint.workload]
            if endpoint.workload:
                self._workloads -= Counter([(endpoint.address, endpoint.port)])
            yield from endpoint.retire()

    def __len__(self) -> int:
        return len(self._endpoints)

    def __repr__(self) -> str:
        return f"Carryover({len(self)} endpoints)"
