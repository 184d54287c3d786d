"""`gatewright up FILE` runs one proxy from the file of a proxy alone, and says what else may not be a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controlplane.cli import exits
from controlplane.cli.__main__ import main
from gatewright.api.decode import documents
from gatewright.api.lint.lint import is_standalone
from tests.outside.mistakes import FILE


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command lines of programs that the process became."""
    found: list[list[str]] = []

    def become(program: str, command: list[str]) -> None:
        found.append(command[4:])
        raise SystemExit(0)

    monkeypatch.setattr(os, "execv", become)
    return found


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    return str(path)


@pytest.mark.parametrize(("options", "more"), [([], []), (["--workers", "3"], ["--workers", "3"])])
def test_it_becomes_the_proxy(file: str, options: list[str], more: list[str], became: list[list[str]]) -> None:
    with pytest.raises(SystemExit):
        main(["up", file, *options])
    assert became == [["-f", file, *more]]


OF_ALL_KINDS = """binds:
- port: 3000
  listeners:
  - routes:
    - backends: [{ai: {provider: {openai: {}}}}]
    - matches: [{path: {value: /tools}}]
      backends: [{mcp: {targets: [{name: a, static: {host: 127.0.0.1, port: 1}}]}}]
    - matches: [{grpc: {}}]
      backends: [{host: "127.0.0.1:1"}]
- port: 8443
  listeners:
  - protocol: HTTPS
    hostname: shop.example
    tls: {certificateRefs: [{tls.crt: {file: a}, tls.key: {file: b}}]}
    routes: [{backends: [{host: "127.0.0.1:1"}]}]
- {port: 5432, listeners: [{protocol: TCP, tcpRoutes: [{backends: [{host: "127.0.0.1:1"}]}]}]}
- {port: 9000, addresses: ["192.0.2.1"], listeners: [{routes: [{backends: [{host: "127.0.0.1:1"}]}]}]}
"""
BODY = '{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}'
TRIES = f"""
  curl -i -H 'content-type: application/json' -d '{BODY}' http://127.0.0.1:3000/v1/chat/completions
  npx @modelcontextprotocol/inspector --cli http://127.0.0.1:3000/tools --transport http --method tools/list
  curl -i -k --resolve shop.example:8443:127.0.0.1 https://shop.example:8443/
  nc 127.0.0.1 5432
"""


def test_it_says_what_to_try_first(tmp_path: Path, became: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(OF_ALL_KINDS)
    with pytest.raises(SystemExit):
        main(["up", str(path)])
    said = capsys.readouterr().err
    assert f"serves {path}: http://127.0.0.1:3000 https://127.0.0.1:8443 tcp://127.0.0.1:5432\n" in said
    assert f"Try, as soon as the log says ready:{TRIES}" in said and "192.0.2.1" not in said


@pytest.mark.parametrize("text", [FILE.replace("port: 8080", "port: 0"), FILE + "#" * 300_000])
def test_of_a_file_with_mistakes_or_a_large_one_it_says_nothing(
    text: str, tmp_path: Path, became: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(SystemExit):
        main(["up", str(path)])
    assert capsys.readouterr().err == "" and became == [["-f", str(path)]]


@pytest.mark.parametrize("option", [["--proxies", "3"], ["--port-offset", "10"]])
def test_what_takes_more_than_one_proxy_is_refused(
    file: str, option: list[str], became: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", file, *option]) == exits.USAGE
    assert f"{option[0]} is for a folder; {file} is run by one proxy" in capsys.readouterr().err
    assert became == []


def test_a_file_of_objects_is_not_for_one_proxy(
    tmp_path: Path, became: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n")
    assert main(["up", str(path)]) == exits.DEPENDENCY
    said = capsys.readouterr().err
    assert "is not the file of a proxy alone, which begins with binds. Of objects, name the folder" in said
    assert became == []


def test_a_folder_of_objects_says_what_such_a_file_is() -> None:
    assert is_standalone(FILE)
    (found,) = documents.decode(FILE, "a.yaml")
    (problem,) = found.problems
    assert problem.message.startswith("is the file of a proxy alone, not an object: `gatewright up FILE` runs it")
