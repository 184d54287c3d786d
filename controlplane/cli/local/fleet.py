"""The proxies of `gatewright up`: which there should be, their ports and their command lines. Pure.

For each Gateway the first proxy is on the ports as written, each further one 1000 higher, so that all fit on one
machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from controlplane.cli import children
from controlplane.cli.local.listeners import LOOPBACK, ServedListener, listeners
from gatewright.api.decode.documents import DEFAULT_NAMESPACE
from gatewright.api.objects.gateway import Gateway

HOST = LOOPBACK
OFFSET_OF_NEXT_PROXY = 1000
"""Ports of a Gateway's second proxy are so much higher than those of the first, and so on."""
OFFSET_OF_NEXT_GATEWAY = 100
"""Ports of the pages of the second Gateway's proxies, and so on; the listeners' ports are the user's."""
_DEFAULT = f"{DEFAULT_NAMESPACE}/"
"""Left out of labels: few people name another namespace on their own machine."""
PAGES = {"admin": 15000, "stats": 15020, "readiness": 15021}


@dataclass(frozen=True, slots=True)
class Proxy:
    """One proxy that should run. `label` is for people, `instance` for the control plane."""

    gateway: str
    instance: str
    label: str
    offset: int
    pages: Mapping[str, int]

    def listeners(self, gateway: Gateway) -> list[ServedListener]:
        """Where it listens for its Gateway: one listener of each port, in the order of ports."""
        of_port = {
            (listener.port, listener.is_datagram): listener for listener in reversed(listeners([gateway], self.offset))
        }
        return [of_port[place] for place in sorted(of_port)]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many proxies of what shape: from the command line."""

    proxies: int
    port_offset: int
    workers: int | None
    socket: Path


def wanted(gateways: Sequence[Gateway], plan: Plan, places: dict[str, int]) -> list[Proxy]:
    """The proxies of all Gateways. `places` remembers each Gateway's number, so that pages never move."""
    found = []
    for gateway in gateways:
        name = f"{gateway.metadata.namespace}/{gateway.metadata.name}"
        place = places.setdefault(name, len(places))
        for number in range(plan.proxies):
            offset = plan.port_offset + number * OFFSET_OF_NEXT_PROXY
            pages = {page: port + offset + place * OFFSET_OF_NEXT_GATEWAY for page, port in PAGES.items()}
            instance = f"proxy-{number + 1}"
            label = instance if place == 0 else f"{name.removeprefix(_DEFAULT)}/{instance}"
            found.append(Proxy(name, instance, label, offset, pages))
    return found


def clashes(proxies: Sequence[Proxy], gateways: Sequence[Gateway]) -> list[str]:
    """Ports that several of the proxies want, which one machine has once, each with the cure."""
    of_name = {f"{gateway.metadata.namespace}/{gateway.metadata.name}": gateway for gateway in gateways}
    wishes: dict[tuple[int, bool], list[str]] = {}
    for proxy in proxies:
        for listener in proxy.listeners(of_name[proxy.gateway]):
            who = f"{proxy.label} (Gateway {proxy.gateway})"
            wishes.setdefault((listener.port, listener.is_datagram), []).append(who)
    cure = f"only one of them has it: choose other ports, not {OFFSET_OF_NEXT_PROXY} apart, or --proxies 1"
    return [
        f"port {port} is wanted by {' and '.join(who)}; {cure}" for (port, _), who in wishes.items() if len(who) > 1
    ]


def command(proxy: Proxy, plan: Plan, environment: Mapping[str, str], lifeline: int) -> children.Command:
    """How the proxy is started."""
    arguments = ["--xds", f"unix:{plan.socket.absolute()}", "--gateway", proxy.gateway, "--instance", proxy.instance]
    arguments += ["--port-offset", str(proxy.offset), "--parent-fd", str(lifeline)]
    for page, port in proxy.pages.items():
        arguments += [f"--{page}", f"{HOST}:{port}"]
    if plan.workers:
        arguments += ["--workers", str(plan.workers)]
    return children.Command(proxy.label, children.python("dataplane", *arguments), environment, (lifeline,))
