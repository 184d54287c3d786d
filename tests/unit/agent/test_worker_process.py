"""One worker as the agent knows it: what it says changes what is known, and its end is heard of."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from dataplane.agent.process import WorkerProcess
from dataplane.link import messages
from dataplane.link.messages import Message
from tests.fakes.memory_workers import ScriptedWorker, ScriptedWorkers, silent
from tests.fakes.moved_loop import moved


class Life:
    """A worker that says what the test has it say, and how often something was heard of it."""

    def __init__(self) -> None:
        self.heard = 0
        self.launch = ScriptedWorkers(silent)
        self.process = WorkerProcess(3, self._on_news)

    def _on_news(self, process: WorkerProcess) -> None:
        assert process is self.process
        self.heard += 1

    async def start(self) -> ScriptedWorker:
        await self.process.start(self.launch)
        return self.launch.born[0]

    async def said(self, *words: Message) -> None:
        for word in words:
            self.launch.born[0].say(word)
        await asyncio.sleep(0.01)

    async def end(self, status: int = 0) -> int:
        self.launch.born[0].end(status)
        return await self.process.ended()


@moved
async def test_each_word_is_a_sign_of_life_and_an_answer_is_to_its_question() -> None:
    life = Life()
    process = life.process
    await life.start()
    began = process.started
    assert process.last_pong == began
    first, second = process.ping(), process.ping()
    assert first != second and not process.has_answered(first)
    await asyncio.sleep(5)
    await life.said(messages.Pong(first))
    assert process.has_answered(first) and not process.has_answered(second)
    assert process.last_pong == pytest.approx(began + 5, abs=0.1)
    await asyncio.sleep(5)
    await life.said(messages.BindOpened("bind/a"))
    assert process.last_pong == pytest.approx(began + 10, abs=0.1) and not process.has_answered(second)
    process.excuse(7.0)
    assert process.started == pytest.approx(began + 7, abs=0.1)
    assert process.last_pong == pytest.approx(began + 17, abs=0.1)
    await life.end()


@moved
async def test_a_question_between_two_pings_answers_none_of_them() -> None:
    life = Life()
    process, worker = life.process, await life.start()
    await life.said(messages.Pong(process.ping()))
    asked = asyncio.create_task(process.dump())
    await asyncio.sleep(0.01)
    ping = process.ping()
    assert not process.has_answered(ping)
    (question,) = [each.number for each in worker.heard if isinstance(each, messages.DumpRequest)]
    await life.said(messages.DumpAnswer(question, {"a": 1}))
    assert await asked == {"a": 1} and not process.has_answered(ping)
    await life.said(messages.Pong(ping))
    assert process.has_answered(ping)
    await life.end()


@moved
async def test_a_worker_that_says_what_only_the_agent_may_is_killed() -> None:
    life = Life()
    await life.start()
    await life.said(messages.Drain(1.0, 2.0))
    assert life.process.is_condemned and "Drain" in life.process.trouble and life.launch.born[0].is_killed
    await life.process.ended()


@moved
async def test_a_descriptor_that_a_worker_sends_is_closed() -> None:
    life = Life()
    worker = await life.start()
    reading, writing = os.pipe()
    worker.channel.send(messages.OpenBind("bind/a"), reading)
    os.close(reading)
    await asyncio.sleep(0.01)
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"x")
    os.close(writing)
    assert life.process.is_condemned and "OpenBind" in life.process.trouble
    await life.process.ended()


@moved
async def test_a_worker_that_cannot_be_started_leaves_no_descriptor() -> None:
    async def refuse(_link: socket.socket) -> ScriptedWorker:
        raise OSError("no")

    process = WorkerProcess(0, lambda _life: None)
    with pytest.raises(OSError, match="no"):
        await process.start(refuse)
    assert process.pid == 0
    process.kill()
    process.hang_up()
    process.send(messages.Ping(1))
    assert process.is_condemned
