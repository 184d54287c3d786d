"""Which endpoint the requests of a session go to (Gateway API SessionPersistence, GEP-1619), pure.

A session is kept by its client: text that is sealed (`credentials/sealing`), of one *pin* for each backend that it has
come to: endpoint and backend, as digests, and when that began. So it is the same for all workers and replicas that have
the key, and nothing is remembered here. Which backend gets a request is decided before, by weight: a pin never changes
it (GEP-1619, Traffic Splitting).

The step of the policy (`filters/steps/session_persistence`) reads the session of a request and writes what came of it
into the response; `Persistence.among` is asked in between, where an endpoint is chosen (`backend_rules`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from dataplane.exchange import Exchange

if TYPE_CHECKING:
    from dataplane.upstream.endpoint import Endpoint

ATTRIBUTE: Final = "sessionPersistence"
"""Where an exchange has its `Session` (`Exchange.attributes`)."""
MAX_PINS: Final = 16
"""Backends that a session knows its endpoints of: as many as a rule has. Of more the oldest are forgotten."""
DIGEST: Final = 8
_VERSION: Final = b"\x01"
_PIN: Final = struct.Struct(f">{DIGEST}s{DIGEST}sQ")


@lru_cache(16_384)
def digest(text: str) -> bytes:
    """The digest of a backend's key, or of an endpoint's label."""
    return blake2b(text.encode(), digest_size=DIGEST).digest()


class Pin(NamedTuple):
    """The endpoint of a session at one backend."""

    backend: bytes
    endpoint: bytes
    begun: int
    """Seconds since the epoch."""


begun = attrgetter("begun")
"""When a pin began."""


def written(pins: Iterable[Pin]) -> bytes:
    """What is sealed."""
    return _VERSION + b"".join(_PIN.pack(*pin) for pin in pins)


def read(content: bytes) -> tuple[Pin, ...]:
    """() for what another version wrote."""
    pins = content[1:]
    if content[:1] != _VERSION or len(pins) % _PIN.size:
        return ()
    return tuple(Pin(*each) for each in _PIN.iter_unpack(pins))


class Session:
    """That of one request."""

    __slots__ = ("backend", "failed", "pins", "used")

    def __init__(self, pins: Iterable[Pin]) -> None:
        """`pins`: those that are not over; of a backend that is there twice the last counts."""
        self.pins = {pin.backend: pin for pin in pins}
        self.backend = b""
        """Digest of the backend of which an endpoint was chosen last; b"": none was, by `Persistence.among`."""
        self.failed: list[Endpoint] = []
        """Endpoints of the session that could not be connected to."""
        self.used: Endpoint | None = None
        """The endpoint of the session, if it was chosen."""

    def renewed(self, label: str, now: int) -> tuple[Pin, ...] | None:
        """The session from now on, where the endpoint of this label has answered; None: it is as the client has it."""
        known = self.pins.pop(self.backend, None)
        pin = Pin(self.backend, digest(label), now)
        if known is not None and known.endpoint == pin.endpoint:
            return None
        return (*sorted(self.pins.values(), key=begun), pin)[-MAX_PINS:]


def session_of(x: Exchange) -> Session | None:
    """None: no step of the policy has read one."""
    found = None if x.attributes is None else x.attributes.get(ATTRIBUTE)
    return found if isinstance(found, Session) else None


def moves_on(x: Exchange) -> bool:
    """An endpoint could not be connected to: whether the request goes to another one, because it was the session's
    alone that it was sent there. Counted as often as it happens: once."""
    session = session_of(x)
    if session is None or session.used is None or session.used is not x.endpoint:
        return False
    session.failed.append(session.used)
    session.used = None
    return True


class Persistence:
    """Finds the endpoints of sessions among those of one backend."""

    __slots__ = ("_by_digest", "_of")

    def __init__(self) -> None:
        self._of: Sequence[Endpoint] = ()
        self._by_digest: dict[bytes, Endpoint] = {}

    def among(
        self, holder: object, backend: str, endpoints: Sequence[Endpoint], others: Callable[[], Sequence[Endpoint]]
    ) -> Sequence[Endpoint]:
        """Of `endpoints` (not empty) those that may be chosen: the one that the session of `holder` has at this
        backend, also where it is of `others` (asked for when it is needed); else those that did not fail it. What is no
        request of a client (a call of a policy, a copy for a mirror) has no session."""
        session = session_of(holder) if isinstance(holder, Exchange) else None
        if session is None:
            return endpoints
        session.backend, session.used = digest(backend), None
        pin = session.pins.get(session.backend)
        if pin is None:
            return endpoints
        found = self._found(pin.endpoint, endpoints) or _among(others(), pin.endpoint)
        if found is None or found in tried_by(holder):
            return endpoints
        if found in session.failed:
            return [each for each in endpoints if each is not found] or endpoints
        session.used = found
        return (found,)

    def _found(self, wanted: bytes, endpoints: Sequence[Endpoint]) -> Endpoint | None:
        if endpoints is not self._of:
            self._of, self._by_digest = endpoints, {digest(each.label): each for each in endpoints}
        return self._by_digest.get(wanted)


def _among(endpoints: Sequence[Endpoint], wanted: bytes) -> Endpoint | None:
    return next((each for each in endpoints if digest(each.label) == wanted), None)


def tried_by(holder: object) -> Sequence[Endpoint]:
    retries = getattr(holder, "retries", None)
    return () if retries is None else retries.tried
