"""Who hears what a server says over one channel, where HTTP would have an answer for each request: the standard output
of a process, the one stream of the older protocol. No I/O; the answer to a request goes to the one that asked, what the
server says beside that to the one that it concerns, or to any that is there.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final, Protocol

from msgspec import Raw

from dataplane.mcp import messages
from dataplane.mcp.messages import INTERNAL_ERROR, INVALID_REQUEST, Id, Malformed, Message

MAX_UNHEARD: Final = 256
"""Messages that had no listener; then the server has to wait."""
MAX_UNHEARD_BYTES: Final = 1024 * 1024
"""Bytes of them."""
MAX_WAITING: Final = 256
"""Requests that a server has not answered."""
MAX_NOISE: Final = 1000
"""Lines in a row that are no messages, or answers to what was not asked."""


BOUND: Final = "maxAnswerSize"
"""In the data of an error: the bound that an answer was above."""

_ID: Final = rb'(?P<id>"(?:[^"\\]|\\.)*+"|-?\d+)\s*'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
_BEGINS: Final = re.compile(rb'\s*\{\s*(?:%b,\s*)?(?:"id"\s*:\s*%b,\s*)?"(?P<next>\w+)"' % (_VERSION, _ID)).match
_ENDS: Final = re.compile(rb'[\]}",\w]\s*,\s*"id"\s*:\s*%b(?:,\s*%b)?\}\s*$' % (_ID, _VERSION)).search
"""Where libraries write the id of an answer."""


class TooMuchNoise(Exception):
    """Of what the server says nothing means anything any more."""


class Busy(Exception):
    """The server has too many requests to answer."""


class Listener(Protocol):
    """An answer of HTTP on its way to a client."""

    @property
    def is_behind(self) -> bool:
        """It takes no more for now: the server has to wait."""
        ...

    def hear(self, text: bytes, last: bool) -> None:
        """A message; `last`: it is the answer that was waited for."""
        ...

    def leave(self) -> None:
        """Nothing more will come."""
        ...


class Dialogue:
    """Of one session."""

    def __init__(self) -> None:
        self._waiting: dict[Id, Listener] = {}
        self._tokens: dict[Id, Id] = {}
        """Token of progress to the request that it is for."""
        self._stream: Listener | None = None
        """Who listens to what is said beside answers."""
        self._unheard: deque[bytes] = deque()
        self._unheard_bytes = 0
        self._noise = 0

    @property
    def is_idle(self) -> bool:
        return not self._waiting and self._stream is None

    @property
    def is_full(self) -> bool:
        """The server has to wait until somebody listens, or takes what was said."""
        if len(self._unheard) >= MAX_UNHEARD or self._unheard_bytes >= MAX_UNHEARD_BYTES:
            return True
        stream = self._stream
        return (stream is not None and stream.is_behind) or any(each.is_behind for each in self._waiting.values())

    # --- listeners

    def ask(self, message: Message, listener: Listener) -> None:
        """A request that is sent. Raises `Malformed` where its id is that of one which is not answered yet; `Busy`."""
        request_id = message.request_id
        assert request_id is not None  # it is a request
        if request_id in self._waiting:
            raise Malformed(INVALID_REQUEST, "a request with this id is not answered yet", request_id)
        if len(self._waiting) >= MAX_WAITING:
            raise Busy
        self._waiting[request_id] = listener
        token = _token(message)
        if token is not None:
            self._tokens[token] = request_id
        self._catch_up(listener)

    def cancel(self, message: Message) -> None:
        """A client's `notifications/cancelled` that is sent: the request does not wait any more."""
        cancelled = messages.id_of(messages.object_of(message.params).get("requestId"))
        listener = self._waiting.get(cancelled) if cancelled is not None else None
        if listener is not None:
            self.forget(listener)
            listener.leave()

    def open(self, listener: Listener) -> None:
        """It listens to what is said beside answers, in place of the listener before."""
        before, self._stream = self._stream, listener
        if before is not None:
            before.leave()
        self._catch_up(listener)

    def forget(self, listener: Listener) -> None:
        """It is gone."""
        if self._stream is listener:
            self._stream = None
        for request_id in [key for key, each in self._waiting.items() if each is listener]:
            del self._waiting[request_id]
            for token in [key for key, owner in self._tokens.items() if owner == request_id]:
                del self._tokens[token]

    def end(self) -> None:
        """The server is gone."""
        listeners = {id(each): each for each in (*self._waiting.values(), self._stream) if each is not None}
        self._waiting, self._tokens, self._stream = {}, {}, None
        for each in listeners.values():
            each.leave()

    def _catch_up(self, listener: Listener) -> None:
        while self._unheard:
            listener.hear(self._unheard.popleft(), False)
        self._unheard_bytes = 0

    # --- what the server says

    def say(self, text: bytes) -> None:
        """A line of it. Raises `TooMuchNoise`."""
        try:
            message = messages.read(text)
        except Malformed:
            self._make_noise()
            return
        if message.is_response:
            self._answered(message, text)
            return
        self._noise = 0
        listener = self._concerned(message)
        if listener is None:
            self._unheard.append(text)
            self._unheard_bytes += len(text)
        else:
            listener.hear(text, False)

    def _answered(self, message: Message, text: bytes) -> None:
        request_id = message.request_id
        listener = self._waiting.get(request_id) if request_id is not None else None
        if listener is None:
            self._make_noise()  # somebody who has left
            return
        self._noise = 0
        self.forget(listener)
        listener.hear(text, True)

    def lose(self, beginning: bytes, end: bytes, text: str, data: object) -> None:
        """A message was too long to be read; the two ends of it are there. The request that waits for it gets an error
        instead; where its id stands in neither end, all who wait, since one of them would wait for ever. Raises
        `TooMuchNoise`."""
        begins = _BEGINS(beginning)
        if begins is not None and begins["next"] in (b"method", b"params"):
            self._make_noise()  # the server's own: no request waits for it
            return
        ends = _ENDS(end)
        found = (begins and begins["id"]) or (ends and ends["id"])
        request_id = messages.id_of(Raw(found)) if found else None
        lost = [request_id] if request_id is not None else [*self._waiting]
        listeners = [(each, self._waiting[each]) for each in lost if each in self._waiting]
        if not listeners:
            self._make_noise()
        for each, listener in listeners:
            self.forget(listener)
            listener.hear(messages.error(each, INTERNAL_ERROR, text, data), True)

    def _make_noise(self) -> None:
        self._noise += 1
        if self._noise > MAX_NOISE:
            raise TooMuchNoise

    def _concerned(self, message: Message) -> Listener | None:
        """Progress goes to the request that it is for. A request of the server's own comes of what it works on, so it
        goes to the newest request first; other things to the stream first."""
        newest = next(reversed(self._waiting.values()), None)
        if message.is_request:
            return newest or self._stream
        if message.method == "notifications/progress":
            token = messages.id_of(messages.object_of(_params(message)).get("progressToken"))
            concerned = self._waiting.get(self._tokens[token]) if token in self._tokens else None
            if concerned is not None:
                return concerned
        return self._stream or newest

    def __repr__(self) -> str:
        return f"Dialogue({len(self._waiting)} waiting, {len(self._unheard)} unheard)"


def envelope(message: Message) -> bytes:
    """What a dialogue reads of a message that is sent, as a message: whose its answer is and its progress, or what it
    withdraws."""
    if message.is_response:
        return messages.encode(Message("2.0", message.id, result=Raw(b"{}")))
    params: dict[str, object] = {}
    token, withdrawn = _token(message), messages.object_of(_params(message)).get("requestId")
    if token is not None:
        params["_meta"] = {"progressToken": token}
    if withdrawn is not None and messages.id_of(withdrawn) is not None:
        params["requestId"] = withdrawn
    return messages.encode(Message("2.0", message.id, message.method, messages.raw(params)))


def _params(message: Message) -> Raw:
    """{} for params that are no object: they are the client's to judge."""
    params = message.params
    return params if isinstance(params, Raw) and bytes(params)[:1] == b"{" else Raw(b"{}")


def _token(message: Message) -> Id | None:
    meta = messages.object_of(_params(message)).get("_meta")
    if meta is None or bytes(meta)[:1] != b"{":
        return None
    return messages.id_of(messages.object_of(meta).get("progressToken"))
