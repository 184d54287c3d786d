"""`gatewright ratelimit`: the rate limit server, until a signal."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from controlplane import settings
from controlplane.cli import exits, options
from controlplane.cli.serving import lines, notify, process_log, running
from controlplane.ratelimit import server
from controlplane.ratelimit.limits import LimitError
from controlplane.ratelimit.resp import Address
from controlplane.ratelimit.store import StoreFailed

STDOUT = 1


def run(arguments: argparse.Namespace) -> int:
    """0 after SIGTERM, 130 after SIGINT; Failure for limits that cannot be read, and for an address that is taken."""
    process_log.configure(arguments.log_level, arguments.log_format)
    try:
        return asyncio.run(_serve(_settings(arguments)))
    except LimitError as error:
        raise exits.Failure(exits.CONFIG, str(error)) from None
    except server.Unbound as error:
        raise exits.Failure(exits.BIND, str(error)) from None
    except (StoreFailed, OSError) as error:
        raise exits.Failure(exits.DEPENDENCY, str(error)) from None


def _settings(arguments: argparse.Namespace) -> server.Settings:
    return server.Settings(
        None if arguments.limits is None else Path(arguments.limits),
        settings.address(arguments.listen),
        settings.address(arguments.admin),
        _store(arguments.store),
        None if arguments.stats == options.OFF else settings.address(arguments.stats),
        _certificate(arguments),
    )


def _certificate(arguments: argparse.Namespace) -> tuple[bytes, bytes] | None:
    given = (arguments.tls_cert, arguments.tls_key)
    if given == (None, None):
        return None
    if None in given:
        raise exits.Failure(exits.USAGE, "--tls-cert and --tls-key belong together")
    return Path(arguments.tls_cert).read_bytes(), Path(arguments.tls_key).read_bytes()


async def _serve(wanted: server.Settings) -> int:
    signals = running.Signals()
    async with server.running(wanted) as found:
        grpc = settings.shown((wanted.listen[0], found.port))
        admin = settings.shown((wanted.admin[0], found.admin_port))
        text = (
            f"ratelimit: limits of {wanted.limits or 'requests alone'}, counted in {_shown(wanted.store)}\n"
            f"  gRPC     {grpc}\n"
            f"  budgets  gatewright budgets --admin {admin}\n"
            f"  metrics  http://{admin}/metrics\n"
        )
        lines.Lines(lines.to_descriptor(STDOUT)).put(text.encode())
        notify.ready(os.environ, "counting", {"GRPC": grpc, "ADMIN": admin})
        await signals.stop.wait()
        notify.stopping(os.environ)
    return signals.code


def _store(text: str) -> Address | Path:
    try:
        return server.where_of(text)
    except ValueError as error:
        raise exits.Failure(exits.USAGE, f"--store: {error}") from None


def _shown(store: Address | Path) -> str:
    """Without its password."""
    return str(store) if isinstance(store, Path) else store.path or settings.shown((store.host, store.port))
