"""Long pieces are decoded apart: what is noted as wanted, which limits hold, and what other files notice: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import io
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from controlplane import helper
from controlplane.sources import apart, aside, directory, file_state, tree
from controlplane.sources.decode import decode
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.unit.sources import test_directory
from tests.unit.sources.test_directory import Seen

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n"
BOMB = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", "-c", text)


@contextlib.contextmanager
def decoding(decoder: aside.Decoder) -> Iterator[aside.Decoder]:
    try:
        yield decoder
    finally:
        decoder.rest()


def test_what_is_long_or_too_much_for_one_file_is_wanted() -> None:
    seconds = iter(range(1000))
    pieces = aside.Pieces(test_directory.decode, lambda: next(seconds))
    long = "x" * (aside.LONG + 1)
    pieces.begin("a.yaml", 2.0)
    assert [len(pieces.decode(text).objects) for text in ("a 1", "b 1", long, long, "c 1")] == [1, 1, 0, 0, 0]
    assert pieces.wanted() == [long, "c 1"]
    pieces.learn("a.yaml", long, test_directory.decode("d 1"))
    pieces.begin("b.yaml")
    pieces.decode(long)
    assert pieces.wanted() == [long]  # what is known is known of one file
    pieces.begin("a.yaml")
    assert len(pieces.decode(long).objects) == 1 and not pieces.wanted()
    pieces.forget("a.yaml")
    pieces.decode(long)
    assert pieces.wanted() == [long]


def test_at_the_bounds_it_is_decoded_in_place_as_long_as_there_is_time() -> None:
    seconds = iter(range(5, 1000))
    pieces = aside.Pieces(test_directory.decode, lambda: next(seconds))
    pieces.begin("a.yaml", 2.0)
    assert len(pieces.decode("a 1".ljust(8192)).objects) == 1
    assert len(pieces.decode("a 2").objects) == 1
    pieces.decode("b 1")
    assert pieces.wanted() == ["b 1"]  # both seconds are used up
    pieces.begin("a.yaml", 9.0)
    pieces.decode("b 1".ljust(8193))
    pieces.decode("b 1".ljust(8193))
    assert pieces.wanted() == ["b 1".ljust(8193)]  # once


class Pipe(io.BytesIO):
    """Its reader has what was flushed."""

    flushed = 0

    def flush(self) -> None:
        self.flushed += 1


def test_pieces_are_answered_until_there_are_no_more() -> None:
    asked, answers = io.BytesIO(pickle.dumps(SERVICE) + pickle.dumps(BOMB)), Pipe()
    helper.answer_all(asked, answers, decode)
    assert answers.flushed == 2, "who asks waits for each answer"
    answers.seek(0)
    assert [pickle.load(answers), pickle.load(answers)] == [decode(SERVICE), decode(BOMB)]
    assert not answers.read()


@pytest.mark.process
def test_the_process_decodes_as_the_controller_does() -> None:
    with decoding(aside.Decoder()) as decoder:
        for text in (SERVICE, BOMB, "a: [", "\x00\x01"):
            assert decoder.decode(text) == decode(text)
        process = decoder._helper._process
        assert process is not None
        process.send_signal(signal.SIGINT)  # a terminal's: it is the controller's to say when all is over
        assert decoder.decode(SERVICE) == decode(SERVICE)
        assert decoder._helper._process is process
        process.kill()
        process.wait()
        assert decoder.decode(SERVICE) == decode(SERVICE)


@pytest.mark.process
def test_what_is_printed_in_the_process_is_no_answer() -> None:
    text = "from controlplane import helper; helper.answer_all = lambda *_: print('x'); helper.serve(print)"
    found = subprocess.run([sys.executable, "-c", text], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert (found.stdout, found.stderr.strip()) == (b"", b"x")


@pytest.mark.process
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import time; time.sleep(3600)", "takes more than 0.3 s to read"),
        ("import sys; sys.exit(71)", "takes more than 2147483648 bytes of memory to read"),
        ("import sys; sys.exit(1)", "cannot be read: the process that decodes it ended with 1"),
    ],
    ids=["time", "memory", "mistake"],
)
def test_a_piece_that_is_over_a_limit_is_in_error(text: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "LAST_WORDS", 60.0)
    with decoding(aside.Decoder(script(text), 0.3 if "sleep" in text else 60.0)) as decoder:
        for _ in range(2):
            found = decoder.decode(SERVICE)
            assert found.is_broken
            assert [str(each) for each in found.problems] == [f":1: {why}; make it smaller, or split it"]


@pytest.mark.process
def test_the_process_has_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "LAST_WORDS", PATIENCE)
    hungry = "from controlplane import helper; from controlplane.sources.decode import decode; "
    hungry += "helper.serve(decode, 256 * 1024 * 1024)"
    with decoding(aside.Decoder((sys.executable, "-c", hungry), PATIENCE)) as decoder:  # not 20 s, on a busy machine
        (problem,) = decoder.decode(f"[{'[],' * 1_000_000}[]]").problems
        assert "bytes of memory" in problem.message
        assert decoder.decode(SERVICE) == decode(SERVICE)


class Slow(aside.Decoder):
    """Decodes when it may."""

    def __init__(self) -> None:
        super().__init__(("/no/such/program",))
        self.may = threading.Event()
        self.asked: list[str] = []

    def decode(self, piece: str) -> file_state.Decoded:
        self.asked.append(piece)
        self.may.wait(PATIENCE)
        return test_directory.decode(piece)


@contextlib.asynccontextmanager
async def running(root: Path, slow: Slow) -> AsyncIterator[tuple[directory.Directory, Seen]]:
    seen, pieces = Seen(), aside.Pieces(test_directory.decode)
    source = directory.Directory(root, tree.Tree(pieces.decode, lambda model, generation: model), pieces, slow)
    task = asyncio.create_task(source.run(seen))
    try:
        yield source, seen
    finally:
        slow.may.set()
        task.cancel()
        await asyncio.wait({task})


LONG = "b 2\n" + "\n" * 40_000


async def test_the_start_waits_for_what_is_long_so_that_nothing_is_taken_for_gone(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a 1\n")
    (tmp_path / "b.yaml").write_text(LONG)
    slow = Slow()
    async with running(tmp_path, slow) as (source, seen):
        await until(lambda: "a" in seen.objects and bool(slow.asked))
        assert not source.synced.is_set() and not seen.idles
        slow.may.set()
        async with asyncio.timeout(PATIENCE):
            await source.synced.wait()
        assert seen.objects == {"a": "1", "b": "2"} and seen.idles[0] == {"a", "b"}


async def test_other_edits_act_while_a_file_waits_and_its_last_state_stays(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a 1\n")
    (tmp_path / "b.yaml").write_text("b 1\n")
    slow = Slow()
    async with running(tmp_path, slow) as (source, seen):
        await source.synced.wait()
        (tmp_path / "b.yaml").write_text(LONG)
        await until(lambda: bool(slow.asked))
        (tmp_path / "a.yaml").write_text("a 2\n")
        await seen.until(lambda: seen.objects == {"a": "2", "b": "1"})
        slow.may.set()
        await seen.until(lambda: seen.objects == {"a": "2", "b": "2"})
        assert slow.asked == [LONG]


async def test_who_is_closed_waits_for_no_file_any_more() -> None:
    slow, ready = Slow(), list[str]()
    pieces = aside.Pieces(test_directory.decode, lambda: 0.0)
    waiting = apart.Apart(pieces, slow, ready.append)
    waiting.decode("a.yaml", [LONG])
    waiting.decode("b.yaml", [LONG])
    await until(lambda: bool(slow.asked))
    slow.may.set()
    await waiting.close()
    assert not waiting and ready == []


async def test_a_long_file_in_error_is_named_and_its_removal_heals(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a 1\n")
    slow = Slow()
    slow.may.set()
    async with running(tmp_path, slow) as (source, seen):
        await source.synced.wait()
        (tmp_path / "bad.yaml").write_text("bad\n" + LONG)
        await seen.until(lambda: bool(source.problems()))
        assert [str(each) for each in source.problems()] == ["bad.yaml:1: has no value"]
        (tmp_path / "bad.yaml").unlink()
        (tmp_path / "a.yaml").write_text("a 2\n")
        await seen.until(lambda: seen.objects == {"a": "2"} and not source.problems())
