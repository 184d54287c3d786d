"""TCP keepalive, of clients' connections and of those to backends (Keepalive)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gatewright.api.schema.fields import Integer, PositiveDuration
from gatewright.api.schema.model import Model


class Keepalive(Model):
    """Probes by which a peer that vanished is noticed."""

    retries: Annotated[Integer, Field(ge=1, le=64)] = 9
    """How many probes may stay unanswered."""
    time: PositiveDuration = "180s"
    """How long a connection is idle before the first probe."""
    interval: PositiveDuration = "180s"
    """The time between probes."""


class FrontendTCP(Model):
    """TCP settings of clients' connections."""

    keepalive: Keepalive | None = None
    """Probes by which a client that vanished is noticed."""
