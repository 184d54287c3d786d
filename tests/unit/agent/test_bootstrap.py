"""Flags, environment and the file's own settings: who wins, and errors that name what is wrong and the cure."""

from __future__ import annotations

import os

import pytest

from dataplane.bootstrap import parse as command_line
from dataplane.settings import Address, Defaults, Drain, Settings, WorkerSettings
from gatewright.version import VERSION

KEY = "0123456789abcdef" * 4


def parse(*argv: str, env: dict[str, str] | None = None, file: Defaults | None = None) -> Settings:
    return command_line.parse(["-f", "config.yaml", *argv], {"SESSION_KEY": KEY, **(env or {})}, file)


def complaint(capsys: pytest.CaptureFixture[str], *argv: str, env: dict[str, str] | None = None) -> str:
    with pytest.raises(SystemExit) as ended:
        command_line.parse(argv, env or {})
    assert ended.value.code == 2
    return capsys.readouterr().err.rpartition("error: ")[2]


def test_the_defaults() -> None:
    settings = parse()
    assert (settings.xds, settings.gateway, settings.port_offset, settings.parent_fd) == (None, "", 0, None)
    assert settings.workers >= 1
    assert settings.instance and settings.notify_socket == ""
    assert [str(page) for page in (settings.pages.admin, settings.pages.stats, settings.pages.readiness)] == [
        "127.0.0.1:15000",
        "[::]:15020",
        "[::]:15021",
    ]
    assert settings.drain == Drain(10.0, 60.0)
    assert (settings.logging.level, settings.logging.format) == ("info", "text")
    assert settings.session_key.value == bytes.fromhex(KEY)
    assert settings.warnings == ()


def test_names_of_the_admin_pages() -> None:
    assert parse().pages.admin_hosts == frozenset()
    given = parse("--admin-host", "Ops.Example", "--admin-host", "b")
    assert given.pages.admin_hosts == {"ops.example", "b"}


def test_flags_win_over_the_environment_and_that_over_the_file() -> None:
    env = {"GATEWRIGHT_XDS": "10.0.0.1:18000", "GATEWRIGHT_GATEWAY": "default/env"}
    file = Defaults(xds="10.0.0.2:18000", gateway="default/file", workers=3, admin="off", log_level="warn")
    assert str(parse(env=env, file=file).xds) == "10.0.0.1:18000"
    assert parse(env=env, file=file).gateway == "default/env"
    assert parse("--gateway", "default/flag", env=env, file=file).gateway == "default/flag"
    assert str(parse("--xds", "unix:/run/gw.sock", env=env, file=file).xds) == "unix:/run/gw.sock"
    assert str(parse(file=file).xds) == "10.0.0.2:18000"
    assert (parse(file=file).workers, parse("--workers", "2", file=file).workers) == (3, 2)
    assert parse(file=file).pages.admin is None
    assert parse("--admin", "localhost:9", file=file).pages.admin == Address("localhost", 9)
    assert (parse(file=file).logging.level, parse("--log-level", "debug", file=file).logging.level) == ("warn", "debug")


def test_the_offset_moves_the_default_pages_but_not_those_that_are_given() -> None:
    settings = parse("--port-offset", "1000", "--stats", "127.0.0.1:15020", "--readiness", "off")
    assert (str(settings.pages.admin), str(settings.pages.stats)) == ("127.0.0.1:16000", "127.0.0.1:15020")
    assert settings.pages.readiness is None


def test_any_port_moves_the_default_pages_but_not_those_that_are_given(capsys: pytest.CaptureFixture[str]) -> None:
    settings = parse("--any-port", "--stats", "127.0.0.1:15020", env={"NOTIFY_SOCKET": "/run/notify"})
    assert (settings.port_offset, settings.notify_socket) == (None, "/run/notify")
    assert [str(page) for page in (settings.pages.admin, settings.pages.stats, settings.pages.readiness)] == [
        "127.0.0.1:0",
        "127.0.0.1:15020",
        "[::]:0",
    ]
    assert "not allowed with" in complaint(capsys, "-f", "a.yaml", "--any-port", "--port-offset", "1")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:1", Address("127.0.0.1", 1)),
        ("[::1]:15000", Address("::1", 15000)),
        ("localhost:15000", Address("localhost", 15000)),
        ("unix:/run/a.sock", Address(path="/run/a.sock")),
    ],
)
def test_page_addresses(text: str, address: Address) -> None:
    found = parse("--admin", text).pages.admin
    assert found == address
    assert str(found) == text


@pytest.mark.parametrize(
    ("env", "drain"),
    [
        ({"CONNECTION_MIN_TERMINATION_DEADLINE": "5s"}, Drain(5, 60)),
        ({"CONNECTION_MIN_TERMINATION_DEADLINE": "500ms"}, Drain(0.5, 60)),
        ({"TERMINATION_GRACE_PERIOD_SECONDS": "30"}, Drain(10, 30)),
        ({"TERMINATION_GRACE_PERIOD_SECONDS": "3"}, Drain(3, 3)),
        ({"CONNECTION_MIN_TERMINATION_DEADLINE": "90"}, Drain(90, 90)),
        ({"CONNECTION_MIN_TERMINATION_DEADLINE": "0", "TERMINATION_GRACE_PERIOD_SECONDS": "2m"}, Drain(0, 120)),
        ({"CONNECTION_MIN_TERMINATION_DEADLINE": ""}, Drain(10, 60)),
    ],
)
def test_shutdown_times(env: dict[str, str], drain: Drain) -> None:
    assert parse(env=env).drain == drain


@pytest.mark.parametrize(
    ("argv", "env", "words"),
    [
        ([], {}, ["-f FILE", "--xds"]),
        (["--xds", "unix:/s"], {}, ["--gateway", "GATEWRIGHT_GATEWAY"]),
        (["--xds", "nonsense", "--gateway", "a/b"], {}, ["--xds", "HOST:PORT"]),
        (["--xds", "unix:", "--gateway", "a/b"], {}, ["--xds", "unix:/"]),
        (["-f", "x"], {"GATEWRIGHT_XDS": "h:99999"}, ["GATEWRIGHT_XDS", "HOST:PORT"]),
        (["-f", "x", "--gateway", "web"], {}, ["--gateway", "NAMESPACE/NAME"]),
        (["-f", "x", "--gateway", "Default/Web"], {}, ["--gateway", "NAMESPACE/NAME"]),
        (["-f", "x", "--workers", "0"], {}, ["--workers", "1 to"]),
        (["-f", "x", "--workers", "two"], {}, ["--workers", "whole number"]),
        (["-f", "x", "--admin", "example.com:1"], {}, ["--admin", "example.com", "IP:PORT"]),
        (["-f", "x", "--instance", "a/b"], {}, ["--instance"]),
        (["-f", "x", "--log-format", "xml"], {}, ["--log-format", "json"]),
        (["-f", "x"], {"SESSION_KEY": "abc"}, ["SESSION_KEY", "64 hex", "openssl"]),
        (["-f", "x"], {"TERMINATION_GRACE_PERIOD_SECONDS": "-1"}, ["TERMINATION_GRACE_PERIOD_SECONDS", "10s"]),
        (
            ["-f", "x"],
            {"CONNECTION_MIN_TERMINATION_DEADLINE": "20", "TERMINATION_GRACE_PERIOD_SECONDS": "10"},
            ["CONNECTION_MIN_TERMINATION_DEADLINE", "TERMINATION_GRACE_PERIOD_SECONDS"],
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_its_cure(
    capsys: pytest.CaptureFixture[str], argv: list[str], env: dict[str, str], words: list[str]
) -> None:
    text = complaint(capsys, *argv, env=env)
    assert all(word in text for word in words), text


def test_a_wrong_session_key_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert "hunter2" not in complaint(capsys, "-f", "x", env={"SESSION_KEY": "hunter2"})


def test_without_a_session_key_one_is_made_and_the_operator_is_told() -> None:
    one, other = (command_line.parse(["-f", "x"], {}) for _ in range(2))
    assert len(one.session_key.value) == 32
    assert one.session_key.value != other.session_key.value
    assert "SESSION_KEY" in one.warnings[0]


def test_no_repr_shows_the_session_key() -> None:
    file = Defaults(session_key=KEY)
    settings = command_line.parse(["-f", "x"], {}, file)
    assert settings.session_key.value.hex() == KEY
    for text in (repr(settings), repr(file)):
        assert KEY not in text and repr(settings.session_key.value) not in text


def test_the_zone_comes_from_the_environment() -> None:
    assert command_line.parse(["-f", "x"], {"GATEWRIGHT_ZONE": "zone-a"}, Defaults()).zone == "zone-a"
    assert parse().zone == ""


def test_where_requests_may_lead_comes_from_the_file_and_the_api_server_from_the_kubelet() -> None:
    there = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    settings = command_line.parse(["-f", "x"], there, Defaults(forward_allow=("10.0.0.0/8",)))
    assert (settings.forward_allow, settings.api_server) == (("10.0.0.0/8",), ("10.96.0.1",))
    assert (parse().forward_allow, parse().api_server) == ((), ())
    assert command_line.parse(["-f", "x"], {"KUBERNETES_SERVICE_HOST": "a name"}, Defaults()).api_server == ()


def test_a_worker_is_told_its_share() -> None:
    settings = parse()
    told = WorkerSettings(
        *("a/b", "i", 2, "json", "info", {"xds": "off"}, settings.drain, settings.session_key, "zone-a"),
        own_pages=(("127.0.0.1", 15000), ("/run/admin", 0)),
        forward_allow=("10.0.0.0/8",),
        api_server=("10.96.0.1",),
    )
    assert WorkerSettings.from_link(told.to_link()) == told


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 2), (256, 256), (257, 256)])
def test_a_worker_for_each_core_that_this_process_may_use(
    monkeypatch: pytest.MonkeyPatch, cores: int, workers: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)) if pid == 0 else set(), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 100)
    assert parse().workers == workers


@pytest.mark.parametrize(("cores", "workers"), [(None, 1), (3, 3)])
def test_where_the_system_does_not_say_which_cores_all_of_the_machine_count(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, workers: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert parse().workers == workers


@pytest.mark.parametrize(
    ("name", "least", "most"), [("--workers", 1, 256), ("--port-offset", 0, 40000), ("--parent-fd", 0, 1048576)]
)
def test_the_bounds_of_numbers(capsys: pytest.CaptureFixture[str], name: str, least: int, most: int) -> None:
    field = name.removeprefix("--").replace("-", "_")
    for value in (least, most):
        assert getattr(parse(name, str(value)), field) == value
    for value in (least - 1, most + 1):
        assert f"is not a whole number from {least} to {most}" in complaint(capsys, "-f", "x", f"{name}={value}")


def test_the_bounds_of_ports_times_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse("--xds", "10.0.0.1:65535", "--gateway", "a/b").xds == Address("10.0.0.1", 65535)
    assert "is not an address" in complaint(capsys, "--xds", "10.0.0.1:65536", "--gateway", "a/b")
    year = {"CONNECTION_MIN_TERMINATION_DEADLINE": "0", "TERMINATION_GRACE_PERIOD_SECONDS": "8760h"}
    assert parse(env=year).drain == Drain(0, 31_536_000)
    year["TERMINATION_GRACE_PERIOD_SECONDS"] = "31536001"
    assert "from 0 to 31536000 seconds" in complaint(capsys, "-f", "x", env=year)
    assert parse("--instance", "a" * 253).instance == "a" * 253
    assert "cannot name an instance" in complaint(capsys, "-f", "x", "--instance", "a" * 254)


def test_a_flag_has_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unrecognized arguments: --work 2" in complaint(capsys, "-f", "x", "--work", "2")
    assert complaint(capsys, "a.yaml").endswith("unrecognized arguments: a.yaml; a file stands behind -f: -f a.yaml\n")


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_end_well(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.parse([flag], {})
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "gatewright-proxy" in text
    if flag == "--version":
        assert text == f"gatewright-proxy {VERSION}\n"
    if flag == "--help":
        for word in ("examples:", "SESSION_KEY", "SIGTERM", "exit codes:", "--port-offset"):
            assert word in text
