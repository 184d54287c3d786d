"""Options that `controller` and `up` have in common, and addresses as they are written. The standard library only."""

from __future__ import annotations

import argparse
from typing import Final

XDS: Final = "127.0.0.1:18000"
ADMIN: Final = "127.0.0.1:18001"
OFF: Final = "off"


def address(text: str) -> str:
    """`host:port`; port 0 takes a free one."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address; write HOST:PORT, for example 127.0.0.1:18001")
    return text


def page(text: str) -> str:
    """An address, or `off`."""
    return text if text == OFF else address(text)


def add_controller(parser: argparse.ArgumentParser) -> None:
    """Where a controller listens."""
    group = parser.add_argument_group("controller")
    group.add_argument(
        "--socket",
        metavar="PATH",
        help="Unix socket (mode 0600) where proxies fetch their configuration"
        " (default: gatewright/xds.sock in $XDG_RUNTIME_DIR, or in a private folder of the temporary directory)",
    )
    group.add_argument(
        "--xds",
        metavar="ADDR",
        type=address,
        default=XDS,
        help="reflection, health and client status (CSDS, redacted) over TCP (default: %(default)s)",
    )
    group.add_argument(
        "--admin",
        metavar="ADDR",
        type=address,
        default=ADMIN,
        help="admin API, metrics and probes, loopback only (default: %(default)s)",
    )


def add_operation(parser: argparse.ArgumentParser) -> None:
    """How a controller is watched from outside."""
    group = parser.add_argument_group("operation")
    group.add_argument(
        "--stats",
        metavar="ADDR",
        type=page,
        default=OFF,
        help="/metrics for scrapers on other machines, for example [::]:18002 (default: %(default)s; the admin address"
        " has it anyhow)",
    )
    group.add_argument(
        "--readiness",
        metavar="ADDR",
        type=page,
        default=OFF,
        help="/healthz/ready and /healthz/live for probes, for example [::]:18003 (default: %(default)s; the admin"
        " address has them anyhow)",
    )
    group.add_argument(
        "--log-level",
        metavar="LEVEL",
        default="info",
        help="for example info,controlplane.xds=debug (default: %(default)s)",
    )
    group.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="of the log (default: %(default)s)"
    )
