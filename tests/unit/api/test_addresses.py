"""Hosts and paths of sockets: what may stand there, said by whoever judges an object and by proxies alike."""

from __future__ import annotations

import pytest

from gatewright.addresses import LONGEST_NAME, LONGEST_PATH, no_host, no_socket

LABEL = "a" * 63
NAME = ".".join([LABEL] * 3) + "." + "b" * 61


@pytest.mark.parametrize(
    "text",
    [
        *("localhost", "a.example", "A.Example", "a.example.", "db_1.internal", "_tcp.example", "1.2.3", "127.1", "7"),
        *("xn--mnchen-3ya.example", "127.0.0.1", "::1", "[::1]", "fe80::1%eth0", "a--b", LABEL, NAME, f"{NAME}."),
    ],
)
def test_hosts(text: str) -> None:
    assert no_host(text) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "is no host name, and no IP address") for text in ("", ".", "a b", "a..b", ".a", "-a", "a-", "a:80")),
        *((text, "is no host name, and no IP address") for text in ("a\r\nb", "a\0", "*.example", "%41", "a/b", "a@b")),
        *(
            (text, "is no host name, and no IP address")
            for text in (f"{LABEL}a", f"{NAME}c", "a\n", "[a]", "a.example..")
        ),
        ("http://a", "is a URL, not a host name"),
        ("unix:///run/a", "is a URL, not a host name"),
        ("münchen.example", "is no host name: write an international one in its form of xn--"),
        ("a\u3002example", "is no host name: write an international one in its form of xn--"),
    ],
)
def test_what_is_no_host(text: str, why: str) -> None:
    assert no_host(text) == why
    assert len(NAME) == LONGEST_NAME


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/run/a.sock", ""),
        ("/run/ä b", ""),
        ("/" + "a" * (LONGEST_PATH - 1), ""),
        ("/" + "a" * LONGEST_PATH, "has 108 bytes, and a path of a socket 107 at most"),
        ("/" + "ä" * 54, "has 109 bytes, and a path of a socket 107 at most"),
        ("run/a", "must begin with /"),
        ("", "must begin with /"),
        ("@abstract", "must begin with /"),
        ("/run/a\0", "has a NUL character"),
    ],
)
def test_paths_of_sockets(path: str, why: str) -> None:
    assert no_socket(path) == why
