"""Sessions with servers that are processes: one process for each, and how many there may be.

A process ends with its session: when that is deleted, when it was not used for a while, when place is needed for
another one. One that ends by itself takes its session with it; the next request opens a new one. A start that fails is
tried again with growing pauses (`pauses`); requests wait for these.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from dataplane.link.commands import Command
from dataplane.mcp.dialogue import BOUND, Dialogue, TooMuchNoise
from dataplane.stdio.lines import Cut
from dataplane.stdio.pauses import Cause, Pauses
from dataplane.stdio.process import ServerProcess

log = logging.getLogger("dataplane.stdio")

MOST: Final = 256
"""Processes at a time."""
MOST_OF_ONE: Final = 64
"""Those of one server."""
STARTING: Final = 4
"""Those of one server that have not answered `initialize` yet; others wait."""
IDLE: Final = 1800.0
"""Seconds without a request after which a session is over."""
STABLE: Final = 10.0
"""A process that ends sooner, and was asked nothing, counts as a start that failed."""
LONGEST_WAIT: Final = 2.0
"""Seconds that a new session waits for such pauses; for a longer one it is refused at once, so that a server that does
not start keeps neither lists nor `initialize` of other targets waiting."""


class Unavailable(Exception):
    """There is no process for a new session. The text says why."""


class Session:
    """`dialogue` hears what the process says; `cause`: of a failure of its start; `starting`: where it has its place
    until it has begun."""

    def __init__(
        self,
        process: ServerProcess,
        cause: Cause,
        starting: asyncio.Semaphore,
        clock: Callable[[], float],
        client: bytes = b"",
    ) -> None:
        self.id = secrets.token_hex(16)
        self.client = client
        """Whose it is (`link/sources`), as the worker says."""
        self.process = process
        self.cause = cause
        self.starting = starting
        self.dialogue = Dialogue()
        self.may_read = asyncio.Event()
        """Set when somebody listens, or took what it was given."""
        self.began = self.used = clock()
        self.is_begun = False
        self.was_asked = False
        """It got something beside its beginning."""
        self.is_over = False

    async def listen(self) -> None:
        """Until the process says no more."""
        name = {"server": self.process.command.name, "pid": self.process.pid}
        try:
            while (line := await self.process.line()) is not None:
                if isinstance(line, Cut):
                    self._lost(line)
                else:
                    self.dialogue.say(line)
                while self.dialogue.is_full:
                    self.may_read.clear()
                    await self.may_read.wait()
        except ValueError:
            log.error("server writes a line without end and is ended", extra={"fields": name})
        except TooMuchNoise:
            log.error("server writes what are no messages and is ended", extra={"fields": name})

    def _lost(self, line: Cut) -> None:
        """A message that is too long: the request that waits for it gets an error. Raises `TooMuchNoise`."""
        command = self.process.command
        log.error(
            "server wrote a line of more than %d bytes (mcp.maxAnswerSize), which is left out",
            command.max_line,
            extra={"fields": {"server": command.name, "pid": self.process.pid}},
        )
        text = f"MCP server {command.name}: its answer has more than {command.max_line} bytes (mcp.maxAnswerSize)"
        self.dialogue.lose(line.beginning, line.end, text, {BOUND: command.max_line})


class Sessions:
    """All of them. `report` as of `ServerProcess`."""

    def __init__(self, report: Callable[[bool, int], None], full: Callable[[], None]) -> None:
        """`report`: called with each process group that begins (True) or has ended; `full`: whenever there was no place
        for one more process, whether or not one was made."""
        self._report, self._full = report, full
        self._clock = asyncio.get_running_loop().time
        self.commands: dict[str, Command] = {}
        """By digest."""
        self._open: dict[str, Session] = {}
        self._processes: set[ServerProcess] = set()
        """All that were started and have not ended."""
        self._spares: dict[str, ServerProcess] = {}
        self._pauses = Pauses(self._clock)
        self._starting: dict[str, asyncio.Semaphore] = {}
        """By digest: a server that is slow to start keeps no other one waiting."""
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, commands: dict[str, Command]) -> None:
        """Sessions of servers that are not there any more end."""
        self.commands = commands
        for session in [each for each in self._open.values() if each.process.command.digest not in commands]:
            self.end(session)
        for digest in [each for each in self._spares if each not in commands]:
            self._let_end(self._spares.pop(digest))
        self._starting = {digest: self._starting.get(digest, asyncio.Semaphore(STARTING)) for digest in commands}

    def of(self, digest: str, session_id: str) -> Session | None:
        session = self._open.get(session_id)
        if session is None or session.process.command.digest != digest or not session.process.is_alive:
            return None
        session.used = self._clock()
        return session

    async def begin(self, command: Command, hello: bytes = b"", client: bytes = b"") -> Session:
        """A session that nothing was said in yet. Say `has_begun` when its server has answered, or `end` it. `hello`: a
        digest of what its client says at the beginning. Raises `Unavailable`."""
        cause = Cause(command.digest, hello)
        starting = await self._place_to_start(command, cause)
        try:
            process = self._spares.pop(command.digest, None)
            if process is None or not process.is_alive:
                process = await self._started(command)
        except BaseException:
            starting.release()
            raise
        session = Session(process, cause, starting, self._clock, client)
        self._open[session.id] = session
        self._spawn(self._follow(session))
        return session

    async def _place_to_start(self, command: Command, cause: Cause) -> asyncio.Semaphore:
        """One of `STARTING` places, when there is one and the pause is over; no place is kept during a pause. Raises
        `Unavailable` where that is too long."""
        latest = self._clock() + LONGEST_WAIT
        starting = self._starting.get(command.digest)
        if starting is None:
            raise Unavailable("it is configured no more")
        while True:
            await starting.acquire()
            wait = self._pauses.left(cause)
            if not wait:
                return starting
            starting.release()
            if self._clock() + wait > latest:
                raise Unavailable(f"its processes end at once; the next may be started in {wait:.1f} s")
            await asyncio.sleep(wait)

    def asked(self, session: Session) -> None:
        """Its client wants something of it: it has started, whatever becomes of it now."""
        session.was_asked = True
        self._pauses.succeeded(session.cause)

    def has_begun(self, session: Session) -> None:
        """Its server has answered `initialize`."""
        if session.is_begun:
            return
        session.is_begun = True
        session.starting.release()
        command = session.process.command
        if command.keeps_one and command.digest not in self._spares:
            self._spawn(self._spare(command))

    def end(self, session: Session) -> None:
        """The session, and its process."""
        if self._open.pop(session.id, None) is None:
            return
        if not session.is_begun:
            session.is_begun = True
            session.starting.release()
        session.is_over = True
        session.dialogue.end()
        session.may_read.set()
        self._let_end(session.process)

    async def _follow(self, session: Session) -> None:
        await session.listen()
        if session.id in self._open:  # it was not ended from here
            self._note_end(session)
            self.end(session)

    def _note_end(self, session: Session) -> None:
        """It ended by itself. Whether that was a start that failed: it had no request yet."""
        command, lived = session.process.command, self._clock() - session.began
        fields = {"server": command.name, "pid": session.process.pid, "after": f"{lived:.1f}s"}
        if lived >= STABLE:
            self._pauses.succeeded(session.cause)
        elif not session.was_asked:
            fields["pause"] = f"{self._pauses.failed(session.cause):g}s"
        log.error("server ended unexpectedly", extra={"fields": fields})

    async def _started(self, command: Command) -> ServerProcess:
        self._make_place(command)
        process = ServerProcess(command, self._report)
        self._processes.add(process)
        try:
            await process.start()
        except (OSError, ValueError) as error:
            self._processes.discard(process)
            why = f"{command.cmd}: {getattr(error, 'strerror', None) or error}"
            log.error("server cannot be started: %s", why, extra={"fields": {"server": command.name}})
            raise Unavailable(f"it cannot be started: {why}") from None
        return process

    def _make_place(self, command: Command) -> None:
        """Where there are as many processes as may be, a session that is idle makes place: of the client that has most,
        the one that was idle longest. So who begins many ends its own. Raises `Unavailable`."""
        of_one = sum(each.command.digest == command.digest for each in self._processes)
        if len(self._processes) < MOST and of_one < MOST_OF_ONE:
            return
        self._full()
        same = of_one >= MOST_OF_ONE
        idle = [
            each
            for each in self._open.values()
            if each.dialogue.is_idle and (not same or each.process.command.digest == command.digest)
        ]
        if not idle:
            raise Unavailable("there are as many processes as there may be, and all are used")
        of_client = Counter(each.client for each in self._open.values())
        goes = min(idle, key=lambda each: (-of_client[each.client], each.used))
        log.info(
            "a session makes place for another one: its client has most", extra={"fields": _fields(goes, of_client)}
        )
        self.end(goes)

    async def _spare(self, command: Command) -> None:
        with suppress(Unavailable):
            process = await self._started(command)
            before = self._spares.get(command.digest)
            if before is not None or command.digest not in self.commands:
                self._let_end(process)
            else:
                self._spares[command.digest] = process

    # --- the end

    def _let_end(self, process: ServerProcess) -> None:
        self._spawn(self._ended(process))

    async def _ended(self, process: ServerProcess) -> None:
        await process.end()
        self._processes.discard(process)

    def sweep(self) -> None:
        """End sessions that were not used for `IDLE` seconds."""
        late = self._clock() - IDLE
        for session in [each for each in self._open.values() if each.used < late and each.dialogue.is_idle]:
            self.end(session)

    async def close(self) -> None:
        """End everything."""
        self.take({})
        while self._tasks:
            await asyncio.wait(self._tasks)

    def kill(self) -> None:
        """At once."""
        for process in self._processes:
            process.kill()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _fields(session: Session, of_client: Counter[bytes]) -> dict[str, object]:
    return {
        "server": session.process.command.name,
        "client": session.client.decode("latin-1") or "unknown",
        "sessions": of_client[session.client],
    }
