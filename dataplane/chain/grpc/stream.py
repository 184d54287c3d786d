"""A stream of messages, both ways at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.chain.calls import CallFailed
from dataplane.chain.grpc import status
from dataplane.chain.grpc.frames import Messages, framed

if TYPE_CHECKING:
    from dataplane.chain.calls import Call, CallAnswer


class Stream:
    """Over a call that is open (`opened` without a message). Who made it ends it by `cancel`, in a `finally`. One may
    send while another receives; each direction has one of them."""

    __slots__ = ("_call", "_head", "_is_over", "_messages")

    def __init__(self, call: Call, most: int) -> None:
        """`most`: bytes of one message of the server."""
        self._call = call
        self._messages = Messages(most)
        self._head: CallAnswer | None = None
        self._is_over = False

    async def send(self, message: bytes) -> None:
        """Waits while the server takes no more. Raises `CallFailed`, also when the server has ended the call."""
        await self._call.send(framed(message))

    async def end(self) -> None:
        """There are no more messages from here. Raises `CallFailed`."""
        await self._call.end()

    async def receive(self) -> bytes | None:
        """The next message; None: the server has ended the call, and well. Raises `StatusError` where it ended it
        otherwise, and `CallFailed`."""
        if self._is_over:
            return None
        if self._head is None:
            self._head = await self._call.head()
            status.check_head(self._head)
        while (message := self._messages.next()) is None:
            data = await self._call.receive()
            if not data:
                self._end(self._head)
                return None
            self._messages.feed(data)
        return message

    def _end(self, head: CallAnswer) -> None:
        self._is_over = True
        status.check_end(head, self._call.trailers)
        if not self._messages.is_empty:
            raise CallFailed("invalid", "the answer ended within a message")

    @property
    def trailers(self) -> bytes:
        """Lines, once `receive` has answered None or raised `StatusError`."""
        return self._call.trailers

    def cancel(self) -> None:
        """Give the call up. No error when it is over."""
        self._call.cancel()
