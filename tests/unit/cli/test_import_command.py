"""`gatewright import`: what becomes of the file of a desktop MCP client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli import __main__ as command
from gatewright.api.standalone import standalone
from gatewright.api.standalone.imported import mcp_clients
from gatewright.api.standalone.imported.mcp_clients import NotAClientsFile, imported
from tests.harness import yamls

SECRET = "s3cret-value-of-a-variable"


def of(**servers: Any) -> mcp_clients.Imported:
    return imported(json.dumps({"mcpServers": servers}))


def targets(found: mcp_clients.Imported) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = found.document["binds"][0]["listeners"][0]["routes"][0]["backends"][0]["mcp"][
        "targets"
    ]
    return made


@pytest.mark.parametrize(
    ("entry", "static"),
    [
        ({"url": "http://localhost:3001/mcp"}, {"host": "localhost", "port": 3001, "path": "/mcp"}),
        ({"url": "http://a.test"}, {"host": "a.test", "port": 80}),
        (
            {"type": "http", "url": "https://a.test/x"},
            {"host": "a.test", "port": 443, "path": "/x", "policies": {"tls": {}}},
        ),
        (
            {"type": "streamable-http", "url": "http://a.test/x", "alwaysAllow": ["y"]},
            {"host": "a.test", "port": 80, "path": "/x"},
        ),
        ({"serverUrl": "http://[::1]:9/mcp"}, {"host": "::1", "port": 9, "path": "/mcp"}),
    ],
)
def test_servers_on_the_network(entry: Any, static: dict[str, Any]) -> None:
    found = of(one=entry)
    assert found.left_out == {}
    assert targets(found) == [{"name": "one", "static": {**static, "protocol": "StreamableHTTP"}}]
    loaded = standalone.load(yamls.dump(found.document), "config.yaml")
    assert [str(each) for each in loaded.problems] == []
    assert found.document["binds"][0]["addresses"] == ["127.0.0.1"]  # what they may do is for this machine


@pytest.mark.parametrize(
    "value", ["Bearer ${TOKEN}", "${env:TOKEN}", f"Bearer {SECRET}", SECRET, 7, "Bearer ${TOKEN} and more"]
)
@pytest.mark.parametrize("host", ["a.test", "1a.test"])
def test_a_credential_of_a_server_is_one_of_the_environment_and_never_copied(host: str, value: Any) -> None:
    names_it = value in ("Bearer ${TOKEN}", "${env:TOKEN}")
    variable = "TOKEN" if names_it else {"a.test": "A_TEST", "1a.test": "_1A_TEST"}[host] + "_AUTHORIZATION"
    for name in ("Authorization", "authorization"):
        found = of(one={"url": f"http://{host}/", "headers": {name: value}})
        (target,) = targets(found)
        assert target["static"]["policies"] == {"auth": {"secretRef": {"env": variable}}}
        assert SECRET not in str(found)
    assert list(of(one={"url": f"http://{host}/", "headers": {}}).carried) == ["one"]


def test_names_become_names_of_targets() -> None:
    found = of(**{"My Server": {"url": "http://a"}, "my_server": {"url": "http://b"}, "é": {"url": "http://c"}})
    assert found.carried == {"My Server": "my-server", "my_server": "my-server-2", "é": "server"}


URL = {"url": "http://a.test/mcp"}
LEFT_OUT = [
    # entry, what the reason says
    (7, "no object"),
    ({}, "needs either command or url"),
    ({"url": "http://a", "command": "x"}, "either command or url"),
    ({**URL, "type": "carrier-pigeon"}, "type: none of"),
    ({**URL, "type": "stdio"}, "does not go with url"),
    ({"command": "x", "type": "http"}, "does not go with command"),
    ({**URL, "unheard": 1}, "unheard: not known"),
    ({"command": "x", "cwd": "/"}, "cwd: a process has the proxy's own folder"),
    ({"command": "x", "envFile": ".env"}, "envFile: set these variables for the proxy"),
    ({**URL, "oauth": {}}, "oauth: clients log in with the gateway"),
    ({"command": ""}, "command: no text"),
    ({"command": "x", "args": "y"}, "args: no list"),
    ({"command": "x", "args": [7]}, "args: no list"),
    ({"command": "x", "env": [7]}, "env: no object"),
    ({"command": "x", "env": {"A B": "1"}}, "a name that no variable has"),
    ({"command": "x", "env": {"A": {}}}, "env.A: no text"),
    ({"command": "x", "args": ["--api-key", SECRET]}, "args[1]: it looks like a secret"),
    ({"command": "x", "args": [f"--token={SECRET}"]}, "args[0]: it looks like a secret"),
    ({"command": "x", "args": ["sk-abcdefghijklmnop"]}, "args[0]: it looks like a secret"),
    ({"command": "x", "args": ["${TOKEN}"]}, "variables stand in env alone"),
    ({"url": "ftp://a"}, "neither http nor https"),
    ({"url": 7}, "url: no text"),
    ({"url": "http://[::1"}, "url: it is none"),
    ({"url": "http://${HOST}/mcp"}, "neither http nor https"),
    ({"url": f"http://a/mcp?key={SECRET}"}, "may be a secret"),
    ({"url": f"http://user:{SECRET}@a/mcp"}, "may be a secret"),
    ({**URL, "headers": {"X-Key": SECRET}}, "headers.X-Key: only Authorization"),
    ({**URL, "headers": [SECRET]}, "headers: no object"),
    ({"url": "http://a/" + "x" * 2000}, "path"),
]


@pytest.mark.parametrize(("entry", "reason"), LEFT_OUT)
def test_what_cannot_be_carried_is_named_with_its_reason(entry: Any, reason: str) -> None:
    found = of(bad=entry, good=URL)
    assert list(found.carried) == ["good"]
    assert reason in found.left_out["bad"]
    assert SECRET not in str(found)


def test_more_servers_than_a_backend_has() -> None:
    found = of(**{f"s{number}": URL for number in range(34)})
    assert (len(found.carried), list(found.left_out)) == (32, ["s32", "s33"])


def test_commands() -> None:
    entry = {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": SECRET, "MODE": "${env:OTHER}"}}
    found = of(one=entry)
    assert SECRET not in str(found)
    stdio = {"cmd": "npx", "args": ["-y", "server"], "envFrom": {"MODE": "OTHER"}}
    assert targets(found) == [{"name": "one", "stdio": stdio}]
    assert found.variables == ["TOKEN", "OTHER"]


def test_a_server_that_wants_another_value_of_a_variable_has_a_variable_of_its_own() -> None:
    """Processes share the proxy's environment, in which a variable has one value."""
    first = {"command": "x", "env": {"MODE": "a", "TOKEN": SECRET}}
    others = {
        "6 b": {"command": "x", "env": {"LEVEL": "1", "MODE": "b"}},
        "6-b": {"command": "x", "env": {"MODE": "c"}},
    }
    found = of(
        one=first, same={**first, "env": {"MODE": "a"}}, **others, taken={"command": "x", "env": {"GH": "${MODE}"}}
    )
    assert found.left_out == {} and SECRET not in str(found)
    assert found.variables == ["MODE", "TOKEN", "LEVEL", "_6_B_MODE", "_6_B_2_MODE"]
    assert [each["stdio"].get("envFrom") for each in targets(found)] == [
        *(None, None, {"MODE": "_6_B_MODE"}, {"MODE": "_6_B_2_MODE"}, {"GH": "MODE"})
    ]
    assert [str(each) for each in standalone.load(yamls.dump(found.document), "config.yaml").problems] == []


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}])
def test_a_server_that_the_client_does_not_use_is_no_failure(off: Any, tmp_path: Path) -> None:
    found = of(one=URL, other={"command": "x", **off})
    assert (list(found.carried), found.disabled, found.left_out) == (["one"], ["other"], {})
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": URL, "other": {"command": "x", **off}}}))
    assert command.main(["import", str(file), "-o", str(tmp_path / "out.yaml")]) == 0


def test_one_server_that_does_not_start_leaves_the_others() -> None:
    found = of(one=URL, other={"command": "x"})
    assert found.document["binds"][0]["listeners"][0]["routes"][0]["backends"][0]["mcp"]["failureMode"] == "FailOpen"


def test_a_command_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mcp.json"
    servers = {"here": {"command": "sh"}, "gone": {"command": "no-such-command"}}
    file.write_text(json.dumps({"mcpServers": servers}))
    assert command.main(["import", str(file), "-o", str(tmp_path / "out.yaml")]) == 0
    shown = capsys.readouterr().err
    assert "not found here: no-such-command (target gone)" in shown and "not found here: sh" not in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON: line 1 column 2"),
        ("[" * 100_000, "^not JSON: nested too deeply$"),
        ("[]", "no object mcpServers"),
        ("{}", "no object mcpServers"),
        ('{"mcpServers": []}', "no object mcpServers"),
    ],
)
def test_what_is_no_clients_file(text: str, message: str) -> None:
    with pytest.raises(NotAClientsFile, match=message):
        imported(text)


def test_the_list_of_other_editors() -> None:
    assert imported(json.dumps({"servers": {"a": URL}})).carried == {"a": "a"}


# --- the command


def run(tmp_path: Path, content: str, *more: str) -> int:
    file = tmp_path / "mcp.json"
    file.write_text(content)
    return command.main(["import", str(file), *more])


def test_a_file_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "config.yaml"
    content = json.dumps({"mcpServers": {"a": URL, "b": {"command": "x", "cwd": "/"}}})
    assert run(tmp_path, content, "-o", str(output), "--port", "4000") == 1
    told = capsys.readouterr().err
    assert "carried: a (target a)" in told and "left out: b: cwd" in told
    assert yamls.load(output.read_text())["binds"][0]["port"] == 4000
    assert run(tmp_path, content, "-o", str(output)) == 2
    assert "exists; name another file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("servers", "more", "said"),
    [
        ({}, (), "it names no servers\n"),
        ({"a": URL}, (), "carried: a (target a)\n"),
        ({"a": URL}, ("-o", "{}"), "carried: a (target a)\nrun it: gatewright-proxy -f {}\n"),
        (
            {"a": {"command": "sh", "env": {"B": "1", "C": "2"}}},
            (),
            "carried: a (target a)\nset for the proxy, where they are not yet: B, C\n",
        ),
        ({"a": 7}, ("-o", "{}"), "left out: a: it is no object\n"),
    ],
    ids=["nothing", "one", "into a file", "variables", "none"],
)
def test_what_is_said_of_it(
    servers: dict[str, Any], more: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "config.yaml"
    run(tmp_path, json.dumps({"mcpServers": servers}), *(word.format(output) for word in more))
    assert capsys.readouterr().err == said.format(output)
    assert output.exists() == ("run it" in said)


def test_everything_was_carried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, json.dumps({"mcpServers": {"a": URL}})) == 0
    assert standalone.load(capsys.readouterr().out, "config.yaml").problems == ()


def test_the_file_says_which_variables_it_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for env, said in (({}, []), ({"TOKEN": SECRET, "MODE": "x"}, ["# It reads these variables: TOKEN, MODE"])):
        assert run(tmp_path, json.dumps({"mcpServers": {"a": {"command": "x", "env": env}}})) == 0
        text = capsys.readouterr().out
        assert [line for line in text.splitlines() if "variables" in line] == said and SECRET not in text


@pytest.mark.parametrize(("content", "code"), [("{", 1), ('{"mcpServers": {}}', 1)])
def test_nothing_to_carry(content: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, content) == code
    assert capsys.readouterr().out == ""


def test_a_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mcp.json"
    assert command.main(["import", str(file)]) == 4
    assert capsys.readouterr().err == f"gatewright: {file} cannot be read: No such file or directory\n"
    file.write_bytes(b"{\xff")
    assert command.main(["import", str(file)]) == 4
    assert f"{file} cannot be read: 'utf-8' codec can't decode byte 0xff" in capsys.readouterr().err


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "no" / "config.yaml"
    assert run(tmp_path, json.dumps({"mcpServers": {"a": URL}}), "-o", str(output)) == 4
    assert capsys.readouterr().err == f"gatewright: {output} cannot be written: No such file or directory\n"


def test_the_file_begins_with_what_it_is_and_names_come_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, json.dumps({"mcpServers": {"a": URL}}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "# Made of mcp.json by `gatewright import`. It serves this machine alone.",
        "# gatewright-proxy -f THIS-FILE",
    ]
    fields = [line.strip(" -").partition(":")[0] for line in lines]
    assert fields.index("port") < fields.index("addresses") < fields.index("listeners")
