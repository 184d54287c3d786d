"""What a command line means: defaults, the bounds of what may be written, and how a command ends."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from controlplane.cli import __main__ as cli
from controlplane.cli import exits, parser
from controlplane.cli.offline import version

CLIENT = {"admin": "127.0.0.1:18001"}
SERVER = {"socket": None, "xds": "127.0.0.1:18000", "admin": "127.0.0.1:18001", "admin_host": []}
UP = {"dir": "examples/quickstart", "quiet": False, "proxies": 2, "port_offset": 0, "workers": None, **SERVER}
PAGES = ("stats", "readiness")
FLEET = dict.fromkeys(("xds_tls_cert", "xds_tls_key", "xds_token_file", "xds_client_ca"))
LOG = {"log_level": "info", "log_format": "text"}
CLUSTER = {"kubernetes": False, **dict.fromkeys(("kubeconfig", "context", "namespace", "namespace_selector"))}
PROXIES = {
    "no_provisioning": False,
    **dict.fromkeys(("proxy_image_registry", "proxy_image_repository", "proxy_image_tag", "proxy_xds")),
}
IDENTITY = {"peers": None, "xds_service_accounts": False, "mcp_selectors_need_grants": False}
OPERATION = {**FLEET, **CLUSTER, **PROXIES, **IDENTITY, "xds_insecure": False, **LOG, **dict.fromkeys(PAGES, "off")}
CEL = {"file": None, "variables": None, "moment": "end", "plan": True, "output": "text"}


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        (["up"], UP),
        (["up", "d", "-q", "--proxies", "0"], {**UP, "dir": "d", "quiet": True, "proxies": 0}),
        (["up", "--workers", "3", "--port-offset", "7000"], {**UP, "workers": 3, "port_offset": 7000}),
        (["controller", "d"], {"dir": "d", **SERVER, **OPERATION}),
        (["controller", "d", "--stats", "[::]:18002"], {"dir": "d", **SERVER, **OPERATION, "stats": "[::]:18002"}),
        (
            ["controller", "d", "--admin-host", "Ops.Example", "--admin-host", "b"],
            {"dir": "d", **SERVER, **OPERATION, "admin_host": ["ops.example", "b"]},
        ),
        (["lint", "a", "b"], {"paths": ["a", "b"], "output": "text", "strict": False, "elsewhere": []}),
        (["cel", "x"], {"expression": "x", **CEL}),
        (["cel", "--no-plan", "--json"], {"expression": None, **CEL, "plan": False, "output": "json"}),
        (["guard", "--policy", "p"], {"policy": "p", "scope": "Messages", "output": "text"}),
        (["status"], {"objects": [], "output": "text", "watch": False, "exit_code": False, **CLIENT}),
        (["trace-change", "a/b"], {"objects": ["a/b"], "output": "text", **CLIENT}),
        (["wait", "a"], {"objects": ["a"], "condition": None, "timeout": 30.0, **CLIENT}),
        (["version"], {"output": "text"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_a_command_line_means(words: list[str], meaning: dict[str, object]) -> None:
    assert vars(parser.build().parse_args(words)) == {"version": False, "command": words[0], **meaning}


@pytest.mark.parametrize("text", ["127.0.0.1:0", "127.0.0.1:65535", "[::1]:18001", "localhost:1"])
def test_addresses(text: str) -> None:
    assert parser.build().parse_args(["status", "--admin", text]).admin == text


@pytest.mark.parametrize("text", ["18001", ":18001", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http"])
def test_what_is_no_address(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["status", "--admin", text])
    assert end.value.code == exits.USAGE
    assert f"'{text}' is not an address; write HOST:PORT" in capsys.readouterr().err


def test_the_bounds_of_durations(capsys: pytest.CaptureFixture[str]) -> None:
    """GEP-2257: up to four parts of up to five digits."""
    for text, seconds in (("99999h", 99999 * 3600.0), ("1h1m1s1ms", 3661.001), ("0s", 0.0)):
        assert parser.build().parse_args(["wait", "--timeout", text]).timeout == seconds
    for text in ("100000s", "1h1m1s1ms1s", "1.5s", "", "s"):
        with pytest.raises(SystemExit):
            cli.main(["wait", "--timeout", text])
        assert f"{text!r} is not a duration" in capsys.readouterr().err


def test_the_codes_that_scripts_rely_on() -> None:
    assert [code for code, _ in exits.MEANINGS] == [0, 1, 2, 3, 4, 130]
    names = (exits.OK, exits.CONFIG, exits.USAGE, exits.BIND, exits.DEPENDENCY, exits.INTERRUPTED)
    assert names == (0, 1, 2, 3, 4, 130)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (exits.Failure(exits.BIND, "taken"), exits.BIND, "gatewright: taken\n"),
        (
            ModuleNotFoundError("no", name="grpc.aio"),
            exits.DEPENDENCY,
            "gatewright: the package 'grpc.aio' is not installed; `pip install gatewright` brings it\n",
        ),
        (KeyboardInterrupt(), exits.INTERRUPTED, ""),
    ],
    ids=["failure", "package", "Ctrl-C"],
)
def test_how_a_command_ends(
    error: BaseException, code: int, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(version, "run", lambda _: (_ for _ in ()).throw(error))
    assert cli.main(["version"]) == code
    assert capsys.readouterr() == ("", text)


@pytest.mark.parametrize("name", ["controlplane.absent", "gatewright.absent", "dataplane", None])
def test_a_module_of_the_product_that_is_absent_is_a_bug(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    error = ModuleNotFoundError("no", name=name)
    monkeypatch.setattr(version, "run", lambda _: (_ for _ in ()).throw(error))
    if name is None:
        assert cli.main(["version"]) == exits.DEPENDENCY
    else:
        with pytest.raises(ModuleNotFoundError):
            cli.main(["version"])


@pytest.mark.leaves("where the rest goes, until the process ends")
def test_a_reader_who_has_seen_enough_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """`gatewright status | head`: what is written after that goes nowhere."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        monkeypatch.setattr(version, "run", lambda _: (_ for _ in ()).throw(BrokenPipeError()))
        assert cli.main(["version"]) == exits.OK
        assert os.write(writing, b"rest") == 4


def test_the_version_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version", "-o", "json"]) == exits.OK
    shown = json.loads(capsys.readouterr().out)
    assert shown["python"] == ".".join(map(str, sys.version_info[:3])) and shown["version"]
    assert cli.main(["--version"]) == exits.OK
    assert capsys.readouterr().out == f"gatewright {shown['version']}\n"


def test_help_names_the_first_steps_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["up", "--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    for option in ("--quiet", "-q", "--proxies N", "--port-offset N", "--workers N", "--socket PATH", "--admin ADDR"):
        assert option in shown
    assert "Run everything on this machine" in shown
    with pytest.raises(SystemExit):
        cli.main(["up", "--prox", "1"])  # no abbreviations: a later option must not change what a script means
    assert "unrecognized arguments: --prox" in capsys.readouterr().err


@pytest.mark.parametrize("inputs", [[b"kind: [", b""], [b"\xff", b""]])
def test_lint_of_standard_input_that_is_no_yaml(
    inputs: list[bytes], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(inputs[0])))
    assert cli.main(["lint", "-"]) == exits.CONFIG
    assert capsys.readouterr().out.startswith("<standard input>:")


def test_lint_of_a_path_that_is_not_there_and_of_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The absent path decides the code, also beside standard input; what was read is counted."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    assert cli.main(["lint", str(tmp_path / "no"), "-", "-o", "json"]) == exits.DEPENDENCY
    assert json.loads(capsys.readouterr().out)["objects"] == 0
