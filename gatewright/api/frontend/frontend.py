"""`GatewayPolicy.spec.frontend` (Frontend): all policies about clients' connections."""

from __future__ import annotations

from typing import ClassVar

from gatewright.api.frontend.connect import FrontendConnect
from gatewright.api.frontend.http import FrontendHTTP
from gatewright.api.frontend.limits import FrontendLimits
from gatewright.api.frontend.proxy_protocol import FrontendProxyProtocol
from gatewright.api.frontend.tcp import FrontendTCP
from gatewright.api.frontend.telemetry import AccessLog, MetricLabels, Tracing
from gatewright.api.frontend.tls import FrontendTLS
from gatewright.api.schema.model import Model
from gatewright.api.traffic.authorization import NetworkAuthorization
from gatewright.attach.policies import FRONTEND


class Frontend(Model):
    """What happens with connections of clients, and what is reported about requests. Its target is a Gateway."""

    parts: ClassVar[tuple[str, ...]] = (FRONTEND,)
    """Of the table of policies: whose the fields are."""

    tcp: FrontendTCP | None = None
    """TCP settings of clients' connections."""
    network_authorization: NetworkAuthorization | None = None
    """A rule that connections must keep to, for example about source.address."""
    tls: FrontendTLS | None = None
    """How listeners speak TLS."""
    http: FrontendHTTP | None = None
    """How listeners speak HTTP."""
    proxy_protocol: FrontendProxyProtocol | None = None
    """A PROXY header has the client's address."""
    connect: FrontendConnect | None = None
    """What happens with CONNECT requests; unset they are answered with 405."""
    access_log: AccessLog | None = None
    """The line for each request."""
    tracing: Tracing | None = None
    """Spans sent by OTLP."""
    metrics: MetricLabels | None = None
    """Labels of metrics, and where they are sent."""
    limits: FrontendLimits | None = None
    """How much a proxy takes on at a time. Gatewright extension."""
