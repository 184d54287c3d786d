"""Policies find a header wherever it stands in a head, with space around its value or without."""

from __future__ import annotations

import json
from itertools import permutations

import pytest

from dataplane.http.heads import Head
from tests.fakes.policy_run import PolicyRun
from tests.fakes.table_state import exchange
from tests.fakes.tokens import ISSUER, Issuer

ISSUED = Issuer()
TOKEN = ISSUED.token(sub="ann")
JWT = json.dumps({"providers": [{"issuer": ISSUER, "jwks": {"inline": ISSUED.key_set()}}]})
OTHERS = (b"Host: a.example", b"x-last: 1")
SHOP = "https://shop.example"

# policies, the header, reason of the answer with it, and without it ("": the request goes on)
CASES: dict[str, tuple[str, str, str, str]] = {
    "csrf": ("csrf: {}", f"Origin:{SHOP}", "CsrfFailed", ""),
    "csrf, site": ("csrf: {}", "Sec-Fetch-Site:cross-site", "CsrfFailed", ""),
    "jwt": (f"jwtAuthentication: {JWT}", f"Authorization:Bearer {TOKEN}", "", "JwtMissing"),
    "api key": (
        """apiKeyAuthentication: {secretRef: {one: {value: k1}}, location: {header: {name: x-key}}}""",
        "X-Key:k1",
        "",
        "ApiKeyMissing",
    ),
    "basic": (
        "basicAuthentication: {users: ['me:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=']}",
        "Authorization:Basic bWU6cGFzc3dvcmQ=",
        "",
        "BasicMissing",
    ),
    "authorization": (
        """authorization: {policy: {matchExpressions: ['request.headers["x-a"] == "1"']}}""",
        "X-A:1",
        "",
        "AuthorizationDenied",
    ),
}


def reason(policies: str, *lines: bytes) -> str:
    run = PolicyRun(f"policies: {{{policies}}}")
    x = exchange("POST")
    x.request = Head(b"\r\n" + b"".join(line + b"\r\n" for line in lines))
    answer = run.request(x)
    return "" if answer is None else answer.reason


@pytest.mark.parametrize(("policies", "header", "present", "absent"), CASES.values(), ids=CASES)
def test_a_header_counts_wherever_it_stands(policies: str, header: str, present: str, absent: str) -> None:
    name, _, value = header.partition(":")
    for spelled in (f"{name}:{value}", f"{name}: {value}", f"{name.lower()}: \t{value} "):
        for lines in permutations((spelled.encode(), *OTHERS)):
            assert reason(policies, *lines) == present, lines
    assert reason(policies, *OTHERS) == absent
    longer = f"x-{header}".encode(), f"{name}-x: {value}".encode()  # other names that have it in them
    assert reason(policies, *longer, *OTHERS) == absent


@pytest.mark.parametrize("space", [b"", b" ", b" \t "])
def test_cors_reads_the_origin_wherever_it_stands(space: bytes) -> None:
    run = PolicyRun(f"policies: {{cors: {{allowOrigins: ['{SHOP}']}}}}")
    for lines in permutations((b"Origin:" + space + SHOP.encode() + space.rstrip(), *OTHERS)):
        x = exchange()
        x.request = Head(b"\r\n" + b"".join(line + b"\r\n" for line in lines))
        assert run.request(x) is None
        x.status, x.response = 200, Head(b"\r\nx-a: 1\r\n")
        step = x.policies.chain.response
        assert step is not None and step(x) is None
        assert x.response.get(b"access-control-allow-origin") == SHOP.encode()
