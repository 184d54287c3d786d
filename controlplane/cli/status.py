"""`gatewright status`: asks the controller once and prints what it knows."""

from __future__ import annotations

import argparse
import json
import sys

from controlplane.cli import client, exits, tables, wait


def run(arguments: argparse.Namespace) -> int:
    """0 whatever the state of the objects: scripts that want to know ask `wait`, or read the JSON."""
    body = client.status(arguments.admin, arguments.objects)
    print(json.dumps(body, indent=2) if arguments.output == "json" else tables.status(body))
    for name in wait.absent(body["objects"], arguments.objects):
        print(f"gatewright: {name}: there is no such object", file=sys.stderr)
    return exits.OK
