"""`gatewright controller`: the control plane alone, of a folder or a cluster, until a signal."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Callable

from controlplane import settings
from controlplane.app import App
from controlplane.cli.serving import lines, notify, process_log, running

log = logging.getLogger("controlplane.cli")

STDOUT = 1


def run(arguments: argparse.Namespace) -> int:
    """0 after SIGTERM, 130 after SIGINT; Failure when an address is taken."""
    process_log.configure(arguments.log_level, arguments.log_format)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(serve(arguments))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """A change takes half a millisecond less than on asyncio's own loop. `up` has that one, for its children's sake."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def serve(arguments: argparse.Namespace) -> int:
    """As `run`, on a loop that runs already."""
    signals = running.Signals()
    wanted = running.from_arguments(arguments)
    async with running.controller(wanted) as app:
        if arguments.log_format == "text":
            lines.Lines(lines.to_descriptor(STDOUT)).put(_announcement(wanted, app).encode())
        else:  # who reads JSON reads nothing else
            log.info(
                "reading %s",
                wanted.source,
                extra={"fields": {name.lower(): at for name, at in running.addresses(app).items()}},
            )
        if await signals.unless_stopped(app.pipeline.ready.wait()):
            notify.ready(os.environ, f"reading {wanted.source}", running.addresses(app))
            await signals.stop.wait()
        notify.stopping(os.environ)
    return signals.code


def _offered(security: settings.Security) -> str:
    if security.is_secured:
        return "resources for proxies over TLS, health"
    status = "reflection, health, client status"
    return f"{status}, resources without TLS" if security.insecure else status


def _announcement(wanted: settings.Settings, app: App) -> str:
    return (
        f"controller: reading {wanted.source}\n"
        f"  admin API  http://{wanted.admin[0]}:{app.admin_port}/api/status\n"
        f"  xDS        {settings.shown((wanted.xds[0], app.xds.tcp_port or 0))} ({_offered(wanted.security)})\n"
        f"  proxies    gatewright proxy --xds unix:{wanted.socket} --gateway NAMESPACE/NAME\n"
    )
