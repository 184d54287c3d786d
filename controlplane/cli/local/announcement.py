"""What `gatewright up` prints when everything is ready: every address, and lines to try. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from controlplane.cli.local.demo import Server
from controlplane.cli.local.fleet import HOST, Proxy
from gatewright.api.objects.gateway import Gateway

PAGE_PATHS = {"admin": "/config_dump", "stats": "/metrics", "readiness": "/healthz/ready"}
INDENT = "  "
MOST_PROBLEMS = 20
"""Lines of lint's: more would push the addresses off the screen."""


@dataclass(frozen=True, slots=True)
class Running:
    """Everything that the announcement shows."""

    version: str
    source: object
    """The folder that is read."""
    admin: str
    xds: str
    socket: Path
    gateways: Sequence[Gateway]
    proxies: Sequence[Proxy]
    demos: Iterable[Server]
    curls: Sequence[str]
    notes: Sequence[str]
    problems: Sequence[str]
    """What `gatewright lint` reports of the folder, one line each."""
    seconds: float


def text(running: Running) -> str:
    """The announcement, ending with a newline."""
    return "\n".join(("", *_lines(running), ""))


def _lines(running: Running) -> Iterator[str]:
    yield f"gatewright {running.version} serves {running.source}, ready after {running.seconds:.1f} s"
    yield ""
    yield f"{INDENT}{'controller':<12}admin API  http://{running.admin}/api/status"
    yield f"{INDENT}{'':<12}xDS        {running.xds} (reflection, health, client status)"
    yield f"{INDENT}{'':<12}           {running.socket} (resources)"
    for proxy in running.proxies:
        yield from _proxy(proxy, running.gateways)
    for position, server in enumerate(sorted(running.demos, key=lambda each: each.port)):
        yield f"{INDENT}{'' if position else 'demo':<12}{server}"
    yield from (f"{INDENT}note: {note}" for note in running.notes)
    yield from _problems(running)
    if running.curls:
        yield ""
        yield "Try:"
        yield from (f"{INDENT}{line}" for line in running.curls)
    yield ""
    yield f"Save a file in {running.source} and the change applies at once."
    yield "`gatewright status` shows what became of it. Ctrl-C stops everything."


def _problems(running: Running) -> Iterator[str]:
    if not running.problems:
        return
    yield ""
    yield "Problems:"
    yield from (f"{INDENT}{line}" for line in running.problems[:MOST_PROBLEMS])
    if (more := len(running.problems) - MOST_PROBLEMS) > 0:
        yield f"{INDENT}and {more} more: gatewright lint {running.source}"


def _proxy(proxy: Proxy, gateways: Iterable[Gateway]) -> Iterator[str]:
    gateway = next(each for each in gateways if f"{each.metadata.namespace}/{each.metadata.name}" == proxy.gateway)
    ports = " ".join(listener.address for listener in proxy.listeners(gateway))
    yield f"{INDENT}{proxy.label:<11} {ports or 'no listener'}   (Gateway {proxy.gateway})"
    pages = "  ".join(f"{page} http://{HOST}:{port}{PAGE_PATHS[page]}" for page, port in proxy.pages.items())
    yield f"{INDENT}{'':<12}{pages}"
