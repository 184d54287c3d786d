"""Channels over a real socket pair: messages with their descriptors, back-pressure, ends."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from dataplane.link import codec, messages
from dataplane.link.channel import Channel
from dataplane.link.messages import RESOURCE, Changes, Message, Record


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
        async with asyncio.timeout(5):
            while len(self.heard) < count and not self.ends:
                await self.news.wait()
                self.news.clear()
        return self.heard

    async def wait_for_end(self) -> list[str]:
        async with asyncio.timeout(5):
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
