"""A secret of a standalone file in another file, in the real proxy: read at the start, and again when it changes."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from pathlib import Path

from tests.fakes.proxy_process import origin, running
from tests.harness.waiting import until

CONFIG = """
binds:
- port: {port}
  addresses: [127.0.0.1]
  listeners:
  - routes:
    - policies:
        apiKeyAuthentication:
          location: {{header: {{name: x-key}}}}
          secretRef: {{ann: {{file: keys/ann}}}}
      backends: [{{host: "127.0.0.1:{upstream}"}}]
"""


async def status(port: int, key: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET / HTTP/1.1\r\nHost: a\r\nx-key: {key}\r\nconnection: close\r\n\r\n".encode())
    first = await reader.readline()
    writer.close()
    return int(first.split()[1])


async def test_a_key_is_exchanged_without_restart_and_never_shown(tmp_path: Path) -> None:
    key = tmp_path / "keys/ann"
    key.parent.mkdir()
    key.write_text("first-key\n")
    async with origin() as upstream:
        file = tmp_path / "config.yaml"
        file.write_text(CONFIG.format(port=8080, upstream=upstream))
        async with running("-f", str(file)) as proxy:
            await proxy.ready()
            port = proxy.at(8080)
            assert [await status(port, name) for name in ("first-key", "second-key")] == [200, 401]
            key.write_text("second-key\n")
            await proxy.logged("configuration applied.*changed=secret/")
            assert [await status(port, name) for name in ("first-key", "second-key")] == [401, 200]
            key.unlink()
            line = await proxy.logged("cannot be read")
            assert "apiKeyAuthentication.secretRef.ann.file" in line and "keys/ann" in line
            assert await status(port, "second-key") == 200  # the last good configuration stays
            shown = str(await proxy.dump()) + proxy.log()
            for secret in (b"first-key", b"second-key"):
                assert secret.decode() not in shown and b64encode(secret).decode() not in shown
            await until(lambda: proxy.log().count("\trequest\t") == 5)
