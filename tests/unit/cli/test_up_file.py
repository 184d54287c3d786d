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
