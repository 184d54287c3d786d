"""`gatewright status --watch` and its exit codes, with answers as literals."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from controlplane.cli import __main__ as cli
from controlplane.cli import exits
from controlplane.cli.asking import client, status
from tests.harness import yamls

BODY: dict[str, Any] = {
    "controller": {"version": "1", "pid": 7, "source": "/gw", "uptimeSeconds": 1},
    "notes": [],
    "proxies": [],
    "objects": [],
    "problems": [],
}


class Ended(Exception):
    """Nothing more is asked."""


def answering(monkeypatch: pytest.MonkeyPatch, *bodies: dict[str, Any]) -> None:
    left = list(bodies)

    def ask(_admin: str, _objects: list[str]) -> dict[str, Any]:
        if not left:
            raise Ended
        return left.pop(0)

    monkeypatch.setattr(client, "status", ask)
    monkeypatch.setattr(status, "time", type("Clock", (), {"sleep": staticmethod(lambda _: None)}))


def test_watch_prints_again_what_is_another_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    later = {**BODY, "controller": {**BODY["controller"], "uptimeSeconds": 2}}
    answering(monkeypatch, BODY, later, {**later, "notes": ["something changed"]}, later)
    with pytest.raises(Ended):
        cli.main(["status", "--watch"])
    text = capsys.readouterr().out
    assert text.count("controller 1, process 7") == 3, "once at first, and for each of the two changes"
    assert text.count("something changed") == 1


def test_the_exit_code_is_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    problem = {"severity": "error", "file": "a", "line": 1, "object": "", "path": "", "message": "m"}
    wrong = {**BODY, "problems": [problem]}
    answering(monkeypatch, wrong, wrong, BODY)
    assert cli.main(["status"]) == exits.OK
    assert cli.main(["status", "--exit-code"]) == exits.CONFIG
    assert cli.main(["status", "--exit-code"]) == exits.OK


def test_yaml_has_the_same_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:

    answering(monkeypatch, BODY)
    assert cli.main(["status", "-o", "yaml"]) == exits.OK
    assert yamls.load(capsys.readouterr().out) == BODY


def test_forms(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"kind": "Service", "namespace": "shop", "name": "cart", "generation": 3, "file": "a.yaml", "status": None}
    ignored = {**row, "kind": "HTTPRoute", "ignored": "names no parent"}
    answering(monkeypatch, *[{**BODY, "objects": [ignored]}] * 4)
    shown = {}
    for form in ("text", "wide", "json", "yaml"):
        assert cli.main(["status", "-o", form]) == exits.OK
        shown[form] = capsys.readouterr().out
    assert "a.yaml" in shown["wide"] and "a.yaml" not in shown["text"]
    assert shown["json"].startswith('{\n  "controller": {\n    "version"')
    assert shown["yaml"].startswith("controller:\n  version:"), "what is most important comes first"


class Stdout(io.StringIO):
    """A pipe's reader sees what was flushed."""

    seen = ""

    def flush(self) -> None:
        self.seen = self.getvalue()


def test_a_reader_of_a_pipe_sees_each_answer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", out := Stdout())
    seen: list[str] = []
    bodies = [BODY, {**BODY, "notes": ["changed"]}]

    def ask(_admin: str, _objects: list[str]) -> dict[str, Any]:
        seen.append(out.seen)
        if not bodies:
            raise Ended
        return bodies.pop(0)

    monkeypatch.setattr(client, "status", ask)
    monkeypatch.setattr(status, "time", type("Clock", (), {"sleep": staticmethod(lambda _: None)}))
    with pytest.raises(Ended):
        cli.main(["status", "--watch"])
    assert [("controller 1" in each, "changed" in each) for each in seen] == [
        (False, False),
        (True, False),
        (True, True),
    ]


def test_watch_is_not_about_how_far_a_proxy_is_behind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proxy = {
        "instance": "one",
        "gateway": "a/b",
        "state": "Stale",
        "lag_seconds": 1.0,
        "acknowledged": "",
        "refusals": [],
    }
    bodies = [{**BODY, "proxies": [{**proxy, **more}]} for more in ({}, {"lag_seconds": 2.0}, {"state": "Refused"})]
    answering(monkeypatch, *bodies)
    with pytest.raises(Ended):
        cli.main(["status", "--watch"])
    assert capsys.readouterr().out.count("controller 1") == 2
