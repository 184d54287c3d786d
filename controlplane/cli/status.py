"""`gatewright status`: asks the controller once and prints what it knows."""

from __future__ import annotations

import argparse
import json

from controlplane.cli import client, exits, tables


def run(arguments: argparse.Namespace) -> int:
    """0 whatever the state of the objects: scripts that want to know ask `wait`, or read the JSON."""
    body = client.status(arguments.admin, arguments.objects)
    print(json.dumps(body, indent=2) if arguments.output == "json" else tables.status(body))
    return exits.OK
