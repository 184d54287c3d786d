"""`gatewright trace-change KIND/NAME`: the way of a change, asked of the controller and printed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from controlplane.cli import exits
from controlplane.cli.asking import client, tables, verdicts

Json = dict[str, Any]  # Any: JSON

MOST_LINES: Final = 20
"""Resources that are listed, and names of one proxy; -o json has all."""


def run(arguments: argparse.Namespace) -> int:
    """0; 4 when something was named that does not exist."""
    body = client.trace(arguments.admin, arguments.objects)
    traces: list[Json] = body["traces"]
    if arguments.output == "json":
        print(json.dumps(body, indent=2))
    elif traces:
        notes = "\n".join(f"note: {note}" for note in body.get("notes", ()))  # a controller of before has none
        print("\n\n".join(filter(None, [notes, *map(text, traces)])))
    absent = tables.absent([each["object"] for each in traces], arguments.objects)
    return exits.DEPENDENCY if tables.complain(absent) else exits.OK


def text(trace: Json) -> str:
    """The text form of one trace."""
    sections = (_object(trace["object"]), _resources(trace), _proxies(trace), _conditions(trace["object"]))
    return "\n\n".join(section for section in sections if section)


def _object(row: Json) -> str:
    name = f"{row['namespace']}/{row['name']}" if row["namespace"] else row["name"]
    read = f", read {row['read']}" if row["read"] else ""
    file = f" from {row['file']}" if row["file"] else ""
    return f"{row['kind']} {name}, generation {row['generation']}{read}{file}"


def _resources(trace: Json) -> str:
    rows = trace["resources"]
    if not rows:
        return "no resource of its own in the state of any Gateway"
    lines = [("RESOURCE", "GATEWAY", "VERSION", "PUBLISHED")]
    lines += [(row["name"], row["gateway"], row["version"] or "-", row["published"]) for row in rows[:MOST_LINES]]
    more = _more(len(rows))
    states = [
        f"newest state of {row['gateway']}: {_short(row['version'])}, published {row['published']}"
        for row in trace["states"]
    ]
    return "\n".join([tables.table(lines), *more, *states])


def _proxies(trace: Json) -> str:
    if not trace["resources"]:
        return ""
    if not trace["proxies"]:
        return "no proxies connected"
    counts = {row["gateway"]: row["resources"] for row in trace["states"]}
    lines: list[tuple[str, ...]] = [("PROXY", "GATEWAY", "SERVES", "STATE", "ANSWERED", "CONTROLLER")]
    lines += [
        (
            row["instance"],
            row["gateway"],
            f"{row['serves']} of {counts[row['gateway']]}",
            _short(row["version"]) or "-",
            row["answered"] or "-",
            row.get("controller") or "this one",
        )
        for row in trace["proxies"]
    ]
    if not any(row.get("controller") for row in trace["proxies"]):
        lines = [cells[:-1] for cells in lines]
    below = {number: list(_lacking(row)) for number, row in enumerate(trace["proxies"], 1)}
    return tables.table(lines, below)


def _lacking(row: Json) -> Iterator[str]:
    for each in row["refuses"][:MOST_LINES]:
        yield f"refuses {each['resource'] or 'the state'}: {each['message']}"
    yield from (f"not yet: {name}" for name in row["lacks"][:MOST_LINES])
    yield from _more(max(len(row["refuses"]), len(row["lacks"])))


def _conditions(row: Json) -> str:
    found = list(verdicts.conditions(row))
    if not found:
        return f"no conditions: {row['ignored']}" if row["ignored"] else "no conditions"
    lines: list[Sequence[str]] = [("CONDITION", "OF", "GENERATION", "SINCE")]
    lines += [
        (f"{each.type}={each.status}", each.place or "the object", str(each.generation), each.since or "-")
        for each in found
    ]
    below = {
        number: [f"{each.reason}: {each.message}" if each.message else each.reason]
        for number, each in enumerate(found, 1)
        if not each.is_well
    }
    return tables.table(lines, below)


def _more(count: int) -> list[str]:
    return [f"and {count - MOST_LINES} more; -o json has all"] if count > MOST_LINES else []


def _short(version: str) -> str:
    return version[: tables.VERSION_DIGITS]
