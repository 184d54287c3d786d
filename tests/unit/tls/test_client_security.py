"""TLS toward a server: what of its certificate is verified, what is sent, and which settings share a context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from OpenSSL import SSL

from dataplane.tls.client import CHAIN, NOTHING, Check, ClientSecurity, group_shares, security
from dataplane.tls.contexts import accepting, load, server_context
from dataplane.tls.settings import DEFAULT, Asks, BadSettings, Identity, TlsSettings, Verification
from tests.fakes.certificates import Authority, Issued

AUTHORITY, OTHER = Authority(), Authority("Other Root")
BETWEEN = Authority("Between", AUTHORITY)
SERVER = AUTHORITY.issue("shop.example", "*.shop.example", "192.0.2.1", uris=("spiffe://td/shop",))
OURS = AUTHORITY.issue("proxy.example", client=True)


def shaken(
    made: ClientSecurity,
    issued: Issued = SERVER,
    name: str = "shop.example",
    names: tuple[str, ...] = (),
    alpn: tuple[str, ...] = (),
    clients: Verification | None = None,
) -> tuple[SSL.Connection, SSL.Connection, Check]:
    """The server's side, ours, and what was verified. Raises as OpenSSL does on either."""
    context = server_context(DEFAULT, [load(Identity(issued.chain, issued.key))], clients or Verification())
    check = Check(names)
    near, far = made.connection(name, alpn, check, None), accepting(context)
    for _ in range(3):
        for side, other in ((near, far), (far, near)):
            try:
                side.do_handshake()
            except SSL.WantReadError:
                pass
            except SSL.Error as error:
                if not check.problem:
                    raise
                assert "certificate verify failed" in str(error)
                return far, near, check
            try:
                other.bio_write(side.bio_read(65_536))
            except SSL.WantReadError:
                continue
    return far, near, check


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ((), ""),
        (("shop.example",), ""),
        (("a.shop.example",), ""),
        (("192.0.2.1",), ""),
        (("spiffe://td/shop",), ""),
        (("evil.example", "shop.example"), ""),
        (("evil.example",), "its certificate is not for evil.example"),
        (("evil.example", "192.0.2.2"), "its certificate is not for evil.example or 192.0.2.2"),
    ],
)
@pytest.mark.parametrize("verifies", [CHAIN, NOTHING])
def test_one_of_the_names_has_to_be_the_certificates_where_it_is_verified(
    verifies: str, names: tuple[str, ...], problem: str
) -> None:
    made = ClientSecurity(authorities=[AUTHORITY.pem], verifies=verifies)
    _, near, check = shaken(made, names=names)
    assert check.problem == (problem if verifies == CHAIN else "")
    assert (near.get_peer_certificate() is not None) is not bool(check.problem)


FAILED = "its certificate cannot be verified: "


@pytest.mark.parametrize(
    ("believed", "issued", "problem"),
    [
        ([AUTHORITY.pem], SERVER, ""),
        ([OTHER.pem + AUTHORITY.pem], SERVER, ""),
        ([OTHER.pem, AUTHORITY.pem], SERVER, ""),
        ([BETWEEN.pem], BETWEEN.issue("shop.example"), ""),  # what is trusted need not be a root
        ([OTHER.pem], SERVER, FAILED + "unable to get local issuer certificate"),
        ([AUTHORITY.pem], AUTHORITY.issue("shop.example", days=-1), FAILED + "certificate has expired"),
        ([AUTHORITY.pem], OURS, FAILED + "unsuitable certificate purpose"),
        (
            [OTHER.pem],
            BETWEEN.issue("shop.example"),
            FAILED + "unable to get local issuer certificate (certificate 1 of the chain)",
        ),
    ],
)
def test_the_chain_has_to_end_at_what_is_believed(believed: list[bytes], issued: Issued, problem: str) -> None:
    *_, check = shaken(ClientSecurity(authorities=believed), issued)
    assert check.problem == problem
    *_, check = shaken(ClientSecurity(authorities=believed, verifies=NOTHING), issued)
    assert check.problem == ""


def test_those_of_the_system_are_read_with_the_first_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
    made = ClientSecurity()
    (tmp_path / "roots.pem").write_bytes(AUTHORITY.pem)
    assert repr(made) == "ClientSecurity(system authorities)"
    for issued, problem in ((SERVER, ""), (OTHER.issue("a"), FAILED + "unable to get local issuer certificate")):
        *_, check = shaken(made, issued)
        assert check.problem == problem
    *_, check = shaken(ClientSecurity(authorities=[OTHER.pem]))
    assert check.problem == FAILED + "unable to get local issuer certificate", "and not where others are named"


@pytest.mark.parametrize(
    ("name", "sent"),
    [("shop.example", b"shop.example"), ("", None), ("192.0.2.1", None), ("2001:db8::1", None), ("[::1]", None)],
)
def test_a_name_is_sent_and_an_address_is_not(name: str, sent: bytes | None) -> None:
    far, *_ = shaken(ClientSecurity(authorities=[AUTHORITY.pem]), name=name)
    assert far.get_servername() == sent


@pytest.mark.parametrize(("alpn", "chosen"), [((), b""), (("http/1.1",), b"http/1.1"), (("http/1.1", "h2"), b"h2")])
def test_protocols_are_each_connection_s_own(alpn: tuple[str, ...], chosen: bytes) -> None:
    _, near, _ = shaken(ClientSecurity(authorities=[AUTHORITY.pem]), alpn=alpn)
    assert near.get_alpn_proto_negotiated() == chosen


def test_a_certificate_of_our_own_is_presented_to_who_asks() -> None:
    asking = Verification(Asks.VALID, (AUTHORITY.pem.decode(),))
    plain = ClientSecurity(authorities=[AUTHORITY.pem])
    made: list[str] = []

    def kept(key: str, make: Callable[[], ClientSecurity]) -> ClientSecurity:
        made.append(key)
        return make()

    ours = plain.presenting(kept, OURS.chain, OURS.key)
    assert (plain.has_certificate, ours.has_certificate, len(made)) == (False, True, 1)
    far, *_ = shaken(ours, clients=asking)
    assert far.get_peer_certificate(as_cryptography=True) == OURS.certificate
    with pytest.raises(SSL.Error):
        shaken(plain, clients=asking)
    *_, check = shaken(ours, names=("evil.example",))
    assert check.problem, "what is verified stays"


@pytest.mark.parametrize(
    "broken",
    [
        {"authorities": [b"nothing"]},
        {"certificate": b"nothing", "key": OURS.key},
        {"certificate": OURS.chain, "key": b"x"},
    ],
)
def test_what_cannot_be_read_is_refused_when_it_is_configured(broken: dict[str, Any]) -> None:
    with pytest.raises(BadSettings):
        ClientSecurity(**broken)


PARTS: list[dict[str, Any]] = [
    {},
    {"certificate": OURS.chain, "key": OURS.key},
    {"authorities": [AUTHORITY.pem]},
    {"authorities": [AUTHORITY.pem, OTHER.pem]},
    {"authorities": [OTHER.pem, AUTHORITY.pem]},
    {"authorities": [AUTHORITY.pem + OTHER.pem]},
    {"groups": ("X25519",)},
    {"groups": ("P-256",)},
    {"groups": ("X25519", "P-256")},
    {"verifies": NOTHING},
]


def test_equal_material_has_one_context_and_other_material_another() -> None:
    known: dict[str, ClientSecurity] = {}

    def kept(key: str, make: Callable[[], ClientSecurity]) -> ClientSecurity:
        if key not in known:
            known[key] = make()
        return known[key]

    made = [security(kept, **parts) for parts in PARTS]
    assert len({id(each) for each in made}) == len(PARTS)
    assert [security(kept, **parts) for parts in PARTS] == made
    assert [each.verifies for each in made] == [CHAIN] * (len(PARTS) - 1) + [NOTHING]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (("X25519",), ["*X25519"]),
        (("P-256", "X25519"), ["*P-256", "X25519"]),
        (("X25519_MLKEM768", "X25519", "P-256"), ["*X25519MLKEM768", "*X25519", "P-256"]),
        (("X25519", "X25519_MLKEM768"), ["*X25519", "X25519MLKEM768"]),
        (("X25519_MLKEM768",), ["*X25519MLKEM768"]),
    ],
)
def test_with_a_group_that_few_servers_know_a_share_for_the_next_one_is_sent(
    groups: tuple[str, ...], expected: list[str]
) -> None:
    assert group_shares(groups) == expected


@pytest.mark.parametrize("ours", [("X25519",), ("P-384", "P-256")])
def test_groups_are_those_that_are_named(ours: tuple[str, ...]) -> None:
    made = ClientSecurity(authorities=[AUTHORITY.pem], groups=ours)
    identity = load(Identity(SERVER.chain, SERVER.key))
    for theirs, is_in_common in ((ours[-1:], True), (("X25519_MLKEM768",), False)):
        far = accepting(server_context(TlsSettings(groups=theirs), [identity]))
        near = made.connection("shop.example", (), Check(()), None)
        with pytest.raises(SSL.WantReadError):
            near.do_handshake()
        far.bio_write(near.bio_read(65_536))
        with pytest.raises(SSL.WantReadError if is_in_common else SSL.Error) as failed:
            far.do_handshake()
        assert isinstance(failed.value, SSL.WantReadError) is is_in_common
