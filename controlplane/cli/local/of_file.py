"""What `gatewright up FILE` prints before the proxy begins: addresses of listeners, and lines to try. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from controlplane.cli.local.listeners import LOOPBACK, ServedListener, commands
from controlplane.cli.local.summary import CURLS, is_literal, request_line
from gatewright.api.routes.http_route import HTTPPathMatch, HTTPRouteMatch
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.standalone.file import Bind, FileListener, FileRoute, StandaloneFile

CHAT: Final = HTTPRouteMatch(path=HTTPPathMatch(value="/v1/chat/completions"))
"""What a route to models that takes everything is asked for."""
_ANY: Final = frozenset(("", LOOPBACK, "0.0.0.0", "::"))
"""Addresses of binds that loopback reaches by IPv4."""


def text(version: str, file: Path, content: StandaloneFile) -> str:
    """Ends with a newline. `content`: of a file without mistakes."""
    served = list(_served(content.binds))
    there = [each for each, _ in served]
    lines = [line for each, listener in served for line in _lines(each, listener)]
    tries = [*list(dict.fromkeys(lines))[:CURLS], *commands(there)]
    return "\n".join(("", *_said(version, file, there, tries), "", ""))


def _said(version: str, file: Path, there: Iterable[ServedListener], tries: Iterable[str]) -> Iterator[str]:
    addresses = " ".join(dict.fromkeys(each.address for each in there))
    yield f"gatewright {version} serves {file}: {addresses or 'no address of this machine that is known'}"
    if tries:
        yield from ("", "Try, as soon as the log says ready:")
        yield from (f"  {line}" for line in tries)
    yield ""
    yield f"Save {file} and the change applies at once. Ctrl-C stops everything."


def _served(binds: Iterable[Bind]) -> Iterator[tuple[ServedListener, FileListener]]:
    for bind in binds:
        if _ANY.intersection(bind.addresses or ("",)):
            for position, each in enumerate(bind.listeners):
                name = each.name or f"{bind.port}-{position}"
                key = ObjectKey("Gateway", "", "")
                yield ServedListener(key, name, each.protocol, bind.port, each.hostname or ""), each


def _lines(served: ServedListener, listener: FileListener) -> Iterator[str]:
    for route in listener.routes:
        match = route.matches[0] if route.matches else HTTPRouteMatch()
        if not route.is_grpc and is_literal(match):
            yield _line(served, route, match)


def _line(served: ServedListener, route: FileRoute, match: HTTPRouteMatch) -> str:
    kinds = {kind for backend in route.backends for kind in ("ai", "mcp") if getattr(backend, kind) is not None}
    if kinds == {"mcp"} and not served.hostname and served.protocol == "HTTP":
        address = f"{served.address}{match.path.value}"
        inspector = ["npx", "@modelcontextprotocol/inspector", "--cli", address]
        return shlex.join([*inspector, "--transport", "http", "--method", "tools/list"])
    return request_line(served, route.hostnames, CHAT if kinds == {"ai"} and match.path.value == "/" else match)
