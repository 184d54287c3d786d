"""The command line of a proxy, with its help. argparse is loaded when it is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dataplane.bootstrap import words
from dataplane.settings import DEFAULT_PORTS, MAX_WORKERS, Address
from gatewright.version import VERSION

if TYPE_CHECKING:
    import argparse


def _argument(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """argparse shows the text of its own error only."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            from argparse import ArgumentTypeError

            raise ArgumentTypeError(str(error)) from error

    return convert


_EPILOG = """\
examples:
  gatewright-proxy -f config.yaml                                  alone, from a file; saved changes apply at once
  gatewright-proxy --xds unix:/run/gw.sock --gateway default/web   under a controller
  gatewright-proxy --xds controller.example:18000 --xds-ca-file ca.crt --xds-token-file token --gateway default/web
  gatewright-proxy -f config.yaml --workers 1 --log-level info,dataplane.http=debug

environment:
  GATEWRIGHT_XDS, GATEWRIGHT_GATEWAY       as --xds and --gateway; the flags win
  GATEWRIGHT_XDS_CA_FILE, _TOKEN_FILE, _CERT_FILE, _KEY_FILE, _SERVER_NAME
                                           as the flags of these names
  GATEWRIGHT_ZONE                          zone of this proxy: endpoints with a hint for it are preferred
  CA_ADDRESS, TRUST_DOMAIN, ADDITIONAL_TRUST_DOMAINS, CLUSTER_ID, NETWORK, POD_NAMESPACE, SERVICE_ACCOUNT
                                           take part in an Istio mesh: where certificates come from, and whose
  CA_TOKEN_FILE, CA_ROOT_FILE, CA_SERVER_NAME, SECRET_TTL
                                           token for that authority, its root, the name of its certificate, and for
                                           how long certificates are asked for (default: 24h)
  SESSION_KEY                              64 hex digits that seal sessions; the same for all replicas
  CONNECTION_MIN_TERMINATION_DEADLINE      how long connections are accepted after SIGTERM (default: 10s)
  TERMINATION_GRACE_PERIOD_SECONDS         when what is still open after SIGTERM is cut (default: 60)
  NOTIFY_SOCKET                            set by a service manager that wants to know when the proxy is ready

signals:
  SIGTERM  not ready at once, accept for the minimum, let connections end, cut the rest at the maximum
  SIGINT   the same without the minimum; a second signal ends the proxy at once

exit codes:
  0  ended as asked     1  the configuration cannot be read     2  wrong command line or environment
  3  a page's port is in use
"""


def parser() -> argparse.ArgumentParser:
    import argparse

    made = argparse.ArgumentParser(
        prog="gatewright-proxy",
        description="The data plane: one agent process and as many workers as there are cores. It takes its"
        " configuration from a file, from a controller, or from both.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "--version",
        action="version",
        version=f"gatewright-proxy {VERSION}",
        help="show program's version number and exit",
    )
    _add_configuration(made.add_argument_group("configuration"))
    _add_xds_access(made.add_argument_group("control plane over TCP", "files for --xds HOST:PORT, read at each try"))
    _add_process(made.add_argument_group("process"))
    _add_pages(made.add_argument_group("pages, each IP:PORT, localhost:PORT, unix:/path or off"))
    return made


def _add_configuration(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-f", "--file", type=Path, metavar="FILE", help="YAML or JSON file, reloaded when it changes")
    group.add_argument(
        "--xds", type=_argument(words.remote), metavar="ADDRESS", help="control plane: unix:/path or HOST:PORT"
    )
    group.add_argument(
        "--gateway", type=_argument(words.gateway), metavar="NAMESPACE/NAME", help="the Gateway that this proxy serves"
    )
    group.add_argument(
        "--instance",
        type=_argument(words.instance),
        metavar="NAME",
        help="name of this proxy among those of its Gateway (default: host name and process id)",
    )


def _add_xds_access(group: argparse._ArgumentGroup) -> None:
    for name, what in (
        ("ca", "authority of the control plane's certificate (default: those that gRPC brings)"),
        ("token", "the token that the control plane knows this proxy by"),
        ("cert", "certificate of this proxy, for mutual TLS"),
        ("key", "its private key"),
    ):
        group.add_argument(f"--xds-{name}-file", type=Path, metavar="FILE", help=what)
    group.add_argument(
        "--xds-server-name",
        metavar="NAME",
        help="name that the control plane's certificate must have (default: the host of --xds)",
    )
    group.add_argument(
        "--xds-insecure", action="store_true", help="no TLS although there is a token; for loopback addresses only"
    )


def _add_process(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--workers",
        type=_argument(words.number(1, MAX_WORKERS)),
        metavar="N",
        help="serving processes (default: one per core)",
    )
    ports = group.add_mutually_exclusive_group()
    ports.add_argument(
        "--port-offset",
        type=_argument(words.number(0, 40000)),
        default=0,
        metavar="N",
        help="add N to every port of a listener, and to the default ports below (default: 0)",
    )
    ports.add_argument(
        "--any-port",
        action="store_true",
        help="let the system choose the port of every listener, and of pages that are not given below; log,"
        " /config_dump and readiness notification name them",
    )
    group.add_argument(
        "--parent-fd",
        type=_argument(words.number(0, 2**20)),
        metavar="FD",
        help="reading end of a pipe; the proxy ends when its writing end is closed",
    )
    group.add_argument("--log-level", metavar="LEVEL", help="for example info,dataplane.http=debug (default: info)")
    group.add_argument("--log-format", choices=("text", "json"), help="of process and access log (default: text)")


def _add_pages(group: argparse._ArgumentGroup) -> None:
    for name, what in (
        ("admin", "/config_dump and /logging"),
        ("stats", "/metrics"),
        ("readiness", "/healthz/ready"),
    ):
        host, port = DEFAULT_PORTS[name]
        group.add_argument(
            f"--{name}",
            type=_argument(words.local),
            metavar="ADDRESS",
            help=f"{what} (default: {Address(host, port)})",
        )
    group.add_argument(
        "--admin-host",
        action="append",
        default=[],
        type=str.lower,
        metavar="NAME",
        help="a name by which the admin pages may be addressed, beside IP addresses and localhost; may be repeated",
    )
