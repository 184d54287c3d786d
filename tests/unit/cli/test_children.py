"""Child processes with a Python line each: output, stopping, and the lifeline."""

import asyncio
import io
import os
import signal
import sys

import pytest

from controlplane.cli import children
from tests.fakes.memory_children import MemoryChildren
from tests.fakes.moved_loop import moved
from tests.harness.waiting import until


def command(code: str, name: str = "child", **more: object) -> children.Command:
    return children.Command(name, [sys.executable, "-c", code], dict(os.environ), **more)  # type: ignore[arg-type]


async def test_output_comes_in_whole_lines_with_a_prefix() -> None:
    stream = io.BytesIO()
    code = "import sys; sys.stdout.write('one\\ntwo\\nthr'); sys.stdout.flush(); sys.stdout.write('ee')"
    child = await children.start(command(code), children.Output(stream))
    assert await child.ended() == 0
    await children.stop([child], 1.0)
    assert stream.getvalue() == b"[child] one\n[child] two\n[child] three\n"


async def test_only_a_child_that_is_spoken_to_has_an_input() -> None:
    stream = io.BytesIO()
    code = "import sys; print('heard', repr(sys.stdin.readline()))"
    silent = await children.start(command(code), children.Output(stream))
    assert await silent.ended() == 0
    spoken = await children.start(command(code, speaks=True), children.Output(stream))
    await spoken.say(b"news\n")
    assert await spoken.ended() == 0
    await children.stop([silent, spoken], 1.0)
    assert stream.getvalue() == b"[child] heard ''\n[child] heard 'news\\n'\n"


async def test_quiet_keeps_standard_error() -> None:
    stream = io.BytesIO()
    code = "import sys; print('access log'); print('a complaint', file=sys.stderr)"
    child = await children.start(command(code), children.Output(stream, quiet=True))
    await child.ended()
    await children.stop([child], 1.0)
    assert stream.getvalue() == b"[child] a complaint\n"


async def test_ctrl_c_in_the_terminal_does_not_reach_a_child() -> None:
    stream = io.BytesIO()
    child = await children.start(command("import os; print(os.getsid(0), os.getpid())"), children.Output(stream))
    assert all(pump.daemon for pump in child.pumps), "who holds its output open does not hold up our end"
    await child.ended()
    await children.stop([child], 1.0)
    assert stream.getvalue() == b"[child] %d %d\n" % (child.pid, child.pid)


async def test_a_program_that_cannot_be_run_leaves_nothing_open() -> None:
    before = set(os.listdir("/dev/fd"))
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            await children.start(children.Command("x", ["/no/such/program"], {}), children.Output(io.BytesIO()))
    assert len(set(os.listdir("/dev/fd"))) == len(before)


async def test_stop_is_gentle_first() -> None:
    stream = io.BytesIO()
    gentle = "import signal, sys; signal.signal(15, lambda *_: sys.exit(5)); print('up', flush=True); signal.pause()"
    stubborn = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile 1: signal.pause()"
    for code, grace, status in ((gentle, 60.0, 5), (stubborn, 0.1, -signal.SIGKILL)):
        stream.truncate(0)
        child = await children.start(command(code), children.Output(stream))
        await until(lambda: b"up" in stream.getvalue(), "its start")
        await children.stop([child], grace)
        assert await child.ended() == status


@moved
async def test_those_that_stay_have_the_whole_grace_and_no_more() -> None:
    loop, start = asyncio.get_running_loop(), MemoryChildren()
    both = [await start(command("", name), children.Output(io.BytesIO())) for name in ("gentle", "stubborn")]
    start.born[1].stubborn = True
    began = loop.time()
    await children.stop(both, 4.0)
    assert [each.signals for each in start.born] == [[signal.SIGTERM], [signal.SIGTERM, signal.SIGKILL]]
    assert loop.time() - began == 4.0
    await children.stop([], 4.0)


@moved
async def test_an_output_that_somebody_else_holds_open_is_waited_for_a_second() -> None:
    joined: list[float | None] = []

    class Pump:
        def join(self, timeout: float | None = None) -> None:
            joined.append(timeout)

    child = await MemoryChildren()(command(""), children.Output(io.BytesIO()))
    child.pumps = [Pump(), Pump()]  # type: ignore[list-item]
    await children.stop([child], 4.0)
    assert joined == [1.0, 1.0]


async def test_a_child_can_be_spoken_to() -> None:
    stream = io.BytesIO()
    child = await children.start(command("print(input())", speaks=True), children.Output(stream))
    await child.say(b"hello\n")
    await child.ended()
    await child.say(b"nobody listens\n")
    await children.stop([child], 1.0)
    assert stream.getvalue() == b"[child] hello\n"


async def test_the_lifeline_ends_with_its_holder() -> None:
    lifeline = children.Lifeline()
    code = f"import os; os.read({lifeline.reading}, 1); raise SystemExit(9)"
    child = await children.start(command(code, pass_fds=(lifeline.reading,)), children.Output(io.BytesIO()))
    lifeline.cut()
    assert await child.ended() == 9
    await children.stop([child], 1.0)
