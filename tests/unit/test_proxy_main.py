"""The entry of a proxy in this process: what ends it before it serves, and a life without a worker that starts."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.__main__ import main
from tests.fakes.memory_agent import config, descriptors, log_levels_restored
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve

NO_WORKER = ("/no/such/program",)


@pytest.fixture(autouse=True)
def own_process() -> Iterator[None]:
    """What the entry does to its process is undone."""
    root, before = logging.getLogger(), descriptors()
    handlers, limits = root.handlers[:], resource.getrlimit(resource.RLIMIT_NOFILE)
    with log_levels_restored():
        yield
    root.handlers[:] = handlers
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    gc.unfreeze()
    assert gc.isenabled() and descriptors() == before


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ([], 2, "nothing to serve: give -f FILE"),
        (["-f", "absent.yaml", "--log-level", "loud"], 1, "absent.yaml: there is no such file"),
        (["--xds", "nowhere"], 2, "'nowhere' is not an address"),
        (["--version"], 0, "gatewright-proxy "),
    ],
)
def test_what_cannot_be_used_ends_it(words: list[str], code: int, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    try:
        status: object = main(words, NO_WORKER)
    except SystemExit as end:
        status = end.code
    logging.getLogger().handlers[0].flush()
    written = capfd.readouterr()
    assert status == code and text in written.out + written.err


def test_a_log_level_that_the_file_has_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(config(reserve(), 1))
    assert main(["-f", str(file), "--log-level", "loud"], NO_WORKER) == 2
    assert "gatewright-proxy: error: --log-level: " in capfd.readouterr().err


def test_a_taken_page_ends_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(config(reserve(), 1))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["-f", str(file), f"--admin=127.0.0.1:{taken.getsockname()[1]}", "--stats=off", "--readiness=off"]
        assert main(words, NO_WORKER) == 3
    logging.getLogger().handlers[0].flush()
    assert f"it is in use by pid {os.getpid()}" in capfd.readouterr().err


def test_it_lives_without_workers_until_a_signal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages tell that it is not ready; files are as many as the system allows."""
    file, port, answers = tmp_path / "config.yaml", reserve(), []
    file.write_text(config(reserve(), 1))
    monkeypatch.delenv("SESSION_KEY", raising=False)

    def probe() -> None:
        end = time.monotonic() + PATIENCE
        while not answers and time.monotonic() < end:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz/ready", timeout=PATIENCE).close()
            except urllib.error.HTTPError as error:
                with error:
                    answers.append((error.code, error.read(), resource.getrlimit(resource.RLIMIT_NOFILE)))
            except OSError:
                time.sleep(0.01)  # its page is not open yet
        os.kill(os.getpid(), signal.SIGINT)

    probing = threading.Thread(target=probe)
    probing.start()
    words = ["-f", str(file), "--workers=1", "--admin=off", "--stats=off", f"--readiness=127.0.0.1:{port}"]
    assert main(words, NO_WORKER) == 0
    probing.join()
    ((code, body, (soft, hard)),) = answers
    assert code == 500 and body.startswith(b"not ready, pending: ") and soft in (hard, 1_048_576)
    logging.getLogger().handlers[0].flush()
    log = capfd.readouterr().err
    assert "SESSION_KEY is unset" in log and "worker 0 cannot be started" in log and "SIGINT: draining" in log
