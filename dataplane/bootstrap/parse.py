"""One frozen value of a command line, the environment and the file's own settings; what is said first counts."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dataplane.bootstrap import words
from dataplane.bootstrap.options import parser
from dataplane.settings import (
    DEFAULT_MAXIMUM,
    DEFAULT_MINIMUM,
    DEFAULT_PORTS,
    LOCAL,
    MAX_WORKERS,
    Address,
    Defaults,
    Drain,
    Logging,
    MeshSettings,
    Pages,
    SessionKey,
    Settings,
    XdsAccess,
)

if TYPE_CHECKING:
    import argparse


MESH_TOKEN, MESH_ROOT = "/var/run/secrets/tokens/istio-token", "/var/run/secrets/istio/root-cert.pem"
"""Where Pods of a mesh have the token for its authority, and its root."""


class WrongSetting(Exception):
    """A flag or variable that cannot be used; the text names it and the cure."""


def parse(argv: Sequence[str], environment: Mapping[str, str], defaults: Defaults | None = None) -> Settings:
    """Settings from a command line (without program name), then the environment, then the file's own settings.

    Ends the program as argparse does: 0 for `--help` and `--version`, 2 for what cannot be used.
    """
    command_line = parser()
    options, rest = command_line.parse_known_args(argv)
    if rest:
        cure = "" if rest[0].startswith("-") else f"; a file stands behind -f: -f {rest[0]}"
        command_line.error(f"unrecognized arguments: {' '.join(rest)}{cure}")
    try:
        return _settings(options, environment, defaults or Defaults())
    except WrongSetting as wrong:
        command_line.error(str(wrong))


def _settings(options: argparse.Namespace, environment: Mapping[str, str], defaults: Defaults) -> Settings:
    file = {f"config.{name}": value for name, value in asdict(defaults).items() if isinstance(value, str)}
    xds = options.xds or _from(environment, "GATEWRIGHT_XDS", words.remote)
    xds = xds or _from(file, "config.xds", words.remote)
    gateway = (
        options.gateway
        or _from(environment, "GATEWRIGHT_GATEWAY", words.gateway)
        or _from(file, "config.gateway", words.gateway)
    )
    if xds is None and options.file is None:
        raise WrongSetting(
            "nothing to serve: give -f FILE, or --xds ADDRESS with --gateway NAMESPACE/NAME"
            " (or the variables GATEWRIGHT_XDS and GATEWRIGHT_GATEWAY)"
        )
    if xds is not None and not gateway:
        raise WrongSetting("--xds needs --gateway NAMESPACE/NAME (or GATEWRIGHT_GATEWAY): whose resources to ask for")
    session_key, warnings = _session_key(environment, file)
    return Settings(
        xds_access=LOCAL if xds is None else _xds_access(options, environment, xds),
        file=options.file,
        xds=xds,
        gateway=gateway or "",
        instance=options.instance or f"{socket.gethostname()}-{os.getpid()}",
        workers=options.workers or defaults.workers or _cores(),
        port_offset=None if options.any_port else options.port_offset,
        pages=_pages(options, file),
        parent_fd=options.parent_fd,
        logging=Logging(
            options.log_level or defaults.log_level or "info", options.log_format or defaults.log_format or "text"
        ),
        drain=_drain(environment),
        session_key=session_key,
        notify_socket=environment.get("NOTIFY_SOCKET", ""),
        zone=environment.get("GATEWRIGHT_ZONE", ""),
        mesh=_mesh(environment),
        warnings=warnings,
        forward_allow=defaults.forward_allow,
        api_server=_api_server(environment),
    )


def _xds_access(options: argparse.Namespace, environment: Mapping[str, str], xds: Address) -> XdsAccess:
    """TLS, unless the address cannot be reached from elsewhere and nothing asks for it: resources hold secrets."""
    names = ("ca_file", "token_file", "cert_file", "key_file")
    files = {
        name: getattr(options, f"xds_{name}") or _from(environment, f"GATEWRIGHT_XDS_{name.upper()}", Path)
        for name in names
    }
    server_name = options.xds_server_name or environment.get("GATEWRIGHT_XDS_SERVER_NAME", "")
    asks = any(files.values()) or bool(server_name)
    local = not xds.path and _is_loopback(xds.host)
    if xds.path and (asks or options.xds_insecure):
        raise WrongSetting(f"{xds} is a Unix socket, which needs no TLS: --xds-… options are for --xds HOST:PORT")
    if (files["cert_file"] is None) != (files["key_file"] is None):
        raise WrongSetting("--xds-cert-file and --xds-key-file are needed both")
    if options.xds_insecure and not local:
        raise WrongSetting(
            f"--xds-insecure is for loopback addresses only, not for {xds}; without it TLS is used, with"
            " --xds-ca-file FILE and --xds-token-file FILE (or --xds-cert-file and --xds-key-file)"
        )
    if options.xds_insecure and (server_name or files["ca_file"] or files["cert_file"]):
        raise WrongSetting("--xds-insecure is without TLS: it goes with --xds-token-file alone")
    tls = not xds.path and not options.xds_insecure and (asks or not local)
    return XdsAccess(tls=tls, server_name=server_name, **files)


def _mesh(environment: Mapping[str, str]) -> MeshSettings | None:
    """The part in a mesh, which `CA_ADDRESS` asks for."""
    authority = _from(environment, "CA_ADDRESS", words.authority)
    if authority is None:
        return None
    domains = [_from(environment, "TRUST_DOMAIN", words.trust_domain) or "cluster.local"]
    domains += _from(environment, "ADDITIONAL_TRUST_DOMAINS", words.trust_domains) or ()
    names = {name: _from(environment, name, words.name) for name in ("POD_NAMESPACE", "SERVICE_ACCOUNT")}
    for name, value in names.items():
        if value is None:
            raise WrongSetting(f"CA_ADDRESS asks for a certificate of a mesh, which needs {name}: whose it is")
    return MeshSettings(
        authority,
        server_name=environment.get("CA_SERVER_NAME", ""),
        trust_domains=tuple(dict.fromkeys(domains)),
        namespace=names["POD_NAMESPACE"] or "",
        service_account=names["SERVICE_ACCOUNT"] or "",
        token_file=Path(environment.get("CA_TOKEN_FILE") or MESH_TOKEN),
        ca_file=Path(environment.get("CA_ROOT_FILE") or MESH_ROOT),
        cluster_id=environment.get("CLUSTER_ID") or "Kubernetes",
        network=environment.get("NETWORK", ""),
        life=_from(environment, "SECRET_TTL", words.seconds) or 86_400.0,
    )


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


T = TypeVar("T")


def _from(environment: Mapping[str, str], variable: str, read: Callable[[str], T]) -> T | None:
    """The variable's value, None when it is unset or empty."""
    text = environment.get(variable, "")
    if not text:
        return None
    try:
        return read(text)
    except ValueError as error:
        raise WrongSetting(f"{variable}: {error}") from error


def _pages(options: argparse.Namespace, file: Mapping[str, str]) -> Pages:
    admin, stats, readiness = (_page(options, file, name) for name in DEFAULT_PORTS)
    return Pages(admin, stats, readiness, frozenset(options.admin_host))


def _page(options: argparse.Namespace, file: Mapping[str, str], name: str) -> Address | None:
    """As given; else the default, moved as listeners are, so that two proxies on one machine need no further flags."""
    given = getattr(options, name) or _from(file, f"config.{name}", words.local)
    if given is None:
        host, port = DEFAULT_PORTS[name]
        return Address(host, 0 if options.any_port else port + options.port_offset)
    return None if given == words.OFF else given


def _session_key(environment: Mapping[str, str], file: Mapping[str, str]) -> tuple[SessionKey, tuple[str, ...]]:
    given = _from(environment, "SESSION_KEY", words.key) or _from(file, "config.session_key", words.key)
    if given is not None:
        return given, ()
    import secrets

    warning = (
        "SESSION_KEY is unset: one random key was made for this proxy, so sessions end with it and no other replica"
        " can continue them; set SESSION_KEY to 64 hex digits, for example of `openssl rand -hex 32`"
    )
    return SessionKey(secrets.token_bytes(32)), (warning,)


def _drain(environment: Mapping[str, str]) -> Drain:
    minimum = _from(environment, "CONNECTION_MIN_TERMINATION_DEADLINE", words.seconds)
    maximum = _from(environment, "TERMINATION_GRACE_PERIOD_SECONDS", words.seconds)
    if minimum is None:
        minimum = DEFAULT_MINIMUM if maximum is None else min(DEFAULT_MINIMUM, maximum)
    if maximum is None:
        maximum = max(DEFAULT_MAXIMUM, minimum)
    if minimum > maximum:
        raise WrongSetting(
            f"CONNECTION_MIN_TERMINATION_DEADLINE ({minimum:g} s) is more than TERMINATION_GRACE_PERIOD_SECONDS"
            f" ({maximum:g} s); make it at most that"
        )
    return Drain(minimum, maximum)


def _api_server(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Of pods: the kubelet sets it (Kubernetes, Service environment variables)."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    return (host,) if words.is_ip(host) else ()


def _cores() -> int:
    """Cores that this process may use, not those that the machine has."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(count, MAX_WORKERS))
