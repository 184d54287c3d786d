"""`frontend.limits`, a Gatewright extension: how much a proxy takes on at a time."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from gatewright.api.schema.fields import ByteSize, Integer, PositiveDuration
from gatewright.api.schema.model import RuledModel
from gatewright.api.schema.size_rules import at_least

SMALLEST: Final = 1024
"""Bytes: fewer are a mistake, for example a number of kilobytes, or a 0 that is meant as no limit."""

Count = Annotated[Integer, Field(ge=1, le=2**32 - 1)]


class FrontendLimits(RuledModel):
    """How much a proxy takes on at a time, all its workers together. Gatewright extension."""

    max_connections: Count | None = None
    """Connections of clients. Above it the oldest idle connection of the address that has most is closed; when that is
    the new one it is refused. Unset: as many as the file descriptors of each worker allow. Gatewright extension."""
    max_connections_per_address: Count | None = None
    """Connections of one client address; an IPv6 network of 64 bits counts as one address. Above it the oldest idle one
    of the address is closed; when that is the new one it is refused. Unset: no limit. Gatewright extension."""
    max_requests: Count | None = None
    """Requests in flight. What is above it is answered with 503 and Retry-After. Unset: no limit. Gatewright
    extension."""
    max_held_bytes: ByteSize | None = None
    """Memory for bodies that are held, for policies that read them or for other tries. Where the body of a request or
    of its response finds no memory left it is answered with 503, or is not retried. Unset: 256Mi for each worker.
    Gatewright extension."""
    max_request_bytes: ByteSize | None = None
    """The largest request body, also of one that streams through. What is larger is answered with 413; the request to
    the backend is aborted. Unset: no limit. Gatewright extension."""
    stream_idle_timeout: PositiveDuration | None = None
    """How long a request or tunnel may go on without a byte in either direction, from its head to its end: then it is
    answered with 408 or 504, or broken off when its response has begun. Unset: no limit. Gatewright extension."""

    max_password_checks: Count | None = None
    """Checks of passwords that wait for their turn, for each policy with basic authentication and worker. Where all
    places are taken, the newest check of the address that has most is answered with 503. Unset: 1024. Gatewright
    extension."""
    max_password_checks_per_address: Count | None = None
    """The same of one client address; an IPv6 network of 64 bits counts as one address. A check above it is answered
    with 503 and Retry-After. Unset: 16. Gatewright extension."""

    cel_rules = (at_least("maxHeldBytes", SMALLEST), at_least("maxRequestBytes", SMALLEST))
