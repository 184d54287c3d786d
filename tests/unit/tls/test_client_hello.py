"""The ClientHello as read by us: what clients of today send, in any pieces, and what is none of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from OpenSSL import SSL

from dataplane.tls.client_hello import MAX_ALPN, MAX_EXTENSIONS, MAX_HELLO, MAX_RECORD, MAX_RECORDS, NotTls, read
from dataplane.tls.contexts import accepting, load, server_context
from dataplane.tls.settings import Identity, TlsSettings
from tests.fakes.certificates import Authority


def vector(size: int, content: bytes) -> bytes:
    return len(content).to_bytes(size) + content


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2) + vector(2, content)


def sni(name: bytes, kind: int = 0) -> bytes:
    return extension(0, vector(2, bytes([kind]) + vector(2, name)))


def alpn(*names: bytes) -> bytes:
    return extension(16, vector(2, b"".join(vector(1, name) for name in names)))


def message(extensions: bytes | None = b"", session: bytes = b"s" * 32, suites: bytes = b"\x13\x01") -> bytes:
    body = b"\x03\x03" + b"r" * 32 + vector(1, session) + vector(2, suites) + vector(1, b"\0")
    if extensions is not None:
        body += vector(2, extensions)
    return b"\x01" + vector(3, body)


def records(content: bytes, size: int = MAX_RECORD) -> bytes:
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    return b"".join(b"\x16\x03\x01" + vector(2, piece) for piece in pieces)


def real(server_name: bytes, protocols: list[bytes], most: int = SSL.TLS1_3_VERSION) -> bytes:
    """What OpenSSL sends."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_max_proto_version(most)
    if protocols:
        context.set_alpn_protos(protocols)
    client = SSL.Connection(context, None)
    client.set_connect_state()
    if server_name:
        client.set_tlsext_host_name(server_name)
    with pytest.raises(SSL.WantReadError):
        client.do_handshake()
    return client.bio_read(65536)


@pytest.mark.parametrize("name", [b"", b"shop.example", b"SHOP.Example", b"xn--bcher-kva.example"])
@pytest.mark.parametrize("protocols", [[], [b"h2", b"http/1.1"], [b"x" * 255]], ids=["none", "two", "long"])
def test_what_openssl_sends_is_understood(name: bytes, protocols: list[bytes]) -> None:
    assert read(real(name, protocols)) == name.lower()


class Seen(bytes):
    """Bytes that know the longest piece that was copied of them."""

    longest = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if isinstance(key, slice):
            self.longest = max(self.longest, len(found))
        return found


@pytest.mark.parametrize("size", [300, 2000, MAX_RECORD])
@pytest.mark.parametrize("minor", [0, 4])
def test_one_that_is_whole_is_read_where_it_lies(size: int, minor: int) -> None:
    """Nearly all are, and each connection begins with one."""
    without = len(message(sni(b"a.example") + extension(21, b"")))
    data = records(message(sni(b"a.example") + extension(21, bytes(size - without))), 2 * MAX_RECORD)
    seen = Seen(data[:2] + bytes([minor]) + data[3:])
    assert read(seen) == b"a.example"
    assert len(seen) == 5 + size and seen.longest < 20


def test_it_may_have_many_suites() -> None:
    assert read(records(message(sni(b"a.example"), suites=b"\x13\x01" * 200))) == b"a.example"


def test_it_may_have_no_extensions() -> None:
    assert read(real(b"", [], SSL.TLS1_2_VERSION)) == b""
    for size in (MAX_RECORD, 50):
        assert read(records(message(None), size)) == b""


@pytest.mark.parametrize("size", [600, 1000, 1500])
def test_a_hello_may_come_in_several_records(size: int) -> None:
    content = message(sni(b"a.example") + extension(21, b"\0" * 3000))
    assert read(records(content, size)) == b"a.example"


@pytest.mark.parametrize("size", [250, MAX_RECORD])
def test_in_any_pieces_it_is_asked_for_more_until_it_is_whole(size: int) -> None:
    data = records(message(sni(b"a.example") + alpn(b"h2") + extension(21, b"\0" * 1500)), size)
    wanted = 0
    for end in range(len(data)):
        found = read(data[:end])
        assert isinstance(found, int) and end < found <= len(data) and found >= wanted
        wanted = found
    assert read(data) == b"a.example" == read(data + b"early data")


@given(st.data())
def test_whatever_it_says_is_what_is_read(data: st.DataObject) -> None:
    name = data.draw(st.from_regex(rb"[a-z0-9_-]{1,20}(\.[a-z0-9-]{1,20}){0,3}", fullmatch=True))
    protocols = data.draw(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8))
    others = data.draw(
        st.dictionaries(st.integers(50, 65535), st.binary(max_size=300), max_size=6).map(
            lambda found: [extension(kind, content) for kind, content in found.items()]
        )
    )
    parts = data.draw(st.permutations([sni(name), alpn(*protocols), *others]))
    content = message(b"".join(parts))
    size = data.draw(st.integers(len(content) // MAX_RECORDS + 1, MAX_RECORD))
    assert read(records(content, size)) == name


@given(st.binary(max_size=400), st.booleans())
def test_whatever_comes_is_read_or_refused(content: bytes, framed: bool) -> None:
    data = records(b"\x01" + vector(3, content)) if framed else content
    try:
        found = read(data)
    except NotTls:
        return
    assert isinstance(found, bytes) or found > len(data)


@given(st.data())
def test_a_hello_with_a_changed_byte_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(records(message(sni(b"a.example") + alpn(b"h2", b"http/1.1"))))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read(bytes(whole))
    except NotTls:
        return
    assert isinstance(found, bytes) or found > len(whole)


NAMES = extension(0, vector(2, b"\0" + vector(2, b"a.b") + b"\0" + vector(2, b"c.d")))


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"G",
        b"\x16G",
        b"\x16\x02",
        b"\x16\x03\x05",
        b"\x80\x2e\x01\x00\x02",  # a hello of SSL 2
        b"\x15\x03\x01\x00\x02\x01\x00",  # an alert
        b"\x16\x03\x01\x00\x00",  # an empty record
        b"\x16\x03\x01" + (MAX_RECORD + 1).to_bytes(2),
        b"\x16\x03\x01\x00\x01\x02",  # a ServerHello
        b"\x16\x03\x01\x00\x04\x01" + (MAX_HELLO + 1).to_bytes(3),
        records(b"\x01" + vector(3, b"x" * 1000), 20),  # many records
        records(message(sni(b"a.b")), 4),  # the same, of a hello that would be read otherwise
        records(message(extension(0, b"\0\x09\0" + vector(2, b"a.b")))),  # a list of names that is longer than it is
        records(b"\x01" + vector(3, message()[4:] + sni(b"a.b"))),  # an extension behind the extensions
        records(message(b"".join(extension(100 + kind, b"") for kind in range(MAX_EXTENSIONS + 1)))),
        records(message(b"".join(extension(0, b"") for _ in range(MAX_EXTENSIONS + 1)))),
        records(message(extension(16, b"\0" * (MAX_ALPN + 1)))),
        records(message(sni(b"a.b") + sni(b"a.b"))),
        records(message(NAMES)),
        records(message(sni(b"a.b", kind=1))),
        records(message(sni(b""))),
        records(message(sni(b"a b"))),
        records(message(sni(b"a\0b"))),
        records(message(sni("ä.example".encode()))),
        records(message(sni(b"a" * 256))),
        records(message(extension(0, b"\0\0"))),
        records(message(extension(0, b"\0"))),
        records(message(b"\0")),
        records(message(session=b"s" * 33)),
        records(message(suites=b"")),
        records(message(suites=b"\x13")),
        records(b"\x01" + vector(3, b"\x03\x03")),
        records(b"\x01" + vector(3, message()[4:] + b"x")),
        records(b"\x01" + vector(3, b"\x03\x03" + b"r" * 32 + b"\0" + vector(2, b"\x13\x01") + b"\0")),  # no method
        records(
            message(extension(0, vector(2, b"\0" + vector(2, b"a.b") + b".c")))
        ),  # a name that is longer than it is
        records(b"\x01" + vector(3, message()[4:-2] + b"\0\x05" + b"\0\x64\0\0")) + b"early data",
        records(message(b"\0\x64\0\x05ab")),  # an extension that is longer than all of them
        records(message(b"\0\x64\0\x05ab")) + b"early data",
        records(message(extension(21, b"\0" * MAX_RECORD)), 2 * MAX_RECORD),  # whole, in a record that is too long
    ],
)
def test_what_is_no_hello_is_refused(data: bytes) -> None:
    with pytest.raises(NotTls):
        read(data)


@pytest.mark.parametrize(
    ("at", "byte"),
    [(0, 21), (1, 2), (2, 5), (5, 2), (6, 1)],
    ids=["type of the record", "version", "minor version", "type of the message", "its length"],
)
def test_one_that_is_whole_is_refused_for_any_byte_of_its_head(at: int, byte: int) -> None:
    whole = bytearray(records(message(sni(b"a.example"))))
    assert read(bytes(whole)) == b"a.example"
    whole[at] = byte
    with pytest.raises(NotTls):
        read(bytes(whole))


def test_so_many_extensions_and_protocols_are_read() -> None:
    many = [extension(100 + kind, b"") for kind in range(MAX_EXTENSIONS - 2)]
    offered = extension(16, b"\0" * MAX_ALPN)
    assert read(records(message(b"".join((*many, offered, sni(b"a.b")))))) == b"a.b"


def test_reading_piece_by_piece_costs_little() -> None:
    """Each piece is looked at when so much has come as was asked for, so most are not looked at at all."""
    data = records(message(extension(21, b"\0" * 60_000)))
    looks, wanted = 0, 0
    for end in range(1, len(data) + 1):
        if end >= wanted:
            looks += 1
            found = read(data[:end])
            if isinstance(found, bytes):
                break
            wanted = found
    assert looks <= 2 * MAX_RECORDS


# --- the same bytes, read by OpenSSL

SERVER_CERTIFICATE = Authority().issue("shop.example")
REAL = real(b"shop.example", [b"h2", b"http/1.1"])
WITHOUT_NAME = real(b"", [b"http/1.1"], SSL.TLS1_2_VERSION)


def read_by_openssl(data: bytes) -> bytes | None:
    """The server name; None: OpenSSL refuses it before it asks for a protocol."""
    seen: list[bytes] = []

    def choose(connection: SSL.Connection, offered: list[bytes]) -> bytes:
        seen.append(connection.get_servername() or b"")
        return offered[0]

    identity = load(Identity(SERVER_CERTIFICATE.chain, SERVER_CERTIFICATE.key))
    context = server_context(TlsSettings(alpn=()), [identity])
    context.set_alpn_select_callback(choose)
    server = accepting(context)
    server.bio_write(data)
    try:
        server.do_handshake()
    except SSL.Error:  # it waits for more, or refuses
        return seen[0] if seen else None
    return None


@given(st.data())
def test_the_name_is_the_one_that_openssl_reads_of_the_same_bytes(data: st.DataObject) -> None:
    """A listener must not be chosen by another name than the one that the handshake is about."""
    hello = bytearray(data.draw(st.sampled_from([REAL, WITHOUT_NAME, records(REAL[5:], 300)])))
    for _ in range(data.draw(st.integers(0, 3))):
        hello[data.draw(st.integers(0, len(hello) - 1))] = data.draw(st.integers(0, 255))
    theirs = read_by_openssl(bytes(hello))
    try:
        ours = read(bytes(hello))
    except NotTls:
        return  # we may be stricter
    if theirs is not None:
        assert ours == theirs.lower()


def test_openssl_reads_what_is_sent() -> None:
    assert read_by_openssl(REAL) == b"shop.example"
    assert read_by_openssl(WITHOUT_NAME) == b""
    assert read_by_openssl(b"GET / HTTP/1.1\r\n\r\n") is None
