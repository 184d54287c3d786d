"""One call to the server, for one exchange: messages leave in their order, answers go to the direction they are about.

The call begins with the first message, and lives until the exchange ends or the server has no more to say. Two tasks
carry it, one for each way. Every failure ends in one reply (`failure`) for all that wait; a server that
ends its call in good order, while nothing waits for an answer, has nothing more to say: what follows passes as it is.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataplane.chain import structs
from dataplane.chain.calls import FOR_EVER, CallFailed, within
from dataplane.chain.ext_proc import messages
from dataplane.chain.ext_proc.modes import Modes, overridden
from dataplane.chain.grpc import StatusError, Stream
from dataplane.chain.grpc.opening import opened_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from google.protobuf.struct_pb2 import Struct

    from dataplane.chain.calls import Calls
    from dataplane.chain.filter import Env, Timer
    from dataplane.chain.reply import Reply
    from dataplane.exchange import Exchange
    from gatewright.wire.external import ext_proc_pb2 as pb

METHOD: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
DEADLINE: Final = 10.0
"""Seconds for the answer to a message, unless `http.requestTimeout` of the backend says other."""
MOST: Final = 4 * 1024 * 1024
"""Bytes of one message of the server (gRPC's usual bound)."""
MOST_QUEUED: Final = 65_536
"""Bytes that wait to be sent, from which on the source of content is asked to stop."""
MOST_METADATA: Final = 65_536
"""Bytes of `dynamic_metadata` in all answers of one call: the exchange keeps it to its end."""


class Server(Protocol):
    """Whom a session asks (`processor`)."""

    env: Env
    calls: Calls
    spawn: Callable[[Coroutine[Any, Any, None]], Any]
    modes: Modes
    backend: str
    origin: str

    def plan(self, x: Exchange) -> Any:  # as `Calls.plan`
        """Of the server, as policies want it spoken to. Raises `CallFailed`."""

    def attributes(self, x: Exchange) -> Mapping[str, Struct]:
        """What the first message has."""

    def noted(self, x: Exchange, metadata: Mapping[str, Any]) -> None:
        """An answer brought this (`dynamic_metadata`)."""

    def failed(self, error: CallFailed) -> Reply: ...

    def answers(self) -> None: ...


class Half(Protocol):
    """One direction of the exchange (`phases`)."""

    def headers_answered(self, common: pb.CommonResponse) -> bool:
        """False: no answer was due. Raises `CallFailed`."""
        ...

    def body_answered(self, common: pb.CommonResponse) -> bool: ...

    def trailers_answered(self, mutation: pb.HeaderMutation) -> bool: ...

    @property
    def waits(self) -> bool:
        """The server has all that it needs for its next answer."""

    @property
    def is_under_way(self) -> bool:
        """The server has something that is not answered yet."""

    def over(self, reply: Reply) -> None:
        """There will be no more answers, but this."""

    def sent(self) -> None:
        """Less waits to be sent than `MOST_QUEUED`."""


class Session:
    """`modes` may change (`overridden`); `failure`: what the client gets, once there is something; `is_over`: the
    server has nothing more to say."""

    __slots__ = (
        "_held",
        "_metadata_size",
        "_moved",
        "_of",
        "_queue",
        "_queued",
        "_reading",
        "_seconds",
        "_stream",
        "_timer",
        "_wake_writer",
        "failure",
        "halves",
        "is_over",
        "metadata",
        "modes",
        "x",
    )

    def __init__(self, of: Server, x: Exchange) -> None:
        self._of = of
        self.x = x
        self.modes: Modes = of.modes
        self.halves: dict[str, Half] = {}
        self.failure: Reply | None = None
        self.is_over = False
        self.metadata: dict[str, Any] = {}
        """What the server has said beside its answers (`dynamic_metadata`), as JSON has it."""
        self._metadata_size = 0
        self._stream: Stream | None = None
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._wake_writer: Any = None  # a future
        self._held = 0
        self._reading: Any = None  # the same
        self._seconds = DEADLINE
        self._moved = 0.0
        self._timer: Timer | None = None

    @property
    def is_open(self) -> bool:
        """More may be sent."""
        return self.failure is None and not self.is_over

    @property
    def is_full(self) -> bool:
        return self._queued >= MOST_QUEUED

    def send(self, message: pb.ProcessingRequest) -> None:
        """Queue a message: it leaves behind those before it."""
        if not self.is_open:
            return
        if self._stream is None:
            try:
                self._open(message)
            except CallFailed as error:
                self.fail(error)
                return
        data = message.SerializeToString()
        self._queue.append(data)
        self._queued += len(data)
        _wake(self._wake_writer)

    def _open(self, message: pb.ProcessingRequest) -> None:
        of, x = self._of, self.x
        messages.introduced(message, self.modes, of.attributes(x))
        plan = of.plan(x)
        self._seconds = within(plan, DEADLINE)
        # Its head may come with the first answer, which the server may give when it has seen the whole body.
        self._stream = Stream(opened_of(of.calls, plan, METHOD, x, FOR_EVER), MOST)
        self._moved = of.env.clock()
        of.spawn(self._write(self._stream))
        of.spawn(self._read(self._stream))

    async def _write(self, stream: Stream) -> None:
        while self.is_open:
            if not self._queue:
                self._wake_writer = self._of.env.make_future()
                await self._wake_writer
                continue
            data = self._queue.popleft()
            try:
                await stream.send(data)
            except CallFailed as error:
                if self.is_open and self._is_awaited:
                    self.fail(error)
                return
            was_full = self.is_full
            self._queued -= len(data)
            self.moved()
            if was_full and not self.is_full:
                for half in self.halves.values():
                    half.sent()

    async def _read(self, stream: Stream) -> None:
        try:
            while self.is_open:
                if self._held:
                    self._reading = self._of.env.make_future()
                    await self._reading
                    continue
                data = await stream.receive()
                if data is None:
                    self._server_ended()
                    return
                self._of.answers()
                self._answered(messages.read(data))
        except StatusError as error:
            self.fail(CallFailed("invalid", str(error)))
        except CallFailed as error:
            self.fail(error)
        except Exception as error:  # a bug in Gatewright ends in an answer
            self.fail(CallFailed("invalid", f"its answer could not be carried out: {type(error).__name__}"))
            raise

    @property
    def _is_awaited(self) -> bool:
        return any(half.is_under_way for half in self.halves.values())

    def _server_ended(self) -> None:
        if self._is_awaited:
            self.fail(CallFailed("lost", "it ended the call before it had answered"))
        else:
            self.is_over = True
            self._stop()

    def _answered(self, answer: pb.ProcessingResponse) -> None:
        if answer.HasField("dynamic_metadata"):
            self._note(answer.dynamic_metadata)
        kind = answer.WhichOneof("response")
        if kind is None:
            raise CallFailed("invalid", "an answer about nothing")
        if kind == "immediate_response":
            self.end_with(messages.reply(answer.immediate_response, self._of.origin))
            return
        direction, _, part = kind.partition("_")
        half = self.halves.get(direction)
        if half is None:
            raise CallFailed("invalid", f"an answer about {kind} that was not asked for")
        if part == "headers" and answer.HasField("mode_override"):
            self.modes = overridden(self.modes, answer.mode_override, direction == "response")
        said = getattr(answer, kind)
        if part == "trailers":
            was_asked = half.trailers_answered(said.header_mutation)
        elif part == "headers":
            was_asked = half.headers_answered(said.response)
        else:
            was_asked = half.body_answered(said.response)
        if not was_asked:
            raise CallFailed("invalid", f"an answer about {kind} that was not asked for")
        self.moved()

    def _note(self, metadata: Struct) -> None:
        self._metadata_size += metadata.ByteSize()
        if self._metadata_size > MOST_METADATA:
            raise CallFailed("invalid", f"more than {MOST_METADATA} bytes of dynamic_metadata")
        said = structs.plain(metadata)
        self.metadata.update(said)
        self._of.noted(self.x, said)

    def fail(self, error: CallFailed) -> None:
        """The server cannot be asked, or what it says cannot be carried out."""
        if self.is_open:
            self.end_with(self._of.failed(error))

    def end_with(self, reply: Reply) -> None:
        """The client gets this, as far as nothing else is out."""
        if not self.is_open:
            return
        self.failure = reply
        self._stop()
        for half in tuple(self.halves.values()):
            half.over(reply)

    def close(self) -> None:
        """The exchange has ended."""
        self.is_over = True
        self._stop()
        self.halves.clear()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._queue.clear()
        self._queued = 0
        _wake(self._wake_writer)
        _wake(self._reading)
        if self._stream is not None:
            self._stream.cancel()

    # --- what waits, and for how long

    def hold(self, held: bool) -> None:
        """The receiver of content takes no more for now: no answer is read; as often as it is held it is let go."""
        self._held += 1 if held else -1
        if not self._held:
            _wake(self._reading)
            self.moved()

    def moved(self) -> None:
        """Something was sent or said, or what is awaited has changed: the time of the next answer begins."""
        if not self.is_open:
            return
        self._moved = self._of.env.clock()
        if self._timer is None and self._is_due:
            self._timer = self._of.env.call_at(self._moved + self._seconds, self._look)

    @property
    def _is_due(self) -> bool:
        return not self._held and any(half.waits for half in self.halves.values())

    def _look(self) -> None:
        self._timer = None
        if not self.is_open or not self._is_due:
            return
        now = self._of.env.clock()
        if now >= self._moved + self._seconds:
            self.fail(CallFailed("timeout", f"no answer within {self._seconds:g} s"))
        else:
            self._timer = self._of.env.call_at(self._moved + self._seconds, self._look)

    def __repr__(self) -> str:
        return f"Session({'open' if self.is_open else 'over'})"


def _wake(future: Any) -> None:  # Any: a future or None
    if future is not None and not future.done():
        future.set_result(None)
