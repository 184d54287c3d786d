"""The text form of `gatewright status`: small tables of proxies, objects and problems. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from controlplane.cli import verdicts

Json = dict[str, Any]  # Any: JSON

GAP = "  "
VERSION_DIGITS = 12
REFUSED = "proxies refuse what it says, told below"
OLD = "its file has an error, told below: what acts is its last good version"


def status(body: Json) -> str:
    """Everything a person wants to see first; the sections that have nothing to say are left out."""
    errors = [row for row in body["problems"] if row["severity"] == "error" and not row.get("unsupported")]
    broken = {row["object"]: REFUSED if row.get("refused") else OLD for row in errors}
    sections = [
        _header(body["controller"]),
        "\n".join(f"note: {note}" for note in body["notes"]),
        proxies(body["proxies"]),
        objects(body["objects"], broken),
        problems(body["problems"]),
    ]
    return "\n\n".join(section for section in sections if section)


def _header(controller: Json) -> str:
    return f"controller {controller['version']}, process {controller['pid']}, reading {controller['source']}"


def proxies(rows: Sequence[Json]) -> str:
    """One line for each proxy; below it what it refused."""
    if not rows:
        return "no proxies connected"
    lines = [("PROXY", "GATEWAY", "STATE", "LAG", "VERSION")]
    lines += [
        (row["instance"], row["gateway"], row["state"], _lag(row), row["acknowledged"][:VERSION_DIGITS] or "-")
        for row in rows
    ]
    below = {
        number: [f"{refusal['resource'] or 'the state'}: {refusal['message']}" for refusal in row["refusals"]]
        for number, row in enumerate(rows, 1)
    }
    return _table(lines, below)


def objects(rows: Sequence[Json], broken: Mapping[str, str] = MappingProxyType({})) -> str:
    """One line for each object that has conditions; below it the conditions that are not as they should be. `broken`:
    `kind namespace/name` of those that are not well although their conditions are, to the reason: their file has an
    error, so that conditions speak of what was there before, or proxies are sure to refuse them."""
    lines, below = [("KIND", "OBJECT", "STATE")], {}
    for row in rows:
        found = list(verdicts.conditions(row))
        if not found:
            continue
        name = f"{row['namespace']}/{row['name']}" if row["namespace"] else row["name"]
        bad = [each for each in found if not each.is_well]
        accepted = not any(each.type == "Accepted" for each in bad)
        more_of_it = broken.get(f"{row['kind']} {name}") if accepted else None
        lines.append((row["kind"], name, "Problem" if more_of_it else _state(found)))
        below[len(lines) - 1] = [*map(str, _told(bad)), *([more_of_it] if more_of_it else ())]
    others = len(rows) - len(lines) + 1
    more = f"{others} more {'object has' if others == 1 else 'objects have'} no conditions (Services and the like)"
    table = _table(lines, below) if len(lines) > 1 else ""
    return "\n".join(part for part in (table, more if others else "") if part) or "no objects"


def _told(bad: Sequence[verdicts.Condition]) -> Iterator[verdicts.Condition]:
    """On top of a policy stands the worst of its ancestors: what one of these says is told there, with its Gateway."""
    below = {(each.type, each.reason, each.message) for each in bad if each.place.startswith("ancestor ")}
    return (each for each in bad if each.place or (each.type, each.reason, each.message) not in below)


def _state(found: Sequence[verdicts.Condition]) -> str:
    bad = [each for each in found if not each.is_well and not each.is_intended]
    if bad:
        return "Pending" if all(each.is_pending for each in bad) else "Problem"
    if any(each.is_intended for each in found):
        return verdicts.OVERRIDDEN
    return ", ".join(dict.fromkeys(each.type for each in found if each.type not in verdicts.NEGATIVE))


def problems(rows: Sequence[Json]) -> str:
    """Each problem as `severity file:line: object: path: message`."""
    return "\n".join(problem(row) for row in rows)


def problem(row: Json) -> str:
    place = f"{row['file']}:{row['line']}" if row["line"] else row["file"]
    parts = (f"{row['severity']} {place}", row["object"], row["path"], row["message"])
    return ": ".join(part for part in parts if part)


def _lag(row: Json) -> str:
    return "-" if row["state"] == "Synced" else f"{row['lag_seconds']:.1f}s"


def _table(lines: Sequence[Sequence[str]], below: dict[int, list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_lines(lines, widths, below))


def _lines(lines: Sequence[Sequence[str]], widths: Sequence[int], below: dict[int, list[str]]) -> Iterator[str]:
    for number, cells in enumerate(lines):
        yield GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        yield from (f"    {text}" for text in below.get(number, ()))
