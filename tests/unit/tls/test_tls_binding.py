"""What is asked of OpenSSL directly: it has these functions, and says the same as pyOpenSSL where both can be asked."""

from __future__ import annotations

import os

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL

from dataplane.http.messages import TlsInfo
from dataplane.tls import binding
from dataplane.tls.binding import Records
from dataplane.tls.contexts import accepting, client_context, connecting, load, server_context
from dataplane.tls.settings import TLS_1_2, TLS_1_3, Asks, Identity, TlsSettings, Verification
from gatewright.presenting import reason_of
from tests.fakes.certificates import EC, RSA, Authority

AUTHORITY = Authority()


PAIR = AUTHORITY.issue("shop.example", kind=EC)
IDENTITY = Identity(PAIR.chain, PAIR.key)


def identity(kind: str) -> Identity:
    issued = AUTHORITY.issue("shop.example", kind=kind)
    return Identity(issued.chain, issued.key)


IDENTITIES = {kind: load(identity(kind)) for kind in (EC, RSA)}


def sides(client: TlsSettings, server: TlsSettings, kind: str = EC) -> tuple[SSL.Connection, SSL.Connection]:
    of_client = client_context(client, Verification())
    return connecting(of_client, "shop.example"), accepting(server_context(server, [IDENTITIES[kind]]))


def shaken(*connections: SSL.Connection) -> list[Records]:
    """Both ends after their handshake, which needs no more than three rounds."""
    ends = [Records(each) for each in connections]
    for _ in range(3):
        for here, there in (ends, ends[::-1]):
            here.shake()
            there.feed(here.take())
    return ends


def test_the_library_has_what_is_used_of_it() -> None:
    assert binding.lacks() == []


@pytest.mark.parametrize("kind", [EC, RSA])
@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
@pytest.mark.parametrize("alpn", [(), (b"h2", b"http/1.1"), (b"http/1.1",)])
@pytest.mark.parametrize("group", ["X25519_MLKEM768", "X25519", "P-384"])
def test_what_was_agreed_on_is_what_pyopenssl_says(
    kind: str, version: int, alpn: tuple[bytes, ...], group: str
) -> None:
    groups = (group, "P-256")
    settings = TlsSettings(alpn=alpn, minimum=version, maximum=version, groups=groups)
    pair = sides(settings, settings, kind)
    for tls, records in zip(pair, shaken(*pair), strict=True):
        assert records.shake()
        assert records.agreed(b"shop.example") == TlsInfo(alpn[0] if alpn else b"", b"shop.example")
        assert tls.get_alpn_proto_negotiated() == (alpn[0] if alpn else b"")
        assert tls.get_protocol_version() == version


def test_a_connection_without_callbacks_has_all_that_pyopenssl_gives_one() -> None:
    context = server_context(TlsSettings(), [IDENTITIES[EC]])
    made = accepting(context)
    assert vars(made).keys() == vars(SSL.Connection(context, None)).keys()
    assert made not in SSL.Connection._reverse_mapping.values()


def test_a_certificate_is_presented_with_its_own_chain_and_no_authority_of_clients() -> None:
    asking = server_context(TlsSettings(), [IDENTITIES[EC]], Verification(Asks.VALID, (AUTHORITY.pem.decode(),)))
    own = AUTHORITY.issue("client", client=True)
    ours = client_context(TlsSettings(), Verification(), load(Identity(own.chain, own.key)))
    client = connecting(ours, "shop.example")
    shaken(client, accepting(asking))
    assert len(client.get_peer_cert_chain() or ()) == PAIR.chain.count(b"BEGIN CERTIFICATE")


def test_one_with_a_callback_is_found_by_it() -> None:
    asking = server_context(TlsSettings(), [IDENTITIES[EC]], Verification(Asks.PERHAPS, (AUTHORITY.pem.decode(),)))
    assert accepting(asking) in SSL.Connection._reverse_mapping.values()


def test_a_handshake_that_waits_is_no_error_and_one_that_fails_is() -> None:
    client, server = sides(TlsSettings(alpn=(b"h3",)), TlsSettings())
    ends = Records(client), Records(server)
    assert not ends[1].shake() and not ends[0].shake()  # nothing came
    ends[1].feed(ends[0].take())
    with pytest.raises(SSL.Error) as failed:
        ends[1].shake()
    assert reason_of(failed.value) == "no application protocol in common"
    ends[0].feed(ends[1].take())
    with pytest.raises(SSL.Error, match="no application protocol"):
        ends[0].shake()


def test_bytes_of_the_next_record_are_known_before_it_is_read() -> None:
    pair = sides(TlsSettings(), TlsSettings())
    client, server = shaken(*pair)
    server.read()
    assert not server.has_more()
    one, two = client.seal(b"one"), client.seal(b"two")
    server.feed(one + two[:3])
    assert (server.read(), server.has_more(), server.read()) == (b"one", True, None)
    server.feed(two[3:])
    assert (server.read(), server.has_more()) == (b"two", False)


ALERT = 21
"""Type of a record (RFC 5246 6.2.1)."""


@pytest.mark.parametrize("is_client", [True, False], ids=["client", "server"])
def test_neither_side_negotiates_anew_because_the_other_one_asks(is_client: bool) -> None:
    """TLS 1.2; later versions have no renegotiation."""
    settings = TlsSettings(maximum=TLS_1_2, alpn=())
    client, server = sides(settings, settings)
    free = SSL.Context(SSL.TLS_SERVER_METHOD if is_client else SSL.TLS_CLIENT_METHOD)
    free.set_max_proto_version(TLS_1_2)
    if is_client:
        free.use_certificate(PAIR.certificate)
        free.use_privatekey(load(IDENTITY).key)
        server = accepting(free)
    else:
        client = connecting(free)
    ends = dict(zip((client, server), shaken(client, server), strict=True))
    ours, theirs = (client, server) if is_client else (server, client)
    assert theirs.renegotiate()
    try:
        theirs.do_handshake()
    except SSL.WantReadError:
        pass
    ends[ours].feed(ends[theirs].take())
    assert ends[ours].read() is None
    assert ends[ours].take()[0] == ALERT


# --- an open connection


def opened(version: int = TLS_1_3) -> tuple[Records, Records]:
    """Client and server, whose tickets the client has read."""
    settings = TlsSettings(minimum=version, maximum=version)
    client, server = shaken(*sides(settings, settings))
    assert client.read() is None
    return client, server


def test_what_is_taken_at_a_time_and_what_a_record_has() -> None:
    client, server = opened()
    client.add(b"x" * 100_000)
    first, rest, nothing = client.take(), client.take(), client.take()
    assert len(first) == binding.TAKEN and 100_000 - binding.TAKEN < len(rest) < binding.TAKEN and nothing == b""
    server.feed(first + rest)
    pieces = []
    while (piece := server.read()) is not None:
        pieces.append(piece)
    assert b"".join(pieces) == b"x" * 100_000 and max(map(len, pieces)) == binding.PLAIN
    server.feed(client.seal(b"y"))
    assert server.read() == b"y", "a record of one byte"


def test_a_single_byte_of_the_next_record_is_known() -> None:
    client, server = opened()
    data = client.seal(b"hello")
    server.feed(data[:1])
    assert server.has_more()
    server.feed(data[1:])
    assert server.read() == b"hello" and not server.has_more()


def test_a_record_that_was_changed_is_an_error() -> None:
    client, server = opened()
    data = client.seal(b"hello")
    server.feed(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(SSL.Error, match="decryption failed or bad record mac"):
        server.read()


def test_after_the_end_nothing_is_written_and_the_other_side_hears_of_it() -> None:
    client, server = opened()
    client.end()
    with pytest.raises(SSL.Error, match="protocol is shutdown"):
        client.add(b"late")
    server.feed(client.take())
    with pytest.raises(SSL.ZeroReturnError):
        server.read()


def test_there_is_no_end_before_there_is_a_connection() -> None:
    client, _ = sides(TlsSettings(), TlsSettings())
    with pytest.raises(SSL.Error, match="shutdown while in init"):
        Records(client).end()


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
def test_which_version_it_is(version: int) -> None:
    assert [end.is_of_1_3() for end in opened(version)] == [version == TLS_1_3] * 2


def test_a_session_that_was_taken_up_is_known() -> None:
    settings = TlsSettings()
    server = server_context(settings, [IDENTITIES[EC]])
    of_client = client_context(settings, Verification())
    first, again = connecting(of_client), connecting(of_client)
    ends = shaken(first, accepting(server))
    ends[0].read()
    session = first.get_session()
    assert session is not None
    again.set_session(session)
    assert [end.agreed(b"").resumed for end in (*ends, *shaken(again, accepting(server)))] == [False, False, True, True]


OURS = AUTHORITY.issue("client", client=True)


@pytest.mark.parametrize(
    ("asks", "believed", "has_one", "is_known", "is_proven"),
    [
        (Asks.NOTHING, AUTHORITY, True, False, False),
        (Asks.PERHAPS, AUTHORITY, False, False, False),
        (Asks.PERHAPS, AUTHORITY, True, True, True),
        (Asks.PERHAPS, Authority("x"), True, True, False),
        (Asks.VALID, AUTHORITY, True, True, True),
    ],
)
def test_what_is_known_of_the_other_sides_certificate(
    asks: Asks, believed: Authority, has_one: bool, is_known: bool, is_proven: bool
) -> None:
    server = server_context(TlsSettings(), [IDENTITIES[EC]], Verification(asks, (believed.pem.decode(),)))
    own = load(Identity(OURS.chain, OURS.key)) if has_one else None
    _, end = shaken(connecting(client_context(TlsSettings(), Verification(), own)), accepting(server))
    info = end.agreed(b"a")
    assert info.certificate == (OURS.certificate.public_bytes(Encoding.DER) if is_known else b"")
    assert (info.sni, info.is_proven) == (b"a", is_proven)


@pytest.mark.parametrize(("groups", "is_known"), [(["X25519"], True), (["X25519", "none"], False), (["none"], False)])
def test_groups_that_openssl_does_not_know_leave_no_error_behind(groups: list[str], is_known: bool) -> None:
    assert binding.set_groups(SSL.Context(SSL.TLS_METHOD), groups) is is_known
    assert SSL._lib.ERR_peek_error() == 0, "the next one to look would take it for his"  # type: ignore[attr-defined]


@pytest.mark.parametrize("has_memory", [True, False])
def test_a_chain_is_read_from_memory_where_the_system_has_such_files(
    has_memory: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_memory:
        monkeypatch.delattr(os, "memfd_create")
    before = os.listdir("/proc/self/fd")
    middle = Authority("Middle", AUTHORITY)
    issued = middle.issue("shop.example")
    context = server_context(TlsSettings(), [load(Identity(issued.chain, issued.key))])
    assert len(os.listdir("/proc/self/fd")) == len(before)
    client = connecting(client_context(TlsSettings(), Verification()))
    shaken(client, accepting(context))
    assert len(client.get_peer_cert_chain() or ()) == 2
