"""Headers of the PROXY protocol: each form, over any segmentation, and what is none."""

from __future__ import annotations

from ipaddress import ip_address
from struct import pack
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.net import proxy_header
from dataplane.net.proxy_header import ABSENT, MORE, V1, V2, Header, Malformed, Reader

ALL = Reader((V1, V2))


def v2(command: int = 0x21, family: int = 0x11, block: bytes = b"", length: int | None = None) -> bytes:
    return V2 + pack("!BBH", command, family, len(block) if length is None else length) + block


def tcp4(source: str = "198.51.100.7", port: int = 4711, more: bytes = b"") -> bytes:
    return ip_address(source).packed + bytes([10, 0, 0, 1]) + pack("!HH", port, 80) + more


def tcp6(source: str = "2001:db8::7", port: int = 4711) -> bytes:
    return ip_address(source).packed + ip_address("2001:db8::1").packed + pack("!HH", port, 80)


GOOD = [
    (b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 80\r\n", "198.51.100.7", 4711),
    (b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255", 65535),
    (b"PROXY TCP4 198.51.100.7 10.0.0.1 0 0\r\n", "198.51.100.7", 0),
    (b"PROXY TCP6 2001:DB8::0:7 ::1 4711 80\r\n", "2001:db8::7", 4711),
    (b"PROXY TCP6 ::ffff:198.51.100.7 ::1 4711 80\r\n", "198.51.100.7", 4711),
    (b"PROXY UNKNOWN\r\n", "", 0),
    (b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", "", 0),
    (b"PROXY UNKNOWN" + b" " * 92 + b"\r\n", "", 0),  # 107 bytes
    (v2(block=tcp4()), "198.51.100.7", 4711),
    (v2(block=tcp4(more=b"\x03\x00\x04abcd")), "198.51.100.7", 4711),  # a TLV
    (v2(block=tcp4(more=bytes(500))), "198.51.100.7", 4711),  # 512 bytes
    (v2(family=0x21, block=tcp6()), "2001:db8::7", 4711),
    (v2(family=0x21, block=tcp6("::ffff:198.51.100.7")), "198.51.100.7", 4711),
    (v2(command=0x20, family=0x00), "", 0),
    (v2(command=0x20, block=tcp4()), "", 0),  # LOCAL: what stands there does not count
    (v2(command=0x20, family=0x77, block=b"abc"), "", 0),
    (v2(family=0x00, block=b"abc"), "", 0),
    (v2(family=0x12, block=tcp4()), "", 0),
    (v2(family=0x22, block=tcp6()), "", 0),
    (v2(family=0x31, block=bytes(216)), "", 0),
    (v2(family=0x32, block=bytes(216)), "", 0),
]


@pytest.mark.parametrize(("data", "address", "port"), GOOD)
def test_a_header_is_read_in_whatever_pieces(data: bytes, address: str, port: int) -> None:
    for end in range(len(data)):
        assert ALL.read(data[:end]) is MORE
    for behind in (b"", b"GET / HTTP/1.1\r\n", b"PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n", b"\0" * 2000):
        assert ALL.read(data + behind) == Header(len(data), address, port)


@pytest.mark.parametrize(
    "data",
    [
        b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 80\n",
        b"PROXY TCP4 198.51.100.7  10.0.0.1 4711 80\r\n",
        b"PROXY TCP4 198.51.100.7 10.0.0.1 4711\r\n",
        b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 80 \r\n",
        b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 65536\r\n",
        b"PROXY TCP4 198.51.100.7 10.0.0.1 04711 80\r\n",
        b"PROXY TCP4 198.51.100.7 10.0.0.1 +4711 80\r\n",
        b"PROXY TCP4 198.51.100.7 10.0.0.1 " + "\u0664".encode() + b" 80\r\n",
        b"PROXY TCP4 198.51.100.07 10.0.0.1 4711 80\r\n",
        b"PROXY TCP4 198.51.100.7 10.0.0 4711 80\r\n",
        b"PROXY TCP4 2001:db8::7 ::1 4711 80\r\n",
        b"PROXY TCP6 198.51.100.7 10.0.0.1 4711 80\r\n",
        b"PROXY TCP6 fe80::1%eth0 ::1 4711 80\r\n",
        b"PROXY UDP4 198.51.100.7 10.0.0.1 4711 80\r\n",
        b"PROXY tcp4 198.51.100.7 10.0.0.1 4711 80\r\n",
        b"PROXY \r\n",
        b"PROXY UNKNOWNS\r\n",
        b"PROXY UNKNOWN" + b" " * 94,  # 107 bytes without an end
        b"PROXY UNKNOWN" + b" " * 93 + b"\r\n",
        v2(command=0x11, block=tcp4()),
        v2(command=0x31, block=tcp4()),
        v2(command=0x22, block=tcp4()),
        v2(family=0x41, block=tcp4()),
        v2(family=0x13, block=tcp4()),
        v2(family=0x11, block=tcp4()[:11]),
        v2(family=0x21, block=tcp4()),
        v2(block=tcp4(), length=513),
        v2(command=0x20, length=65_535),
    ],
)
def test_what_begins_like_one_and_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        ALL.read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST / HTTP/1.1\r\n",
        b"PROXYS / HTTP/1.1\r\n",
        b"\r\nGET / HTTP/1.1\r\n",
        b"\r\n\r\nGET / HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"\0",
    ],
)
def test_other_protocols_are_none(data: bytes) -> None:
    assert ALL.read(data) is ABSENT


def test_a_version_that_is_not_looked_for_is_none() -> None:
    assert Reader((V2,)).read(GOOD[0][0]) is ABSENT
    assert Reader((V1,)).read(v2(block=tcp4())) is ABSENT
    assert Reader((V2,)).read(b"P") is ABSENT
    assert Reader((V1,)).read(b"\r") is ABSENT


@given(st.binary(max_size=700), st.sampled_from([b"", V1, V2, V2 + b"\x21\x11\x00\x0c", V1 + b"TCP4 "]))
@example(b"", b"")
def test_any_bytes_have_one_answer_however_they_come(rest: bytes, start: bytes) -> None:
    """Once known, an answer stays, whatever else comes; and it is known within the bounds."""
    data = start + rest
    known: object = None
    for end in range(len(data) + 1):
        try:
            answer: object = ALL.read(data[:end])
        except Malformed:
            answer = Malformed
        if known is not None:
            assert answer == known
        elif answer is not MORE:
            known = answer
            assert end <= 16 + proxy_header.MAX_BLOCK
        if isinstance(answer, Header):
            assert answer.size <= end
            assert not answer.address or ip_address(answer.address)


# --- writing


@pytest.mark.parametrize(
    ("version", "source", "destination", "expected"),
    [
        (1, ("198.51.100.7", 4711), ("10.0.0.1", 80), b"PROXY TCP4 198.51.100.7 10.0.0.1 4711 80\r\n"),
        (1, ("2001:db8::7", 4711), ("2001:db8::1", 80), b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n"),
        (1, ("198.51.100.7", 4711), ("2001:db8::1", 80), b"PROXY TCP6 ::ffff:c633:6407 2001:db8::1 4711 80\r\n"),
        (1, ("", 0), ("10.0.0.1", 80), b"PROXY UNKNOWN\r\n"),
        (2, ("198.51.100.7", 4711), ("10.0.0.1", 80), v2(block=tcp4())),
        (2, ("2001:db8::7", 4711), ("2001:db8::1", 80), v2(family=0x21, block=tcp6())),
        (2, ("198.51.100.7", 4711), ("localhost", 80), v2(0x20, 0)),
    ],
)
def test_what_is_written(version: int, source: tuple[str, int], destination: tuple[str, int], expected: bytes) -> None:
    assert proxy_header.written(version, source, destination) == expected


@given(
    st.sampled_from([1, 2]),
    st.ip_addresses(),
    st.ip_addresses(),
    st.integers(0, 65535),
    st.integers(0, 65535),
)
def test_what_is_written_is_read_again(version: int, source: Any, destination: Any, port: int, other: int) -> None:
    data = proxy_header.written(version, (str(source), port), (str(destination), other))
    header = ALL.read(data + b"more")
    assert isinstance(header, Header) and header.size == len(data)
    assert (ip_address(header.address), header.port) == (getattr(source, "ipv4_mapped", None) or source, port)
