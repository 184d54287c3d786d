"""What a transport says of its two ends, and what of that goes on."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.http.messages import Peer
from dataplane.server.peers import peer_of
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy


class Ends:
    def __init__(self, peername: Any, sockname: Any) -> None:
        self.known = {"peername": peername, "sockname": sockname}

    def get_extra_info(self, name: str) -> Any:
        return self.known[name]


@pytest.mark.parametrize(
    ("peername", "sockname", "peer"),
    [
        (("192.0.2.7", 1), ("127.0.0.1", 8080), Peer("192.0.2.7", local=b"127.0.0.1:8080", port=1)),
        (("::ffff:192.0.2.7", 1, 0, 0), ("::ffff:127.0.0.1", 80), Peer("192.0.2.7", local=b"127.0.0.1:80", port=1)),
        (("2001:db8::1", 1, 0, 0), ("::1", 8080, 0, 0), Peer("2001:db8::1", local=b"[::1]:8080", port=1)),
        ("", "/run/proxy.sock", Peer("", local=b"localhost")),
        (None, None, Peer("", local=b"localhost")),
    ],
)  # fmt: skip
def test_ends(peername: Any, sockname: Any, peer: Peer) -> None:
    assert peer_of(Ends(peername, sockname)) == peer


def test_an_old_client_that_names_no_host_means_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"peername": ("2001:db8::1", 1, 0, 0), "sockname": ("::1", 8080, 0, 0)}
    monkeypatch.setattr(FakeTransport, "get_extra_info", lambda self, name: ends[name])
    proxy = MemoryProxy()
    proxy.connect().send(b"GET / HTTP/1.0\r\n\r\n")
    assert b"\r\nhost: [::1]:8080\r\n" in proxy.upstream.received
    assert b"\r\nx-forwarded-for: 2001:db8::1\r\n" in proxy.upstream.received
