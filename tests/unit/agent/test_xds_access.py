"""How a proxy reaches its control plane over TCP: TLS or not, tokens from files, and what may not be combined."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataplane.agent import xds_access
from dataplane.agent.xds_access import Unusable
from dataplane.bootstrap import parse as command_line
from dataplane.settings import LOCAL, Address, Settings, XdsAccess

TOKEN = "a-token-of-this-proxy"
GATEWAY = ("--gateway", "default/web")


def parse(*argv: str, **environment: str) -> Settings:
    return command_line.parse([*argv, *GATEWAY], {"SESSION_KEY": "ab" * 32, **environment})


def complaint(capsys: pytest.CaptureFixture[str], *argv: str, **environment: str) -> str:
    with pytest.raises(SystemExit) as ended:
        parse(*argv, **environment)
    assert ended.value.code == 2
    return capsys.readouterr().err.rpartition("error: ")[2]


@pytest.mark.parametrize(
    ("argv", "tls"),
    [
        (("--xds", "unix:/run/gw.sock"), False),
        (("--xds", "127.0.0.1:18000"), False),
        (("--xds", "localhost:18000"), False),
        (("--xds", "[::1]:18000"), False),
        (("--xds", "127.0.0.1:18000", "--xds-token-file", "t"), True),
        (("--xds", "127.0.0.1:18000", "--xds-ca-file", "c"), True),
        (("--xds", "127.0.0.1:18000", "--xds-server-name", "n"), True),
        (("--xds", "127.0.0.1:18000", "--xds-cert-file", "c", "--xds-key-file", "k"), True),
        (("--xds", "127.0.0.1:18000", "--xds-token-file", "t", "--xds-insecure"), False),
        (("--xds", "10.0.0.1:18000"), True),
        (("--xds", "controller.example:18000"), True),
        (("--xds", "localhost.example:18000", "--xds-token-file", "t"), True),
    ],
)
def test_tls_unless_the_address_is_of_this_machine_and_nothing_asks_for_it(argv: tuple[str, ...], tls: bool) -> None:
    assert parse(*argv).xds_access.tls is tls


def test_files_by_flag_and_by_environment() -> None:
    environment = {"GATEWRIGHT_XDS_TOKEN_FILE": "/e/token", "GATEWRIGHT_XDS_CA_FILE": "/e/ca"}
    access = parse("--xds", "c:1", "--xds-token-file", "/f/token", **environment, GATEWRIGHT_XDS_SERVER_NAME="n")
    assert access.xds_access == XdsAccess(tls=True, ca_file=Path("/e/ca"), token_file=Path("/f/token"), server_name="n")


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (
            ("--xds", "10.0.0.1:1", "--xds-insecure"),
            "--xds-insecure is for loopback addresses only, not for 10",
        ),
        (("--xds", "127.0.0.1:1", "--xds-insecure", "--xds-ca-file", "c"), "--xds-insecure is without TLS"),
        (("--xds", "c:1", "--xds-cert-file", "c"), "--xds-cert-file and --xds-key-file are needed both"),
        (("--xds", "c:1", "--xds-key-file", "c"), "--xds-cert-file and --xds-key-file are needed both"),
        (("--xds", "unix:/x", "--xds-token-file", "t"), "unix:/x is a Unix socket, which needs no TLS"),
        (("--xds", "unix:/x", "--xds-insecure"), "unix:/x is a Unix socket, which needs no TLS"),
    ],
)
def test_what_does_not_fit_together(argv: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert text in complaint(capsys, *argv)


@pytest.mark.parametrize("text", [TOKEN, f"{TOKEN}\n", f"# mine\n\n  {TOKEN} default/web # as the controller has it\n"])
def test_the_token_goes_along_with_the_call(text: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(text)
    given = xds_access.metadata(XdsAccess(tls=True, token_file=tmp_path / "token"))
    assert given == {"metadata": (("authorization", f"Bearer {TOKEN}"),)}


def test_without_a_token_nothing_goes_along() -> None:
    assert xds_access.metadata(LOCAL) == {}


@pytest.mark.parametrize("text", ["", "# nothing", "töken-of-this-proxy", "a\x00b"])
def test_what_is_no_token_is_not_shown(text: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(Unusable, match="holds no token") as raised:
        xds_access.metadata(XdsAccess(token_file=tmp_path / "token"))
    assert not text or text not in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    with pytest.raises(Unusable, match="absent cannot be read: No such file"):
        xds_access.metadata(XdsAccess(token_file=absent))
    for access in (XdsAccess(True, ca_file=absent), XdsAccess(True, cert_file=absent, key_file=absent)):
        with pytest.raises(Unusable, match="absent cannot be read: No such file"):
            xds_access.channel(Address("c", 1), access, ())
