"""Tunnels of a mesh end with the certificates that they were opened under: no connection is taken from then on, and
later they are cut.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from dataplane.server import workload_tunnels
from dataplane.server.workload_tunnels import GRACE
from tests.fakes.h2_client import FrameClient
from tests.fakes.h2_wire import GET, headers
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.mesh import MeshAuthority, identity


class Ends:
    """As `workload_tunnels.Tunnel`."""

    moment = grace = 0.0

    def end_at(self, moment: float, grace: float) -> None:
        self.moment, self.grace = moment, grace


@pytest.mark.parametrize(("theirs", "own", "left"), [(100.0, 200.0, 100.0), (200.0, 100.0, 100.0), (50.0, None, 50.0)])
def test_the_certificate_that_ends_first_counts(theirs: float, own: float | None, left: float) -> None:
    issued = MeshAuthority().workload(identity("a", "b"), theirs)
    expires = None if own is None else (datetime.now(UTC) + timedelta(seconds=own)).timestamp()
    listener = cast("Any", SimpleNamespace(tls=SimpleNamespace(expires=expires)))
    tunnel = Ends()
    workload_tunnels.end_in_time(tunnel, 1000.0, listener, issued.certificate.public_bytes(Encoding.DER))
    assert abs(tunnel.moment - 1000.0 - left) < 2.0 and tunnel.grace == GRACE


def test_what_has_ended_already_ends_at_once() -> None:
    issued = MeshAuthority().workload(identity("a", "b"), -30.0)
    tunnel = Ends()
    listener = cast("Any", SimpleNamespace(tls=None))
    workload_tunnels.end_in_time(tunnel, 1000.0, listener, issued.certificate.public_bytes(Encoding.DER))
    assert tunnel.moment == 1000.0


def test_a_connection_takes_no_streams_from_its_end_on_and_is_cut_later() -> None:
    proxy = MemoryProxy()
    client = FrameClient(proxy)
    client.send(headers(1, GET))
    (connection,) = proxy.context.connections
    cast("Any", connection).end_at(proxy.context.clock() + 5.0, 20.0)
    proxy.advance(4.0)
    assert not client.take() and client.open
    proxy.advance(1.5)
    assert "goaway" in [each.kind for each in client.take()] and client.open, "its stream may end"
    proxy.advance(18.0)
    assert client.open
    proxy.advance(2.0)
    assert not client.open
