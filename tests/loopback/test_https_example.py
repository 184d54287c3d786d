"""`examples/https`: the folder that its script makes, served by a real controller and proxy, asked over TLS."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from controlplane.lint.lint import lint_paths
from tests.fakes.certificates import Authority
from tests.fakes.controller_process import controller
from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "https"
SAID = b"hello over TLS\n"


def make(folder: Path) -> Path:
    made = folder / "https"
    subprocess.run([sys.executable, str(EXAMPLE / "certificates.py"), str(made)], check=True, timeout=PATIENCE)
    return made


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Path, int, Proxy]]:
    """The folder, the controller's admin port, and a proxy."""
    made, socket = make(folder), folder / "xds.sock"
    async with (
        controller(made, socket) as admin,
        running("--xds", f"unix:{socket}", "--gateway", "default/edge", "--any-port") as proxy,
    ):
        await proxy.ready()
        yield made, admin, proxy


def trusting(made: Path, *, with_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=made / "client" / "ca.crt")
    if with_certificate:
        context.load_cert_chain(made / "client" / "client.crt", made / "client" / "client.key")
    return context


async def ask(port: int, context: ssl.SSLContext) -> tuple[bytes, dict[str, Any], str | None]:
    """The answer, the server's certificate and the version. Raises OSError when there is none."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
        try:
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            answer = await reader.read()
            tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
            peer: dict[str, Any] = dict(tls.getpeercert() or {})
            return answer.partition(b"\r\n\r\n")[2], peer, tls.version()
        finally:
            writer.close()


async def test_the_ports_are_served_over_tls_and_certificates_are_exchanged_by_saving_a_file(tmp_path: Path) -> None:
    async with served(tmp_path) as (made, admin, proxy):
        open_port, staff = proxy.at(8443), proxy.at(8444)
        body, first, version = await ask(open_port, trusting(made))
        assert (body, version) == (SAID, "TLSv1.3")
        old = trusting(made)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(OSError):
            await ask(open_port, old)

        assert (await ask(staff, trusting(made, with_certificate=True)))[0] == SAID
        with pytest.raises(OSError):  # with TLS 1.3 a client learns it when it reads
            await ask(staff, trusting(made))

        # Another authority signs a certificate that expires in a week: it is served at once, and warned of.
        other = Authority("other")
        pair = other.issue("localhost", days=7)
        text = (made / "certificates.yaml").read_text()
        secret, _, rest = text.partition("---\n")
        item = json.loads(secret)
        item["stringData"] = {"tls.crt": pair.chain.decode(), "tls.key": pair.key.decode()}
        (made / "certificates.yaml").write_text(f"{json.dumps(item)}\n---\n{rest}")
        renewed = ssl.create_default_context(cadata=other.pem.decode())

        async def is_new() -> bool:
            try:
                _, peer, _ = await ask(open_port, renewed)
            except OSError:
                return False
            return bool(peer["serialNumber"] != first["serialNumber"])

        await until(is_new, "the new certificate is served")

        async def is_warned_of() -> bool:
            return "CertificateExpiring" in await asyncio.to_thread(_page, admin)

        await until(is_warned_of, "status has the warning")
        assert [each.code for each in lint_paths([made]).problems] == ["expiring"]


def _page(admin: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/api/status", timeout=PATIENCE) as page:
        return str(page.read().decode())


def test_lint_finds_nothing_and_nothing_is_overwritten(tmp_path: Path) -> None:
    made = make(tmp_path)
    assert [*map(str, lint_paths([made]).problems)] == []
    again = subprocess.run(
        [sys.executable, str(EXAMPLE / "certificates.py"), str(made)], capture_output=True, text=True, check=False
    )
    assert again.returncode == 1 and "name a folder that does not exist yet" in again.stderr
    assert {path.stat().st_mode & 0o077 for path in made.rglob("*") if path.suffix in (".key", ".crt")} == {0}
