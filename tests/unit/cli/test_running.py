"""What commands that run share: addresses that are taken, the log, settings of a command line, becoming a proxy."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane import app, settings
from controlplane.cli import exits, parser, proxy
from controlplane.cli.serving import process_log, running
from controlplane.xds import SocketError
from tests.harness.waiting import wait_until


@pytest.mark.parametrize(
    ("family", "host", "shown"), [(socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET6, "::1", "[::1]")]
)
def test_a_taken_address_names_its_holder_and_a_free_one_is_not_kept(family: int, host: str, shown: str) -> None:
    with socket.socket(family) as listening:
        listening.bind((host, 0))
        listening.listen()
        port = listening.getsockname()[1]
        text = running.taken((host, port))
        assert text.startswith(
            f"{shown}:{port} cannot be listened on (Address already in use): process {os.getpid()} ("
        )
        with pytest.raises(exits.Failure) as failure:
            running.check_free((host, port), "the admin API", "stop it")
        assert (failure.value.code, failure.value.message) == (
            exits.BIND,
            f"{text}; it is wanted for the admin API: stop it",
        )
    assert running.taken((host, port)) == "" == running.taken((host, port))
    running.check_free((host, port), "the admin API", "stop it")


def arguments(folder: Path, **others: str | list[str] | None) -> argparse.Namespace:
    given = {"socket": None, "admin": "127.0.0.1:1", "xds": "[::1]:2"}
    return argparse.Namespace(dir=str(folder), **{**given, **others})


def test_settings_of_a_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = running.from_arguments(arguments(tmp_path))
    assert (made.source, made.admin, made.xds) == (tmp_path, ("127.0.0.1", 1), ("::1", 2))
    assert made.socket == tmp_path / "gatewright" / "xds.sock"
    assert made.security == settings.Security()  # what `up` has no options for stays closed
    assert not made.security.insecure
    assert made.admin_hosts == frozenset()
    assert not made.mcp.selectors_need_grants
    assert running.from_arguments(arguments(tmp_path, mcp_selectors_need_grants=True)).mcp.selectors_need_grants
    assert running.from_arguments(arguments(tmp_path, admin_host=["ops.example"])).admin_hosts == {"ops.example"}
    assert running.from_arguments(arguments(tmp_path, socket="/run/x")).socket == Path("/run/x")
    made.socket.parent.chmod(0o777)
    with pytest.raises(exits.Failure, match="name another socket with --socket") as failure:
        running.from_arguments(arguments(tmp_path))
    assert failure.value.code == exits.BIND
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "file"))
    with pytest.raises(exits.Failure, match="Not a directory") as failure:
        running.from_arguments(arguments(tmp_path))
    assert failure.value.code == exits.BIND


@pytest.mark.leaves("the threads that write logs live as long as the process")
def test_the_log_is_lines_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    """The controller's own from INFO on, those of libraries from WARNING on."""
    root, own = logging.getLogger(), logging.getLogger("controlplane")
    before = root.handlers[:], root.level, own.level
    try:
        process_log.configure(prefix="[controller] ")
        logging.getLogger("controlplane.x").info("ours")
        logging.getLogger("controlplane.x").debug("no")
        logging.getLogger("library").info("no")
        logging.getLogger("library").warning("theirs")
        root.handlers[0].flush()
    finally:
        root.handlers[:], root.level, own.level = before
        logging.getLogger().manager._clear_cache()  # type: ignore[attr-defined]
    said = wait_until(lambda: capfd.readouterr().err).splitlines()
    assert all(line.startswith("[controller] 2") for line in said)
    assert [line.split("\t")[1:] for line in said] == [
        ["info", "controlplane.x", "ours process=controller"],
        ["warn", "library", "theirs process=controller"],
    ]


def test_a_proxy_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(exits.Failure, match="pip install gatewright") as failure:
        proxy.run(["--help"])
    assert failure.value.code == exits.DEPENDENCY


@pytest.mark.parametrize(("words", "handed_on"), [([], ["--help"]), (["-f", "x"], ["-f", "x"])])
def test_the_process_becomes_the_proxy(words: list[str], handed_on: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda program, command: became.append((program, command)))
    proxy.run(words)
    assert became == [(sys.executable, [sys.executable, "-P", "-m", "dataplane", *handed_on])]


ANOTHER = "another one is named with --admin, --stats, --readiness, --xds, --peers or --socket"


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (app.AddressTaken("127.0.0.1:18001 is taken"), exits.BIND,
         f"127.0.0.1:18001 is taken; {ANOTHER}"),
        (SocketError("/run/x is held"), exits.BIND,
         f"/run/x is held; {ANOTHER}"),
        (ValueError("no such folder"), exits.USAGE, "no such folder"),
    ],
)  # fmt: skip
async def test_what_keeps_a_controller_from_running(
    error: Exception, code: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.asynccontextmanager
    async def refused(_settings: object) -> AsyncIterator[None]:
        raise error
        yield

    monkeypatch.setattr(running.app, "running", refused)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    wanted = running.from_arguments(arguments(tmp_path, admin="127.0.0.1:0", xds="127.0.0.1:0"))
    with pytest.raises(exits.Failure) as failure:
        async with running.controller(wanted):
            raise AssertionError("it does not run")
    assert (failure.value.code, failure.value.message) == (code, text)


def parsed(*line: str) -> argparse.Namespace:
    return parser.build().parse_args(line)


PEERS = ("127.0.0.1", 18004)


def test_a_cluster_is_read_in_place_of_a_folder() -> None:
    made = parsed("controller", "--kubernetes", "--kubeconfig", "k", "--context", "c", "--namespace", "n")
    assert running.from_arguments(made).source == settings.Cluster(Path("k"), "c", "n", PEERS, settings.Proxies())
    usual = settings.Cluster(peers=PEERS, proxies=settings.Proxies())
    assert running.from_arguments(parsed("controller", "--kubernetes")).source == usual
    some = parsed("controller", "--kubernetes", "--namespace-selector", "team in (a, b)")
    selective = settings.Cluster(peers=PEERS, proxies=settings.Proxies(), namespaces="team in (a, b)")
    assert running.from_arguments(some).source == selective
    without = parsed("controller", "--kubernetes", "--no-provisioning", "--peers", "127.0.0.1:0")
    assert running.from_arguments(without).source == settings.Cluster()


TLS = ("--xds-tls-cert", "c", "--xds-tls-key", "k", "--xds-token-file", "t")


@pytest.mark.parametrize(
    ("line", "accounts"),
    [
        (["--kubernetes"], False),
        (["--kubernetes", "--xds", "0.0.0.0:18000"], True),
        (["--kubernetes", "--xds", "0.0.0.0:18000", "--xds-service-accounts"], True),
        (["--kubernetes", "--xds-service-accounts"], True),
        (["--kubernetes", "--xds", "0.0.0.0:18000", *TLS], False),
        (["--kubernetes", "--xds-insecure"], False),
    ],
    ids=str,
)
def test_a_cluster_is_asked_who_may_have_resources_unless_something_is_said_of_it(
    line: list[str], accounts: bool
) -> None:
    assert running.from_arguments(parsed("controller", *line)).security.service_accounts is accounts


def test_a_folder_has_no_service_accounts(tmp_path: Path) -> None:
    assert not running.from_arguments(
        parsed("controller", str(tmp_path), "--xds", "0.0.0.0:1")
    ).security.service_accounts
    with pytest.raises(exits.Failure, match="--xds-service-accounts is about a cluster") as failure:
        running.from_arguments(parsed("controller", str(tmp_path), "--xds-service-accounts"))
    assert failure.value.code == exits.USAGE


def test_what_is_said_of_a_cluster() -> None:
    """By the log, the status of the service, and the page of a controller without a Gateway."""
    assert str(settings.Cluster()) == "the cluster"
    assert str(settings.Cluster(Path("k"), "c")) == "the cluster of k, context c"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["controller"], "name the folder"),
        (["controller", "d", "--kubernetes"], "not both"),
        (["controller", "d", "--context", "c"], "--context is about a cluster"),
        (["controller", "d", "--namespace-selector", "a"], "--namespace-selector is about a cluster"),
        (
            ["controller", "--kubernetes", "--namespace-selector", "a in b"],
            "--namespace-selector: 'a in b' is no requirement",
        ),
    ],
)
def test_folder_and_cluster_are_told_apart(line: list[str], message: str) -> None:
    with pytest.raises(exits.Failure, match=message) as failure:
        running.from_arguments(parsed(*line))
    assert failure.value.code == exits.USAGE
