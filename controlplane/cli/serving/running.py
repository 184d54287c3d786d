"""What `controller` and `up` have in common: settings from the command line, logging, signals, and the ports check.

A failure here is an `exits.Failure` that says what to do; nothing has been started yet when it is raised.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import os
import signal
import socket
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

from controlplane import app, settings
from controlplane.cli import exits, options, shipped
from controlplane.cli.serving import files, holders
from controlplane.kube.access import NoCluster
from controlplane.xds import SocketError
from controlplane.xds.trust import exposure
from controlplane.xds.trust.tokens import CredentialError
from gatewright import folders
from gatewright.api.schema import selector_text

PEERS_PORT = 18004


def directory(text: str) -> Path:
    """The folder to read. `examples/NAME` means the one that ships with the product when there is none here."""
    path = shipped.place(text)
    if path.is_dir():
        return path
    if path.exists():
        raise exits.Failure(exits.DEPENDENCY, f"{text} is a file; name the folder that holds it")
    what = "file" if path.suffix in folders.SUFFIXES else "folder"
    raise exits.Failure(exits.DEPENDENCY, f"there is no {what} {text}; `gatewright up` without one runs an example")


def from_arguments(arguments: argparse.Namespace) -> settings.Settings:
    """Settings of the controller part of a command line."""
    try:
        path = Path(arguments.socket) if arguments.socket else settings.default_socket(os.environ)
    except (settings.UnsafeFolder, OSError) as error:
        raise exits.Failure(exits.BIND, str(error)) from error
    return settings.Settings(
        _source(arguments),
        path,
        settings.address(arguments.xds),
        settings.address(arguments.admin),
        _page(arguments, "stats"),
        _page(arguments, "readiness"),
        _security(arguments),
        frozenset(getattr(arguments, "admin_host", ())),
        settings.Mcp(getattr(arguments, "mcp_selectors_need_grants", False)),
    )


def _source(arguments: argparse.Namespace) -> Path | settings.Cluster:
    """The folder or the cluster that is read; `up` reads folders alone."""
    if not getattr(arguments, "kubernetes", False):
        for name in ("kubeconfig", "context", "namespace", "namespace_selector", "peers"):
            if getattr(arguments, name, None) is not None:
                option = f"--{name.replace('_', '-')}"
                raise exits.Failure(exits.USAGE, f"{option} is about a cluster: it needs --kubernetes")
        if arguments.dir is None:
            raise exits.Failure(exits.USAGE, "name the folder to read, or read a cluster with --kubernetes")
        return directory(arguments.dir)
    if arguments.dir is not None:
        raise exits.Failure(exits.USAGE, f"either the folder {arguments.dir} or --kubernetes is read, not both")
    kubeconfig = None if arguments.kubeconfig is None else Path(arguments.kubeconfig)
    return settings.Cluster(
        kubeconfig,
        arguments.context,
        arguments.namespace or "",
        _peers(arguments),
        _proxies(arguments),
        _namespaces(arguments.namespace_selector),
    )


def _namespaces(selector: str | None) -> str:
    """A selector that can be read."""
    if selector is None:
        return ""
    try:
        selector_text.parsed(selector)
    except ValueError as error:
        raise exits.Failure(exits.USAGE, f"--namespace-selector: {error}") from None
    return selector


def _peers(arguments: argparse.Namespace) -> tuple[str, int]:
    if arguments.peers is not None:
        return settings.address(arguments.peers)
    host, port = settings.address(arguments.xds)
    return host, PEERS_PORT if port else 0


def _proxies(arguments: argparse.Namespace) -> settings.Proxies | None:
    """How they are started, if they are."""
    if arguments.no_provisioning:
        return None
    return settings.Proxies(
        arguments.proxy_image_registry,
        arguments.proxy_image_repository or "",
        arguments.proxy_image_tag or "",
        arguments.proxy_xds or "",
    )


def _security(arguments: argparse.Namespace) -> settings.Security:
    """How xDS is served over TCP; `up` has no options for it."""

    def file(name: str) -> Path | None:
        given = getattr(arguments, name, None)
        return None if given is None else Path(given)

    return _of_a_cluster(
        arguments,
        settings.Security(
            file("xds_tls_cert"),
            file("xds_tls_key"),
            file("xds_client_ca"),
            file("xds_token_file"),
            getattr(arguments, "xds_insecure", False),
        ),
    )


def _of_a_cluster(arguments: argparse.Namespace, given: settings.Security) -> settings.Security:
    """Where nothing is said of who may have resources, a controller in a cluster asks the cluster."""
    asked = getattr(arguments, "xds_service_accounts", False)
    if not getattr(arguments, "kubernetes", False):
        if asked:
            raise exits.Failure(exits.USAGE, "--xds-service-accounts is about a cluster: it needs --kubernetes")
        return given
    says_nothing = given == settings.Security() and not settings.is_loopback(settings.address(arguments.xds)[0])
    return dataclasses.replace(given, service_accounts=asked or says_nothing)


def _page(arguments: argparse.Namespace, name: str) -> tuple[str, int] | None:
    """The address of a page; `up` has no options for them."""
    given = getattr(arguments, name, options.OFF)
    return None if given == options.OFF else settings.address(given)


def check_free(address: tuple[str, int], purpose: str, cure: str) -> None:
    """Raises Failure when somebody listens on the address, and says who."""
    text = taken(address)
    if text:
        raise exits.Failure(exits.BIND, f"{text}; it is wanted for {purpose}: {cure}")


def taken(address: tuple[str, int], *, is_datagram: bool = False) -> str:
    """Why the address cannot be listened on ("" when it can): an exclusive bind shows it, and is undone at once."""
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM if is_datagram else socket.SOCK_STREAM) as probe:
        if not is_datagram:  # of two sockets of datagrams with it the second would get all
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            shown = f"[{host}]" if ":" in host else host
            return f"{shown}:{port} cannot be listened on ({error.strerror}){holders.describe(port)}"
    return ""


@contextlib.asynccontextmanager
async def controller(wanted: settings.Settings) -> AsyncIterator[app.App]:
    """A running controller. What keeps it from running, such as an address in use, is a Failure with the cure."""
    try:
        exposure.check(wanted.xds, wanted.security)
    except exposure.Exposed as error:
        raise exits.Failure(exits.USAGE, str(error)) from error
    check_free(wanted.admin, "the admin API", "stop that process, or name another address with --admin")
    check_free(wanted.xds, "the xDS server", "stop that process, or name another address with --xds")
    for name, address in (("stats", wanted.stats), ("readiness", wanted.readiness)):
        if address is not None:
            check_free(address, f"the {name} page", f"stop that process, or name another address with --{name}")
    loop, watch = asyncio.get_running_loop(), files.FilesWatch()
    loop.set_exception_handler(watch.heard)
    watch.start(loop)
    try:
        async with app.running(wanted) as started:
            yield started
    except (app.AddressTaken, SocketError) as error:
        cure = "another one is named with --admin, --stats, --readiness, --xds, --peers or --socket"
        raise exits.Failure(exits.BIND, f"{error}; {cure}") from error
    except (CredentialError, NoCluster) as error:
        raise exits.Failure(exits.DEPENDENCY, str(error)) from error
    except ValueError as error:
        raise exits.Failure(exits.USAGE, str(error)) from error
    finally:
        watch.stop()


def addresses(started: app.App) -> dict[str, str]:
    """Where a controller listens, for the readiness notification."""
    wanted = started.settings
    return {
        **{name.upper(): address for name, address in started.addresses().items()},
        "XDS": settings.shown((wanted.xds[0], started.xds.tcp_port or wanted.xds[1])),
        "SOCKET": str(wanted.socket),
    }


class Signals:
    """SIGINT and SIGTERM as events. The first asks for an orderly end, a second SIGINT for an immediate one."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.hurry = asyncio.Event()
        self.code = exits.OK
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._received, exits.INTERRUPTED)
        loop.add_signal_handler(signal.SIGTERM, self._received, exits.OK)

    async def unless_stopped(self, work: Coroutine[Any, Any, object]) -> bool:
        """Whether `work` came to its end; a signal cuts it short."""
        task, stop = asyncio.create_task(work), asyncio.create_task(self.stop.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if task.done():
            task.result()
            return True
        task.cancel()
        await asyncio.wait({task})
        return False

    def _received(self, code: int) -> None:
        if self.stop.is_set():
            self.hurry.set()
            return
        self.code = code
        self.stop.set()
