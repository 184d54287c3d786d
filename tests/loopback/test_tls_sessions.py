"""How many clients that come back go on with their session: all with one worker, about half with two. A worker resumes
what it began itself, and the system gives a new connection to any of them (`docs/tls.md` says so)."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from pathlib import Path

import pytest

from tests.fakes.certificates import Authority
from tests.fakes.proxy_process import running
from tests.harness.patience import PATIENCE

AUTHORITY = Authority()
CLIENTS = 120


def config() -> str:
    pair = {entry: {"value": text.decode()} for entry, text in AUTHORITY.issue("shop.example").entries.items()}
    routes = [{"policies": {"directResponse": {"status": 200, "body": "ok"}}}]
    listener = {"protocol": "HTTPS", "tls": {"certificateRefs": [pair]}, "routes": routes}
    return json.dumps({"binds": [{"port": 8443, "addresses": ["127.0.0.1"], "listeners": [listener]}]})


def visit(context: ssl.SSLContext, port: int, session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool]:
    """A connection with one request: its session, and whether it went on with the one given."""
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="shop.example", session=session) as tls,
    ):
        tls.sendall(b"GET / HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\r\n")
        while tls.recv(4096):
            pass
        return tls.session, bool(tls.session_reused)


def come_back(port: int, version: ssl.TLSVersion) -> int:
    """Of so many clients that come twice, how many went on with their session."""
    context = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    context.maximum_version = version
    first = [visit(context, port, None)[0] for _ in range(CLIENTS)]
    return sum(visit(context, port, session)[1] for session in first)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize(("workers", "least", "most"), [(1, 1.0, 1.0), (2, 0.25, 0.75)])
async def test_sessions_of_clients_that_come_back(
    tmp_path: Path, workers: int, least: float, most: float, version: ssl.TLSVersion
) -> None:
    file = tmp_path / "proxy.yaml"
    file.write_text(config())
    async with running("-f", str(file), workers=workers) as proxy:
        await proxy.ready()
        share = await asyncio.to_thread(come_back, proxy.at(8443), version) / CLIENTS
        resumed = await proxy.metric('gatewright_tls_handshakes_total{outcome="resumed"}')
    assert least <= share <= most
    assert resumed == round(share * CLIENTS)
    print(f"{workers} workers: {share:.2f}")
