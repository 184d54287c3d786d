"""CONNECT while nobody has said what it may do (spec 2, Frontend `connect`): refused, whatever the routes say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.memory_proxy import MemoryProxy


@pytest.mark.claims("errors: Downstream CONNECT request while")
def test_connect_is_not_allowed(refused: Callable[..., None]) -> None:
    proxy = MemoryProxy()
    client = proxy.connect()
    client.send(b"CONNECT 127.0.0.1:9000 HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n\r\n")
    refused(client.received, case="unset")
    assert b"connection: close\r\n" in client.received.lower()
    assert proxy.connector.upstreams == []
