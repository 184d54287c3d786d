"""Routes that lead back to the listener they began at: refused at once, instead of when there are no descriptors."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from tests.fakes.proxy_process import get, origin, running
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

TCP = """
- port: {port}
  listeners:
  - name: a{port}
    protocol: TCP
    tcpRoutes: [{{name: r{port}, backends: [{{host: "{backend}"}}]}}]"""
UDP = TCP.replace("TCP", "UDP").replace("tcpRoutes", "udpRoutes")
HTTP = """
- port: {port}
  listeners:
  - name: a{port}
    routes: [{{name: r{port}, backends: [{{host: "{backend}"}}]}}]"""


def written(file: Path, *binds: str) -> None:
    file.write_text("binds:" + "".join(binds) + "\n")


async def answer(port: int) -> bytes:
    """The first of what comes of a connection that says something; b"": it was closed."""
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
                return await reader.read(1000)
            finally:
                writer.close()
    except ConnectionResetError:
        return b""


async def test_connections_that_come_back_are_refused_and_others_pass_through_two_listeners(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    async with origin("reached") as port:
        written(file, TCP.format(port=9001, backend="127.0.0.1:1"), TCP.format(port=9002, backend=f"127.0.0.1:{port}"))
        async with running("-f", str(file), workers=2) as proxy:
            await proxy.ready()
            first, second = proxy.at(9001), proxy.at(9002)
            written(
                file,
                TCP.format(port=9001, backend=f"localhost:{second}"),
                TCP.format(port=9002, backend=f"127.0.0.1:{port}"),
            )

            async def through_both() -> bool:
                return (await answer(first)).endswith(b"reached")

            await until(through_both, proxy.log)
            # now the second leads to the first, by another name of this machine
            for back in (f"127.0.0.2:{first}", f"0.0.0.0:{first}", f"[::ffff:127.0.0.1]:{first}"):
                written(
                    file,
                    TCP.format(port=9001, backend=f"localhost:{second}"),
                    TCP.format(port=9002, backend=back),
                )

                async def refused() -> bool:
                    return await answer(first) == b""

                await until(refused, proxy.log)
                assert await answer(second) == b""
            written(file, TCP.format(port=9001, backend=f"127.0.0.1:{first}"))  # to itself
            await until(refused, proxy.log)
            await proxy.logged("leads back to the listener that the bytes came from")


async def test_datagrams_that_come_back_are_dropped(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    written(file, UDP.format(port=9001, backend="127.0.0.1:1"))
    async with running("-f", str(file), workers=2) as proxy:
        await proxy.ready()
        port = proxy.at(9001)
        written(file, UDP.format(port=9001, backend=f"127.0.0.1:{port}"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(("127.0.0.1", port))

            async def seen() -> bool:
                client.send(b"round")
                return "leads back to the listener that the bytes came from" in proxy.log()

            await until(seen, proxy.log)


async def test_a_request_that_goes_round_is_answered(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    written(file, HTTP.format(port=9001, backend="127.0.0.1:1"))
    async with running("-f", str(file), workers=1, leaves="connections to itself, kept for the next") as proxy:
        await proxy.ready()
        port = proxy.at(9001)
        written(file, HTTP.format(port=9001, backend=f"127.0.0.1:{port}"))

        async def found() -> bool:
            return (await get(port, "/"))[0] == 508

        await until(found, proxy.log)


async def test_metrics_and_readiness_are_no_backends(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    written(file, HTTP.format(port=9001, backend="127.0.0.1:1"))
    async with running("-f", str(file), workers=1) as proxy:
        await proxy.ready()
        for name in ("stats", "readiness"):
            page = await proxy.page(name)
            written(file, HTTP.format(port=9001, backend=f"127.0.0.1:{page}"))

            async def refused(page: int = page) -> bool:
                status, body = await get(proxy.at(9001), "/metrics")
                assert "gatewright_" not in body
                return status == 503 and f"127.0.0.1:{page} failed: the proxy's own pages are no backend" in proxy.log()

            await until(refused, proxy.log)
