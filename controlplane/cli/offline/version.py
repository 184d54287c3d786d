"""`gatewright version`."""

from __future__ import annotations

import argparse
import json
import platform

from controlplane.cli import exits
from gatewright.version import VERSION


def run(arguments: argparse.Namespace) -> int:
    if arguments.output == "json":
        print(json.dumps({"version": VERSION, "python": platform.python_version()}))
    else:
        print(f"gatewright {VERSION}")
    return exits.OK
