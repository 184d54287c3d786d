"""Authentication that waits, through a real proxy: keys that come late, hashes that take long."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import bcrypt

from tests.fakes.proxy_process import origin, running
from tests.fakes.tokens import ISSUER, Issuer
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

FILE = """
binds:
- port: {port}
  listeners:
  - routes:
    - name: tokens
      matches: [{{path: {{type: PathPrefix, value: /tokens}}}}]
      policies:
        jwtAuthentication:
          providers:
          - issuer: {issuer}
            jwks: {{remote: {{jwksPath: keys.json, host: "127.0.0.1:{keys}"}}}}
      backends: [{{host: "127.0.0.1:{upstream}"}}]
    - name: passwords
      matches: [{{path: {{type: PathPrefix, value: /passwords}}}}]
      policies:
        basicAuthentication: {{users: ["ann:{password}"]}}
      backends: [{{host: "127.0.0.1:{upstream}"}}]
"""


class Keys:
    """A server of keys that answers when it is told to, and counts who asks."""

    def __init__(self, text: str) -> None:
        self.text, self.asked, self.open = text.encode(), 0, asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"GET /keys.json HTTP/1.1\r\n"), head
            self.asked += 1
            await self.open.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(self.text))
            writer.write(self.text)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the proxy ended
        finally:
            writer.close()


@asynccontextmanager
async def serving(keys: Keys) -> AsyncIterator[int]:
    server = await asyncio.start_server(keys.serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def ask(port: int, path: str, authorization: str) -> int:
    """The status of a request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        lines = f"Host: a\r\nConnection: close\r\nAuthorization: {authorization}\r\n"
        writer.write(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            return int((await reader.read()).split()[1])
    finally:
        writer.close()


async def is_let_in(port: int, token: str) -> bool:
    return await ask(port, "/tokens", token) == 200


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"ann:{password}".encode()).decode()


async def test_late_keys_and_slow_hashes(tmp_path: Path) -> None:
    issuer = Issuer("ES256")
    keys = Keys(issuer.key_set())
    password = bcrypt.hashpw(b"secret", bcrypt.gensalt(8)).decode()
    file = tmp_path / "config.yaml"
    async with serving(keys) as keys_port, origin() as upstream:
        values = {"port": 8080, "issuer": ISSUER, "keys": keys_port, "upstream": upstream, "password": password}
        file.write_text(FILE.format(**values))
        async with running("-f", str(file), workers=2) as proxy:
            await proxy.ready()  # which no key has to come for
            port = proxy.at(8080)
            token = f"Bearer {issuer.token()}"
            sent = (token, f"Bearer {Issuer('ES256').token()}", "Bearer x")
            early = [asyncio.create_task(ask(port, "/tokens", value)) for value in sent]
            assert await early[2] == 401  # that is no token, whatever the keys are
            await until(lambda: keys.asked > 0, "a fetch of keys")
            keys.open.set()
            late = await asyncio.gather(*early)
            if late[0] == 401:  # this machine was slower than a fetch may be: it was given up, and made again
                await proxy.logged("reason=JwtKeysUnavailable")
                await until(lambda: is_let_in(port, token), "the keys")
            else:
                # Once for each worker, and once for the token of another key where it was looked at when the keys were
                # there; once more where a fetch was given up before anybody asked.
                assert keys.asked <= (4 if "gave no answer within" in proxy.log() else 3)
            assert late[1:] == [401, 401]

            answers = [ask(port, "/passwords", basic(each)) for each in ("secret", "Secret", "secret", "")]
            assert await asyncio.gather(*answers) == [200, 401, 200, 401]
            assert await ask(port, "/tokens", basic("secret")) == 401
            log = proxy.log()
    assert json.dumps(issuer.token())[1:20] not in log and "secret" not in log
