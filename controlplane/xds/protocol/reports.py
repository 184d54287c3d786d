"""What a proxy reports of endpoints that are not well: why connections to them fail, how unhealthy they are, and which
are evicted.

Pure. Our proxies write it into the metadata of a node, in a request of its own that changes and answers nothing, as a
JSON array of objects. It is kept as text, the newest of each proxy alone, so that a proxy which sends many costs no
more than their bytes; it is read when somebody asks. The text comes from the network: it is bounded, cleaned, and
never trusted to be well-formed; nothing is decided by it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gatewright.wire.external import node_pb2

KEY: Final = "gatewright.endpoints"
"""Of the node's metadata."""

MOST_TEXT: Final = 64 << 10
"""Bytes of one report: our proxies send half of it at most. A longer one says nothing."""
MOST_ROWS: Final = 100
LONGEST: Final = 256
"""Characters of a name or reason."""
LONGEST_KEY: Final = 1024
MOST_NUMBER: Final = 1 << 32
"""Seconds, or failures: more is nonsense."""

TOO_LONG: Final = "[]"

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class EndpointTrouble:
    """An endpoint that is not well, as one proxy has it. Moments are seconds since 1970."""

    endpoint: str
    backend: str = ""
    """Key of the backend; "": it is not known for which one a connection failed."""
    unhealthy_percent: int = 0
    evicted_until: float = 0.0
    """0: it is not evicted."""
    failures: int = 0
    """Connections that did not come, since the last one that did."""
    reason: str = ""
    server_name: str = ""
    last_failure: float = 0.0


def written(node: node_pb2.Node) -> str:
    """The report that a request carries, not looked at; "": none."""
    if KEY not in node.metadata.fields:
        return ""
    text = node.metadata.fields[KEY].string_value
    return text if 0 < len(text) <= MOST_TEXT else TOO_LONG


def read(report: str, reported_at: float, is_known: Callable[[str], bool]) -> tuple[EndpointTrouble, ...]:
    """The rows of a report that came at this moment. `is_known`: whether a backend is one of the proxy's Gateway; of
    others a proxy has nothing to say."""
    try:
        entries = json.loads(report) if report else ()
    except (ValueError, RecursionError):
        return ()
    if not isinstance(entries, list):
        return ()
    rows = (_row(entry, reported_at) for entry in entries[:MOST_ROWS])
    return tuple(row for row in rows if row is not None and (not row.backend or is_known(row.backend)))


def _row(entry: object, reported_at: float) -> EndpointTrouble | None:
    if not isinstance(entry, dict) or not (endpoint := _text(entry, "endpoint")):
        return None
    evicted, failures = _number(entry, "evicted_for_seconds"), int(_number(entry, "failures"))
    return EndpointTrouble(
        endpoint,
        _text(entry, "backend", LONGEST_KEY),
        min(int(_number(entry, "unhealthy_percent")), 100),
        round(reported_at + evicted, 1) if evicted else 0.0,
        failures,
        _text(entry, "reason"),
        _text(entry, "server_name"),
        round(reported_at - _number(entry, "last_failure_seconds"), 1) if failures else 0.0,
    )


def _text(entry: dict[str, Any], name: str, longest: int = LONGEST) -> str:  # Any: JSON
    value = entry.get(name)
    return _UNPRINTABLE.sub(" ", value[:longest]).strip() if isinstance(value, str) else ""


def _number(entry: dict[str, Any], name: str) -> float:  # Any: JSON
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return 0.0 if math.isnan(value) else min(max(value, 0), MOST_NUMBER)
