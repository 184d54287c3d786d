"""`gatewright version`."""

from __future__ import annotations

import argparse
import json
import platform

from controlplane import settings
from controlplane.cli import exits


def run(arguments: argparse.Namespace) -> int:
    if arguments.output == "json":
        print(json.dumps({"version": settings.version(), "python": platform.python_version()}))
    else:
        print(f"gatewright {settings.version()}")
    return exits.OK
