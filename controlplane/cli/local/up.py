"""`gatewright up DIR`: controller, proxies and demo servers on one machine, from one folder, until Ctrl-C.

The controller runs in this process; everything else is a child that ends with it, whatever happens (`children`). The
folder is followed while it runs: a Gateway that appears gets its proxies, a demo server that is asked for starts.
`gatewright up FILE` runs one proxy from the file of a proxy alone: this process becomes it.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import io
import os
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from controlplane import app as app_
from controlplane.cli import children, exits, options, shipped
from controlplane.cli import proxy as proxy_
from controlplane.cli.local import announcement, fleet, of_file, summary
from controlplane.cli.local.processes import Processes, Start
from controlplane.cli.serving import notify, process_log, running
from controlplane.lint import bounded
from gatewright import orphans
from gatewright.api.lint.lint import is_standalone
from gatewright.api.routes.http_route import HTTPRoute
from gatewright.api.standalone import standalone
from gatewright.version import VERSION

STDOUT = 1
LARGE_FILE = 256 * 1024
"""Characters of a proxy's file from which on nothing is printed about it: reading it takes seconds."""

READY_SECONDS = 30.0
"""Seconds that `gatewright up` waits for its proxies before it says that they are not ready yet."""
READY_PAUSE = 0.05
"""Seconds between two looks at them."""


def run(arguments: argparse.Namespace) -> int:
    """0 after SIGTERM, 130 after SIGINT; Failure when something that is needed is taken or absent."""
    file = shipped.place(arguments.dir)
    if file.is_file():
        return proxy_.run(_of_one_proxy(arguments, file))
    process_log.configure(prefix="[controller] ")
    return asyncio.run(serve(arguments))


def _of_one_proxy(arguments: argparse.Namespace, file: Path) -> list[str]:
    """The proxy's command line, after what can be tried is printed. Raises Failure where the file is not that of a
    proxy alone, or an option needs more than one proxy."""
    written = file.read_text(errors="replace")
    if not is_standalone(written):
        text = (
            f"{file} is not the file of a proxy alone, which begins with binds. Of objects, name the folder that holds "
            "it; files of MCP clients and of LiteLLM are for `gatewright import`"
        )
        raise exits.Failure(exits.DEPENDENCY, text)
    for option, given in (
        ("--proxies", arguments.proxies != options.PROXIES),
        ("--port-offset", arguments.port_offset),
    ):
        if given:
            raise exits.Failure(exits.USAGE, f"{option} is for a folder; {file} is run by one proxy, on its own ports")
    content = standalone.load(written, str(file)).content if len(written) < LARGE_FILE else None
    if content is not None and not arguments.quiet:
        print(of_file.text(VERSION, file, content), end="", file=sys.stderr, flush=True)  # the log may be JSON
    return ["-f", str(file), *(["--workers", str(arguments.workers)] if arguments.workers else [])]


async def serve(arguments: argparse.Namespace, start: Start = children.start) -> int:
    """`run` on a loop; `start` starts the children."""
    begin = time.monotonic()
    signals = running.Signals()
    wanted = running.from_arguments(arguments)
    plan = fleet.Plan(arguments.proxies, arguments.port_offset, arguments.workers, wanted.socket)
    output = children.Output(io.FileIO(STDOUT, "wb", closefd=False), arguments.quiet)
    made, warnings = environment(os.environ)
    async with running.controller(wanted) as app:
        processes = Processes(app, plan, output, made, start)
        for warning in warnings:
            processes.say(f"warning: {warning}")
        reaping = asyncio.create_task(orphans.reap(orphans.leads_its_session, asyncio.sleep))
        try:
            await _serve(app, processes, signals, begin)
        finally:
            reaping.cancel()
            notify.stopping(os.environ)
            await processes.stop(signals.hurry)
            await asyncio.to_thread(output.drain)
    return signals.code


def environment(given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The children's environment, and what the user should know about it."""
    made, warnings = {name: value for name, value in given.items() if name != notify.VARIABLE}, []
    if not made.get("SESSION_KEY"):
        made["SESSION_KEY"] = secrets.token_hex(32)
        warnings.append("SESSION_KEY is unset: sessions of clients (MCP, cookies) end when these proxies stop")
    # No load balancer has to notice that a proxy of one's own machine is going, so stopping does not wait for that.
    made.setdefault("CONNECTION_MIN_TERMINATION_DEADLINE", "0")
    made.setdefault("TERMINATION_GRACE_PERIOD_SECONDS", "3")
    return made, warnings


async def _serve(app: app_.App, processes: Processes, signals: running.Signals, begin: float) -> None:
    if not await signals.unless_stopped(app.pipeline.ready.wait()):
        return
    for proxy in processes.wanted():
        for page, port in proxy.pages.items():
            running.check_free((fleet.HOST, port), f"the {page} page of {proxy.label}", "stop it, or use --port-offset")
    _warn_of_taken_listeners(app, processes)
    await processes.reconcile()
    if not await signals.unless_stopped(_ready(processes)):
        return
    seconds = time.monotonic() - begin
    problems = await asyncio.to_thread(_problems, str(app.settings.source))
    processes.say(_announcement(app, processes, problems, seconds))
    notify.ready(os.environ, f"serving {app.settings.source}", running.addresses(app))
    await signals.unless_stopped(processes.follow())


async def _ready(processes: Processes) -> None:
    """Returns when every proxy is ready. Raises Failure when one ends before, or takes too long."""
    end = time.monotonic() + READY_SECONDS
    for proxy in processes.wanted():
        while not await asyncio.to_thread(answers_ready, proxy.pages["readiness"]):
            code = processes.ended(proxy.label)
            if code is not None:
                text = f"{proxy.label} ended with {code} before it was ready; what it said stands above"
                raise exits.Failure(exits.DEPENDENCY, text)
            if time.monotonic() > end:
                text = f"{proxy.label} is not ready after {READY_SECONDS:.0f} s; `gatewright status` says more"
                raise exits.Failure(exits.DEPENDENCY, text)
            await asyncio.sleep(READY_PAUSE)


def answers_ready(port: int) -> bool:
    connection = http.client.HTTPConnection(fleet.HOST, port, timeout=1)
    try:
        connection.request("GET", announcement.PAGE_PATHS["readiness"])
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _warn_of_taken_listeners(app: app_.App, processes: Processes) -> None:
    """A port in somebody else's hands takes one listener away, not the rest."""
    gateways = {f"{gateway.metadata.namespace}/{gateway.metadata.name}": gateway for gateway in app.gateways()}
    for proxy in processes.wanted():
        for listener in proxy.listeners(gateways[proxy.gateway]):
            text = running.taken(("0.0.0.0", listener.port), is_datagram=listener.is_datagram)
            if text:
                processes.say(f"warning: {text}; {proxy.label} serves {proxy.gateway} without this port")


def _problems(folder: str) -> list[str]:
    """What `gatewright lint FOLDER` reports, but for information. A large folder would keep everything waiting."""
    request = bounded.Request((folder,), frozenset(), None)
    if not bounded.is_little(request):
        return [f"not looked for, since the files are large: gatewright lint {folder}"]
    report = bounded.lint(request)
    return [str(problem) for problem in report.problems if problem.severity != "info"]


def _announcement(app: app_.App, processes: Processes, problems: Sequence[str], seconds: float) -> str:
    gateways = app.gateways()
    routes = [item for item in app.pipeline.objects.values() if isinstance(item, HTTPRoute)]
    wanted, proxies = app.settings, processes.wanted()
    return announcement.text(
        announcement.Running(
            version=VERSION,
            source=wanted.source,
            admin=f"{wanted.admin[0]}:{app.admin_port}",
            xds=f"{wanted.xds[0]}:{app.xds.tcp_port}",
            socket=wanted.socket,
            gateways=gateways,
            proxies=proxies,
            demos=processes.demos,
            curls=summary.curls(gateways, sorted(routes, key=lambda item: item.key), processes.plan.port_offset),
            notes=[*app.notes(), *fleet.clashes(proxies, gateways)],
            problems=problems,
            seconds=seconds,
        )
    )
