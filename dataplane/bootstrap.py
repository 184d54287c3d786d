"""Settings of a proxy process: command line and environment to one frozen value. Decided once, before anything runs.

Called by the agent's entry. A worker gets its share over the link (`WorkerSettings`), so that the session key is in no
command line and in no environment of a child. Imports the standard library only, and what workers do not need (3 MB
each) only when it is used.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import argparse

DEFAULT_PORTS = {"admin": ("127.0.0.1", 15000), "stats": ("::", 15020), "readiness": ("::", 15021)}
"""decisions.md, "Operation"; a listener on one of these ports is `PortUnavailable`."""

DEFAULT_MINIMUM = 10.0
DEFAULT_MAXIMUM = 60.0
"""Seconds of a shutdown, at least and at most, where nothing else is configured."""

MAX_SHUTDOWN = 31_536_000
"""Spec 1, ShutdownSpec: seconds."""

MAX_WORKERS = 256
"""Worker processes of one proxy."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a page is served or a control plane is reached: `path` of a Unix socket, else host and port."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class XdsAccess:
    """How the control plane is reached. Files are PEM, but for `token_file`; they are read at each try.

    Without `ca_file` the authorities that gRPC knows are trusted. `server_name` is what the certificate must name
    instead of the host of the address.
    """

    tls: bool = False
    ca_file: Path | None = None
    token_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str = ""


LOCAL = XdsAccess()
"""Over a Unix socket, whose peers are trusted."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Seals sessions; the same for all workers of a proxy. Its repr shows nothing. `is_given`: other proxies may have
    it."""

    value: bytes
    is_given: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        return "SessionKey(...)"


@dataclass(frozen=True, slots=True)
class Logging:
    """`level` as written (`info,dataplane.http=debug`); `format`: text or json."""

    level: str = "info"
    format: str = "text"


@dataclass(frozen=True, slots=True)
class Drain:
    """Seconds: connections are accepted for `minimum` after SIGTERM, and none is open after `maximum`."""

    minimum: float = DEFAULT_MINIMUM
    maximum: float = DEFAULT_MAXIMUM


@dataclass(frozen=True, slots=True)
class Pages:
    """Addresses that the agent serves; None: off."""

    admin: Address | None
    stats: Address | None
    readiness: Address | None
    admin_hosts: frozenset[str] = frozenset()
    """Names by which the admin pages may be addressed, beside IP addresses and localhost."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is decided before the proxy starts."""

    file: Path | None
    xds: Address | None
    gateway: str
    """`namespace/name`; empty without a control plane."""
    instance: str
    workers: int
    port_offset: int | None
    """Added to every port; None: the system chooses the ports (`--any-port`)."""
    pages: Pages
    parent_fd: int | None
    logging: Logging
    drain: Drain
    session_key: SessionKey
    xds_access: XdsAccess = LOCAL
    notify_socket: str = ""
    """Where the service manager wants to hear of readiness; empty: nowhere."""
    zone: str = ""
    """Where the proxy runs, as hints of EndpointSlices name it; empty: nobody has said, and no hint counts."""
    warnings: tuple[str, ...] = ()
    """What the operator should know, logged once."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """`config` of the standalone file, for what neither flag nor environment says."""

    xds: str | None = None
    gateway: str | None = None
    workers: int | None = None
    admin: str | None = None
    stats: str | None = None
    readiness: str | None = None
    session_key: str | None = field(default=None, repr=False)
    log_level: str | None = None
    log_format: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker is told of the settings."""

    gateway: str
    instance: str
    workers: int
    log_format: str
    log_default: str
    log_modules: dict[str, str]
    drain: Drain
    session_key: SessionKey
    zone: str = ""
    shares_sessions: bool = False
    """Other proxies may have the key."""
    sockets: str = ""
    """Folder of the Unix sockets by which workers ask each other, made when it is needed; "": there is none."""
    own_pages: tuple[tuple[str, int], ...] = ()
    """Hosts and ports of admin pages, or a path and 0: no worker connects to them."""

    def to_link(self) -> dict[str, Any]:
        """For `link.messages.Hello`."""
        return {**asdict(self), "session_key": self.session_key.value.hex()}

    @classmethod
    def from_link(cls, values: Mapping[str, Any]) -> WorkerSettings:
        """The inverse of `to_link`. Raises TypeError, KeyError or ValueError for anything else."""
        key = SessionKey(bytes.fromhex(values["session_key"]))
        pages = tuple((str(host), int(port)) for host, port in values["own_pages"])
        return cls(**{**values, "session_key": key, "drain": Drain(**values["drain"]), "own_pages": pages})


class WrongSetting(Exception):
    """A flag or variable that cannot be used; the text names it and the cure."""


def version() -> str:
    """Of the installed distribution; a source tree that was never installed has none."""
    from importlib import metadata

    try:
        return metadata.version("gatewright")
    except metadata.PackageNotFoundError:
        return "unknown"


def parse(argv: Sequence[str], environment: Mapping[str, str], defaults: Defaults | None = None) -> Settings:
    """Settings from a command line (without program name), then the environment, then the file's own settings.

    Ends the program as argparse does: 0 for `--help` and `--version`, 2 for what cannot be used.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        return _settings(options, environment, defaults or Defaults())
    except WrongSetting as wrong:
        parser.error(str(wrong))


def _settings(options: argparse.Namespace, environment: Mapping[str, str], defaults: Defaults) -> Settings:
    file = {f"config.{name}": value for name, value in asdict(defaults).items() if isinstance(value, str)}
    xds = options.xds or _from(environment, "GATEWRIGHT_XDS", _remote) or _from(file, "config.xds", _remote)
    gateway = (
        options.gateway or _from(environment, "GATEWRIGHT_GATEWAY", _gateway) or _from(file, "config.gateway", _gateway)
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
        warnings=warnings,
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
    given = getattr(options, name) or _from(file, f"config.{name}", _local)
    if given is None:
        host, port = DEFAULT_PORTS[name]
        return Address(host, 0 if options.any_port else port + options.port_offset)
    return None if given == _OFF else given


def _session_key(environment: Mapping[str, str], file: Mapping[str, str]) -> tuple[SessionKey, tuple[str, ...]]:
    given = _from(environment, "SESSION_KEY", _key) or _from(file, "config.session_key", _key)
    if given is not None:
        return given, ()
    import secrets

    warning = (
        "SESSION_KEY is unset: one random key was made for this proxy, so sessions end with it and no other replica"
        " can continue them; set SESSION_KEY to 64 hex digits, for example of `openssl rand -hex 32`"
    )
    return SessionKey(secrets.token_bytes(32)), (warning,)


def _drain(environment: Mapping[str, str]) -> Drain:
    minimum = _from(environment, "CONNECTION_MIN_TERMINATION_DEADLINE", _seconds)
    maximum = _from(environment, "TERMINATION_GRACE_PERIOD_SECONDS", _seconds)
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


def _cores() -> int:
    """Cores that this process may use, not those that the machine has."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(count, MAX_WORKERS))


# Words of the command line to values. ValueError carries what is wrong and what is right.

_OFF = "off"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|)")
_UNIT = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def _remote(text: str) -> Address:
    """`unix:/path` or `host:port`."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path:
            raise ValueError(f"{text!r} names no socket; write unix:/path/to/xds.sock")
        return Address(path=path)
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not an address; write HOST:PORT or unix:/path, for example 127.0.0.1:18000")
    return Address(host, int(port))


def _local(text: str) -> Address | str:
    """`ip:port`, `localhost:port`, `unix:/path` or `off`."""
    if text == _OFF:
        return _OFF
    import ipaddress

    address = _remote(text)
    if address.path or address.host == "localhost":
        return address
    try:
        ipaddress.ip_address(address.host)
    except ValueError as error:
        raise ValueError(f"{error}; write IP:PORT, localhost:PORT, unix:/path or off") from error
    return address


def _gateway(text: str) -> str:
    namespace, slash, name = text.partition("/")
    if not slash or not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
        raise ValueError(f"{text!r} is not a Gateway; write NAMESPACE/NAME, for example default/web")
    return text


def _key(text: str) -> SessionKey:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise ValueError(f"must be 64 hex digits, got {len(text)} characters; make one with `openssl rand -hex 32`")
    return SessionKey(bytes.fromhex(text), is_given=True)


def _seconds(text: str) -> float:
    match = _SECONDS.fullmatch(text)
    value = float(match[1]) * _UNIT[match[2]] if match else -1.0
    if not 0 <= value <= MAX_SHUTDOWN:
        raise ValueError(f"{text!r} is not a time from 0 to {MAX_SHUTDOWN} seconds; write 10, 10s or 1m")
    return value


def _instance(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} cannot name an instance; use lower-case letters, digits, '-' and '.'")
    return text


def _number(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return read


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


def _parser() -> argparse.ArgumentParser:
    import argparse

    class Version(argparse.Action):
        """Finds out the version when it is asked for: that takes 20 ms."""

        def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
            sys.stdout.write(f"gatewright-proxy {version()}\n")
            parser.exit()

    parser = argparse.ArgumentParser(
        prog="gatewright-proxy",
        description="The data plane: one agent process and as many workers as there are cores. It takes its"
        " configuration from a file, from a controller, or from both.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="show program's version number and exit")
    _add_configuration(parser.add_argument_group("configuration"))
    _add_xds_access(parser.add_argument_group("control plane over TCP", "files for --xds HOST:PORT, read at each try"))
    _add_process(parser.add_argument_group("process"))
    _add_pages(parser.add_argument_group("pages, each IP:PORT, localhost:PORT, unix:/path or off"))
    return parser


def _add_configuration(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-f", "--file", type=Path, metavar="FILE", help="YAML or JSON file, reloaded when it changes")
    group.add_argument(
        "--xds", type=_argument(_remote), metavar="ADDRESS", help="control plane: unix:/path or HOST:PORT"
    )
    group.add_argument(
        "--gateway", type=_argument(_gateway), metavar="NAMESPACE/NAME", help="the Gateway that this proxy serves"
    )
    group.add_argument(
        "--instance",
        type=_argument(_instance),
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
        type=_argument(_number(1, MAX_WORKERS)),
        metavar="N",
        help="serving processes (default: one per core)",
    )
    ports = group.add_mutually_exclusive_group()
    ports.add_argument(
        "--port-offset",
        type=_argument(_number(0, 40000)),
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
        type=_argument(_number(0, 2**20)),
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
            type=_argument(_local),
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
