"""`gatewright guard` as a command: masks, rejections, what waits on a stream, and files that have none."""

from __future__ import annotations

import io
import json
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.cli import __main__ as cli
from controlplane.cli import command_options, exits
from gatewright.api.backend.prompt_guard import PromptguardRequest

GUARDS = """
          request:
          - regex: {matches: ['(?i)project falcon'], action: Reject}
            response: {message: not this, statusCode: 400}
          - regex: {builtins: [Email]}
          response:
          - regex: {matches: ['secret']}
"""
POLICY = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: guards}
spec:
  targetRefs: [{group: gatewright.dev, kind: GatewayBackend, name: models}]
  backend:
    ai:
      promptGuard:
"""
FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: llm
      policies:
       ai:
        promptGuard:
"""
BACKENDS = "      backends: [{ai: {provider: {openai: {}}}}]\n"
PLACE = "GatewayPolicy default/guards spec.backend.ai.promptGuard"
Run = typing.Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_(content: str, text: str | bytes, *words: str) -> tuple[int, str, str]:
        path = tmp_path / "guards.yaml"
        path.write_text(content)
        given = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(given)))
        code = cli.main(["guard", "--policy", str(path), *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run_


def phases(run: Run, content: str, text: str, *words: str) -> dict[str, Any]:
    code, out, _ = run(content, text, "-o", "json", *words)
    assert code == exits.OK
    (found,) = json.loads(out).values()
    return dict(found)


def test_what_is_masked_is_shown_as_text(run: Run) -> None:
    assert run(POLICY + GUARDS, "ann@example.com\nhas a secret\n") == (
        exits.OK,
        f"""{PLACE}
  request: request[0].regex Allow, request[1].regex Mask
    | <EMAIL_ADDRESS>
    | has a secret
  response: response[0].regex Mask
    | ann@example.com
    | has a <masked>
    on a stream: the same; at most 6 bytes waited, 0 at the end (holdBack 1024)
""",
        "",
    )


def test_a_rejection_says_what_the_client_gets(run: Run) -> None:
    assert phases(run, POLICY + GUARDS, "Project Falcon")["request"] == {
        "guards": {"request[0].regex": "Reject"},
        "rejected": {"guard": "request[0].regex", "statusCode": 400, "message": "not this"},
    }


def test_what_may_still_become_a_match_waits_on_a_stream(run: Run) -> None:
    assert phases(run, POLICY + GUARDS, "a secr")["response"]["stream"] == {
        "text": "a secr",
        "holdBack": 1024,
        "mostHeld": 4,
        "heldAtEnd": 4,
    }


def test_the_file_of_a_proxy_has_guards_too(run: Run) -> None:
    file = FILE + GUARDS + BACKENDS
    assert phases(run, file, "a secret") == phases(run, POLICY + GUARDS, "a secret")


def test_a_server_is_not_asked(run: Run) -> None:
    webhook = "          response: [{webhook: {backendRef: {name: guard, port: 8000}}}]\n"
    found = phases(run, POLICY + webhook, "x" * 100)["response"]
    assert (found["guards"], found["text"]) == ({"response[0].webhook": "NotAsked"}, "x" * 100)


def test_a_scope_is_that_of_the_text(run: Run) -> None:
    narrow = "          request: [{regex: {matches: [x]}, scope: [ToolOutput]}]\n"
    assert phases(run, POLICY + narrow, "x")["request"] == {"guards": {}, "text": "x"}
    assert phases(run, POLICY + narrow, "x", "--scope", "ToolOutput")["request"]["text"] == "<masked>"


def test_scopes_are_those_of_the_api() -> None:
    hint = typing.get_type_hints(PromptguardRequest)["scope"]
    (sequence,) = (each for each in typing.get_args(hint) if each is not type(None))
    assert typing.get_args(typing.get_args(sequence)[0]) == command_options.SCOPES


@pytest.mark.parametrize(
    ("content", "text", "message"),
    [
        (POLICY + "          request: [{regex: {matches: ['(']}}]\n", "x", "matches[0]"),
        (POLICY.replace("promptGuard:", "modelAliases: {a: b}"), "x", "has no promptGuard"),
        (POLICY + GUARDS, b"\xff", "the text is not UTF-8"),
        ("a: [", "x", "not YAML"),
    ],
    ids=["a pattern that is none", "no guards", "no text", "no YAML"],
)
def test_what_cannot_be_tried_is_an_error(content: str, text: str | bytes, message: str, run: Run) -> None:
    code, out, error = run(content, text)
    assert (code, out) == (exits.CONFIG, "") and message in error


def test_patterns_that_are_too_large_together_are_named(run: Run) -> None:
    large = ", ".join(f"'(?i)[\\p{{L}}{index}]{{200}}'" for index in range(40))
    code, _, error = run(POLICY + f"          request: [{{regex: {{matches: [{large}]}}}}]\n", "x")
    assert code == exits.CONFIG and "request[0].regex.matches[" in error


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["guard", "--policy", str(tmp_path / "none.yaml")]) == exits.DEPENDENCY
    assert "cannot be read" in capsys.readouterr().err
