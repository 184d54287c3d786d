"""Log fields of dynamic forward proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from dataplane.telemetry.log_field import OWN, Field, Group

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

DESTINATION: Final = "?forward destination"
"""Where the kind leaves the host and port that a request has named, among its attributes."""


def _destination(x: Exchange, took: float) -> str | None:
    return None if x.attributes is None else cast("str | None", x.attributes.get(DESTINATION))


GROUP: Final = Group(
    lambda x: x.attributes is not None and DESTINATION in x.attributes,
    (
        Field(
            "forward.destination",
            "the host and port that a request to a dynamic forward proxy has named",
            _destination,
            attribute=f"{OWN}forward.destination",
        ),
    ),
)
