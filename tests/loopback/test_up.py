"""`gatewright up` as users run it: real processes from the first request to nothing left behind.

Ports are the example's, moved by an offset at which they are reserved for this test.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.fakes.up_process import LISTENER, SECOND, Up, copy_example, fetch, opens, running
from tests.harness.patience import PATIENCE
from tests.harness.processes import is_alive
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="follows processes through /proc")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Two proxies with one worker each, used by all tests that leave it running."""
    scratch = tmp_path_factory.mktemp("up")
    with running(copy_example(scratch / "quickstart"), scratch, "--workers", "1") as started:
        started.wait_ready()
        yield started


def test_the_printed_lines_work(up: Up) -> None:
    lines = re.findall(r"^  (curl .*)$", up.output, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        *_, url = words = shlex.split(line)
        assert words[:2] == ["curl", "-i"]
        status, headers, body = fetch(url, {})
        assert (status, json.loads(body)["service"]) == (200, headers["x-demo-service"])


def test_every_printed_address_answers(up: Up) -> None:
    announcement = up.output.partition("gatewright ")[2]
    urls = re.findall(r"http://[0-9.:]+\S*", announcement.partition("Try:")[0])
    assert len(urls) == 1 + 2 + 2 * 3
    for url in urls:
        status, _, body = fetch(url if urlsplit(url).path else f"{url}/", {})
        assert (status, bool(body)) == (200, True), url


def test_the_example_shows_what_it_says(up: Up) -> None:
    for proxy in (0, 1):
        status, _, body = up.get("/hello?a=1", proxy=proxy)
        assert (status, json.loads(body)["service"], json.loads(body)["path"]) == (200, "shop", "/hello?a=1")
        status, headers, body = up.get("/headers", {"x-internal": "1"}, proxy)
        seen = json.loads(body)["headers"]
        assert (seen["x-greeting"], "x-internal" in seen) == ("hello from the gateway", False)
        assert headers["x-served-by"] == "gatewright"
        status, headers, _ = up.get("/old", proxy=proxy)
        assert (status, urlsplit(headers["location"]).path) == (301, "/catalog")
        status, headers, body = up.get("/sse?events=3&interval=0", proxy=proxy)
        assert (headers["content-type"], body.count("event: tick\n")) == ("text/event-stream", 3)
    split = {json.loads(up.get("/catalog")[2])["service"] for _ in range(120)}
    assert split == {"catalog-v1", "catalog-v2"}


def test_status_and_wait_tell_that_it_works(up: Up) -> None:
    assert up.cli("wait", "--timeout", f"{PATIENCE:.0f}s").returncode == 0
    body = up.status()
    assert [(row["instance"], row["state"]) for row in body["proxies"]] == [
        ("proxy-1", "Synced"),
        ("proxy-2", "Synced"),
    ]
    assert body["problems"] == body["notes"] == []
    text = up.cli("status").stdout
    assert re.search(r"^Gateway +default/quickstart +Accepted, Programmed", text, re.MULTILINE)


def test_an_edit_applies_and_a_mistake_is_told_and_harms_its_rule_alone(up: Up) -> None:
    file = up.folder / "routes.yaml"
    before = file.read_text()
    try:
        file.write_text(before.replace("hello from the gateway", "hello again"))
        wait_until(
            lambda: json.loads(up.get("/headers")[2])["headers"]["x-greeting"] == "hello again", "the edit applies"
        )
        file.write_text(before.replace("hello from the gateway", "third").replace("      timeouts:", "      timouts:"))
        problems = wait_until(lambda: up.status()["problems"], "the mistake is told")
        assert [problem["path"] for problem in problems] == ["spec.rules[0].timouts"]
        assert "timeouts" in problems[0]["message"]
        wait_until(lambda: up.get("/headers")[0] == 500, "the rule with the mistake is refused")
        assert up.get("/hello")[0] == 200  # the others are not
    finally:
        file.write_text(before)
    wait_until(lambda: not up.status()["problems"], "the correction is seen")


def test_a_second_up_says_who_is_there(up: Up) -> None:
    command = [sys.executable, "-m", "controlplane.cli", "up", *up.arguments]
    second = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert second.returncode == 3
    assert f"process {up.process.pid} (" in second.stderr
    assert "--admin" in second.stderr


def test_a_killed_proxy_comes_back(up: Up) -> None:
    before = {row["instance"] for row in up.status()["proxies"]}
    agents = {
        pid: command
        for pid in up.process.children()
        if "--instance\0proxy-2" in (command := Path(f"/proc/{pid}/cmdline").read_text())
    }
    (pid,) = agents
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "proxy-2 ended with -9" in up.output, "the end is told")
    wait_until(lambda: opens(LISTENER + up.offset + 1000), "it listens again")  # its rows may still be the old one's
    wait_until(lambda: {row["instance"] for row in up.status()["proxies"]} == before, "it is connected again")
    wait_until(lambda: up.cli("wait", "gateway", "--timeout", "1s").returncode == 0, "everything is programmed again")

    def serves() -> bool:
        try:
            return up.get("/", proxy=1)[0] == 200
        except ConnectionError:  # what listened were workers of the one that was killed
            return False

    wait_until(serves, "it serves again")


def test_a_gateway_that_appears_gets_its_proxies(up: Up) -> None:
    listener = SECOND + up.offset
    text = (up.folder / "gateway.yaml").read_text().partition("---\n")[2]
    added = up.folder / "second.yaml"
    added.write_text(text.replace("quickstart", "second").replace("8080", str(SECOND)))
    try:
        assert up.cli("wait", "gateway/second", "--timeout", f"{PATIENCE:.0f}s").returncode == 0
        wait_until(lambda: "[second/proxy-1]" in up.output, "what a proxy says is passed on beside what it does")
        wait_until(lambda: opens(listener), lambda: f"it listens:\n{up.output}")
        assert fetch(f"http://127.0.0.1:{listener}/", {})[0] == 404
    finally:
        added.unlink()
    wait_until(lambda: len(up.status()["proxies"]) == 2, "its proxies are gone with it")


def test_ctrl_c_leaves_nothing_even_with_an_open_stream(up: Up) -> None:
    """The last test of the shared one."""
    wanted = 1 + 2 + 2 + 2  # demo servers, agents, fork servers, workers
    wait_until(lambda: len(up.process.children()) == wanted, "what earlier tests started is gone")
    family = up.process.children()
    stream = http.client.HTTPConnection("127.0.0.1", LISTENER + up.offset, timeout=PATIENCE)
    stream.request("GET", "/sse?events=1000&interval=1")
    assert stream.getresponse().readline() == b"id: 0\n"
    up.process.signal(signal.SIGINT)
    code = up.process.wait()
    stream.close()
    assert code == 130, up.output
    assert not [pid for pid in family if is_alive(pid)]
    assert "Traceback" not in up.output


def test_ctrl_c_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    with running(copy_example(tmp_path / "quickstart"), tmp_path, "--workers", "1") as up:
        family = wait_until(up.process.children, "the first child is there")
        assert up.end(signal.SIGINT) == 130, up.output
        assert not any(map(is_alive, family))
        assert "Traceback" not in up.output


def test_kill_9_leaves_nothing(tmp_path: Path) -> None:
    with running(copy_example(tmp_path / "quickstart"), tmp_path, "--workers", "1", "--proxies", "1") as up:
        up.wait_ready()
        family = up.process.children()
        assert len(family) == 4  # demo servers, agent, fork server, worker
        assert up.end(signal.SIGKILL) == -signal.SIGKILL
        assert not any(map(is_alive, family))


def test_a_folder_without_a_gateway_says_so_and_waits_for_one(tmp_path: Path) -> None:
    folder = copy_example(tmp_path / "quickstart")
    gateway = folder / "gateway.yaml"
    text = gateway.read_text()
    gateway.unlink()
    with running(folder, tmp_path, "--workers", "1", "--proxies", "1", "--quiet") as up:
        up.wait_ready()
        assert "holds no Gateway; nothing is served" in up.output
        gateway.write_text(text)
        assert up.cli("wait", "--timeout", f"{PATIENCE:.0f}s").returncode == 0
        assert up.get("/")[0] == 200
        assert up.end(signal.SIGTERM) == 0, up.output
        assert "http.path=" not in up.output


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "controlplane.cli", "up", str(tmp_path / "no")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 4
    assert f"there is no folder {tmp_path / 'no'}" in done.stderr
