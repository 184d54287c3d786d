"""`gatewright version`."""

from __future__ import annotations

import argparse
import json
import platform
from importlib import metadata

from controlplane.cli import exits

DISTRIBUTION = "gatewright"


def current() -> str:
    """The version of the installed distribution; a source tree that was never installed has none."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


def run(arguments: argparse.Namespace) -> int:
    if arguments.output == "json":
        print(json.dumps({"version": current(), "python": platform.python_version()}))
    else:
        print(f"gatewright {current()}")
    return exits.OK
