"""What a WSGI application sees of a client's headers beside those that a policy sets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.fakes.proxy_process import running
from tests.fakes.wsgi_origin import wsgi_origin

CONFIG = """
frontendPolicies: {{http: {{headerUnderscores: {names}}}}}
binds:
- port: 8080
  addresses: [127.0.0.1]
  listeners:
  - routes:
    - policies:
        headerModifiers:
          request: {{set: [{{name: x-user, value: ours}}], remove: [x-role]}}
      backends: [{{host: "127.0.0.1:{upstream}"}}]
"""

SENT = "".join(
    f"{name}: evil\r\n"
    for name in ("x_user", "X_User", "x-User", "X.USER", "x_role", "X-role", "x.role", "x_forwarded_proto", "x_other")
)


async def seen(port: int) -> dict[str, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET / HTTP/1.1\r\nHost: a\r\n{SENT}connection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    environ: dict[str, str] = json.loads(body)
    return {name: value for name, value in environ.items() if "evil" in value or name == "HTTP_X_USER"}


async def test_a_wsgi_application_sees_our_header_alone(tmp_path: Path) -> None:
    with wsgi_origin() as upstream:
        expected = {"Drop": {"HTTP_X_USER": "ours"}, "Keep": {"HTTP_X_USER": "ours", "HTTP_X_OTHER": "evil"}}
        for names, environ in expected.items():
            file = tmp_path / f"{names}.yaml"
            file.write_text(CONFIG.format(names=names, upstream=upstream))
            async with running("-f", str(file)) as proxy:
                await proxy.ready()
                for _ in range(3):
                    assert await seen(proxy.at(8080)) == environ
                logged = proxy.log().count("request headers are dropped")
                counted = await proxy.metric("gatewright_request_headers_dropped_total")
                if names == "Drop":  # of each request six, whichever worker took it; each worker logs the first
                    assert counted == 18 and 1 <= logged <= len(await proxy.workers())
                else:
                    assert counted == logged == 0
