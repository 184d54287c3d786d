"""CSRF from the standalone file to the answer: method, Sec-Fetch-Site, Origin, Host and additionalOrigins."""

from __future__ import annotations

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.chain.replies import REPLIES
from dataplane.filters.steps import csrf
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Carried, Carrier, Request
from tests.carriers.values import Pairs
from tests.fakes.policy_run import served

PASSES, FAILS = True, False

OWN, OTHER, TRUSTED = "http://a.example", "https://evil.example", "https://trusted.example"

PLAIN = served("policies: {csrf: {}}")
TRUSTING = served(
    "policies: {csrf: {additionalOrigins: ['https://trusted.example', 'https://Ports.example:443', 'app://local']}}"
)
HTTPS = (
    """    policies: {phase: PreRouting, transformation: {request: {set: [{name: ':scheme', value: "'https'"}]}}}\n"""
)
SECURE = PLAIN.replace("    routes:", HTTPS + "    routes:")
"""As PLAIN, for requests whose scheme is https."""

FAILED = REPLIES["CsrfFailed"]


def passes(carrier: Carrier, text: str, method: str, site: str, origin: str, host: str = "a.example") -> bool:
    """ "" for a header that is not there."""
    headers = [("sec-fetch-site", site)] if site else []
    headers += [("origin", origin)] if origin else []
    return is_passed(carrier.shared(text).carry(Request(method, "/", headers, authority=host)))


def is_passed(seen: Carried) -> bool:
    """Refused, or passed: nothing else."""
    outcome = seen.answer.status, seen.reason, len(seen.reached)
    assert outcome in ((FAILED.status, FAILED.reason, 0), (200, "", 1)), outcome
    return not seen.reason


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("site", ["", "same-origin", "same-site", "cross-site", "none"])
@pytest.mark.parametrize("origin", ["", OWN, OTHER, "null"])
def test_step_1_safe_methods_pass(method: str, site: str, origin: str, carrier: Carrier) -> None:
    assert passes(carrier, PLAIN, method, site, origin)


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
def test_steps_2_and_3(method: str, site: str, origin: str, plain: bool, trusting: bool, carrier: Carrier) -> None:
    assert passes(carrier, PLAIN, method, site, origin) is plain
    assert passes(carrier, TRUSTING, method, site, origin) is trusting


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
        ("app://a.example", "a.example", "http", PASSES),
    ],
)
def test_origin_is_compared_with_host(origin: str, host: str, scheme: str, expected: bool, carrier: Carrier) -> None:
    text = SECURE if scheme == "https" else PLAIN
    assert passes(carrier, text, "POST", "", origin, host) is expected


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
def test_additional_origins(origin: str, expected: bool, carrier: Carrier) -> None:
    assert passes(carrier, TRUSTING, "POST", "cross-site", origin) is expected


@pytest.mark.parametrize(
    "headers",
    [
        [("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
        [("origin", "http://a.example"), ("origin", "https://evil.example")],
        [("origin", "")],
    ],
)
def test_what_no_browser_sends_is_refused(headers: Pairs, carrier: Carrier) -> None:
    seen = carrier.shared(PLAIN).carry(Request("POST", "/", headers, authority="a.example"))
    assert not is_passed(seen)


def test_what_the_client_gets(carrier: Carrier) -> None:
    run = carrier.proxy(PLAIN)
    seen = run.carry(Request("POST", "/", [("content-length", "0"), ("sec-fetch-site", "cross-site")]))
    assert (seen.answer.status, seen.answer.body, seen.answer.ended) == (403, b"CSRF validation failed", True)
    assert seen.answer.headers.but("date") == {"content-type": "text/plain", "content-length": "22"}
    assert run.connections == 0 and seen.reason == "CsrfFailed"


@pytest.mark.parametrize("origin", ["evil.example", "null", "https://a.example/path", "https://"])
def test_an_additional_origin_that_is_none_is_refused(origin: str) -> None:
    with pytest.raises(Refused, match=r"additionalOrigins\[1\]: .* is not an origin"):
        csrf.build(
            traffic_pb2.Csrf(additional_origins=["https://a.example", origin]),
            Env(clock=lambda: 0.0, random=lambda: 0.0),
        )
