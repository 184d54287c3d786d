"""Trailers of requests pass no rule that reads headers: a backend may take one for the header that the rule has not
seen (RFC 9110 6.5.1)."""

from __future__ import annotations

import pytest

from tests.carriers import Carrier, Request
from tests.fakes.policy_run import served

TRAILERS = {"x-role": "root", "x-more": "2"}

AUTHORIZATION = 'authorization: {{action: Deny, policy: {{matchExpressions: ["{}"]}}}}'.format
LIMIT = 'rateLimit: {{local: [{{requests: 9, unit: Seconds, key: "{}"}}]}}'.format
CONDITION = 'directResponse: {{conditional: [{{condition: "{}", policy: {{status: 403}}}}]}}'.format
USERS = "users: ['ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=']"

POLICIES = {
    "a rule": (AUTHORIZATION("request.headers['x-role'] == 'root'"), {"x-more": "2"}),
    "a rule in capitals": (AUTHORIZATION("request.headers['X-Role'] == 'root'"), {"x-more": "2"}),
    "a rule that asks whether it is there": (AUTHORIZATION("'x-role' in request.headers"), {"x-more": "2"}),
    "a rule over all headers": (AUTHORIZATION("request.headers.exists(name, name == 'x-role')"), {}),
    "a rule about a header that the path names": (AUTHORIZATION("request.headers[request.path] == 'root'"), {}),
    "a rule about something else": (AUTHORIZATION("request.path == '/other'"), TRAILERS),
    "a condition": (CONDITION("request.headers['x-role'] == 'root'"), {"x-more": "2"}),
    "the key of a limit": (LIMIT("request.headers['x-role']"), {"x-more": "2"}),
    "a limit without a key": ("rateLimit: {local: [{requests: 9, unit: Seconds}]}", TRAILERS),
    "a credential that an expression makes": (
        f"basicAuthentication: {{{USERS}, mode: Optional, location: {{expression: \"request.headers['x-role']\"}}}}",
        {"x-more": "2"},
    ),
}


@pytest.mark.parametrize(("policies", "passing"), POLICIES.values(), ids=POLICIES)
def test_a_trailer_does_not_pass_for_a_header_that_is_judged(
    policies: str, passing: dict[str, str], carrier: Carrier
) -> None:
    request = Request("POST", "/a", body=[b"a"], trailers=[*TRAILERS.items()], sized=False)
    seen = carrier.shared(served(f"policies: {{{policies}}}")).carry(request)
    assert seen.received is not None and seen.received.trailers == passing


@pytest.mark.parametrize("name", ["origin", "sec-fetch-site"])
def test_what_csrf_judges_is_no_trailer(name: str, carrier: Carrier) -> None:
    request = Request("POST", "/a", body=[b"a"], trailers=[(name, "none"), ("x-more", "2")], sized=False)
    seen = carrier.shared(served("policies: {csrf: {}}")).carry(request)
    assert seen.received is not None and seen.received.trailers == {"x-more": "2"}
