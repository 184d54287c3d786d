"""The answers to requests without a good credential (RFC 9110 15.5.2), as tables made when a policy is built.

Used by the three authentication filters. The client's answer does not give the cause; the log's detail does, and never
holds what the client sent.
"""

from __future__ import annotations

from collections.abc import Iterable

from dataplane.chain.filter import Origin
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from gatewright.wire.v1 import authentication_pb2

SEVERAL = "several credentials in one request, or one that is no text"
"""Why `locations.AMBIGUOUS` is refused."""

OPTIONAL = authentication_pb2.AUTHENTICATION_MODE_OPTIONAL
PERMISSIVE = authentication_pb2.AUTHENTICATION_MODE_PERMISSIVE


def refusal(reason: str, challenge: bytes, origin: Origin, why: str) -> Reply:
    """401 with a challenge (the value of WWW-Authenticate)."""
    header = b"www-authenticate: %b\r\n" % challenge
    return made(reason, f"{origin}: {why}" if str(origin) else why, header)


def refusals(
    mode: int, reason: str, challenge: bytes, origin: Origin, causes: Iterable[str]
) -> dict[str, Reply | None]:
    """One answer to an invalid credential for each cause; None: the request may pass with it."""
    return {why: None if mode == PERMISSIVE else refusal(reason, challenge, origin, why) for why in causes}


def absence(mode: int, reason: str, challenge: bytes, origin: Origin) -> Reply | None:
    """The answer to a request without credentials; None: it may pass."""
    if mode in (OPTIONAL, PERMISSIVE):
        return None
    return refusal(reason, challenge, origin, "no credentials")
