"""A workload's certificate: renewed while half of it is left, kept while the authority fails, gone at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from dataplane.agent.mesh import certificate
from dataplane.agent.mesh.certificate import NotIssued
from dataplane.agent.mesh.workload import Workload
from dataplane.link.messages import Record
from dataplane.settings import Address, MeshSettings
from dataplane.telemetry.metrics import Metrics
from gatewright.wire.v1 import resource_pb2
from tests.fakes.mesh import MeshAuthority, identity

SETTINGS = MeshSettings(Address("istiod", 15012), "", ("cluster.local", "two.example"), "shop", "web")
OWN = identity("shop", "web")


class Over(Exception):
    """The test has seen enough."""


class World:
    """A clock that sleeping moves, an authority, and what workers were given."""

    def __init__(self, seconds: float = 1000.0, until: float = 3000.0) -> None:
        import time

        self.start = self.now = time.time()
        self.until = self.start + until
        self.authority = MeshAuthority()
        self.authority.seconds = seconds
        self.asked: list[float] = []
        """When, in seconds since the start."""
        self.given: list[tuple[float, dict[str, resource_pb2.Resource]]] = []
        self.changed = 0
        self.workload = Workload(SETTINGS, "shop/web", self, self.take, Metrics.in_memory(), self.clock, self.sleep)
        self.workload.changed = self._change

    def clock(self) -> float:
        return self.now

    def _change(self) -> None:
        self.changed += 1

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now > self.until:
            raise Over

    async def take(self, records: Sequence[Record]) -> Mapping[str, str]:
        found = {each.name: resource_pb2.Resource.FromString(each.value or b"") for each in records}
        self.given.append((self.now - self.start, found))
        return {}

    async def issue(self, request: bytes) -> list[str]:
        self.asked.append(self.now - self.start)
        if self.authority.failing:
            raise NotIssued(self.authority.failing)
        from cryptography import x509

        made = x509.load_pem_x509_csr(request)
        begins = self.now - self.start
        seconds = self.authority.seconds + begins
        signed = self.authority.sign(OWN, made.public_key(), seconds, begins)
        return [_pem(signed), self.authority.root.pem.decode()]

    async def run(self) -> World:
        with pytest.raises(Over):
            await self.workload.run()
        return self

    def certificates(self) -> list[bytes]:
        """The Secrets that workers were given, in order; b"" where they have none any more."""
        return [
            found["secret/mesh/workload"].secret.data["tls.crt"] if "secret/mesh/workload" in found else b""
            for _, found in self.given
        ]


def _pem(signed: object) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    text: bytes = signed.public_bytes(Encoding.PEM)  # type: ignore[attr-defined]  # a certificate
    return text.decode()


async def test_a_certificate_is_renewed_when_half_of_it_is_over_with_another_key() -> None:
    world = await World(seconds=1000.0, until=1400.0).run()
    first, second, third = world.asked
    assert first == 0.0 and 470.0 <= second <= 505.0 and 940.0 <= third <= 1010.0
    assert len({*world.certificates()}) == 4, "none, then three of their own"
    keys = {found["secret/mesh/workload"].secret.data["tls.key"] for _, found in world.given[1:]}
    assert len(keys) == 3


async def test_workers_get_who_is_believed_and_the_listener_with_the_certificate() -> None:
    world = await World(until=10.0).run()
    (_, before), (_, found) = world.given
    assert [*before] == ["mesh/workload"] and not before["mesh/workload"].mesh.secret
    assert found["mesh/workload"].mesh.trust_domains == ["cluster.local", "two.example"]
    listener = found["listener/gateway/shop/web/hbone"].listener
    assert listener.tls.certificates == [found["mesh/workload"].mesh.secret]
    assert listener.tls.client_validation.trust_domains == ["cluster.local", "two.example"]
    assert found["bind/shop/web/15008"].bind.port == 15008


async def test_a_failing_authority_costs_nothing_until_the_last_certificate_ends() -> None:
    world = World(seconds=1000.0, until=1500.0)
    issue = world.issue

    async def once(request: bytes) -> list[str]:
        answer = await issue(request)
        world.authority.failing = "it is away"
        return answer

    world.issue = once  # type: ignore[method-assign]
    await world.run()
    moments = [moment for moment, _ in world.given]
    none, one, *gone = world.certificates()
    assert not none and one and gone == [b""]
    assert 998.0 <= moments[-1] <= 1001.0, "at its end, not before"
    assert world.workload.trouble == "it is away" and world.changed == 1
    assert len(world.asked) < 60, "rarer and rarer"
    shown = world.workload.shown()
    assert shown["certificate_ends"] is None and shown["trouble"] == "it is away"
    (row,) = world.workload.troubles(1e12)
    assert (row.endpoint, row.reason) == ("istiod:15012", "it is away") and row.failures > 10


async def test_an_authority_that_is_back_ends_the_trouble() -> None:
    world = World(until=100.0)
    world.authority.failing = "it is away"
    issue, tries = world.issue, 3

    async def later(request: bytes) -> list[str]:
        if len(world.asked) == tries:
            world.authority.failing = ""
        return await issue(request)

    world.issue = later  # type: ignore[method-assign]
    assert world.workload.pending() == ["certificate of the mesh"]
    await world.run()
    assert len(world.asked) == tries + 1
    assert not world.workload.trouble and world.workload.troubles(0.0) == [] and world.workload.pending() == []


CHANGES: dict[str, tuple[Callable[[MeshAuthority, list[str]], list[str]], str]] = {
    "nothing": (lambda _, chain: [], "holds no certificate"),
    "no PEM": (lambda _, chain: ["-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"], "cannot be read"),
    "very many": (lambda _, chain: chain[:1] * 17, "more than 16"),
    "another key": (lambda mesh, chain: [mesh.workload(OWN).chain.decode(), chain[1]], "for another key"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_answer_that_is_no_certificate_of_ours_is_refused(what: str) -> None:
    mesh, (change, why) = MeshAuthority(), CHANGES[what]
    asked = certificate.ask(OWN)
    chain = [_pem(mesh.sign(OWN, asked.key.public_key(), 60.0)), mesh.root.pem.decode()]
    assert certificate.read(asked, chain, OWN, b"", 0.0).identity == OWN
    with pytest.raises(NotIssued, match=why):
        certificate.read(asked, change(mesh, chain), OWN, b"", 0.0)


@pytest.mark.parametrize(
    "other",
    [identity("shop", "other"), identity("elsewhere", "web"), identity("shop", "web", "foreign.example"), "urn:x:y"],
)
def test_a_certificate_for_somebody_else_is_refused(other: str) -> None:
    mesh, asked = MeshAuthority(), certificate.ask(OWN)
    chain = [_pem(mesh.sign(other, asked.key.public_key(), 60.0)), mesh.root.pem.decode()]
    with pytest.raises(NotIssued, match=r"not for spiffe://cluster\.local/ns/shop/sa/web"):
        certificate.read(asked, chain, OWN, b"", 0.0)


def test_a_certificate_that_has_ended_is_refused() -> None:
    mesh, asked = MeshAuthority(), certificate.ask(OWN)
    chain = [_pem(mesh.sign(OWN, asked.key.public_key(), 60.0)), mesh.root.pem.decode()]
    with pytest.raises(NotIssued, match="has ended already"):
        certificate.read(asked, chain, OWN, b"", 1e12)


def test_keys_are_in_no_repr() -> None:
    mesh, asked = MeshAuthority(), certificate.ask(OWN)
    chain = [_pem(mesh.sign(OWN, asked.key.public_key(), 60.0)), mesh.root.pem.decode()]
    issued = certificate.read(asked, chain, OWN, b"", 0.0)
    assert issued.key.startswith(b"-----BEGIN PRIVATE KEY") and "PRIVATE" not in f"{issued!r}{asked!r}"


async def test_a_mounted_root_that_cannot_be_read_is_a_trouble_that_names_the_file(tmp_path: Path) -> None:
    world = World(until=10.0)
    world.workload._settings = MeshSettings(  # the file is named at the start alone
        SETTINGS.authority, "", SETTINGS.trust_domains, "shop", "web", ca_file=tmp_path / "no.pem"
    )
    await world.run()
    assert str(tmp_path / "no.pem") in world.workload.trouble and world.certificates() == [b""]
