"""Endpoints that are not well, put together from what the workers report, for people and for the control plane. Pure.

One row for each endpoint of a backend: the worst of what workers have, the newest failure, failures of all. A report to
the control plane has the same rows, those with the newest failure first, up to a number and a size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from dataplane.link.messages import Trouble

MOST_ROWS: Final = 100
"""Of one report."""
MOST_BYTES: Final = 32 * 1024
"""Of one report."""

Row = dict[str, Any]  # Any: JSON


def merged(troubles: Iterable[Trouble]) -> list[Trouble]:
    """One for each endpoint of a backend, those with the newest failure first."""
    found: dict[tuple[str, str], Trouble] = {}
    for each in troubles:
        key = each.backend, each.endpoint
        known = found.get(key)
        found[key] = each if known is None else _both(known, each)
    return sorted(found.values(), key=lambda each: (-each.last_failure, each.backend, each.endpoint))


def _both(one: Trouble, other: Trouble) -> Trouble:
    newest = max(one, other, key=lambda each: each.last_failure)
    return newest._replace(
        unhealthy=max(one.unhealthy, other.unhealthy),
        evicted_until=max(one.evicted_until, other.evicted_until),
        failures=one.failures + other.failures,
    )


def row(trouble: Trouble, now: float) -> Row:
    """In JSON; what there is nothing of is left out. `now`: as its moments."""
    found: Row = {"endpoint": trouble.endpoint}
    if trouble.backend:
        found["backend"] = trouble.backend
    if trouble.unhealthy:
        found["unhealthy_percent"] = trouble.unhealthy
    if trouble.evicted_until > now:
        found["evicted_for_seconds"] = round(trouble.evicted_until - now, 1)
    if trouble.failures:
        found |= {
            "failures": trouble.failures,
            "reason": trouble.reason,
            "server_name": trouble.server_name,
            "last_failure_seconds": round(max(now - trouble.last_failure, 0.0), 1),
        }
    return found


def report(troubles: Iterable[Trouble], now: float) -> str:
    """What the control plane is sent: JSON, bounded in rows and bytes."""
    lines: list[str] = []
    size = 0
    for each in merged(troubles)[:MOST_ROWS]:
        line = json.dumps(row(each, now), separators=(",", ":"))  # ASCII: characters are bytes
        size += len(line) + 1
        if size >= MOST_BYTES:
            break
        lines.append(line)
    return f"[{','.join(lines)}]"
