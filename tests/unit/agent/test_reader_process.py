"""A reader in a process of its own: started when it is asked, gone when it rests, replaced when it was lost."""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dataplane.agent import reader, reader_process
from dataplane.agent.file_reading import ReaderLost, Reading
from dataplane.agent.reader import LocalReader
from dataplane.agent.reader_process import ReaderProcess

TEXT = "binds:\n- port: 1\n  listeners:\n  - name: a\n    routes:\n    - backends: [{host: '127.0.0.1:1'}]\n"
FILE = Path("c.yaml")

ECHO = """
import os, pickle, sys
while True:
    try:
        method, arguments = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    pickle.dump((os.getpid(), method), sys.stdout.buffer)
    sys.stdout.flush()
"""


@contextmanager
def asking(*command: str) -> Iterator[ReaderProcess]:
    process = ReaderProcess(command)
    try:
        yield process
    finally:
        process.rest()


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", "-c", text)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_answers_until_it_rests() -> None:
    with asking(*script(ECHO)) as process:
        pids = []
        for _ in range(2):
            pid, method = process._ask("interpret", TEXT)
            pids.append(pid)
            assert method == "interpret"
        assert pids[0] == pids[1] and is_alive(pids[0])
        process.rest()
        assert not is_alive(pids[0])
        process.rest()
        pid, _ = process._ask("refusals")
        assert pid != pids[0]
    assert not is_alive(pid)


def test_a_process_that_ended_while_nothing_was_asked_is_replaced() -> None:
    with asking(*script(ECHO)) as process:
        first, _ = process._ask("interpret")
        os.kill(first, signal.SIGKILL)
        assert process._process is not None
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
        second, _ = process._ask("interpret")
        assert second != first


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("import os, time; os.close(1); time.sleep(3600)", "signal 9"),
        ("import os; os.write(1, b'nonsense'); os.close(1); os._exit(0)", "exit code 0"),
    ],
)
def test_a_process_that_ends_is_told_and_replaced(monkeypatch: pytest.MonkeyPatch, text: str, why: str) -> None:
    monkeypatch.setattr(reader_process, "LAST_WORDS", 0.2 if "sleep" in text else 60.0)
    with asking(*script(text)) as process:
        for _ in range(2):
            with pytest.raises(ReaderLost, match=rf"^the process that reads it ended \({why}\)$"):
                process.interpret(TEXT, FILE, ())
    with asking(*script(ECHO)) as process:
        process._process = ReaderProcess(script(text))._running()
        with pytest.raises(ReaderLost):
            process.interpret(TEXT, FILE, ())
        assert process._ask("interpret")[1] == "interpret"


def test_an_answer_that_takes_too_long_is_not_waited_for() -> None:
    process = ReaderProcess(script("import time; time.sleep(3600)"), deadline=0.1)
    for _ in range(2):
        with pytest.raises(ReaderLost, match=r"^reading it takes more than 0\.1 s$"):
            process.interpret(TEXT, FILE, ())
    assert process._process is None


def test_a_text_that_takes_too_much_memory_is_a_reader_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight million lists of 56 bytes each."""
    hungry = "from dataplane.agent import reader; reader.MEMORY = 256 * 1024 * 1024; reader.main()"
    with asking(sys.executable, "-c", hungry) as process:
        with pytest.raises(ReaderLost, match=r"^reading it takes more than 2147483648 bytes of memory$"):
            process.interpret(f"[{'[],' * 8_000_000}[]]", FILE, ())
        assert process.interpret(TEXT, FILE, ()).loaded is not None


def test_a_process_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    with asking(str(tmp_path / "nothing")) as process, pytest.raises(ReaderLost, match=r"cannot be started: .*No such"):
        process.interpret(TEXT, FILE, ())


def test_resting_ends_a_question_that_is_being_answered(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    lost: list[str] = []

    def ask() -> None:
        with pytest.raises(ReaderLost) as raised:
            process.interpret(TEXT, FILE, ())
        lost.append(str(raised.value))

    with asking(*script(f"open({str(begun)!r}, 'w').close(); import time; time.sleep(3600)")) as process:
        thread = threading.Thread(target=ask)
        thread.start()
        begun.read_text()
        process.rest()
        thread.join()
    assert len(lost) == 1


def test_questions_are_answered_until_there_are_no_more(tmp_path: Path) -> None:
    questions = io.BytesIO()
    pickle.dump(("interpret", (TEXT, FILE, ())), questions)
    pickle.dump(("refusals", (TEXT, FILE, [(("binds", 0), "port 1 is in use")])), questions)
    answers = io.BytesIO()
    reader.answer_all(io.BytesIO(questions.getvalue()), answers, LocalReader())
    answers.seek(0)
    assert pickle.load(answers) == LocalReader().interpret(TEXT, FILE, ())
    assert pickle.load(answers) == ["c.yaml:2: binds[0]: port 1 is in use"]
    assert not answers.read()


@pytest.mark.process
def test_the_real_process_answers_as_one_would_here_and_prints_nothing_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANNS_KEY", "ann's-key")
    (tmp_path / "key").write_text("hidden-key")
    secret = "    policies: {apiKeyAuthentication: {secretRef: {ann: {env: ANNS_KEY}, ben: {file: key}}}}\n"
    here, file = LocalReader(), tmp_path / "c.yaml"
    with asking(*reader_process.COMMAND) as process:
        for text in (TEXT, TEXT.replace("    routes", f"{secret}    routes"), "binds: no", "nonsense: [", ""):
            found: Reading = process.interpret(text, file, ("xds",))
            assert found == here.interpret(text, file, ("xds",))
        refused = [(("binds", 0), "port 1 is in use"), (("binds", 0, "listeners", 0), "csrf: is bad")]
        assert process.refusals(TEXT, file, refused) == here.refusals(TEXT, file, refused)
