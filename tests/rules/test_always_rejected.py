"""What lint and status call an error because proxies always reject it: a proxy has the last word on each.

Two rooms know these rules, the builders of policies and `gatewright.api.advice.advice`, which shares no code with them.
"""

from __future__ import annotations

import pytest

from dataplane.table.store import RESOURCE_TYPE, Change
from gatewright.api.advice.advice import refusals
from gatewright.api.standalone import standalone
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import text_of

ROUTE = """
backends: [{{host: "127.0.0.1:9000"}}]
policies:
  {policies}
"""
USERS = "users: ['ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=']"
KEY = '{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'
KEYS = f"inline: '{{\"keys\": [{KEY}]}}'"
PROVIDER = f"{{issuer: a, jwks: {{{KEYS}}}}}"
AUTH = "extAuthz: {{host: '127.0.0.1:9001', protocol: {{http: {{{0}}}}}}}".format
SHARED = "jwtAuthentication: {{providers: [{{issuer: a, sharedSecretRef: {{value: '{0}'}}}}]}}".format
JWT = "jwtAuthentication: {{providers: [{{issuer: a, jwks: {{{0}}}}}]}}".format

REFUSED = {
    "pseudo-header of responses": "transformation: {request: {set: [{name: ':status', value: \"'1'\"}]}}",
    "pseudo-header added": "transformation: {request: {add: [{name: ':path', value: \"'/'\"}]}}",
    "host added": "transformation: {request: {add: [{name: host, value: \"'a'\"}]}}",
    "pseudo-header removed": "transformation: {response: {remove: [':status']}}",
    "realm": f'basicAuthentication: {{realm: "a\\tb", {USERS}}}',
    "key set without keys": JWT("inline: '{}'"),
    "key set that is no JSON": JWT("inline: 'no JSON'"),
    "secret keys": JWT('inline: \'{"keys": [{"kty": "oct", "k": "AAAA"}]}\''),
    "path of keys": JWT("remote: {jwksPath: '/a b', host: '127.0.0.1:9002'}"),
    "short shared secret": SHARED("s" * 31),
    "certificate as a shared secret": SHARED("-----BEGIN CERTIFICATE----- " + "s" * 32),
    "key set as a shared secret": SHARED(f'{{"keys": [{KEY}]}}'),
    "key as a shared secret": SHARED(KEY),
    "location that stays": f"basicAuthentication: {{{USERS}, location: {{header: {{name: host}}}}}}",
    "cookie that none is": f"basicAuthentication: {{{USERS}, location: {{cookie: {{name: 'a;b'}}}}}}",
    "prefix of two lines": f'basicAuthentication: {{{USERS}, location: {{header: {{name: x-a, prefix: "a\\nb"}}}}}}',
    "call's pseudo-header": AUTH("addRequestHeaders: {':status': \"'a'\"}"),
    "call's host": AUTH("addRequestHeaders: {host: \"'a'\"}"),
    "copied header that is none": AUTH("allowedRequestHeaders: ['a b']"),
    "copied header of the connection": AUTH("allowedRequestHeaders: [connection]"),
    "host of an answer": AUTH("allowedResponseHeaders: [host]"),
}

TAKEN = {
    "pseudo-headers": "transformation: {request: {set: [{name: ':path', value: \"'/'\"}]}}",
    "users": f"basicAuthentication: {{realm: a b, {USERS}}}",
    "keys": JWT(KEYS),
    "issuer twice": f"jwtAuthentication: {{providers: [{PROVIDER}, {PROVIDER}]}}",
    "shared secret": SHARED("s" * 32),
    "path of keys": JWT("remote: {jwksPath: keys, host: '127.0.0.1:9002'}"),
    "location": f"basicAuthentication: {{{USERS}, location: {{header: {{name: x-password}}}}}}",
    "cookie": f"basicAuthentication: {{{USERS}, location: {{cookie: {{name: __Host-key}}}}}}",
    "prefix": f"basicAuthentication: {{{USERS}, location: {{header: {{name: x-a, prefix: 'Key '}}}}}}",
    "call": AUTH(
        "addRequestHeaders: {':authority': \"'a'\", x-a: \"'b'\"}, allowedRequestHeaders: [host, x-b],"
        " allowedResponseHeaders: [x-c]"
    ),
}


def refused(policies: str, more: str = "") -> tuple[bool, bool]:
    """Whether lint says that a proxy refuses this configuration, and whether one does."""
    loaded = standalone.load(text_of(ROUTE.format(policies=policies)) + more, "config.yaml")
    assert loaded.content is not None and not loaded.problems, loaded.problems
    applier = MemoryProxy().applier
    for _ in applier.apply([Change(RESOURCE_TYPE, each.key, each.SerializeToString()) for each in loaded.resources]):
        pass
    return any(refusals(loaded.content)), bool(applier.outcome.refused)


@pytest.mark.parametrize("policies", REFUSED.values(), ids=REFUSED)
def test_what_is_called_an_error_is_refused(policies: str) -> None:
    assert refused(policies) == (True, True)


@pytest.mark.parametrize("policies", TAKEN.values(), ids=TAKEN)
def test_what_is_near_it_is_taken(policies: str) -> None:
    assert refused(policies) == (False, False)


@pytest.mark.parametrize(("name", "is_refused"), [("a b", True), ("level", True), ('a"', True), ("a.b", False)])
def test_names_in_the_access_log(name: str, is_refused: bool) -> None:
    more = f"frontendPolicies: {{accessLog: {{add: {{'{name}': request.path}}}}}}\n"
    assert refused("timeouts: {request: 9s}", more) == (is_refused, is_refused)
