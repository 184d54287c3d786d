"""A link's socket and the event loop: sends messages with their descriptors, calls back for those that arrive.

The shell around `link/codec`, the same at both ends. A Unix stream socket keeps descriptors in step with bytes: each is
sent with the first bytes of its frame, so the n-th descriptor belongs to the n-th message that carries one.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable

from dataplane.link import codec
from dataplane.link.messages import Message

READ_BYTES = 128 * 1024
MAX_FDS = 16
"""Descriptors taken with one read; the kernel would drop more."""

OnMessage = Callable[[Message, int], None]
"""Called with a message and its descriptor, which is then the receiver's (-1 when the message carries none)."""


class Channel:
    """One end of a link. `on_end` is called once, when the other end is gone or talks nonsense (then with a reason).

    `spare`: descriptors held back, so that so many still arrive when traffic has used up all others. The kernel drops
    those above the limit of the process.
    """

    def __init__(
        self, sock: socket.socket, on_message: OnMessage, on_end: Callable[[str], None], spare: int = 0
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._on_message, self._on_end = on_message, on_end
        self._loop = asyncio.get_running_loop()
        self._decoder = codec.Decoder()
        self._fds: deque[int] = deque()
        self._spare = [os.dup(sock.fileno()) for _ in range(spare)]
        self._spares = spare
        self._waiting: deque[tuple[memoryview, int]] = deque()
        self._is_writing = False
        self.is_closed = False
        self._loop.add_reader(sock.fileno(), self._readable)

    def send(self, message: Message, fd: int = -1) -> None:
        """Send now or when the other end reads again. `fd` stays the caller's, who may close it at once."""
        if self.is_closed:
            return
        assert (fd >= 0) == message.carries_fd
        self._waiting.append((memoryview(codec.encode(message)), os.dup(fd) if fd >= 0 else -1))
        if not self._is_writing:
            self._writable()

    def send_all(self, messages: Iterable[Message]) -> None:
        """As `send` for each of them; none carries a descriptor. Small ones travel together: every write wakes the
        other end, which then has to be asked for the processor back."""
        if self.is_closed:
            return
        together = b""
        for frame in map(codec.encode, messages):
            if together and len(together) + len(frame) > READ_BYTES:
                self._waiting.append((memoryview(together), -1))
                together = b""
            together += frame
        self._waiting.append((memoryview(together), -1))
        if not self._is_writing:
            self._writable()

    def close(self) -> None:
        """Close without `on_end`. What waits is not sent."""
        if self.is_closed:
            return
        self.is_closed = True
        self._loop.remove_reader(self._sock.fileno())
        self._stop_writing()
        self._forget_waiting()
        while self._fds:
            os.close(self._fds.popleft())
        while self._spare:
            os.close(self._spare.pop())
        self._sock.close()

    def _end(self, reason: str) -> None:
        if not self.is_closed:
            self.close()
            self._on_end(reason)

    def _free_descriptor(self) -> None:
        """For the one descriptor that a read may bring. What was given up before is taken back when that is
        possible."""
        if self._spare:
            os.close(self._spare.pop())

    def _hold_back(self) -> None:
        with contextlib.suppress(OSError):  # there is none left: the next read tries again
            while len(self._spare) < self._spares:
                self._spare.append(os.dup(self._sock.fileno()))

    def _readable(self) -> None:
        self._free_descriptor()
        try:
            data, ancillary, _, _ = self._sock.recvmsg(READ_BYTES, socket.CMSG_SPACE(MAX_FDS * 4), CLOEXEC)
        except (BlockingIOError, InterruptedError):
            self._hold_back()
            return
        except OSError as error:
            self._end(str(error))
            return
        self._fds.extend(_descriptors(ancillary))
        self._hold_back()
        if not data:
            self._end("")
            return
        try:
            for message in self._decoder.feed(data):
                self._deliver(message)
        except codec.LinkError as error:
            self._end(str(error))

    def _deliver(self, message: Message) -> None:
        if self.is_closed:
            return
        if not message.carries_fd:
            self._on_message(message, -1)
            return
        if not self._fds:
            raise codec.LinkError(f"{type(message).__name__} came without its descriptor")
        self._on_message(message, self._fds.popleft())

    def _writable(self) -> None:
        while self._waiting:
            data, fd = self._waiting.popleft()
            try:
                sent = self._sock.sendmsg([data], _rights(fd))
            except (BlockingIOError, InterruptedError):
                self._waiting.appendleft((data, fd))
                break
            except OSError:
                # The reading side reports the end, once, after what the other end still said.
                self._waiting.appendleft((data, fd))
                self._forget_waiting()
                break
            if fd >= 0:
                os.close(fd)  # it travels with the first byte
            if sent < len(data):
                self._waiting.appendleft((data[sent:], -1))
        if self._waiting and not self._is_writing:
            self._is_writing = True
            self._loop.add_writer(self._sock.fileno(), self._writable)
        elif not self._waiting:
            self._stop_writing()

    def _forget_waiting(self) -> None:
        while self._waiting:
            _, fd = self._waiting.popleft()
            if fd >= 0:
                os.close(fd)

    def _stop_writing(self) -> None:
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._sock.fileno())


CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
"""Descriptors that arrive are not for programs that are started, where the system knows how to say so."""


def _rights(fd: int) -> list[tuple[int, int, array.array[int]]]:
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))] if fd >= 0 else []


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)
