"""`gatewright wait` and `status` against what answers on the admin address: the controller, a stranger, nobody."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.cli import __main__ as cli
from controlplane.cli import exits, parser
from controlplane.cli.asking import client, status, wait
from tests.harness import yamls

Answer = tuple[int, str]
READY: dict[str, Any] = {"controller": {"synced": True}, "objects": [], "problems": []}
STRANGER = "is not a controller of Gatewright; name its admin address with --admin"


class Server(HTTPServer):
    """Gives one answer to all, and keeps the paths that were asked for."""

    answer: Answer = (200, "")
    paths: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        code, body = self.server.answer
        self.server.paths.append(self.path)
        if code == 0:
            self.wfile.write(b"SSH-2.0-x\r\n")
            return
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Generator[Server, None, None]:
    made = Server(("127.0.0.1", 0), Handler)
    made.paths = []
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        ((400, '{"error": "write KIND/NAME"}'), exits.USAGE, "gatewright: write KIND/NAME\n"),
        ((200, "<html>"), exits.DEPENDENCY, STRANGER),
        ((200, "[]"), exits.DEPENDENCY, STRANGER),
        ((200, '["objects"]'), exits.DEPENDENCY, STRANGER),
        ((400, "[]"), exits.DEPENDENCY, STRANGER),
        ((200, "{}"), exits.DEPENDENCY, STRANGER),
        ((500, '{"objects": []}'), exits.DEPENDENCY, STRANGER),
        ((0, ""), exits.DEPENDENCY, STRANGER),
    ],
    ids=["selector", "no JSON", "no object", "a list", "a list as an error", "no objects", "500", "no HTTP"],
)
def test_who_answers(server: Server, answer: Answer, code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer = answer
    address = f"127.0.0.1:{server.server_port}"
    assert cli.main(["status", "--admin", address]) == code
    shown = capsys.readouterr().err
    assert text in shown
    assert code == exits.USAGE or f"what answers on {address}" in shown


def test_named_objects_are_asked_for(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer = (200, json.dumps({**READY, "proxies": []}))
    address = f"127.0.0.1:{server.server_port}"
    assert cli.main(["status", "-o", "json", "--admin", address]) == exits.OK
    assert cli.main(["status", "-o", "json", "--admin", address, "gateway/a b", "httproute"]) == exits.DEPENDENCY
    assert server.paths == ["/api/status", "/api/status?object=gateway%2Fa+b&object=httproute"]
    shown = capsys.readouterr()
    assert shown.err == "".join(
        f"gatewright: {name}: there is no such object\n" for name in ("gateway/a b", "httproute")
    )


IGNORED = {"kind": "HTTPRoute", "namespace": "default", "name": "r", "generation": 1, "file": "", "status": {}}
CONTROLLER = {"version": "1", "pid": 7, "source": "/x", "synced": True, "uptimeSeconds": 1}
NOT_WELL = {
    **READY,
    "controller": CONTROLLER,
    "notes": [],
    "proxies": [],
    "objects": [{**IGNORED, "ignored": "its parent is not there", "foreign": False}],
}


def test_an_exit_code_for_scripts(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer = (200, json.dumps(NOT_WELL))
    address = f"127.0.0.1:{server.server_port}"
    assert cli.main(["status", "--admin", address]) == exits.OK
    assert cli.main(["status", "--admin", address, "--exit-code"]) == exits.CONFIG
    assert cli.main(["status", "--admin", address, "--exit-code", "gateway/none"]) == exits.DEPENDENCY
    server.answer = (200, json.dumps({**NOT_WELL, "objects": []}))
    assert cli.main(["status", "--admin", address, "--exit-code"]) == exits.OK


def test_yaml_is_the_same_as_json(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.answer = (200, json.dumps(NOT_WELL))
    assert cli.main(["status", "--admin", f"127.0.0.1:{server.server_port}", "-o", "yaml"]) == exits.OK
    assert yamls.load(capsys.readouterr().out) == NOT_WELL


def test_watching_prints_what_is_another_answer(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    later = {**NOT_WELL, "controller": {**CONTROLLER, "uptimeSeconds": 9}}
    bodies = [NOT_WELL, later, {**NOT_WELL, "objects": []}]
    server.answer = (200, json.dumps(bodies.pop(0)))

    def sleep(seconds: float) -> None:
        assert seconds == status.PAUSE
        if not bodies:
            raise KeyboardInterrupt
        server.answer = (200, json.dumps(bodies.pop(0)))

    monkeypatch.setattr("controlplane.cli.asking.status.time.sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        status.run(parser.build().parse_args(["status", "--watch", "--admin", f"127.0.0.1:{server.server_port}"]))
    shown = capsys.readouterr().out
    assert shown.count("controller ") == 2, "a clock that goes on is no news"
    assert shown.endswith("no objects\n")


class Clock:
    """Time that passes while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def waiting(
    monkeypatch: pytest.MonkeyPatch, answers: list[dict[str, Any] | Exception], *words: str
) -> tuple[int, Clock]:
    """The code of `wait`, where the controller gives these answers, the last one for ever."""
    clock = Clock()

    def status(admin: str, objects: list[str]) -> dict[str, Any]:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(wait, "time", clock)
    monkeypatch.setattr(client, "status", status)
    return cli.main(["wait", *words]), clock


LACKING = {**READY, "objects": []}
WELL = {
    **READY,
    "objects": [
        {
            "kind": "GatewayClass",
            "namespace": "",
            "name": "ours",
            "generation": 1,
            "status": {"conditions": [{"type": "Accepted", "status": "True", "reason": "x"}]},
        }
    ],
}


def test_it_ends_when_nothing_is_lacking(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, clock = waiting(monkeypatch, [WELL])
    assert (code, clock.pauses) == (exits.OK, [])
    nobody = client.Unreachable(exits.DEPENDENCY, "nobody")
    reading = {**WELL, "controller": {"synced": False}}
    code, clock = waiting(monkeypatch, [nobody, reading, LACKING, WELL])
    assert (code, len(clock.pauses)) == (exits.OK, 3)
    assert capsys.readouterr() == ("", "")


def test_it_asks_again_soon_then_twice_a_second_and_gives_up_in_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, clock = waiting(monkeypatch, [LACKING])
    assert code == exits.CONFIG
    assert clock.pauses[:3] == pytest.approx([0.05, 0.075, 0.1125])
    assert max(clock.pauses) == clock.pauses[-1] == 0.5
    assert 29.5 <= sum(clock.pauses) <= 30.0
    assert capsys.readouterr().err == "gatewright: gave up waiting:\n  there are no objects\n"
    _, clock = waiting(monkeypatch, [LACKING], "--timeout", "50ms")
    assert len(clock.pauses) == 1, "a pause that ends with the time is still made"
    _, clock = waiting(monkeypatch, [LACKING], "--timeout", "49ms")
    assert clock.pauses == []


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (client.Unreachable(exits.DEPENDENCY, "no controller answers"), "no controller answers"),
        ({**WELL, "controller": {"synced": False}}, "the controller is still reading its source"),
        (
            {**WELL, "objects": [{**WELL["objects"][0], "status": None}]},
            "GatewayClass ours: has no condition Accepted",
        ),
        (
            {
                **WELL,
                "problems": [
                    {"severity": "error", "file": "a", "line": 0, "object": "", "path": "", "message": "cannot be read"}
                ],
            },
            "error a: cannot be read",
        ),
    ],
    ids=["nobody", "reading", "cluster-wide object", "file"],
)
def test_what_is_lacking_at_the_end_is_said(
    answer: dict[str, Any] | Exception, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert waiting(monkeypatch, [answer], "--timeout", "1ms")[0] == exits.CONFIG
    assert capsys.readouterr().err == f"gatewright: gave up waiting:\n  {line}\n"


def test_an_error_that_waiting_does_not_cure_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, clock = waiting(monkeypatch, [exits.Failure(exits.USAGE, "write KIND/NAME")])
    assert (code, clock.pauses) == (exits.USAGE, [])


def test_an_address_of_ipv6_and_the_patience_of_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def connect(host: str, port: int, timeout: float) -> object:
        asked.append((host, port, timeout))
        return SimpleNamespace(request=lambda *_: (_ for _ in ()).throw(TimeoutError("timed out")), close=lambda: None)

    monkeypatch.setattr(client.http.client, "HTTPConnection", connect)
    with pytest.raises(client.Unreachable, match=r"no controller answers on \[::1\]:18001 \(timed out\)") as failure:
        client.status("[::1]:18001", [])
    assert asked == [("::1", 18001, 10.0)]
    assert failure.value.code == exits.DEPENDENCY


def test_traces_of_changes_are_printed_one_below_the_other(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    one: dict[str, Any] = {
        "object": {**IGNORED, "read": "10:00", "file": "a.yaml", "status": {}, "ignored": ""},
        "resources": [],
        "states": [],
        "proxies": [],
    }
    other = {**one, "object": {**one["object"], "name": "q", "read": "", "file": ""}}
    server.answer = (200, json.dumps({"traces": [one, other]}))
    command = ["trace-change", "--admin", f"127.0.0.1:{server.server_port}"]
    assert cli.main([*command, "httproute"]) == exits.OK
    assert server.paths == ["/api/trace?object=httproute"]
    nothing = "no resource of its own in the state of any Gateway\n\nno conditions\n"
    assert capsys.readouterr().out == (
        f"HTTPRoute default/r, generation 1, read 10:00 from a.yaml\n\n{nothing}\n"
        f"HTTPRoute default/q, generation 1\n\n{nothing}"
    )
    assert cli.main([*command, "httproute/r", "gateway/none", "-o", "json"]) == exits.DEPENDENCY
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"traces": [one, other]} and shown.out.startswith('{\n  "traces"')
    assert shown.err == "gatewright: gateway/none: there is no such object\n"
    server.answer = (200, '{"traces": []}')
    assert cli.main([*command, "httproute"]) == exits.DEPENDENCY
    assert capsys.readouterr().out == ""
