"""The text form of `gatewright status`: small tables of proxies, objects and problems, and what commands share. Pure,
but for `complain`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from controlplane.cli.asking import verdicts

Json = dict[str, Any]  # Any: JSON

GAP = "  "
VERSION_DIGITS = 12
"""Digits of a state's version in tables."""
REFUSED = "proxies refuse what it says, listed below"
OLD = "its file has an error, listed below: what acts is its last good version"
PARTLY = "its file has an error, listed below: what acts is the rest of it"


def status(body: Json, wide: bool = False) -> str:
    """Everything a person wants to see first; the sections that have nothing to say are left out. `wide`: with the file
    and generation of each object."""
    errors = [row for row in body["problems"] if row["severity"] == "error" and not row.get("unsupported")]
    broken = {row["object"]: REFUSED if row.get("refused") else OLD for row in errors}
    sections = [
        _header(body["controller"]),
        "\n".join(f"note: {note}" for note in body["notes"]),
        proxies(body["proxies"]),
        endpoints(body["proxies"]),
        objects(body["objects"], broken, wide),
        problems(body["problems"]),
    ]
    return "\n\n".join(section for section in sections if section)


def _header(controller: Json) -> str:
    return f"controller {controller['version']}, process {controller['pid']}, reading {controller['source']}"


def proxies(rows: Sequence[Json]) -> str:
    """One line for each proxy; below it what it refused."""
    if not rows:
        return "no proxies connected"
    lines: list[tuple[str, ...]] = [("PROXY", "GATEWAY", "STATE", "LAG", "VERSION", "CONTROLLER")]
    lines += [
        (row["instance"], row["gateway"], row["state"], _lag(row), row["acknowledged"][:VERSION_DIGITS] or "-", where)
        for row, where in ((row, row.get("controller") or "this one") for row in rows)
    ]
    if not any(row.get("controller") for row in rows):  # a controller of an earlier version never names it
        lines = [cells[:-1] for cells in lines]
    below = {
        number: [f"{refusal['resource'] or 'the state'}: {refusal['message']}" for refusal in row["refusals"]]
        for number, row in enumerate(rows, 1)
    }
    return table(lines, below)


def endpoints(rows: Sequence[Json]) -> str:
    """One line for each endpoint that a proxy has trouble with; below it why connections fail."""
    found = [(row, each) for row in rows for each in row.get("endpoints", ())]  # a controller of before has none
    if not found:
        return ""
    lines = [("ENDPOINT", "BACKEND", "STATE", "GATEWAY", "PROXY")]
    lines += [(each["endpoint"], _backend(each), _health(each), row["gateway"], row["instance"]) for row, each in found]
    return table(lines, {number: _failure(each) for number, (_, each) in enumerate(found, 1)})


def _backend(each: Json) -> str:
    return str(each["backend"]).removeprefix("backend/") or "-"


def _health(each: Json) -> str:
    if each["evicted_until"]:
        return f"Evicted until {_time(each['evicted_until'])}"
    return f"{each['unhealthy_percent']}% unhealthy" if each["unhealthy_percent"] else "Unreachable"


def _failure(each: Json) -> list[str]:
    count = each["failures"]
    if not count:
        return []
    what = f"TLS with {each['server_name']}" if each["server_name"] else "connecting"
    times = "once" if count == 1 else f"{count} times"
    return [f"{what} failed {times}, last at {_time(each['last_failure'])}: {each['reason']}"]


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def objects(rows: Sequence[Json], broken: Mapping[str, str] = MappingProxyType({}), wide: bool = False) -> str:
    """One line for each object that has conditions or should, those that are not well first; below it what is wrong.
    `broken`: `kind namespace/name` of those that are not well although their conditions are, to the reason: their file
    has an error, so that conditions are about what was there before, or proxies always reject them."""
    found = [line for row in rows if (line := _line(row, broken)) is not None]
    found.sort(key=lambda line: _URGENCY.get(line.state, len(_URGENCY)))
    lines = [("KIND", "OBJECT", "STATE", "GENERATION", "FILE"), *(line.cells() for line in found)]
    lines = lines if wide else [cells[:3] for cells in lines]
    below = {number: line.wrong for number, line in enumerate(found, 1)}
    others = len(rows) - len(found)
    more = f"{others} more {'object has' if others == 1 else 'objects have'} no conditions (Services and the like)"
    shown = table(lines, below) if found else ""
    return "\n".join(part for part in (shown, more if others else "") if part) or "no objects"


PROBLEM, IGNORED, PENDING, FOREIGN = "Problem", "Ignored", "Pending", "Foreign"
_URGENCY = {PROBLEM: 0, IGNORED: 1, PENDING: 2}
"""States that come first."""


class _Line(NamedTuple):
    """An object, and what is wrong with it."""

    kind: str
    name: str
    state: str
    wrong: list[str]
    generation: int
    file: str

    def cells(self) -> tuple[str, ...]:
        return self.kind, self.name, self.state, str(self.generation), self.file or "-"


def _line(row: Json, broken: Mapping[str, str]) -> _Line | None:
    """None for objects that never have conditions."""
    name = f"{row['namespace']}/{row['name']}" if row["namespace"] else row["name"]
    found, more = list(verdicts.conditions(row)), (row["generation"], row["file"])
    if not found:
        why = str(row.get("ignored") or "")  # a controller of another version may not send it
        return _Line(row["kind"], name, FOREIGN if row.get("foreign") else IGNORED, [why], *more) if why else None
    bad = [each for each in found if not each.is_well]
    accepted = not any(each.type == "Accepted" for each in bad)
    more_of_it = broken.get(f"{row['kind']} {name}") if accepted else None
    if more_of_it == OLD and any(each.type == "PartiallyInvalid" and each.is_current for each in bad):
        more_of_it = PARTLY
    wrong = [*map(str, _reported(bad)), *([more_of_it] if more_of_it else ())]
    return _Line(row["kind"], name, PROBLEM if more_of_it else _state(found), wrong, *more)


def absent(rows: Sequence[Json], wanted: Sequence[str]) -> list[str]:
    """The names that fit no object."""
    return [name for name in wanted if not any(fits(row, name) for row in rows)]


def fits(row: Json, name: str) -> bool:
    """Whether a row is of an object that is named as KIND, KIND/NAME or KIND/NAMESPACE/NAME."""
    kind, _, rest = name.partition("/")
    return bool(row["kind"].lower() == kind.lower() and rest in ("", row["name"], f"{row['namespace']}/{row['name']}"))


def complain(absent: Sequence[str]) -> bool:
    """Say of each name that it fits no object; whether there was one."""
    for name in absent:
        print(f"gatewright: {name}: there is no such object", file=sys.stderr)
    return bool(absent)


def is_well(body: Json) -> bool:
    """Whether no object has a problem or is ignored, no file an error, and no proxy refuses anything."""
    errors = [row for row in body["problems"] if row["severity"] == "error" and not row.get("unsupported")]
    lines = [_line(row, {}) for row in body["objects"]]
    bad = [line for line in lines if line is not None and line.state in (PROBLEM, IGNORED)]
    return not errors and not bad and not any(row["refusals"] for row in body["proxies"])


def _reported(bad: Sequence[verdicts.Condition]) -> Iterator[verdicts.Condition]:
    """On top of a policy stands the worst of its ancestors: what one of these says is reported there, with its Gateway.
    Conditions that are not known yet are omitted beside one that is: of an object with a mistake they stay so."""
    current = [each for each in bad if each.is_current] or bad
    below = {(each.type, each.reason, each.message) for each in current if each.place.startswith("ancestor ")}
    return (each for each in current if each.place or (each.type, each.reason, each.message) not in below)


def _state(found: Sequence[verdicts.Condition]) -> str:
    bad = [each for each in found if not each.is_well and not each.is_intended]
    if bad:
        return PENDING if all(each.is_pending for each in bad) else PROBLEM
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
    return "-" if row["state"] == "Synced" or row.get("controller") else f"{row['lag_seconds']:.1f}s"


def table(lines: Sequence[Sequence[str]], below: Mapping[int, Sequence[str]] = MappingProxyType({})) -> str:
    """Columns as wide as they have to be; `below` a line, by its number, are further texts."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_lines(lines, widths, below))


def _lines(lines: Sequence[Sequence[str]], widths: Sequence[int], below: Mapping[int, Sequence[str]]) -> Iterator[str]:
    for number, cells in enumerate(lines):
        yield GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        yield from (f"    {text}" for text in below.get(number, ()))
