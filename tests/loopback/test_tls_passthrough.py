"""TLS that passes as it is: the server name chooses the route, and the endpoint has the certificate."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.fakes.socket_proxy import serving
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until


def certificate(folder: Path, name: str) -> Path:
    """A certificate of this host, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@asynccontextmanager
async def server(path: Path, says: bytes) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(says + await reader.readline())
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    listening = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()


async def ask(port: int, name: str, authority: Path) -> bytes:
    context = ssl.create_default_context(cafile=str(authority))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    writer.write(b"hello\n")
    answer = await reader.readline()
    writer.close()
    return answer


def config(one: int, other: int) -> str:
    return f"""
binds:
- port: 6443
  listeners:
  - name: secure
    protocol: TLS
    tls: {{mode: Passthrough}}
    tcpRoutes:
    - {{name: one, hostnames: [one.example], backends: [{{host: "127.0.0.1:{one}"}}]}}
    - {{name: others, hostnames: ["*.example"], backends: [{{host: "127.0.0.1:{other}"}}]}}
"""


async def test_server_names_choose_routes_and_certificates_are_those_of_endpoints(tmp_path: Path) -> None:
    one, other = certificate(tmp_path, "one.example"), certificate(tmp_path, "two.example")
    async with (
        asyncio.timeout(PATIENCE),
        server(one, b"one ") as first,
        server(other, b"other ") as second,
        serving(config(first, second)) as proxy,
    ):
        assert await ask(proxy.port, "one.example", one) == b"one hello\n"
        assert await ask(proxy.port, "two.example", other) == b"other hello\n"
        await until(lambda: not proxy.context.connections, "the end of the connections")
        lines = proxy.log_lines()
    assert sorted(line.partition(" route=")[2].partition(" ")[0] for line in lines) == ["default/one", "default/others"]
    assert all(" tls.sni=" in line and " protocol=tls " in line for line in lines)


async def test_a_name_without_route_is_reset(tmp_path: Path) -> None:
    known = certificate(tmp_path, "one.example")
    async with asyncio.timeout(PATIENCE), server(known, b"one ") as port, serving(config(port, port)) as proxy:
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await ask(proxy.port, "elsewhere.test", known)
        await until(lambda: not proxy.context.connections, "the end of the connection")
        assert "tls.sni=elsewhere.test protocol=tls" in proxy.log_line()
        assert "reason=RouteNotFound" in proxy.log_line()
