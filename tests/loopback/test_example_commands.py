"""The commands of README.md and of the pages of `examples/quickstart`, `routing`, `policies`, `llm` and `https`, typed
as they stand there, but for ports and folders, while `gatewright up` runs what the page has."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from dataplane.credentials import htpasswd
from tests.fakes.up_process import EXAMPLES, LISTENER, SECOND, Up, copy_example, running
from tests.harness.patience import PATIENCE
from tests.rules import page_commands

ROOT = EXAMPLES.parent
HTTPS = (8443, 8444)
ONE = ("--workers", "1", "--proxies", "1", "--quiet")


class Page(NamedTuple):
    """A page, the example that runs meanwhile, and what each of its lines prints, in order."""

    path: str
    example: str
    printed: tuple[tuple[str, str], ...]


QUICKSTART: Final = (
    ("/hello ", r'HTTP/1\.1 200 .*"service": "shop"'),
    ("/catalog ", r'"service": "catalog-v[12]"'),
    ("/old ", r"HTTP/1\.1 301 .*location: \S+/catalog\b"),
)

RUNNING: Final = (
    Page("README.md", "quickstart", QUICKSTART),
    Page(
        "examples/quickstart/README.md",
        "quickstart",
        (
            *QUICKSTART,
            ("/headers ", r'HTTP/1\.1 200 .*x-served-by: gatewright.*"x-greeting": "hello from the gateway"'),
            ("/sse ", r"event: tick\n"),
            ("gatewright status ", r"Gateway +default/quickstart +Accepted, Programmed"),
            ("gatewright lint ", r"0 errors"),
        ),
    ),
    Page(
        "examples/routing/README.md",
        "routing",
        (
            ("/items/7 ", r'HTTP/1\.1 200 .*"path": "/items/7"'),
            ("/items?lang=de' ", r'HTTP/1\.1 200 .*"path": "/items\?lang=de"'),
            ("/api/v1/users ", r'HTTP/1\.1 200 .*"path": "/v1/users"'),
            ("/account ", r"HTTP/1\.1 308 .*location: https://login\.example\.com:8443/account\b"),
            (":8081/ ", r"HTTP/1\.1 200 "),
        ),
    ),
    Page(
        "examples/policies/README.md",
        "policies",
        (
            (":8080/ ", r"HTTP/1\.1 200 .*x-served-by: edge"),
            ("/internal ", r"HTTP/1\.1 403 "),
            ("curl -i 127.0.0.1:8080/pay ", r"HTTP/1\.1 403 "),
            ("-X POST 127.0.0.1:8080/pay  ", r"HTTP/1\.1 200 "),
            ("-H 'Origin: https://evil.example' ", r"HTTP/1\.1 403 .*CSRF validation failed"),
        ),
    ),
    Page(
        "examples/llm/README.md",
        "llm",
        (
            ("/v1/models ", r'HTTP/1\.1 200 .*"id":"fast"'),
            ("/chat/completions ", r'HTTP/1\.1 200 .*"model": "gpt-4o-mini".*"content": "You said: hello"'),
            ("/v1/messages ", r'HTTP/1\.1 200 .*"type": "message".*"text": "You said: hello"'),
            ("/v1/responses ", r'event: response\.created\n.*"delta": "You".*event: response\.completed\n'),
        ),
    ),
    Page(
        "examples/llm-keys/README.md",
        "llm-keys",
        (("/chat/completions ", r'HTTP/1\.1 200 .*"content": "You said: hello"'),),
    ),
    Page(
        "examples/https/README.md",
        "https",
        (
            ("https://localhost:8443/", r"hello over TLS\n"),
            ("client.key https://localhost:8444/", r"hello over TLS\n"),
            ("https://localhost:8444/    # refused", r"curl: \(\d+\) .*"),
        ),
    ),
)


def lines(page: str) -> list[str]:
    """The commands of a page's blocks that are typed while its example runs."""
    texts = [command.text for command in page_commands.commands(ROOT / page) if command.is_block]
    return [text for text in texts if text.startswith(("curl", "gatewright status", "gatewright lint"))]


def shell(line: str, folder: Path, moved: dict[str, str]) -> str:
    """What a command prints, with errors. `moved`: what stands for a port or folder of the page."""
    for name, other in moved.items():
        line = line.replace(name, other)
    environment = {**os.environ, "no_proxy": "*", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    return done.stdout.replace("\r\n", "\n")


def typed(line: str) -> str:
    """With an end where a command would go on printing, and without the meter of a transfer."""
    if line.startswith("curl -N"):
        line = line.replace("curl -N", "curl -sS -N -m 2", 1)
    return re.sub(r"^curl ", "curl -sS ", line)


def folder_of(example: str, scratch: Path) -> Path:
    """The example's folder, as its page makes it."""
    folder = scratch / example
    if example != "https":
        return copy_example(folder, example)
    (line,) = [
        command.text for command in page_commands.commands(ROOT / "examples/https/README.md") if "&&" in command.text
    ]
    made, started = line.split(" && ")
    assert started == "gatewright up /tmp/https"
    assert shell(made, ROOT, {"/tmp/https": str(folder)}) is not None and folder.is_dir()
    return folder


@contextlib.contextmanager
def up(example: str, scratch: Path) -> Iterator[tuple[Up, dict[str, str]]]:
    """The running example, and what stands for its ports and folder."""
    listeners = HTTPS if example == "https" else (LISTENER, SECOND)
    folder = folder_of(example, scratch)
    with running(folder, scratch, *ONE, listeners=listeners) as started:
        started.wait_ready()
        assert started.cli("wait", "--timeout", f"{PATIENCE:.0f}s").returncode == 0
        moved = {f":{port}": f":{port + started.offset}" for port in listeners}
        yield (
            started,
            {**moved, "/tmp/https": str(folder), "gatewright status": f"gatewright status --admin {started.admin}"},
        )


@pytest.mark.needs("curl")
@pytest.mark.parametrize("example", sorted({page.example for page in RUNNING}))
def test_curl_lines_of_a_running_example(example: str, tmp_path: Path) -> None:
    with up(example, tmp_path) as (started, moved):
        for page in (each for each in RUNNING if each.example == example):
            assert len(lines(page.path)) == len(page.printed), page.path
            for line in lines(page.path):
                (wanted,) = [printed for part, printed in page.printed if part in f"{line} "]
                found = shell(typed(line), started.folder, moved)
                assert re.search(wanted, found, re.DOTALL | re.IGNORECASE), (line, found)


class Origin(BaseHTTPRequestHandler):
    """The server that a reader of the README has."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal of the tests."""


@contextlib.contextmanager
def origin() -> Iterator[int]:
    """Its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


FIRST_STEPS: Final = {
    "curl ": r"HTTP/1\.1 200 ",
    ".venv/bin/gatewright lint ": r"5 objects in 1 file, 0 errors",
    ".venv/bin/gatewright cel ": r"\btrue\b",
    ".venv/bin/gatewright status ": r"Gateway +default/mine +Accepted, Programmed",
}
"""What the commands of FIRST_ROUTE print."""
FIRST_ROUTE: Final = ROOT / "docs/first-route.md"


def test_the_first_route(tmp_path: Path) -> None:
    """`scripts/up` with the folder of the page, beside a server of the reader's."""
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", (FIRST_ROUTE).read_text(), re.MULTILINE | re.DOTALL)
    mine = tmp_path / "mine"
    mine.mkdir()
    program = (str(ROOT / "scripts/up"),)
    with origin() as port:
        (mine / "shop.yaml").write_text(block.replace("port: 3000", f"port: {port}"))
        with running(mine, tmp_path, *ONE, program=program, listeners=(LISTENER, SECOND)) as started:
            started.wait_ready()
            assert started.cli("wait", "--timeout", f"{PATIENCE:.0f}s").returncode == 0
            assert (started.get("/shop")[0], started.get("/other")[0]) == (200, 404)
            moved = {
                " mine ": f" {mine} ",
                "gatewright status": f"gatewright status --admin {started.admin}",
                ":8080": f":{LISTENER + started.offset}",
            }
            texts = [each.text for each in page_commands.commands(FIRST_ROUTE) if each.is_block]
            asked = [text for text in texts if not text.startswith("scripts/up ")]
            assert len(asked) == len(FIRST_STEPS)
            for text in asked:
                (wanted,) = [printed for begins, printed in FIRST_STEPS.items() if text.startswith(begins)]
                found = shell(typed(text), ROOT, moved)
                assert re.search(wanted, found), (text, found)


def test_the_quickstart_is_what_the_script_runs_without_a_folder() -> None:
    text = (ROOT / "scripts/up").read_text()
    assert 'if [ $# = 0 ]; then set -- "$here/examples/quickstart"; fi' in text


def test_the_line_that_makes_a_password_makes_one_that_is_accepted() -> None:
    (line,) = [
        command.text
        for command in page_commands.commands(ROOT / "docs/policies/basic_authentication.md")
        if command.text.startswith("python -c")
    ]
    done = subprocess.run(
        [sys.executable, *shlex.split(line)[1:]],
        input="secret\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
        start_new_session=True,  # without a terminal the word comes from standard input
    )
    users = htpasswd.read(done.stdout.encode(), "the line")
    assert users[b"ann"].matches(b"secret") and not users[b"ann"].matches(b"other")
