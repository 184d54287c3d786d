"""The way of a change: an object, the resources that it became, which proxies serve them, and its conditions.

The composition root fills these rows; `server` answers them, `gatewright trace-change` prints them. Versions of
resources that hold secrets are left out, contents are in none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from controlplane.admin.facts import Json, ObjectRow, Refusal


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """A resource of the newest state of a Gateway, in its present content. Times are seconds since the epoch."""

    gateway: str
    name: str
    version: str
    """A hash of the content; "" of secrets."""
    published: float


@dataclass(frozen=True, slots=True)
class StateRow:
    """The newest state of a Gateway that has a resource of the object."""

    gateway: str
    version: str
    """As much of it as may be seen."""
    published: float | None
    resources: int
    """Of the object."""


@dataclass(frozen=True, slots=True)
class HolderRow:
    """A connected proxy of such a Gateway, and what it has of the object's resources."""

    gateway: str
    instance: str
    version: str
    """Of the last state that it answered, as much as may be seen; "" when there is none yet."""
    answered: float | None
    """When it answered that state; None of a proxy of another controller, which reports no times."""
    serves: int
    """How many of the resources it serves in their present content."""
    lacks: tuple[str, ...] = ()
    """Names of the others, but for those that it refuses."""
    refuses: tuple[Refusal, ...] = ()
    controller: str = ""
    """The controller that it is connected to; "" for this one."""


@dataclass(frozen=True, slots=True)
class Trace:
    """All of one object. `read`: when the controller took its present content."""

    object: ObjectRow
    read: float | None
    states: Sequence[StateRow]
    resources: Sequence[ResourceRow]
    proxies: Sequence[HolderRow]

    def as_json(self) -> Json:
        """Times in UTC, RFC 3339."""
        return {
            "object": asdict(self.object) | {"read": time_text(self.read)},
            "states": [asdict(row) | {"published": time_text(row.published)} for row in self.states],
            "resources": [asdict(row) | {"published": time_text(row.published)} for row in self.resources],
            "proxies": [asdict(row) | {"answered": time_text(row.answered)} for row in self.proxies],
        }


def time_text(seconds: float | None) -> str:
    """With milliseconds; "" for none."""
    if seconds is None:
        return ""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
