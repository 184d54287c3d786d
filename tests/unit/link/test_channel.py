"""Channels over a real socket pair: messages with their descriptors, back-pressure, ends."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from typing import Any, cast

import pytest

from dataplane.link import codec, messages
from dataplane.link.channel import READ_BYTES, Channel
from dataplane.link.messages import RESOURCE, Changes, Message, Record
from tests.harness.patience import PATIENCE


class End:
    """One end, with what it heard."""

    def __init__(self, sock: socket.socket) -> None:
        self.heard: list[tuple[Message, int]] = []
        self.ends: list[str] = []
        self.news = asyncio.Event()
        self.channel = Channel(sock, self._hear, self._end)

    def _hear(self, message: Message, fd: int) -> None:
        self.heard.append((message, fd))
        self.news.set()

    def _end(self, reason: str) -> None:
        self.ends.append(reason)
        self.news.set()

    async def wait_for(self, count: int) -> list[tuple[Message, int]]:
        async with asyncio.timeout(PATIENCE):
            while len(self.heard) < count and not self.ends:
                await self.news.wait()
                self.news.clear()
        return self.heard

    async def wait_for_end(self) -> list[str]:
        async with asyncio.timeout(PATIENCE):
            while not self.ends:
                await self.news.wait()
                self.news.clear()
        return self.ends


def pair() -> tuple[End, End]:
    one, other = socket.socketpair()
    return End(one), End(other)


async def test_descriptors_arrive_with_their_messages() -> None:
    agent, worker = pair()
    pipes = [os.pipe() for _ in range(20)]
    for number, (reading, _) in enumerate(pipes):
        agent.channel.send(messages.Ping(number))
        agent.channel.send(messages.OpenBind(f"bind/{number}"), reading)
    heard = await worker.wait_for(40)
    assert [m.number for m, _ in heard if isinstance(m, messages.Ping)] == list(range(20))
    for number, (message, fd) in enumerate((m, fd) for m, fd in heard if isinstance(m, messages.OpenBind)):
        assert message.key == f"bind/{number}"
        os.write(pipes[number][1], b"%d" % number)
        assert os.read(fd, 10) == b"%d" % number
        assert not os.get_inheritable(fd)
        os.close(fd)
    for reading, writing in pipes:
        os.close(reading)
        os.close(writing)
    agent.channel.close()
    worker.channel.close()


async def test_every_descriptor_can_be_sent() -> None:
    """Also that of the standard input: a service manager may start processes without one."""
    agent, worker = pair()
    agent.channel.send(messages.OpenBind("a"), 0)
    ((_, fd),) = await worker.wait_for(1)
    assert os.path.sameopenfile(fd, 0)
    os.close(fd)
    agent.channel.close()
    worker.channel.close()


async def test_a_descriptor_that_waits_may_be_closed_by_its_owner() -> None:
    one, other = socket.socketpair()
    agent = End(one)
    agent.channel.send(Changes((Record(RESOURCE, "big", bytes(4_000_000)),)))  # nobody reads: what follows waits
    reading, writing = os.pipe()
    agent.channel.send(messages.OpenBind("bind/a"), reading)
    os.close(reading)
    stranger = os.dup(0)  # takes the number that became free
    worker = End(other)
    heard = await worker.wait_for(2)
    message, fd = heard[1]
    assert message == messages.OpenBind("bind/a")
    os.write(writing, b"x")
    assert os.read(fd, 1) == b"x"
    for each in (fd, writing, stranger):
        os.close(each)
    agent.channel.close()
    worker.channel.close()


class Broken:
    """A socket whose other end reads no more."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)

    def sendmsg(self, *_: object) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


class Woken(Broken):
    """A socket that is said to have something to read, once, when it has nothing."""

    def __init__(self, sock: socket.socket, error: type[OSError]) -> None:
        super().__init__(sock)
        self.left: list[OSError] = [error()]

    def recvmsg(self, *most: int) -> object:
        if self.left:
            raise self.left.pop()
        return self.sock.recvmsg(*most)


@pytest.mark.parametrize("error", [BlockingIOError, InterruptedError])
async def test_nothing_to_read_is_no_end_and_costs_no_descriptor(error: type[OSError]) -> None:
    one, other = socket.socketpair()
    agent, heard = End(one), asyncio.Queue[int]()
    worker = Channel(other, lambda _message, fd: heard.put_nowait(fd), lambda _reason: heard.put_nowait(-2), spare=2)
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    held = len(os.listdir("/proc/self/fd"))
    woken = Woken(other, error)
    worker._sock = cast(socket.socket, woken)
    agent.channel.send(messages.OpenBind("a"), 0)
    os.close(await asyncio.wait_for(heard.get(), PATIENCE))
    assert not woken.left and not complaints
    assert len(os.listdir("/proc/self/fd")) == held
    agent.channel.close()
    worker.close()


@pytest.mark.parametrize("error", [ConnectionResetError, OSError])
async def test_what_cannot_be_read_is_an_end_with_its_reason(error: type[OSError]) -> None:
    agent, worker = pair()
    woken = Woken(worker.channel._sock, error)
    woken.left = [error(errno.EIO, "Input/output error")]
    worker.channel._sock = cast(socket.socket, woken)
    agent.channel.send(messages.Ping(1))
    assert await worker.wait_for_end() == ["[Errno 5] Input/output error"]
    assert worker.heard == [] and worker.channel.is_closed
    agent.channel.close()


async def test_without_news_what_is_held_back_for_descriptors_stays_so() -> None:
    one, other = socket.socketpair()
    worker = Channel(other, lambda _message, _fd: None, lambda _reason: None, spare=2)
    held = len(os.listdir("/proc/self/fd"))
    worker._readable()
    assert len(os.listdir("/proc/self/fd")) == held
    worker.close()
    one.close()


async def test_what_cannot_be_sent_any_more_is_let_go_at_once() -> None:
    """The reading side tells of the end; until then nothing is kept, and nobody tries again and again."""
    agent, worker = pair()
    agent.channel._sock = cast(socket.socket, Broken(agent.channel._sock))
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        agent.channel.send(messages.OpenBind("a"), 0)
        agent.channel.send_all([messages.Ping(1)])
    assert set(os.listdir("/proc/self/fd")) == before and not agent.channel._is_writing
    assert agent.ends == [] and not agent.channel.is_closed
    worker.channel.close()
    assert await agent.wait_for_end() == [""] and agent.channel.is_closed


async def test_descriptors_that_never_were_sent_are_closed() -> None:
    one, other = socket.socketpair()
    agent = End(one)
    agent.channel.send(Changes((Record(RESOURCE, "big", bytes(4_000_000)),)))
    reading, writing = os.pipe()
    agent.channel.send(messages.OpenBind("bind/a"), reading)
    os.close(reading)
    agent.channel.close()
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"x")
    os.close(writing)
    other.close()


async def test_a_state_larger_than_any_buffer_arrives_whole() -> None:
    agent, worker = pair()
    state = [Record(RESOURCE, f"route/{i}", os.urandom(2000)) for i in range(2000)]
    for changes in codec.chunked(state):
        agent.channel.send(changes)
    agent.channel.send(messages.StateEnd(1))
    count = len(list(codec.chunked(state))) + 1
    heard = await worker.wait_for(count)
    assert heard[-1][0] == messages.StateEnd(1)
    assert [r for message, _ in heard if isinstance(message, Changes) for r in message.records] == state
    socket_of_agent = agent.channel._sock.fileno()
    assert not asyncio.get_running_loop().remove_writer(socket_of_agent), "nothing waits, and still it is asked"
    agent.channel.close()
    worker.channel.close()


async def test_the_end_is_told_once_after_the_last_message() -> None:
    agent, worker = pair()
    agent.channel.send(messages.Ping(1))
    agent.channel.close()
    assert await worker.wait_for_end() == [""]
    assert worker.heard == [(messages.Ping(1), -1)]
    worker.channel.send(messages.Pong(1))
    assert agent.ends == []


async def test_nonsense_ends_the_link_with_a_reason() -> None:
    one, other = socket.socketpair()
    worker = End(other)
    one.send(b"GET / HTTP/1.1\r\n\r\n")
    assert "frame of" in (await worker.wait_for_end())[0]
    one.close()


async def test_a_descriptor_that_is_missing_ends_the_link() -> None:
    one, other = socket.socketpair()
    worker = End(other)
    one.send(codec.encode(messages.OpenBind("bind/a")))
    assert "without its descriptor" in (await worker.wait_for_end())[0]
    assert worker.heard == []
    one.close()


async def test_descriptors_that_nobody_asked_for_are_closed_with_the_link() -> None:
    one, other = socket.socketpair()
    worker = End(other)
    reading, writing = os.pipe()
    socket.send_fds(one, [codec.encode(messages.Ping(1))], [reading])
    os.close(reading)
    await worker.wait_for(1)
    worker.channel.close()
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"x")
    os.close(writing)
    one.close()


def pings(sizes: list[int]) -> list[Message]:
    """Messages of about so many bytes each."""
    return [Changes((Record(RESOURCE, f"route/{number}", b"x" * size),)) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    "sizes",
    [[], [0], [1] * 5000, [READ_BYTES // 2] * 9, [READ_BYTES] * 3, [3 * READ_BYTES, 1, 1, 2 * READ_BYTES, 1]],
    ids=["none", "one", "small", "halves", "whole", "mixed"],
)
async def test_all_of_many_messages_arrive_in_their_order(sizes: list[int]) -> None:
    agent, worker = pair()
    sent = pings(sizes)
    agent.channel.send_all(iter(sent))
    agent.channel.send(messages.Ping(7))
    heard = await worker.wait_for(len(sent) + 1)
    assert [message for message, _ in heard] == [*sent, messages.Ping(7)]
    agent.channel.close()
    agent.channel.send_all(sent)  # nothing happens
    worker.channel.close()


async def test_a_descriptor_arrives_although_the_process_has_none_left() -> None:
    """One is held back for it, time and again."""
    one, other = socket.socketpair()
    sender, heard = Channel(one, lambda _message, _fd: None, lambda _reason: None), asyncio.Queue[int]()
    receiver = Channel(other, lambda _message, fd: heard.put_nowait(fd), lambda _reason: None, spare=1)
    reading, writing = os.pipe()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for _ in range(3):
        sender.send(messages.OpenBind("bind/a"), reading)
        free = os.dup(reading)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            fd = await asyncio.wait_for(heard.get(), PATIENCE)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert os.fstat(fd).st_ino == os.fstat(reading).st_ino
        os.close(fd)
        sender.send(messages.Ping(1))
        assert await asyncio.wait_for(heard.get(), PATIENCE) == -1
    for each in (sender, receiver):
        each.close()
    os.close(reading)
    os.close(writing)


async def test_the_loop_forgets_a_channel_that_is_closed_while_it_writes() -> None:
    one, other = socket.socketpair()
    end, fd, loop = End(one), one.fileno(), asyncio.get_running_loop()
    end.channel.send_all(pings([1 << 20] * 8))
    assert loop.remove_writer(fd), "the other end does not read"
    loop.add_writer(fd, lambda: None)
    end.channel.close()
    assert not loop.remove_writer(fd) and not loop.remove_reader(fd) and end.ends == []
    other.close()


class Counted(Broken):
    """A socket that notes how much is written at a time."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.sizes: list[int] = []

    def sendmsg(self, *given: Any) -> int:
        self.sizes.append(len(given[0][0]))
        return self.sock.sendmsg(*given)


async def test_small_messages_travel_together_up_to_what_is_read_at_a_time() -> None:
    one, other = socket.socketpair()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * READ_BYTES)
    counted = Counted(one)
    agent, worker = End(cast(socket.socket, counted)), End(other)
    agent.channel.send_all([messages.Ping(number) for number in range(100)])
    assert counted.sizes == [100 * len(codec.encode(messages.Ping(1))) + 90]  # two digits have one byte more
    assert len(await worker.wait_for(100)) == 100
    counted.sizes.clear()
    frame = len(codec.encode(pings([0])[0]))
    agent.channel.send_all(pings([READ_BYTES // 2 - frame, READ_BYTES // 2 - frame]))
    agent.channel.send_all(pings([READ_BYTES // 2 - frame, READ_BYTES // 2 - frame + 1]))
    await worker.wait_for(104)
    half = READ_BYTES // 2
    assert counted.sizes[0] == READ_BYTES and sum(counted.sizes) == 2 * READ_BYTES + 1
    assert counted.sizes[1:] == [half, half + 1]
    for each in (agent, worker):
        each.channel.close()
