"""Options that `controller` and `up` have in common, and addresses as they are written. The standard library only."""

from __future__ import annotations

import argparse
from typing import Final

XDS: Final = "127.0.0.1:18000"
ADMIN: Final = "127.0.0.1:18001"
RATE_LIMIT_ADMIN: Final = "127.0.0.1:18081"
OFF: Final = "off"
PROXIES: Final = 2
"""Of each Gateway, where `up` is not asked for another number."""


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
        "--xds-address",
        metavar="ADDR",
        type=address,
        default=XDS,
        help="xDS over TCP: reflection, health and client status (CSDS, redacted), on loopback; with TLS resources and"
        " health, on any address (default: %(default)s)",
    )
    group.add_argument(
        "--admin",
        metavar="ADDR",
        type=address,
        default=ADMIN,
        help="admin API, metrics and probes, loopback only (default: %(default)s)",
    )
    group.add_argument(
        "--admin-host",
        action="append",
        default=[],
        type=str.lower,
        metavar="NAME",
        help="a name by which the admin API may be addressed, beside IP addresses and localhost; may be repeated",
    )


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Which cluster is read, where it is no folder."""
    group = parser.add_argument_group("cluster", "in place of DIR")
    group.add_argument(
        "--kubernetes",
        action="store_true",
        help="read a cluster and write statuses there; several controllers agree by a Lease on who writes",
    )
    group.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="how to reach it (default: the pod's service account, else $KUBECONFIG, else ~/.kube/config)",
    )
    group.add_argument(
        "--peers",
        metavar="ADDRESS",
        type=address,
        help="where other controllers report to the leader what their proxies answered, over TLS; used with"
        " --xds-service-accounts (default: the host of --xds, port 18004)",
    )
    group.add_argument("--context", metavar="NAME", help="context of the kubeconfig file (default: its current one)")
    group.add_argument(
        "--namespace",
        metavar="NAME",
        help="where the Lease is (default: the pod's namespace, else that of the context)",
    )
    group.add_argument(
        "--namespace-selector",
        metavar="LABELS",
        help="read objects of those namespaces alone that have these labels, written as for kubectl get --selector"
        " (default: all namespaces)",
    )


def add_tenants(parser: argparse.ArgumentParser) -> None:
    """What tenants may do with each other's objects."""
    group = parser.add_argument_group("namespaces of several tenants")
    group.add_argument(
        "--mcp-selectors-need-grants",
        action="store_true",
        help="selectors of MCP backends find Services of another namespace only where a ReferenceGrant there lets"
        " GatewayBackends name them",
    )


def add_proxies(parser: argparse.ArgumentParser) -> None:
    """How proxies are started in a cluster."""
    group = parser.add_argument_group(
        "proxies in a cluster", "started for each Gateway where xDS knows them by their service accounts"
    )
    group.add_argument(
        "--no-provisioning", action="store_true", help="start no proxies, and make no Services: somebody else does"
    )
    group.add_argument(
        "--proxy-image-registry", metavar="HOST", help="registry of their image (default: ghcr.io; empty for none)"
    )
    group.add_argument(
        "--proxy-image-repository", metavar="NAME", help="name of their image (default: gatewright/gatewright)"
    )
    group.add_argument("--proxy-image-tag", metavar="TAG", help="tag of their image (default: this version)")
    group.add_argument(
        "--proxy-xds",
        metavar="ADDR",
        type=address,
        help="where they reach the controllers (default: the Service gatewright-controller in this namespace, at the"
        " port of --xds)",
    )


def add_fleet(parser: argparse.ArgumentParser) -> None:
    """How proxies on other hosts reach the controller."""
    group = parser.add_argument_group(
        "proxies on other hosts", "PEM files and tokens for --xds; all are read again when they change"
    )
    group.add_argument("--xds-tls-cert", metavar="FILE", help="certificate of the controller, for TLS")
    group.add_argument("--xds-tls-key", metavar="FILE", help="its private key")
    group.add_argument(
        "--xds-token-file",
        metavar="FILE",
        help="tokens of proxies, one a line; after it the Gateways (NAMESPACE/NAME) that it is for, if not all",
    )
    group.add_argument(
        "--xds-client-ca",
        metavar="FILE",
        help="authority of proxies' certificates (mutual TLS); a certificate may name its Gateway as"
        " spiffe://DOMAIN/ns/NAMESPACE/gateway/NAME",
    )
    group.add_argument(
        "--xds-insecure",
        action="store_true",
        help="serve resources, secrets among them, to anyone who reaches the address; for loopback only",
    )
    group.add_argument(
        "--xds-service-accounts",
        action="store_true",
        help="TLS with an authority kept in the cluster, and tokens of the proxies' service accounts (with --kubernetes"
        " the default where --xds is no loopback address and no other option of this group is given)",
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
    _add_log(group)


def add_log(parser: argparse.ArgumentParser) -> None:
    """What the log of a server says."""
    _add_log(parser.add_argument_group("operation"))


def _add_log(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--log-level",
        metavar="LEVEL",
        default="info",
        help="for example info,controlplane.xds=debug (default: %(default)s)",
    )
    group.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="of the log (default: %(default)s)"
    )
