"""OCSP stapling of a running proxy, by `openssl s_client -status`."""

from __future__ import annotations

import asyncio
import base64
import shlex
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from tests.fakes.proxy_process import running
from tests.harness.patience import PATIENCE
from tests.rules.page_commands import commands
from tests.unit.tls.test_staples import MIDDLE, OWN, ROOT, answer

FILE = """
binds:
- port: 8443
  addresses: [127.0.0.1]
  listeners:
  - protocol: HTTPS
    tls:
      certificateRefs:
      - {{tls.crt: {{file: own.crt}}, tls.key: {{file: own.key}}, tls.ocsp-staple: {{file: staple.der}}}}
    routes: [{{policies: {{directResponse: {{status: 200}}}}}}]
"""


@pytest.mark.needs("openssl")
async def test_openssl_is_shown_the_response(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(ROOT.pem)
    (tmp_path / "own.crt").write_bytes(OWN.chain)
    (tmp_path / "own.key").write_bytes(OWN.key)
    (tmp_path / "own.key").chmod(0o600)
    (tmp_path / "staple.der").write_bytes(answer())
    file = tmp_path / "proxy.yaml"
    file.write_text(FILE.format())
    async with running("-f", str(file), workers=1) as made:
        await made.ready()
        where = ("-connect", f"127.0.0.1:{made.at(8443)}", "-servername", "shop.example", "-status")
        good = await _said(*where, "-CAfile", str(tmp_path / "ca.pem"))
        assert "OCSP Response Status: successful (0x0)" in good and "Cert Status: good" in good
        assert "Verify return code: 0 (ok)" in good
        assert await made.metric("gatewright_tls_ocsp_staple_expiry_timestamp_seconds") > 0
        (tmp_path / "staple.der").write_bytes(base64.b64encode(answer(begins=-2, ends=-1)))
        await made.logged(r"the tls\.ocsp-staple of \S+ is not presented: it is valid from")
        assert "OCSP response: no response sent" in await _said(*where)


@pytest.mark.needs("openssl")
async def test_the_command_of_the_page_fetches_a_response(tmp_path: Path, root: Path) -> None:
    """Of `docs/tls.md`, with a responder on this machine."""
    (line,) = [each.text for each in commands(root / "docs/tls.md") if each.text.startswith("openssl ocsp ")]
    (tmp_path / "ca.crt").write_bytes(MIDDLE.pem)
    (tmp_path / "tls.crt").write_bytes(OWN.certificate.public_bytes(Encoding.PEM))
    response = answer()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
        writer.write(b"HTTP/1.0 200 OK\r\ncontent-type: application/ocsp-response\r\n")
        writer.write(b"content-length: %d\r\n\r\n%b" % (len(response), response))
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        words = shlex.split(line.replace("http://ocsp.example", f"http://127.0.0.1:{port}"))
        process = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (tmp_path / "staple.der").read_bytes() == response, errors.decode(errors="replace")


async def _said(*options: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *("openssl", "s_client", *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    return output.decode(errors="replace")
