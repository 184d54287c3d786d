"""A connection to a server that speaks RESP, the protocol of Redis and Valkey: commands there, answers back, in order.

Commands are sent as they come, without waiting for the answers of those before (pipelining). An answer that is late
makes the connection useless, for the next one would be taken for it: it is closed, and the next command opens another.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

WITHIN: Final = 1.0
"""Seconds for a command, and for a connection."""
MOST_WAITING: Final = 4096
MOST_ANSWER: Final = 8 * 1024 * 1024
"""Bytes of one text."""
MOST_PARTS: Final = 65_536
"""Of one list; the longest that is asked for is a page of names."""
PORT: Final = 6379

Answer = Any  # bytes, int, None, or a list of these


class Unavailable(Exception):
    """There is no answer."""


class Refused(Exception):
    """The server answered with an error."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and how it is spoken to."""

    host: str = "127.0.0.1"
    port: int = PORT
    path: str = ""
    """Of a Unix socket, in place of host and port."""
    user: str = ""
    password: str = field(default="", repr=False)
    database: int = 0
    is_secured: bool = False


SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys", "unix")


def address(url: str) -> Address:
    """`redis://[[user:]password@]host[:port][/database]` (`rediss`: over TLS; `valkey` and `valkeys` mean the same), or
    `unix:/path`. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"the scheme is one of {', '.join(SCHEMES)}")
    if parts.scheme == "unix":
        return Address(path=parts.path)
    if not parts.hostname:
        raise ValueError("it names no host")
    number = parts.path.strip("/") or "0"
    if not number.isdigit():
        raise ValueError("the database is a number")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Address(
        parts.hostname, parts.port or PORT, "", user, password, int(number), parts.scheme in ("rediss", "valkeys")
    )


def encoded(*words: str | bytes | int) -> bytes:
    """A command."""
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        out.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(out)


class _Link:
    """A connection that is open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._waiting: deque[asyncio.Future[Answer]] = deque()
        self.is_lost = False
        self._reading = asyncio.create_task(self._read(reader))

    async def ask(self, words: tuple[str | bytes | int, ...]) -> Answer:
        """Raises `Unavailable`, `Refused`."""
        if self.is_lost:
            raise Unavailable("it closed the connection")
        if len(self._waiting) >= MOST_WAITING:
            raise Unavailable("too many commands wait")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._writer.write(encoded(*words))
        return await future

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                answer = await read_answer(reader)
                future = self._waiting.popleft()
                if future.done():
                    continue
                if isinstance(answer, Refused):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        except (OSError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError) as error:
            self.lose(str(error) or "it closed the connection")

    def lose(self, why: str) -> None:
        self.is_lost = True
        self._writer.close()
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(Unavailable(why))

    async def close(self) -> None:
        self.lose("it is closed")
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


class Connection:
    """Opens itself when it is needed."""

    def __init__(self, where: Address) -> None:
        self._where = where
        self._opening = asyncio.Lock()
        self._link: _Link | None = None

    async def ask(self, *words: str | bytes | int) -> Answer:
        """Raises `Unavailable`, `Refused`."""
        link = None
        try:
            async with asyncio.timeout(WITHIN):
                link = await self._open()
                return await link.ask(words)
        except TimeoutError:
            if link is not None:
                link.lose("it answers too late")
            raise Unavailable("it answers too late") from None
        except OSError as error:
            raise Unavailable(str(error)) from None

    async def _open(self) -> _Link:
        async with self._opening:
            if self._link is None or self._link.is_lost:
                link = _Link(*await self._connect())
                try:
                    await self._greet(link)
                except BaseException:
                    link.lose("it was not let in")
                    raise
                self._link = link
            return self._link

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        where = self._where
        if where.path:
            return await asyncio.open_unix_connection(where.path, limit=MOST_ANSWER)
        secured = ssl.create_default_context() if where.is_secured else None
        return await asyncio.open_connection(where.host, where.port, ssl=secured, limit=MOST_ANSWER)

    async def _greet(self, link: _Link) -> None:
        where = self._where
        if where.password:
            await link.ask(("AUTH", *((where.user,) if where.user else ()), where.password))
        if where.database:
            await link.ask(("SELECT", where.database))

    async def close(self) -> None:
        if self._link is not None:
            await self._link.close()


async def read_answer(reader: asyncio.StreamReader, levels: int = 4) -> Answer:
    """Raises ValueError for what is no answer."""
    line = (await reader.readuntil(b"\r\n"))[:-2]
    kind, rest = line[:1], line[1:]
    if kind == b"+":
        return rest
    if kind == b"-":
        return Refused(rest.decode("utf-8", "replace"))
    if kind == b":":
        return int(rest)
    if kind == b"$":
        size = _size(rest, MOST_ANSWER)
        return None if size < 0 else (await reader.readexactly(size + 2))[:-2]
    if kind == b"*" and levels:
        return [await read_answer(reader, levels - 1) for _ in range(_size(rest, MOST_PARTS))]
    raise ValueError(f"no answer of RESP: {line[:40]!r}")


def _size(text: bytes, most: int) -> int:
    size = int(text)
    if size > most:
        raise ValueError(f"an answer of more than {most}")
    return size
