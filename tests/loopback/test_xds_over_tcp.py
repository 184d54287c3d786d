"""xDS over TCP between real processes: TLS, tokens, certificates, their replacement, and who is kept out."""

from __future__ import annotations

import http.client
import importlib.util
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.fakes.proxy_process import TIMES
from tests.harness.patience import PATIENCE
from tests.harness.processes import Program, command_of, running
from tests.harness.waiting import wait_until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fleet"
WRONG = "not-one-of-the-tokens-of-this-fleet"


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fleet_credentials", EXAMPLE / "credentials.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


CREDENTIALS = _module()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of credentials for a controller that is called controller.test."""
    folder = tmp_path / "credentials"
    folder.mkdir()
    CREDENTIALS.make(folder, ["controller.test"])
    return folder


@contextmanager
def controller(folder: Path, *options: object) -> Iterator[Program]:
    command = [sys.executable, "-m", "controlplane", str(EXAMPLE), "--socket", str(folder / "xds.sock")]
    command += ["--admin", "127.0.0.1:0", "--xds", "127.0.0.1:0", *map(str, options)]
    with running(folder, "controller", command) as started:
        started.await_ready()
        yield started


def over_tls(files: Path) -> list[object]:
    return ["--xds-tls-cert", files / "controller.crt", "--xds-tls-key", files / "controller.key"]


@contextmanager
def proxy(folder: Path, port: int, *options: object, gateway: str = "default/edge") -> Iterator[Program]:
    command = [sys.executable, "-m", "dataplane", "--xds", f"127.0.0.1:{port}", "--gateway", gateway]
    command += ["--any-port", "--workers", "1", "--stats", "off", "--readiness", "off", *map(str, options)]
    with running(folder, f"proxy-{len(list(folder.glob('proxy-*.log')))}", command, environment=TIMES) as started:
        yield started


def known(files: Path) -> list[object]:
    return ["--xds-ca-file", files / "ca.crt", "--xds-server-name", "controller.test"]


def get(port: int, path: str = "/") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def serves(started: Program) -> bool:
    started.await_ready()
    return get(started.port("BIND_8080")) == (200, "hello from the fleet\n")


def says(started: Program, text: str) -> str:
    """Wait for a line of its log; answers it."""
    wait_until(lambda: text in started.log(), started.log)
    return next(line for line in started.log().splitlines() if text in line)


def streams(control: Program) -> dict[str, float]:
    """Streams by outcome, of the page of metrics."""
    families = text_string_to_metric_families(get(control.port("ADMIN"), "/metrics")[1])
    (found,) = [family for family in families if family.name == "gatewright_controller_xds_streams"]
    return {each.labels["outcome"]: each.value for each in found.samples if each.name.endswith("_total")}


def secrets_in(folder: Path, *programs: Program) -> list[str]:
    """Where a token of these files is told: logs, output, command lines, pages."""
    tokens = {word for file in ("tokens", "token") for word in (folder / file).read_text().split() if "/" not in word}
    shown = [text for each in programs for text in (each.log(), each.out(), command_of(each.pid))]
    shown += [
        get(each.port("ADMIN"), "/config_dump" if "proxy" in each.name else "/api/status")[1] for each in programs
    ]
    return [token for token in tokens | {WRONG} for text in shown if token in text]


def test_a_token_lets_a_proxy_have_its_gateway(tmp_path: Path, files: Path) -> None:
    with (
        controller(tmp_path, *over_tls(files), "--xds-token-file", files / "tokens") as control,
        proxy(
            tmp_path,
            control.port("XDS"),
            *known(files),
            "--xds-token-file",
            files / "token",
            "--admin",
            "127.0.0.1:0",
        ) as served,
    ):
        assert serves(served)
        assert streams(control)["accepted"] == 1
        assert secrets_in(files, control, served) == []


def test_a_wrong_token_and_none_are_one_line_on_both_sides(tmp_path: Path, files: Path) -> None:
    (tmp_path / "wrong").write_text(WRONG)
    with controller(tmp_path, *over_tls(files), "--xds-token-file", files / "tokens") as control:
        port = control.port("XDS")
        with proxy(tmp_path, port, *known(files), "--xds-token-file", tmp_path / "wrong") as wrong:
            line = says(wrong, "UNAUTHENTICATED")
            assert "the token is not known to this control plane" in line and "\twarn\t" in line
            wait_until(lambda: streams(control)["unauthenticated"] >= 4, control.log)
            assert wrong.log().count("UNAUTHENTICATED") == 1
            assert not wrong.is_ready
            assert secrets_in(files, control) == [] and WRONG not in wrong.log() + command_of(wrong.pid)
            # The right one, in the same file: the next try has it.
            (tmp_path / "wrong").write_text((files / "token").read_text())
            assert serves(wrong)
        assert control.log().count("may not have resources: the token is not known") == 1
        with proxy(tmp_path, port, *known(files)) as without:
            assert "a token is required" in says(without, "UNAUTHENTICATED")
        assert streams(control)["accepted"] == 1


def test_a_token_for_another_gateway(tmp_path: Path, files: Path) -> None:
    with controller(tmp_path, *over_tls(files), "--xds-token-file", files / "tokens") as control:
        options = [*known(files), "--xds-token-file", files / "token"]
        with proxy(tmp_path, control.port("XDS"), *options, gateway="default/other") as other:
            assert "names other Gateways" in says(other, "PERMISSION_DENIED")
        says(control, "may not have default/other")
        assert streams(control)["accepted"] == 0


def test_tokens_are_rotated_without_a_restart(tmp_path: Path, files: Path) -> None:
    tokens, new = files / "tokens", "a-new-token-of-this-fleet-0123456789"
    with controller(tmp_path, *over_tls(files), "--xds-token-file", tokens) as control:
        port = control.port("XDS")
        with proxy(tmp_path, port, *known(files), "--xds-token-file", files / "token") as old:
            assert serves(old)
            tokens.write_text(tokens.read_text() + new + "\n")
            says(control, "tokens were read: 2")
            (tmp_path / "new").write_text(new)
            with proxy(tmp_path, port, *known(files), "--xds-token-file", tmp_path / "new") as fresh:
                assert serves(fresh)
                tokens.write_text("# nothing\n")
                says(control, "no proxy is let in")
                assert streams(control)["accepted"] == 2
                tokens.write_text(new + "\n")
                says(old, "UNAUTHENTICATED")  # withdrawn: its stream was ended
                assert serves(old), "it serves its last good state"
                assert fresh.log().count("no control plane") == 0
        assert new not in control.log()


def test_mutual_tls_and_the_gateway_that_a_certificate_names(tmp_path: Path, files: Path) -> None:
    with controller(tmp_path, *over_tls(files), "--xds-client-ca", files / "ca.crt") as control:
        port = control.port("XDS")
        shown = [*known(files), "--xds-cert-file", files / "proxy.crt", "--xds-key-file", files / "proxy.key"]
        with proxy(tmp_path, port, *shown) as served:
            assert serves(served)
        with proxy(tmp_path, port, *shown, gateway="default/other") as other:
            assert "names other Gateways" in says(other, "PERMISSION_DENIED")
        with proxy(tmp_path, port, *known(files)) as nameless:
            says(nameless, "UNAVAILABLE")
            assert not nameless.is_ready
        strangers = tmp_path / "strangers"
        strangers.mkdir()
        CREDENTIALS.make(strangers, ["controller.test"])
        shown = [*known(files), "--xds-cert-file", strangers / "proxy.crt", "--xds-key-file", strangers / "proxy.key"]
        with proxy(tmp_path, port, *shown) as stranger:
            says(stranger, "UNAVAILABLE")
        assert streams(control)["accepted"] == 1


def test_who_speaks_no_tls_or_trusts_another_authority(tmp_path: Path, files: Path) -> None:
    with controller(tmp_path, *over_tls(files), "--xds-token-file", files / "tokens") as control:
        port, token = control.port("XDS"), ["--xds-token-file", files / "token"]
        with proxy(tmp_path, port, *token, "--xds-insecure") as plain:
            says(plain, "UNAVAILABLE")
            assert not plain.is_ready
        with proxy(tmp_path, port, *token, "--xds-ca-file", files / "ca.crt") as wrong_name:
            assert "Hostname Verification" in says(wrong_name, "UNAVAILABLE")
        with proxy(tmp_path, port, *token) as other_authority:
            assert "CERTIFICATE_VERIFY_FAILED" in says(other_authority, "UNAVAILABLE")
        assert streams(control) == dict.fromkeys(streams(control), 0.0)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            client.settimeout(PATIENCE)
            assert b"HTTP" not in client.recv(100)


def test_a_certificate_is_replaced_without_a_restart(tmp_path: Path, files: Path) -> None:
    renewed = tmp_path / "renewed"
    renewed.mkdir()
    CREDENTIALS.make(renewed, ["controller.test"])
    with controller(tmp_path, *over_tls(files), "--xds-token-file", files / "tokens") as control:
        token = ["--xds-token-file", files / "token"]
        for name in ("controller.key", "controller.crt"):
            (files / name).write_bytes((renewed / name).read_bytes())
        with proxy(tmp_path, control.port("XDS"), *known(renewed), *token) as served:
            assert serves(served)
        assert "certificate and key were read again" in control.log()
        (files / "controller.crt").write_text("no certificate")
        with proxy(tmp_path, control.port("XDS"), *known(renewed), *token) as served:
            assert serves(served)
        assert "the certificate from before stays in force" in control.log()


def test_loopback_without_tls_must_be_asked_for(tmp_path: Path, files: Path) -> None:
    with controller(tmp_path, "--xds-insecure", "--xds-token-file", files / "tokens") as control:
        options = ["--xds-insecure", "--xds-token-file", files / "token"]
        with proxy(tmp_path, control.port("XDS"), *options) as served:
            assert serves(served)
    with controller(tmp_path) as control, proxy(tmp_path, control.port("XDS")) as refused:
        assert "--xds-tls-cert and --xds-tls-key, and --xds-token-file or --xds-client-ca" in says(
            refused, "PERMISSION_DENIED"
        )


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--xds", "0.0.0.0:0"], 2, r"0\.0\.0\.0:0 can be reached from other machines.*--xds-tls-cert FILE"),
        (["--xds", "0.0.0.0:0", "--xds-insecure"], 2, "--xds-insecure is for loopback addresses only"),
        (["--xds", "[::]:0", "--xds-tls-cert", "a", "--xds-tls-key", "b"], 2, "--xds-token-file FILE"),
        (["--xds-tls-cert", "a", "--xds-tls-key", "b", "--xds-token-file", "c"], 4, "certificate and key.*a and b"),
    ],
    ids=str,
)
def test_what_is_refused_at_the_start(tmp_path: Path, options: list[str], code: int, text: str) -> None:
    command = [sys.executable, "-m", "controlplane", str(EXAMPLE), "--admin", "127.0.0.1:0", "--xds", "127.0.0.1:0"]
    command += ["--socket", str(tmp_path / "xds.sock"), *options]
    with running(tmp_path, "controller", command, cwd=tmp_path) as refused:
        assert refused.wait() == code
        assert re.search(text, refused.log()), refused.log()
