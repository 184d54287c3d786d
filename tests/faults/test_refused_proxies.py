"""Proxies on other hosts that the controller does not let in: by token, by Gateway, by certificate, by TLS."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.faults.page import fault
from tests.faults.world import Process, started

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fleet"


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fleet_credentials_of_faults", EXAMPLE / "credentials.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


CREDENTIALS = _module()


@dataclass(frozen=True, slots=True)
class Fleet:
    """A controller with TLS and tokens, whose proxies also need a certificate."""

    folder: Path
    files: Path
    controller: Process

    @asynccontextmanager
    async def proxy(self, name: str, *options: object, gateway: str = "default/edge") -> AsyncIterator[Process]:
        address = f"127.0.0.1:{self.controller.port('XDS')}"
        command = [sys.executable, "-m", "dataplane", "--xds", address, "--gateway", gateway, "--any-port"]
        command += ["--workers", "1", "--admin", "off", "--stats", "off", "--readiness", "off"]
        command += ["--xds-ca-file", str(self.files / "ca.crt"), "--xds-server-name", "controller.test"]
        async with started(self.folder, name, [*command, *map(str, options)]) as made:
            yield made

    def token(self, text: str = "") -> list[object]:
        """The option with this token, or the right one."""
        file = self.folder / "given"
        file.write_text(text or (self.files / "token").read_text())
        return ["--xds-token-file", file]

    @property
    def certificate(self) -> list[object]:
        return ["--xds-cert-file", self.files / "proxy.crt", "--xds-key-file", self.files / "proxy.key"]


@asynccontextmanager
async def fleet(folder: Path) -> AsyncIterator[Fleet]:
    files = folder / "credentials"
    files.mkdir()
    CREDENTIALS.make(files, ["controller.test"])
    command = [sys.executable, "-m", "controlplane", str(EXAMPLE), "--socket", str(folder / "xds.sock")]
    command += ["--admin", "127.0.0.1:0", "--xds", "127.0.0.1:0", "--xds-token-file", str(files / "tokens")]
    command += ["--xds-tls-cert", str(files / "controller.crt"), "--xds-tls-key", str(files / "controller.key")]
    command += ["--xds-client-ca", str(files / "ca.crt")]
    async with started(folder, "controller", command) as controller:
        await controller.ready()
        yield Fleet(folder, files, controller)


@fault("The controller refuses a proxy")
async def test_a_proxy_that_is_refused(tmp_path: Path) -> None:
    async with fleet(tmp_path) as world:
        wrong = "not-one-of-the-tokens-of-this-fleet"
        async with world.proxy("wrong", *world.certificate, *world.token(wrong)) as proxy:
            await proxy.says('reason="UNAUTHENTICATED: the token')
            await world.controller.says("may not have resources: the token")
            assert not proxy.is_ready
            world.token()  # in the same file: the next try has it
            await proxy.ready()
            assert wrong not in proxy.log() + world.controller.log()
        async with world.proxy("other", *world.certificate, *world.token(), gateway="default/other") as proxy:
            await proxy.says('reason="PERMISSION_DENIED: the token')
            await world.controller.says("may not have default/other")
        async with world.proxy("nameless", *world.token()) as proxy:
            await proxy.says('reason="UNAVAILABLE: ')
            assert not proxy.is_ready
