"""The functions of the language, one table per library.

`STANDARD` is all of them; an Environment may be given fewer or more. Each library is a literal table of overloads.
"""

from __future__ import annotations

from gatewright.cel.functions import (
    conversions,
    encoders,
    headers,
    json_text,
    lists,
    maps,
    mathematics,
    misc,
    network,
    optionals,
    sets,
    standard,
    strings,
    times,
)
from gatewright.cel.overloads import Functions, Overload

LIBRARIES = (
    standard,
    conversions,
    times,
    strings,
    mathematics,
    lists,
    sets,
    maps,
    optionals,
    encoders,
    network,
    json_text,
    headers,
    misc,
)


def by_name(*tables: tuple[Overload, ...]) -> Functions:
    """Overloads grouped by function name, in the order given."""
    grouped: dict[str, list[Overload]] = {}
    for table in tables:
        for overload in table:
            grouped.setdefault(overload.name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in grouped.items()}


STANDARD: Functions = by_name(*(library.TABLE for library in LIBRARIES))
