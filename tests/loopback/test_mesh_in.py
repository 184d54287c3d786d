"""A proxy in a mesh, for workloads that open tunnels to it (HBONE): its certificate of the mesh's authority, what the
tunnels carry served by its listeners under the identity of the workload, and what is refused.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.certificates import Issued
from tests.fakes.mesh import MeshAuthority, Stream, Tunnel, identity, open_tunnel, serving, tls
from tests.fakes.proxy_process import Proxy, get, running
from tests.harness.patience import PATIENCE

FILE = """
frontendPolicies:
  accessLog: {add: {caller: source.spiffeId}}
binds:
- port: 8080
  listeners:
  - name: shop
    routes:
    - name: who
      policies:
        authorization: {action: Allow, policy: {matchExpressions: ['source.identity.namespace == "friends"']}}
        directResponse: {status: 200, bodyExpression: 'source.identity.serviceAccount + " of " + source.spiffeId'}
"""
FRIEND = identity("friends", "caller")
REQUEST = b"GET /who HTTP/1.1\r\nhost: shop.example\r\n\r\n"


@asynccontextmanager
async def proxy(authority: MeshAuthority, folder: Path, workers: int = 1, **environment: str) -> AsyncIterator[Proxy]:
    file = folder / "config.yaml"
    file.write_text(FILE)
    async with (
        serving(authority, folder) as given,
        running("-f", str(file), workers=workers, environment=given | environment) as made,
    ):
        await made.ready()
        yield made


async def asked(tunnel: Tunnel, port: int = 8080, request: bytes = REQUEST) -> Stream:
    stream = tunnel.ask(f"10.1.2.3:{port}")
    async with asyncio.timeout(PATIENCE):
        await stream.until(lambda each: each.status is not None or each.is_reset)
        if stream.status == 200:
            tunnel.send(stream, request)
            await stream.until(lambda each: b"\r\n\r\n" in each.content or each.is_reset)
    return stream


async def is_refused(port: int, context: ssl.SSLContext) -> bool:
    """Whether no tunnel comes of it: with TLS 1.3 a client hears of that behind its own handshake."""
    try:
        tunnel = await open_tunnel(port, context)
    except (OSError, ssl.SSLError):
        return True
    async with asyncio.timeout(PATIENCE):
        closed, greeted = asyncio.ensure_future(tunnel.closed.wait()), asyncio.ensure_future(tunnel.greeted.wait())
        done, late = await asyncio.wait((closed, greeted), return_when=asyncio.FIRST_COMPLETED)
        for each in late:
            each.cancel()
    tunnel.transport.abort()
    return greeted not in done


async def test_a_tunnel_is_served_under_the_identity_of_the_workload(tmp_path: Path) -> None:
    authority = MeshAuthority()
    async with proxy(authority, tmp_path) as made:
        context = tls(authority.workload(FRIEND), authority.root.pem)
        tunnel = await open_tunnel(made.at(15008), context)
        stream = await asked(tunnel)
        assert stream.content.endswith(b"caller of spiffe://cluster.local/ns/friends/sa/caller"), stream
        presented = tunnel.transport.get_extra_info("ssl_object").getpeercert()
        assert ("URI", identity("shop", "web")) in presented["subjectAltName"]
        await made.logged(f"path=/who .*caller={FRIEND}")
        tunnel.transport.abort()
        assert (await get(made.at(8080), "/who"))[0] == 403, "a client outside of the mesh has no identity"
    assert set(authority.tokens) == {"projected-token"} and authority.clusters == ["Kubernetes"]


async def test_another_workload_is_not_let_through_by_a_rule_for_friends(tmp_path: Path) -> None:
    authority = MeshAuthority()
    async with proxy(authority, tmp_path) as made:
        tunnel = await open_tunnel(made.at(15008), tls(authority.workload(identity("foes", "x")), authority.root.pem))
        assert (await asked(tunnel)).content.startswith(b"HTTP/1.1 403 ")
        tunnel.transport.abort()


async def test_what_is_no_workload_of_the_mesh_opens_no_tunnel(tmp_path: Path) -> None:
    authority, other = MeshAuthority(), MeshAuthority("Other Root")
    root = authority.root.pem
    unusable: dict[str, Issued | None] = {
        "another trust domain": authority.workload(identity("friends", "caller", "elsewhere.example")),
        "another authority": other.workload(FRIEND),
        "ended": authority.workload(FRIEND, seconds=-5.0),
        "not valid yet": authority.workload(FRIEND, begins=600.0),
        "no SPIFFE id": authority.workload("https://cluster.local/ns/friends/sa/caller"),
        "none": None,
    }
    async with proxy(authority, tmp_path) as made:
        port = made.at(15008)
        for what, issued in unusable.items():
            assert await is_refused(port, tls(issued, root)), what
        with pytest.raises(OSError):
            await get(port, "/who")
        assert not await is_refused(port, tls(authority.workload(FRIEND), root))


async def test_a_further_trust_domain_is_believed_where_it_is_named(tmp_path: Path) -> None:
    authority = MeshAuthority()
    async with proxy(authority, tmp_path, ADDITIONAL_TRUST_DOMAINS="two.example, elsewhere.example") as made:
        issued = authority.workload(identity("friends", "caller", "elsewhere.example"))
        tunnel = await open_tunnel(made.at(15008), tls(issued, authority.root.pem))
        assert (await asked(tunnel)).content.endswith(b"spiffe://elsewhere.example/ns/friends/sa/caller")
        tunnel.transport.abort()


async def test_a_tunnel_leads_to_listeners_of_the_gateway_alone(tmp_path: Path) -> None:
    authority = MeshAuthority()
    async with proxy(authority, tmp_path) as made:
        tunnel = await open_tunnel(made.at(15008), tls(authority.workload(FRIEND), authority.root.pem))
        for port in (22, 15000):
            assert (await asked(tunnel, port)).status == 404
        inside = await asked(tunnel, 15008)
        assert inside.is_reset or inside.is_ended, "its own port begins with TLS, and REQUEST is none"
        tunnel.transport.abort()


async def test_a_thousand_connections_share_a_tunnel_and_a_slow_one_holds_none(tmp_path: Path) -> None:
    authority = MeshAuthority()
    async with proxy(authority, tmp_path) as made:
        tunnel = await open_tunnel(made.at(15008), tls(authority.workload(FRIEND), authority.root.pem))
        async with asyncio.timeout(PATIENCE):
            await tunnel.greeted.wait()
        slow = await asked(tunnel)
        slow.is_slow = True
        for _ in range(400):  # their answers are more than its window
            tunnel.send(slow, REQUEST)
        streams = [tunnel.ask("10.1.2.3:8080") for _ in range(999)]
        async with asyncio.timeout(PATIENCE):
            for stream in streams:
                await stream.until(lambda each: each.status == 200 or each.is_reset)
                tunnel.send(stream, REQUEST)
            for stream in streams:
                await stream.until(lambda each: each.content.endswith(b"caller") or each.is_reset)
        assert not any(stream.is_reset for stream in streams)
        assert len(slow.content) <= 65_535, "no more than its window"
        tunnel.transport.abort()


async def test_the_key_is_shown_nowhere_and_the_certificate_is(tmp_path: Path) -> None:
    authority = MeshAuthority()
    async with proxy(authority, tmp_path) as made:
        dump = await made.dump()
        assert dump["mesh"]["identity"] == identity("shop", "web") and not dump["mesh"]["trouble"]
        worker = await made.dump("?worker=0")
        shown = f"{dump}{worker}{made.log()}"
        assert "PRIVATE KEY" not in shown and "[redacted]" not in made.log() and "projected-token" not in shown
        assert await made.metric("gatewright_mesh_certificate_expiry_timestamp_seconds") > 0
