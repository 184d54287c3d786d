"""`gatewright wait`: returns when the objects have the condition, or says what each of them lacks."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from controlplane.cli import exits
from controlplane.cli.asking import client, tables, verdicts

SHORTEST = 0.05
LONGEST = 0.5
"""Seconds between two questions of `gatewright wait`: half as many again each time, up to the longest."""


def run(arguments: argparse.Namespace) -> int:
    deadline = time.monotonic() + arguments.timeout
    pause = SHORTEST
    while True:
        lacking = _ask(arguments)
        if not lacking:
            return exits.OK
        if time.monotonic() + pause > deadline:
            raise exits.Failure(exits.CONFIG, "gave up waiting:\n" + "\n".join(f"  {line}" for line in lacking))
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST)


def _ask(arguments: argparse.Namespace) -> list[str]:
    """What is still lacking. A controller that does not answer yet is something lacking as well."""
    try:
        body = client.status(arguments.admin, arguments.objects)
    except client.Unreachable as failure:
        return [failure.message]
    if not body["controller"]["synced"]:
        return ["the controller is still reading its source"]
    lines = lacking(body["objects"], arguments.objects, arguments.condition)
    return lines + unread(body["problems"], arguments.objects)


def lacking(rows: Sequence[dict[str, Any]], wanted: Sequence[str], condition: str | None) -> list[str]:
    """One line for each object that does not have the condition, and each name that fits no object. Pure.

    Without names, an explicit condition is asked of the objects that have conditions at all.
    """
    lines = [f"{name}: there is no such object" for name in tables.absent(rows, wanted)]
    if not rows and not wanted:
        return ["there are no objects"]
    for row in rows:
        if not wanted and row["kind"] not in verdicts.DEFAULTS:
            continue
        if not wanted and condition and not any(each.type == condition for each in verdicts.conditions(row)):
            continue
        text = verdicts.missing(row, condition)
        if text:
            place = f"{row['namespace']}/{row['name']}" if row["namespace"] else row["name"]
            lines.append(f"{row['kind']} {place}: {text}")
    return lines


def unread(problems: Sequence[dict[str, Any]], wanted: Sequence[str]) -> list[str]:
    """One line for each error in a file: what is written there is not what the conditions speak of. Pure."""
    errors = [problem for problem in problems if problem["severity"] == "error"]
    return [
        tables.problem(each) for each in errors if not wanted or any(tables.fits(_named(each), name) for name in wanted)
    ]


def _named(problem: dict[str, Any]) -> dict[str, str]:
    """Kind, namespace and name of the object that a problem is about."""
    kind, _, place = problem["object"].partition(" ")
    namespace, _, name = place.rpartition("/")
    return {"kind": kind, "namespace": namespace, "name": name}
