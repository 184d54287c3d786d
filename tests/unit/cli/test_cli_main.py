"""The command line from outside: codes, texts, and what is (not) loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.cli import __main__ as cli
from controlplane.cli import command_options, exits, forward, parser, proxy
from tests.harness.patience import PATIENCE


def test_without_a_command_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == exits.USAGE
    text = capsys.readouterr().out
    assert "gatewright up" in text
    for code, meaning in exits.MEANINGS:
        assert f"{code:<4} {meaning}" in text


def test_exit_codes_that_scripts_rely_on() -> None:
    codes = (exits.OK, exits.CONFIG, exits.USAGE, exits.BIND, exits.DEPENDENCY, exits.INTERRUPTED)
    assert codes == (0, 1, 2, 3, 4, 130)
    assert [code for code, _ in exits.MEANINGS] == [*codes]


@pytest.mark.parametrize("command", [row.name for row in parser.COMMANDS if row.name != "proxy"])
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([command, "--help"])
    assert end.value.code == 0
    assert f"\n  gatewright {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["stauts"], "invalid choice: 'stauts'"),
        (["lint"], "PATH"),
        (["status", "--admin", "18001"], "write HOST:PORT"),
        (["wait", "--timeout", "soon"], "write 30s, 1m30s or 500ms"),
        (["up", "--proxies", "-1"], "--proxies"),
        (["up", "--port-offset", "many"], "is not a whole number"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_the_cure(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == exits.USAGE
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30.0), ("1m30s", 90.0), ("500ms", 0.5), ("2h", 7200.0)])
def test_durations(text: str, seconds: float) -> None:
    assert command_options.duration(text) == seconds


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version"]) == cli.main(["--version"]) == exits.OK
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert first.startswith("gatewright ")


def test_nothing_heavy_is_loaded_for_version() -> None:
    code = (
        "import sys; from controlplane.cli.__main__ import main; main(['version']);"
        "print([m for m in ('pydantic', 'grpc', 'aiohttp', 'yaml', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_status_and_wait_of_a_controller_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--admin", "127.0.0.1:1"]) == exits.DEPENDENCY
    told = capsys.readouterr().err
    assert "start one with `gatewright up FOLDER`" in told
    assert "A proxy that runs from one file has none: its own page is http://127.0.0.1:15000/config_dump" in told
    assert cli.main(["wait", "--admin", "127.0.0.1:1", "--timeout", "10ms"]) == exits.CONFIG
    assert "no controller answers on 127.0.0.1:1" in capsys.readouterr().err


def test_the_command_line_of_the_process_is_run_unless_another_one_is_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["gatewright", "version"])
    assert cli.main() == exits.OK
    assert capsys.readouterr().out.startswith("gatewright ")


@pytest.mark.parametrize("words", [[], ["--help"], ["-f", "config.yaml", "--version"]], ids=" ".join)
def test_all_words_behind_proxy_are_the_proxys(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[list[str]] = []

    def run(given: list[str]) -> int:
        heard.append(given)
        return 7

    monkeypatch.setattr(proxy, "run", run)
    assert (cli.main(["proxy", *words]), heard) == (7, [words])


def test_the_proxy_gets_its_own_command_line(tmp_path: Path) -> None:
    """`proxy` becomes `python -m dataplane`: seen with a data plane of one line."""
    (tmp_path / "dataplane").mkdir()
    (tmp_path / "dataplane" / "__init__.py").touch()
    (tmp_path / "dataplane" / "__main__.py").write_text("import sys; print(sys.argv[1:]); sys.exit(7)")
    command = [sys.executable, "-m", "controlplane.cli", "proxy", "-f", "config.yaml", "--help"]
    paths = os.pathsep.join((str(tmp_path), *sys.path))
    seen = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": paths}, check=False
    )
    ours, _, proxys = seen.stdout.rstrip().rpartition("\n")
    assert (proxys, seen.returncode) == ("['-f', 'config.yaml', '--help']", 7)
    assert all(option in ours for option in forward.OPTIONS), "the help of the proxy does not know them"


def test_what_looks_like_a_module_in_the_current_folder_is_not_run(tmp_path: Path) -> None:
    for name in ("dataplane", "yaml", "json"):
        (tmp_path / f"{name}.py").write_text("import sys; sys.exit(7)")
    command = [sys.executable, "-P", "-m", "controlplane.cli", "proxy", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path, check=False)
    assert done.returncode == 0 and "usage" in done.stdout.lower()
