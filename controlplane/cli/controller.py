"""`gatewright controller DIR`: the control plane alone, until a signal."""

from __future__ import annotations

import argparse
import asyncio

from controlplane.cli import running


def run(arguments: argparse.Namespace) -> int:
    """0 after SIGTERM, 130 after SIGINT; Failure when an address is taken."""
    running.log_to_stderr()
    return asyncio.run(_serve(arguments))


async def _serve(arguments: argparse.Namespace) -> int:
    signals = running.Signals()
    wanted = running.from_arguments(arguments)
    async with running.controller(wanted) as app:
        print(f"controller: reading {wanted.directory}")
        print(f"  admin API  http://{wanted.admin[0]}:{app.admin_port}/api/status")
        print(f"  xDS        {wanted.xds[0]}:{app.xds.tcp_port} (reflection, health, client status)")
        print(f"  proxies    gatewright proxy --xds unix:{wanted.socket} --gateway NAMESPACE/NAME", flush=True)
        await signals.stop.wait()
    return signals.code
