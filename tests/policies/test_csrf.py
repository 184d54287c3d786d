"""CSRF from the standalone file to the answer: method, Sec-Fetch-Site, Origin, Host and additionalOrigins."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.chain.replies import REPLIES
from dataplane.filters import csrf
from gatewright.wire.v1 import traffic_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import PolicyRun, text_of
from tests.fakes.table_state import exchange

PASSES, FAILS = True, False

OWN, OTHER, TRUSTED = "http://a.example", "https://evil.example", "https://trusted.example"

PLAIN = PolicyRun("policies: {csrf: {}}")
TRUSTING = PolicyRun(
    "policies: {csrf: {additionalOrigins: ['https://trusted.example', 'https://Ports.example:443', 'app://local']}}"
)


def passes(run: PolicyRun, method: str, site: str, origin: str, host: str = "a.example", scheme: str = "http") -> bool:
    """ "" for a header that is not there."""
    lines = (f"Sec-Fetch-Site: {site}\r\n" if site else "") + (f"Origin: {origin}\r\n" if origin else "")
    x = exchange(method, host=host, headers=lines.encode())
    x.scheme = scheme.encode()
    answer = run.request(x)
    assert answer in (None, REPLIES["CsrfFailed"])
    return answer is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("site", ["", "same-origin", "same-site", "cross-site", "none"])
@pytest.mark.parametrize("origin", ["", OWN, OTHER, "null"])
def test_step_1_safe_methods_pass(method: str, site: str, origin: str) -> None:
    assert passes(PLAIN, method, site, origin)


# Every row stands for POST, PUT, PATCH, DELETE and a method that nobody knows.
# site, origin: without additionalOrigins, with https://trusted.example among them
TABLE = [
    ("", "", PASSES, PASSES),  # step 2
    ("same-origin", "", PASSES, PASSES),
    ("same-origin", OWN, PASSES, PASSES),
    ("same-origin", OTHER, PASSES, PASSES),  # a proxy before us may have changed the host
    ("same-origin", TRUSTED, PASSES, PASSES),
    ("same-origin", "null", PASSES, PASSES),
    ("none", "", PASSES, PASSES),
    ("none", OWN, PASSES, PASSES),
    ("none", OTHER, PASSES, PASSES),
    ("none", TRUSTED, PASSES, PASSES),
    ("none", "null", PASSES, PASSES),
    ("same-site", "", FAILS, FAILS),
    ("same-site", OWN, FAILS, FAILS),
    ("same-site", OTHER, FAILS, FAILS),
    ("same-site", TRUSTED, FAILS, PASSES),
    ("same-site", "null", FAILS, FAILS),
    ("cross-site", "", FAILS, FAILS),
    ("cross-site", OWN, FAILS, FAILS),
    ("cross-site", OTHER, FAILS, FAILS),
    ("cross-site", TRUSTED, FAILS, PASSES),
    ("cross-site", "null", FAILS, FAILS),
    ("nonsense", "", FAILS, FAILS),
    ("nonsense", OWN, FAILS, FAILS),
    ("nonsense", TRUSTED, FAILS, PASSES),
    ("", OWN, PASSES, PASSES),
    ("", OTHER, FAILS, FAILS),
    ("", TRUSTED, FAILS, PASSES),
    ("", "null", FAILS, FAILS),
    ("", "garbage", FAILS, FAILS),
    ("Same-Origin", OTHER, PASSES, PASSES),
    ("", "HTTP://A.Example", PASSES, PASSES),
    ("", "https://TRUSTED.example:443", FAILS, PASSES),
]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "PURGE"])
@pytest.mark.parametrize(("site", "origin", "plain", "trusting"), TABLE)
def test_steps_2_and_3(method: str, site: str, origin: str, plain: bool, trusting: bool) -> None:
    assert passes(PLAIN, method, site, origin) is plain
    assert passes(TRUSTING, method, site, origin) is trusting


@pytest.mark.parametrize(
    ("origin", "host", "scheme", "expected"),
    [
        ("http://a.example", "a.example", "http", PASSES),
        ("http://a.example:80", "a.example", "http", PASSES),
        ("http://a.example", "a.example:80", "http", PASSES),
        ("http://a.example:8080", "a.example:8080", "http", PASSES),
        ("http://a.example:8080", "a.example", "http", FAILS),
        ("http://a.example", "a.example:8080", "http", FAILS),
        ("https://a.example", "a.example", "http", PASSES),  # TLS ended before us
        ("https://a.example", "a.example:443", "http", PASSES),
        ("https://a.example:8443", "a.example:8443", "http", PASSES),
        ("https://a.example", "a.example", "https", PASSES),
        ("http://a.example", "a.example", "https", FAILS),  # an attacker between could have made that page
        ("https://a.example", "a.example.evil.example", "http", FAILS),
        ("https://a.example.evil.example", "a.example", "http", FAILS),
        ("https://b.a.example", "a.example", "http", FAILS),
        ("https://a.example", "A.EXAMPLE.", "http", PASSES),
        ("http://[::1]:81", "[::1]:81", "http", PASSES),
        ("http://[::1]", "[::1]:81", "http", FAILS),
        ("null", "null", "http", FAILS),
        ("http://", "a.example", "http", FAILS),
        ("http://a.example/path", "a.example", "http", FAILS),
        ("http://a.example@evil.example", "evil.example", "http", FAILS),
        ("http://a.example", "", "http", FAILS),
        ("app://a.example", "a.example", "http", PASSES),
    ],
)
def test_origin_is_compared_with_host(origin: str, host: str, scheme: str, expected: bool) -> None:
    assert passes(PLAIN, "POST", "", origin, host, scheme) is expected


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://ports.example", PASSES),
        ("https://ports.example:443", PASSES),
        ("https://ports.example:8443", FAILS),
        ("http://ports.example", FAILS),
        ("app://local", PASSES),
        ("app://other", FAILS),
        ("https://trusted.example.evil.example", FAILS),
        ("https://x.trusted.example", FAILS),
        ("https://trusted.example" + "x" * 600, FAILS),
    ],
)
def test_additional_origins(origin: str, expected: bool) -> None:
    assert passes(TRUSTING, "POST", "cross-site", origin) is expected


@pytest.mark.parametrize(
    "headers",
    [
        b"Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n",
        b"Origin: http://a.example\r\nOrigin: https://evil.example\r\n",
        b"Origin:\r\n",
    ],
)
def test_what_no_browser_sends_is_refused(headers: bytes) -> None:
    assert PLAIN.request(exchange("POST", headers=headers)) == REPLIES["CsrfFailed"]


def test_what_the_client_gets() -> None:
    proxy = MemoryProxy(text_of("policies: {csrf: {}}\nbackends: [{host: '127.0.0.1:9000'}]"))
    client = proxy.connect()
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nSec-Fetch-Site: cross-site\r\n\r\n")
    assert client.received.startswith(b"HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain\r\ncontent-length: 22\r\n")
    assert client.received.endswith(b"\r\n\r\nCSRF validation failed")
    assert proxy.connector.upstreams == []
    (line,) = proxy.log_lines()
    assert "CsrfFailed" in line


@pytest.mark.parametrize("origin", ["evil.example", "null", "https://a.example/path", "https://"])
def test_an_additional_origin_that_is_none_is_refused(origin: str) -> None:
    with pytest.raises(Refused, match=r"additionalOrigins\[1\]: .* is not an origin"):
        csrf.build(
            traffic_pb2.Csrf(additional_origins=["https://a.example", origin]),
            Env(clock=lambda: 0.0, random=lambda: 0.0),
        )
