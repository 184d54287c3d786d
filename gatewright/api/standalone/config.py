"""`config` of the standalone file: settings of the process, read once at the start.

Part of standalone_file; the proxy's agent reads the values.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from gatewright.api.schema.fields import GATEWAY_NAME_PATTERN, SESSION_KEY_PATTERN, Integer
from gatewright.api.schema.model import Model, unique
from gatewright.api.schema.targets import HostText, NetworkText, PageText
from gatewright.api.standalone.prices import Prices


class Logging(Model):
    """`config.logging`: see log_level for the grammar of `level`."""

    level: str = "info"
    """How much is logged, for all and for each module: `info,dataplane.http=debug,xds=off`."""
    format: Literal["text", "json"] = "text"
    """Form of the process's log and of the access log."""


class Session(Model):
    """`config.session`: the key that seals session ids, 64 hex digits."""

    key: Annotated[str, StringConstraints(pattern=SESSION_KEY_PATTERN)] | None = Field(default=None, repr=False)
    """The key. Proxies that share sessions have the same one; unset, each proxy makes one up."""


class Xds(Model):
    """`config.xds`: the control plane beside the file."""

    address: HostText | None = None
    """Where the controller is."""
    gateway: Annotated[str, Field(pattern=GATEWAY_NAME_PATTERN)] | None = None
    """The Gateway that this proxy serves, NAMESPACE/NAME."""


class DynamicForwardProxy(Model):
    """`config.dynamicForwardProxy`: where backends of that kind may lead."""

    allow: Annotated[tuple[NetworkText, ...], Field(max_length=64), unique(lambda text: text, field=None)] = ()
    """Networks that may be reached although they are loopback, link-local or metadata addresses."""


class Config(Model):
    """Process settings, read once at the start."""

    logging: Logging = Logging()
    """The process's log."""
    admin_addr: PageText | None = None
    """Where the admin page is: IP:PORT, localhost:PORT, unix:/PATH or off."""
    stats_addr: PageText | None = None
    """Where the metrics are."""
    readiness_addr: PageText | None = None
    """Where readiness is asked."""
    workers: Annotated[Integer, Field(ge=1, le=256)] | None = None
    """How many worker processes; one for each CPU when unset."""
    session: Session = Session()
    """How session ids are sealed."""
    xds: Xds = Xds()
    """The control plane beside the file."""
    dynamic_forward_proxy: DynamicForwardProxy | None = None
    """Where dynamic forward proxies may lead."""
    prices: Prices | None = None
    """What models of LLM providers cost. Unlike the others it is read again when it changes. Gatewright extension."""
