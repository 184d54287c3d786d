"""Certificates that OpenSSL takes and the library that reads them does not: nobody suffers but who has them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cryptography import x509
from OpenSSL import SSL, crypto

from dataplane.net.turns import Turns
from dataplane.tls.client import CHAIN, NOTHING, Check, ClientSecurity
from dataplane.tls.contexts import accepting, client_context, connecting, load, server_context
from dataplane.tls.handshakes import Handshakes
from dataplane.tls.names import Names, names_of
from dataplane.tls.settings import DEFAULT, NOT_ASKED, Asks, Identity, Verification
from dataplane.tls.transport import TlsTransport
from tests.fakes.certificates import Authority
from tests.fakes.tls_pair import Inner, Socket

AUTHORITY = Authority()
ISSUED = AUTHORITY.issue("shop.example")
VERSION_2 = 1  # as a certificate has it


@contextmanager
def by_hand() -> Iterator[None]:
    """The library would not make such a certificate; what does is to be used no more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def version_2() -> tuple[crypto.X509, crypto.PKey]:
    """One of version 2 (RFC 5280 4.1.2.1), which nobody issues."""
    key = crypto.PKey()
    key.generate_key(crypto.TYPE_RSA, 2048)
    made = crypto.X509()
    made.set_version(VERSION_2)
    made.set_serial_number(5)
    made.get_subject().CN = "odd"
    made.set_issuer(crypto.X509.from_cryptography(AUTHORITY.certificate).get_subject())
    made.gmtime_adj_notBefore(-10)
    made.gmtime_adj_notAfter(10_000)
    made.set_pubkey(key)
    made.sign(crypto.PKey.from_cryptography_key(AUTHORITY.key), "sha256")
    return made, key


with by_hand():
    ODD, ODD_KEY = version_2()


def with_odd(context: SSL.Context) -> SSL.Context:
    with by_hand():
        context.use_certificate(ODD)
        context.use_privatekey(ODD_KEY)
    return context


def run(server: SSL.Connection, client: SSL.Connection) -> tuple[TlsTransport, list[object], list[object]]:
    """Their handshake: the server's side, and what both owners heard."""
    calls: list[object] = []
    turns = Turns(calls.append, lambda: 0.0)
    sockets, inners = (Socket(), Socket()), (Inner(), Inner())
    pairs = zip((server, client), inners, strict=True)
    sides = [TlsTransport(tls, inner, Handshakes(turns), turns) for tls, inner in pairs]
    for side, below in zip(sides, sockets, strict=True):
        side.start(below)
    for here, there in (sockets, sockets[::-1]) * 4:
        data, here.sent = b"".join(here.sent), []
        if data and not there.closing:
            there.protocol.data_received(data)
    return sides[0], inners[0].heard, inners[1].heard


def test_the_certificate_is_one_that_the_library_does_not_read() -> None:
    with pytest.raises(x509.InvalidVersion):
        ODD.to_cryptography()


def test_a_client_that_has_one_is_served_like_others_and_has_no_names() -> None:
    verification = Verification(Asks.PERHAPS, (AUTHORITY.pem.decode(),))
    server = server_context(DEFAULT, [load(Identity(ISSUED.chain, ISSUED.key))], verification)
    side, heard, _ = run(accepting(server), connecting(with_odd(client_context(DEFAULT, NOT_ASKED))))
    assert heard == ["secured"] and side.info is not None
    assert side.info.certificate == crypto.dump_certificate(crypto.FILETYPE_ASN1, ODD)
    assert names_of(side.info.certificate) == Names()


@pytest.mark.parametrize(
    ("verifies", "names", "taken"), [(CHAIN, ("odd",), False), (CHAIN, (), True), (NOTHING, (), True)]
)
def test_a_server_that_has_one_has_no_name(verifies: str, names: tuple[str, ...], taken: bool) -> None:
    server = with_odd(server_context(DEFAULT, [load(Identity(ISSUED.chain, ISSUED.key))]))
    server.set_cipher_list(b"ECDHE-RSA-AES256-GCM-SHA384")
    server.set_max_proto_version(SSL.TLS1_2_VERSION)  # whose suites say which of the certificates is meant
    check = Check(names)
    client = ClientSecurity(authorities=[AUTHORITY.pem], verifies=verifies).connection("odd", (), check, None)
    _, _, heard = run(accepting(server), client)
    assert (heard == ["secured"]) is taken and len(heard) == 1
    assert bool(check.problem) is not taken


def test_a_name_that_is_no_uri_is_no_spiffe_id() -> None:
    """It is written like one, and an authority that signs host names has not looked at it as one."""
    fake = AUTHORITY.issue("spiffe://td/ns/a/sa/b", client=True).certificate
    names = names_of(crypto.dump_certificate(crypto.FILETYPE_ASN1, crypto.X509.from_cryptography(fake)))
    assert names.alternatives == ("spiffe://td/ns/a/sa/b",)
    assert names.spiffe_id is None and names.workload is None


class Broken:
    """A step of it is a bug."""

    source = "a"

    def step(self) -> None:
        raise ValueError("a bug")


class Late:
    source = "b"
    is_done = False

    def step(self) -> None:
        self.is_done = True


def test_a_step_that_is_a_bug_does_not_keep_those_who_wait() -> None:
    calls: list[object] = []
    now = [0.0]
    turns = Turns(calls.append, lambda: now[0])
    handshakes, late = Handshakes(turns), Late()
    turns.begin()
    now[0] = 1.0  # the share of this turn is over: both wait
    handshakes.add(Broken())
    handshakes.add(late)
    while calls:
        calls.pop(0)()  # type: ignore[operator]  # functions without arguments
    assert late.is_done and len(handshakes) == 0
