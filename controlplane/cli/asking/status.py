"""`gatewright status`: asks the controller and prints what it knows, once or again whenever it is another answer."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from controlplane.cli import exits
from controlplane.cli.asking import client, tables

PAUSE = 1.0
"""Seconds between two questions of --watch."""


def run(arguments: argparse.Namespace) -> int:
    """0; 4 when something was named that does not exist; with --exit-code 1 when something is not well."""
    body = client.status(arguments.admin, arguments.objects)
    print(_shown(body, arguments.output), flush=True)
    while arguments.watch:
        time.sleep(PAUSE)
        before, body = body, client.status(arguments.admin, arguments.objects)
        if _lasting(body) != _lasting(before):
            print(f"\n{_shown(body, arguments.output)}", flush=True)
    return _judged(body, arguments)


def _judged(body: dict[str, Any], arguments: argparse.Namespace) -> int:
    if tables.complain(tables.absent(body["objects"], arguments.objects)):
        return exits.DEPENDENCY
    return exits.CONFIG if arguments.exit_code and not tables.is_well(body) else exits.OK


def _shown(body: dict[str, Any], form: str) -> str:
    if form == "json":
        return json.dumps(body, indent=2)
    if form == "yaml":
        import yaml  # only here: it takes longer to load than all the rest

        return str(yaml.safe_dump(body, sort_keys=False)).rstrip()
    return tables.status(body, wide=form == "wide")


def _lasting(body: dict[str, Any]) -> dict[str, Any]:
    """What does not change by the passing of time."""
    controller = {name: value for name, value in body["controller"].items() if name != "uptimeSeconds"}
    proxies = [{name: value for name, value in row.items() if name != "lag_seconds"} for row in body["proxies"]]
    return {**body, "controller": controller, "proxies": proxies}
