"""Clients of HTTP/2 that others wrote, through the product to an origin of HTTP/1: h2spec, nghttp2's, curl."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import h11
import pytest

from dataplane.http.h2.events import Event, GoAway
from dataplane.http.h2.settings import Settings
from dataplane.server.protocols import plan_of
from tests.fakes.h2_peer import connect
from tests.fakes.proxy_process import running
from tests.fakes.socket_proxy import SocketProxy, serving
from tests.harness.waiting import until
from tests.loopback.conftest import Run

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      policies: {{http: {{version: HTTP1}}}}
      backends: [{{host: '127.0.0.1:{port}'}}]
"""


class Origin:
    """Echoes each request's content, `/bytes/N` gives so many; with the request's trailers behind it."""

    def __init__(self) -> None:
        self.port = 0
        self.heads: list[h11.Request] = []
        self.writers: set[asyncio.StreamWriter] = set()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = h11.Connection(h11.SERVER)
        self.writers.add(writer)
        try:
            while wire.our_state is not h11.MUST_CLOSE:
                await self._exchange(wire, reader, writer)
                wire.start_next_cycle()
        except (ConnectionError, h11.ProtocolError):
            pass
        finally:
            writer.close()
            self.writers.discard(writer)

    async def _exchange(self, wire: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, content, trailers = None, bytearray(), []
        while True:
            event = wire.next_event()
            if event is h11.NEED_DATA:
                data = await reader.read(65_536)
                if not data:
                    raise ConnectionResetError
                wire.receive_data(data)
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                content += event.data
            elif isinstance(event, h11.EndOfMessage):
                trailers = list(event.headers)
                break
        assert head is not None
        self.heads.append(head)
        await self.may_answer.wait()
        answer = bytes(int(head.target[7:])) if head.target.startswith(b"/bytes/") else bytes(content) or b"hello"
        framing = (b"transfer-encoding", b"chunked") if trailers else (b"content-length", b"%d" % len(answer))
        parts = [h11.Response(status_code=200, headers=[framing])]
        parts += [h11.Data(data=answer)] if head.method != b"HEAD" else []
        for part in (*parts, h11.EndOfMessage(headers=trailers)):
            writer.write(wire.send(part) or b"")
        await writer.drain()


@asynccontextmanager
async def origin() -> AsyncIterator[Origin]:
    found = Origin()
    server = await asyncio.start_server(found.handle, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for writer in found.writers:
            writer.transport.abort()
        await until(lambda: not found.writers)


@asynccontextmanager
async def proxied() -> AsyncIterator[tuple[SocketProxy, Origin]]:
    async with origin() as behind, serving(FILE.format(port=behind.port)) as proxy:
        yield proxy, behind


@pytest.mark.needs("h2spec")
async def test_h2spec_on_the_port_of_both_protocols(run: Run) -> None:
    """Strict. One case cannot pass there: what is no preface is a request of HTTP/1, and answered as a bad one."""
    async with proxied() as (proxy, _):
        output = await run("h2spec", "-S", "-h", "127.0.0.1", "-p", str(proxy.port), "-o", "10", code=1)
    assert "146 tests, 145 passed, 0 skipped, 1 failed" in output
    failures = output.partition("Failures:")[2]
    assert re.findall(r"× \d+: (.*)", failures) == ["Sends invalid connection preface"]
    assert "the frame header looked like an HTTP/1.1 header" in failures


@pytest.mark.needs("h2spec")
async def test_h2spec_on_a_port_of_http2_alone(run: Run) -> None:
    """The same connections, where nothing else was agreed on."""
    async with proxied() as (proxy, _):
        (bind,) = proxy.applier.current.table.binds
        plan = plan_of(proxy.context, bind)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: plan.other.make(plan), "127.0.0.1", 0)
        try:
            port = server.sockets[0].getsockname()[1]
            output = await run("h2spec", "-S", "-h", "127.0.0.1", "-p", str(port), "-o", "10")
        finally:
            server.close()
    assert "146 tests, 146 passed, 0 skipped, 0 failed" in output


@pytest.mark.needs("nghttp")
async def test_nghttp_with_uploads_trailers_and_small_windows(run: Run, tmp_path: Path) -> None:
    upload, text = tmp_path / "upload", tmp_path / "text"
    upload.write_bytes(bytes(range(256)) * 2000)
    async with proxied() as (proxy, behind):
        url = f"http://127.0.0.1:{proxy.port}"
        options = (
            "--no-content-length",
            "-d",
            str(upload),
            "-w",
            "10",
            "-W",
            "12",
            "--trailer",
            "x-sum: 1",
            "-b",
            "100",
        )
        output = await run("nghttp", "-v", "-n", *options, f"{url}/echo")
        text.write_bytes(b"0123456789" * 50_000)
        echoed = await run("nghttp", "-d", str(text), f"{url}/echo")
    assert re.search(r"recv \(stream_id=\d+\) x-sum: 1", output) and "PROTOCOL_ERROR" not in output
    assert echoed == text.read_text()
    assert [head.target for head in behind.heads] == [b"/echo", b"/echo"]


@pytest.mark.needs("h2load")
@pytest.mark.parametrize(("path", "count"), [("/", 600), ("/bytes/300000", 60)])
async def test_h2load_with_many_streams(run: Run, path: str, count: int) -> None:
    async with proxied() as (proxy, behind):
        output = await run("h2load", "-n", str(count), "-c", "3", "-m", "60", f"http://127.0.0.1:{proxy.port}{path}")
        assert f"{count} succeeded, 0 failed, 0 errored, 0 timeout" in output and f"{count} 2xx" in output
        assert len(behind.heads) == count
        await until(lambda: not proxy.context.connections)


@pytest.mark.needs("curl")
async def test_curl_over_both_protocols_on_one_port(run: Run, tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(b"0123456789" * 100_000)
    async with proxied() as (proxy, _):
        url = f"http://127.0.0.1:{proxy.port}/"
        options = ("-s", "--data-binary", f"@{upload}", "-o", "-", "-w", "=%{http_version} %{http_code}", url)
        over_2 = await run("curl", "--http2-prior-knowledge", *options)
        over_1 = await run("curl", "--http1.1", *options)
    content = upload.read_text()
    assert over_2 == f"{content}=2 200" and over_1 == f"{content}=1.1 200"


def note(handle: Callable[[list[Event]], None], going: list[GoAway]) -> Callable[[list[Event]], None]:
    """Handle events, and keep each GOAWAY."""

    def handles(events: list[Event]) -> None:
        going.extend(event for event in events if isinstance(event, GoAway))
        handle(events)

    return handles


async def test_a_proxy_that_ends_serves_what_was_begun(tmp_path: Path) -> None:
    """SIGTERM: GOAWAY, the answer, the end; nobody is cut."""
    async with origin() as behind:
        file = tmp_path / "config.yaml"
        file.write_text(FILE.format(port=behind.port))
        times = {"TERMINATION_GRACE_PERIOD_SECONDS": "30"}
        async with running("-f", str(file), workers=1, environment=times, leaves="it ends") as proxy:
            await proxy.ready()
            behind.may_answer.clear()
            async with connect(proxy.at(8080), Settings()) as client:
                answer = client.begin(b"POST", b"/slow", content=b"begun")
                await until(lambda: len(behind.heads) == 1)
                going: list[GoAway] = []
                client.handle = note(client.handle, going)  # type: ignore[method-assign]
                proxy.agent.signal(signal.SIGTERM)
                await until(lambda: len(going) == 2)
                behind.may_answer.set()
                await answer.done
                assert bytes(answer.content) == b"begun"
                assert [each.last for each in going] == [0x7FFFFFFF, 1]
                await until(client.transport.is_closing)
            assert await proxy.ended() == 0
