"""Where the time of a Gateway goes, by what its API server noted and its proxy logged. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

Json = dict[str, Any]


class Hop(NamedTuple):
    """The end of a request that the API server noted; `suffix`: behind the Gateway's name, where it is not whole."""

    title: str
    verb: str
    resource: str
    suffix: str = ""


HOPS: Final = (
    Hop("the controller asks for the first object", "get", "serviceaccounts"),
    Hop("account applied", "patch", "serviceaccounts"),
    Hop("Service applied", "patch", "services"),
    Hop("Deployment applied", "patch", "deployments"),
    Hop("Pod created", "create", "pods", "-"),
    Hop("Pod bound to the node", "create", "pods/binding", "-"),
    Hop("token for xDS issued", "create", "serviceaccounts/token"),
)
LOGGED: Final = (
    ("proxy: interpreter runs, workers started", "gatewright-proxy "),
    ("proxy: agent loaded, pages served", "pages served"),
    ("proxy: connected to the controller", "connected to"),
    ("proxy: a worker has loaded and serves", "worker serves"),
    ("proxy: ports open", "bind opened"),
)
STAMP: Final = re.compile(r"^(\S+Z)\s")


def noted(lines: Iterable[str], name: str) -> dict[str, float]:
    """The first end of each hop, by the clock of the machine; of a Gateway of this name."""
    found: dict[str, float] = {}
    for line in lines:
        event = json.loads(line)
        about = event.get("objectRef") or {}
        resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
        for hop in HOPS:
            of = str(about.get("name") or "")
            is_it = of.startswith(name + hop.suffix) if hop.suffix else of == name
            if (hop.verb, hop.resource) == (event["verb"], resource) and is_it:
                found.setdefault(hop.title, _seconds(event["stageTimestamp"]))
    return found


def logged(lines: Iterable[str]) -> dict[str, float]:
    """What a proxy logged first of each."""
    found: dict[str, float] = {}
    for line in lines:
        stamp = STAMP.match(line)
        for title, text in LOGGED:
            if stamp is not None and text in line:
                found.setdefault(title, _seconds(stamp[1]))
    return found


def table(moments: Mapping[str, float], began: float) -> Iterator[str]:
    """Milliseconds since `began`, and since the hop before, in order."""
    before = began
    for title, moment in sorted(moments.items(), key=lambda each: each[1]):
        yield f"{(moment - began) * 1000:7.0f} ms  +{(moment - before) * 1000:5.0f}  {title}"
        before = moment


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
