"""Real processes for the tests of faults: proxy, controller, upstream, clients that ask all the time, and relays.

Everything is on loopback and free ports; whatever is left when a block ends is killed by its process id.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes import proxy_process
from tests.fakes.proxy_process import TIMES
from tests.fakes.web_objects import OBJECTS, route
from tests.faults import page
from tests.harness.patience import PATIENCE
from tests.harness.processes import Program, files
from tests.harness.waiting import until

# Processes.


@contextlib.contextmanager
def few_files(pid: int, more: int) -> Any:
    """Until the block ends the process may open so many descriptors more than it has."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(files(pid)) + 1 + more, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@dataclass(frozen=True, slots=True)
class Tcp:
    """A row of /proc/net/tcp."""

    local: int
    remote: int
    inode: int
    keepalive: float
    """Seconds until the keepalive timer fires; 0: it is not running."""


_OPEN = ("01", "08")
"""ESTABLISHED, and CLOSE_WAIT: the other side has ended its half."""


def tcp_of(pid: int) -> list[Tcp]:
    """The connections of a process."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
            if target.startswith("socket:["):
                inodes.add(int(target[8:-1]))
    rows = []
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    for columns in (line.split() for table in tables for line in table):
        timer, _, when = columns[5].partition(":")
        if columns[3] in _OPEN and int(columns[9]) in inodes:
            ports = (int(columns[side].rpartition(":")[2], 16) for side in (1, 2))
            seconds = int(when, 16) / os.sysconf("SC_CLK_TCK") if timer == "02" else 0.0
            rows.append(Tcp(*ports, int(columns[9]), seconds))
    return rows


PORT = 8080
"""The port of listeners as configured. Where they listen the system decides, but for tests that reserve a port."""


class Process(Program):
    """A process of ours."""

    async def says(self, piece: str) -> None:
        """Wait for the line of docs/faults.md that contains `piece`."""
        await until(lambda: page.said(piece, self.log()), lambda: f"{page.pattern(piece).pattern} in\n{self.log()}")


@asynccontextmanager
async def started(
    folder: Path, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None, **options: Any
) -> AsyncIterator[Process]:
    """This program until the block ends."""
    made = Process(folder, name, command, environment={**TIMES, **(environment or {})}, **options)
    try:
        yield made
    finally:
        await made.end()


class Proxy(proxy_process.Proxy):
    """A proxy: its agent, and questions to its pages. `configured`: the port of its listener in its configuration."""

    def __init__(self, agent: Process, configured: int) -> None:
        super().__init__(agent)
        self.agent: Process = agent
        self._configured = configured

    @property
    def port(self) -> int:
        """Where its listener is."""
        return self.at(self._configured)

    def page_port(self, name: str) -> int:
        return self.agent.port(name.upper())

    async def page(self, name: str) -> int:
        """From its notification: tests of logs give the process log another place."""
        await self.agent.ready()
        return self.page_port(name)


@asynccontextmanager
async def proxy(
    folder: Path,
    *flags: str,
    port: int = PORT,
    workers: int = 2,
    name: str = "proxy",
    pages: Mapping[str, int] | None = None,
    ports: str = "--any-port",
    leaves: str = "",
    files: int = 0,
    **options: Any,
) -> AsyncIterator[Proxy]:
    """`python -m dataplane` with these flags, whose workers hold nothing any more at the end of the block.

    `port`: of its listener as configured; `ports`: how it comes to ports; `leaves`: why its workers hold something;
    `files`: its `ulimit -n`.
    """
    given = pages or dict.fromkeys(proxy_process.PAGES, 0)
    command = [sys.executable, "-m", "dataplane", *flags, f"--workers={workers}", ports]
    command += [f"--{page_name}=127.0.0.1:{number}" for page_name, number in given.items()]
    if files:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    async with started(folder, name, command, **options) as agent:
        made = Proxy(agent, port)
        yield made
        if not leaves:
            await made.let_go()


def configuration(port: int, upstream: int, timeouts: str = "", more: Sequence[int] = ()) -> str:
    """A standalone file: everything that comes to `port` (and to `more` ports) goes to the upstream."""
    binds = [
        f"""- port: {number}
  addresses: [127.0.0.1]
  listeners:
  - name: http-{number}
    protocol: HTTP
    routes:
    - name: all-{number}
      {timeouts}
      backends: [{{host: "127.0.0.1:{upstream}"}}]
"""
        for number in (port, *more)
    ]
    return "binds:\n" + "".join(binds)


@asynccontextmanager
async def served(
    folder: Path, workers: int = 2, timeouts: str = "", port: int = PORT, **options: Any
) -> AsyncIterator[Served]:
    """Upstream and a proxy from a file, ready."""
    async with upstream() as server:
        file = folder / "proxy.yaml"
        file.write_text(configuration(port, server.port, timeouts))
        async with proxy(folder, "-f", str(file), port=port, workers=workers, **options) as made:
            await made.ready()
            yield Served(made, server, file)


# Controller.


@dataclass(slots=True)
class Controller:
    process: Process
    folder: Path
    socket: Path
    admin: int

    async def status(self) -> dict[str, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.admin)
        try:
            writer.write(b"GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            async with asyncio.timeout(PATIENCE):
                answer = await reader.read()
        finally:
            writer.close()
        found: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
        return found

    async def proxies(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (await self.status())["proxies"]
        return rows

    async def programmed(self) -> tuple[str, str]:
        """Status and message of the Gateway's condition Programmed."""
        (gateway,) = [row for row in (await self.status())["objects"] if row["kind"] == "Gateway"]
        (found,) = [each for each in gateway["status"]["conditions"] if each["type"] == "Programmed"]
        return found["status"], found["message"]


@asynccontextmanager
async def controller(folder: Path, objects: Path, admin: int = 0, **options: Any) -> AsyncIterator[Controller]:
    """`gatewright controller` over a folder of objects."""
    socket_path = folder / "xds.sock"
    command = [sys.executable, "-m", "controlplane.cli", "controller", str(objects), "--socket", str(socket_path)]
    command += ["--xds", "127.0.0.1:0", "--admin", f"127.0.0.1:{admin}"]
    async with started(folder, "controller", command, **options) as process:
        await process.ready()
        yield Controller(process, objects, socket_path, process.port("ADMIN"))


@dataclass(slots=True)
class Governed:
    """Upstream, controller and a proxy under it."""

    controller: Controller
    proxy: Proxy
    upstream: Upstream


async def is_programmed(control: Controller) -> bool:
    """Whether every connected proxy has acknowledged the Gateway's newest state, and there is one."""
    return (await control.programmed())[0] == "True"


async def has_route(asked: Proxy, piece: str) -> bool:
    """Whether the proxy runs a route with this in its key."""
    return any(piece in key for key in (await asked.dump())["resources"].get("route", ()))


@asynccontextmanager
async def governed(
    folder: Path,
    objects: Path,
    workers: int = 1,
    through: Path | None = None,
    port: int = PORT,
    ports: str = "--any-port",
    **options: Any,
) -> AsyncIterator[Governed]:
    """Upstream, controller and a proxy under it, in agreement. `through`: the socket that the proxy connects to.

    `port`, `ports`: as in `proxy`. `options` are those of both processes.
    """
    objects.mkdir(exist_ok=True)
    async with upstream() as server:
        (objects / "gateway.yaml").write_text(OBJECTS.format(port=port, upstream=server.port) + route("all", "/"))
        async with controller(folder, objects, **options) as control:
            flags = ["--xds", f"unix:{through or control.socket}", "--gateway", "default/web", "--instance", "one"]
            async with proxy(folder, *flags, port=port, workers=workers, ports=ports, **options) as made:
                await made.ready()
                await until(lambda: is_programmed(control), control.process.log)
                yield Governed(control, made, server)


# Upstream and clients.

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class Tasks:
    """Handlers of a server's connections; all are cancelled and awaited in the end."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._handle(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def end(self) -> None:
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


class Upstream:
    """Answers every request; `/hold` when `release` is set, `/hang` never, `/stream` with a byte now and then."""

    def __init__(self) -> None:
        self.port = 0
        self.release = asyncio.Event()
        self.open = 0
        self.holding = 0
        """Requests for `/hold` that wait."""
        self.lost = 0
        """Connections that ended while `/hang` was asked."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split()[1]
                if path == b"/hold":
                    self.holding += 1
                    await self.release.wait()
                    self.holding -= 1
                elif path == b"/hang":
                    await self._hang(reader)
                elif path == b"/tunnel":
                    writer.write(
                        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
                    )
                    await self._hang(reader)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self.open -= 1
            writer.close()

    async def _hang(self, reader: asyncio.StreamReader) -> None:
        try:
            await reader.readexactly(1)
        finally:
            self.lost += 1


@asynccontextmanager
async def upstream(port: int = 0) -> AsyncIterator[Upstream]:
    made = Upstream()
    tasks = Tasks(made.handle)
    server = await asyncio.start_server(tasks.begin, "127.0.0.1", port)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await tasks.end()


class Client:
    """One connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.port: int = writer.get_extra_info("sockname")[1]

    @classmethod
    async def connect(cls, port: int, address: str = "127.0.0.1") -> Client:
        """From this address. The caller closes it; `clients` does so by itself."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)))

    def post(self, path: str = "/") -> None:
        """Send a head to which two bytes belong."""
        self.writer.write(f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n".encode())

    def send(self, path: str = "/", headers: str = "") -> None:
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: test\r\n{headers}\r\n".encode())

    async def answer(self) -> int:
        """The status of the next response; its body is read. Raises what a broken connection raises."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await self.reader.readexactly(int(length[0].partition(b":")[2]) if length else 0)
        return int(head.split()[1])

    async def ask(self, path: str = "/") -> int:
        self.send(path)
        async with asyncio.timeout(PATIENCE):
            return await self.answer()

    def has_answer(self, status: int) -> bool:
        """Whether a response with this status has arrived and is not read yet."""
        return bytes(self.reader._buffer).startswith(b"HTTP/1.1 %d" % status)  # type: ignore[attr-defined]

    async def is_closed(self) -> bool:
        """Whether the proxy ends the connection without a word."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.writer.transport.abort()


@asynccontextmanager
async def clients(port: int, address: str = "127.0.0.1") -> AsyncIterator[Callable[[], Awaitable[Client]]]:
    """A function that connects, from this address; what it connected is closed in the end."""
    made: list[Client] = []

    async def connect() -> Client:
        made.append(await Client.connect(port, address))
        return made[-1]

    try:
        yield connect
    finally:
        for client in made:
            client.close()
        await asyncio.sleep(0)


@dataclass(slots=True)
class Load:
    """What clients that ask all the time were answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[tuple[str, int, str]] = field(default_factory=list)
    """(`kept` or `new`, client's port, what went wrong)."""
    slowest: float = 0.0

    @property
    def answered(self) -> int:
        return self.statuses[200]

    def is_clean(self) -> bool:
        return not self.failures and set(self.statuses) <= {200}


STEP = 0.02


async def _kept(port: int, load: Load) -> None:
    while True:
        client: Client | None = None
        try:
            client = await Client.connect(port)
            while True:
                await _timed(client, load)
                await asyncio.sleep(STEP)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            load.failures.append(("kept", client.port if client else 0, repr(error)))
        finally:
            if client is not None:
                client.close()
        await asyncio.sleep(STEP)


async def _new(port: int, load: Load) -> None:
    while True:
        client: Client | None = None
        try:
            client = await Client.connect(port)
            await _timed(client, load)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            load.failures.append(("new", client.port if client else 0, repr(error)))
        finally:
            if client is not None:
                client.close()
        await asyncio.sleep(STEP)


async def _timed(client: Client, load: Load) -> None:
    begin = time.monotonic()
    load.statuses[await client.ask()] += 1
    load.slowest = max(load.slowest, time.monotonic() - begin)


@asynccontextmanager
async def load(port: int, kept: int = 4) -> AsyncIterator[Load]:
    """Traffic while the block runs: `kept` connections that stay, and one new connection after the other."""
    made = Load()
    tasks = [asyncio.create_task(_kept(port, made)) for _ in range(kept)]
    tasks.append(asyncio.create_task(_new(port, made)))
    try:
        await until(lambda: made.answered > 2 * kept, lambda: f"traffic: {made}")
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def more(traffic: Load, answers: int = 50) -> None:
    """Wait for so many good answers more."""
    wanted = traffic.answered + answers
    await until(lambda: traffic.answered >= wanted, lambda: f"{answers} more answers: {traffic}")


@dataclass(slots=True)
class Served:
    proxy: Proxy
    upstream: Upstream
    file: Path


# A way that can die.


class Relay:
    """Passes bytes between a Unix socket and another until `dead`: then it passes nothing and closes nothing."""

    def __init__(self, to: Path) -> None:
        self._to = to
        self.dead = False
        self.connections = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        far_reader, far_writer = await asyncio.open_unix_connection(self._to)
        try:
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        finally:
            writer.close()
            far_writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if not self.dead:
                    writer.write(data)
                    await writer.drain()
            if not self.dead:
                writer.close()
            else:
                await asyncio.Event().wait()


@asynccontextmanager
async def relay(path: Path, to: Path) -> AsyncIterator[Relay]:
    made = Relay(to)
    tasks = Tasks(made.handle)
    server = await asyncio.start_unix_server(tasks.begin, path)
    try:
        yield made
    finally:
        server.close()
        await tasks.end()


@contextlib.contextmanager
def held_port(port: int) -> Any:
    """Somebody else listens there."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        holder.listen()
        yield
