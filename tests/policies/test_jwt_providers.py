"""Several providers with one issuer, and secrets in place of public keys: who accepts a token; none is ever mixed."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest

from dataplane.agent import dump
from dataplane.agent.resources import Resources
from dataplane.chain.filter import Env, Refused
from dataplane.chain.reply import Reply
from dataplane.credentials import shared_secret
from dataplane.credentials.jwk import Unusable, from_base64url
from dataplane.filters.steps import jwt_authentication
from dataplane.link.messages import Record
from dataplane.table.store import RESOURCE_TYPE
from gatewright.api.standalone import standalone
from gatewright.wire.v1 import authentication_pb2
from tests.carriers import Carrier, Request
from tests.fakes.both_planes import BothPlanes
from tests.fakes.calls import FakeCalls, answered, failed
from tests.fakes.policy_run import PolicyRun, served
from tests.fakes.table_state import exchange
from tests.fakes.tokens import DAY, ISSUER, Issuer, encoded, key_set, with_mac
from tests.harness import yamls
from tests.outside.dialects.objects import GATEWAY, SHOP

ANN, BEN, RSA = Issuer(kid="a"), Issuer(kid="b"), Issuer("RS256", kid="r")
BARE = Issuer(kid=None)
SECRET, OTHER = b"0123456789abcdef0123456789abcdef", b"x" * 40

UNKNOWN_KEY, SIGNATURE = "no key of the issuer fits the token", "the signature is wrong"
AUDIENCE, FOREIGN = "the token is for another audience", "the token is of an issuer that is not configured"


def keys(*issuers: Issuer, audiences: list[str] | None = None, issuer: str = ISSUER) -> dict[str, Any]:
    """A provider with public keys."""
    inline = {"jwks": {"inline": key_set(*(each.key() for each in issuers))}}
    return {"issuer": issuer, **inline, **({"audiences": audiences} if audiences else {})}


def shared(secret: bytes = SECRET, audiences: list[str] | None = None) -> dict[str, Any]:
    """A provider with a secret."""
    found = {"issuer": ISSUER, "sharedSecretRef": {"value": secret.decode()}}
    return {**found, **({"audiences": audiences} if audiences else {})}


def route(*providers: dict[str, Any]) -> str:
    return yamls.dump({"policies": {"jwtAuthentication": {"providers": list(providers)}}})


def mac(secret: bytes = SECRET, algorithm: str = "HS256", kid: str | None = None, **claims: Any) -> str:
    payload = {"iss": ISSUER, "exp": int(time.time()) + DAY, **claims}
    header = {"alg": algorithm, **({"kid": kid} if kid else {})}
    return with_mac(secret, json.dumps(payload), header)


def verdict(carrier: Carrier, token: str, *providers: dict[str, Any]) -> str:
    """What the log says of a request with the token; "" for one that passed."""
    seen = carrier.shared(served(route(*providers))).carry(Request("GET", "/", (("authorization", f"Bearer {token}"),)))
    assert token not in seen.line and (seen.answer.status == 200) == bool(seen.reached)
    return "" if seen.answer.status == 200 else seen.error.rpartition(": ")[2]


A, B = keys(ANN, audiences=["shop"]), keys(BEN, audiences=["desk"])
NAMELESS = keys(BARE, audiences=["van"])
PLAIN = RSA.key()["n"].encode()
MODULUS = RSA.private.public_key().public_numbers().n.to_bytes(256, "big")

CASES: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "first": ([A, B], ANN.token(aud="shop"), ""),
    "second": ([A, B], BEN.token(aud="desk"), ""),
    "first, no kid": ([A, B], ANN.token({"kid": None}, aud="shop"), ""),
    "second, no kid": ([A, B], BEN.token({"kid": None}, aud="desk"), ""),
    "one key, two audiences": ([A, keys(ANN, audiences=["desk"])], ANN.token(aud="desk"), ""),
    "any audience beside one": ([A, keys(BEN)], BEN.token(aud="whoever"), ""),
    "same audience, no kid": ([keys(ANN), keys(BEN)], BEN.token({"kid": None}), ""),
    "keys without names": ([A, NAMELESS], BARE.token({"kid": "z"}, aud="van"), ""),
    "key of one, audience of the other": ([A, B], ANN.token(aud="desk"), AUDIENCE),
    "the same, no kid": ([A, B], ANN.token({"kid": None}, aud="desk"), SIGNATURE),
    "audience of neither": ([A, B], ANN.token(aud="van"), AUDIENCE),
    "name of the other's key": ([A, B], ANN.token({"kid": "b"}, aud="shop"), SIGNATURE),
    "name of the other's key, its audience": ([A, B], ANN.token({"kid": "b"}, aud="desk"), SIGNATURE),
    "named by one, signed by a nameless key": ([A, NAMELESS], BARE.token({"kid": "a"}, aud="van"), SIGNATURE),
    "a name of nobody": ([A, B], ANN.token({"kid": "z"}, aud="shop"), UNKNOWN_KEY),
    "key of another issuer": ([A, keys(BEN, issuer="https://b")], BEN.token(aud="shop"), UNKNOWN_KEY),
    "issuer of nobody": ([A, B], ANN.token(iss="https://c", aud="shop"), FOREIGN),
    # secrets
    "secret": ([shared()], mac(sub="ann"), ""),
    "secret, any kid": ([shared()], mac(kid="z"), ""),
    "secret beside keys": ([keys(RSA, audiences=["shop"]), shared(audiences=["desk"])], mac(aud="desk"), ""),
    "keys beside a secret": ([shared(audiences=["desk"]), keys(RSA, audiences=["shop"])], RSA.token(aud="shop"), ""),
    "secret with the audience of keys": ([keys(RSA, audiences=["shop"]), shared(audiences=["desk"])], mac(aud="shop"),
                                         AUDIENCE),
    "two secrets": ([shared(OTHER, ["shop"]), shared(audiences=["desk"])], mac(aud="desk"), ""),
    "two secrets mixed": ([shared(OTHER, ["shop"]), shared(audiences=["desk"])], mac(aud="shop"), SIGNATURE),
    "another secret": ([shared()], mac(OTHER), SIGNATURE),
    "a part of it": ([shared()], mac(SECRET[:-1]), SIGNATURE),
    "no signature": ([shared()], mac().rpartition(".")[0] + ".", SIGNATURE),
    "a cut signature": ([shared()], ".".join((*mac().split(".")[:2], encoded(b"\0" * 31))), SIGNATURE),
    "none": ([shared()], mac(algorithm="none"), UNKNOWN_KEY),
    "HS384": ([shared()], mac(algorithm="HS384"), UNKNOWN_KEY),
    "hs256": ([shared()], mac(algorithm="hs256"), UNKNOWN_KEY),
    "RS256 by name": ([shared()], mac(algorithm="RS256"), UNKNOWN_KEY),
    "modulus as a secret": ([keys(RSA), shared()], mac(MODULUS, kid="r"), SIGNATURE),
    "text of a key as a secret": ([keys(RSA), shared()], mac(PLAIN, kid="r"), SIGNATURE),
    "public key alone": ([keys(RSA)], mac(MODULUS, kid="r"), UNKNOWN_KEY),
    "empty secret": ([keys(RSA), shared()], mac(b"", kid="r"), SIGNATURE),
}  # fmt: skip


@pytest.mark.parametrize(("providers", "token", "cause"), CASES.values(), ids=CASES)
def test_who_accepts_a_token(providers: list[dict[str, Any]], token: str, cause: str, carrier: Carrier) -> None:
    assert verdict(carrier, token, *providers) == cause
    assert verdict(carrier, token, *reversed(providers)) == cause


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        (b"s" * 31, "has 31 bytes"),
        (b"s" * 31 + b"\n", "has 31 bytes"),
        (b"\r\n" * 40, "has 0 bytes"),
        (b"-----BEGIN PUBLIC KEY-----\n" + b"a" * 64, "is a key or certificate"),
        (json.dumps(RSA.key()).encode(), "is a key or certificate"),
        (key_set(ANN.key()).encode(), "is a key or certificate"),
    ],
)
def test_secrets_that_are_refused(secret: bytes, why: str) -> None:
    with pytest.raises(Unusable, match=why) as error:
        shared_secret.read(secret)
    assert secret.decode().strip() == "" or secret.decode().strip() not in str(error.value)


@pytest.mark.parametrize("sent", [SECRET, SECRET + b"\n", SECRET + b"\r\n"])
def test_line_breaks_at_the_end_of_a_text_are_no_part_of_it(sent: bytes) -> None:
    (check,) = shared_secret.read(sent).fitting(None, "HS256")
    signed, _, signature = mac().encode().rpartition(b".")
    assert check(from_base64url(signature), signed)


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    assert shared_secret.read(b"\xff" * 31 + b"\n").keys


def test_secrets_are_in_no_dump_and_no_repr() -> None:
    loaded = standalone.load(served(route(keys(RSA), shared())), "config.yaml")
    resources = Resources()
    records = [Record(RESOURCE_TYPE, each.key, each.SerializeToString()) for each in loaded.resources]
    resources.update("file", records)
    resources.judge(())
    shown = dump.as_json(dump.resources(resources, {})).decode()
    assert "secret/default/route/r/jwt_authentication/1" in shown
    seen = "".join((shown, repr(loaded.content), repr(shared_secret.read(SECRET).keys), repr(records)))
    assert SECRET.decode() not in seen and base64.b64encode(SECRET).decode() not in seen


ISSUER_SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {{name: issuer}}\nstringData: {{{0}: {1}}}\n".format
OBJECTS = f"""\
{GATEWAY}---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: shop}}
spec: {{parentRefs: [{{name: web}}], rules: [{{backendRefs: [{{name: shop, port: 80}}]}}]}}
{SHOP}---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: tokens}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}}]
  traffic: {{jwtAuthentication: {{providers: [{{issuer: '{ISSUER}', sharedSecretRef: {{name: issuer}}}}]}}}}
"""


def conditions(planes: BothPlanes) -> str:
    return str(planes.world.conditions("GatewayPolicy", "tokens"))


def ask(planes: BothPlanes, secret: bytes) -> int:
    return planes.ask("/", f"authorization: Bearer {mac(secret)}")[0]


def test_a_secret_of_the_cluster_and_its_rotation() -> None:
    planes = BothPlanes(OBJECTS + "---\n" + ISSUER_SECRET("secret", SECRET.decode()))
    assert (ask(planes, SECRET), ask(planes, OTHER), planes.ask("/")[0]) == (200, 401, 401)
    planes.load(ISSUER_SECRET("secret", OTHER.decode()))
    assert (ask(planes, SECRET), ask(planes, OTHER)) == (401, 200)


def test_a_secret_that_is_not_there_closes_what_it_covers() -> None:
    planes = BothPlanes(OBJECTS)
    assert (ask(planes, SECRET), ask(planes, b"")) == (503, 503)
    assert "SecretNotFound" in conditions(planes)
    planes.load(ISSUER_SECRET("other", SECRET.decode()))
    assert ask(planes, SECRET) == 503 and "has no entry secret" in conditions(planes)
    planes.load(ISSUER_SECRET("secret", SECRET.decode()))
    assert (ask(planes, SECRET), ask(planes, OTHER)) == (200, 401)


def test_a_weak_secret_closes_what_it_covers() -> None:
    run = PolicyRun(
        "policies: {jwtAuthentication: {providers: [{issuer: a, sharedSecretRef: {value: short}}]}}", may_refuse=True
    )
    assert [text for text in run.refused.values() if "providers[0].secret" in text and "has 5 bytes" in text]
    assert "short" not in str(run.refused)
    answer = run.request(exchange(headers=f"authorization: Bearer {mac(b'short', iss='a')}\r\n".encode()))
    assert answer is not None and answer.reason == "PolicyUnusable"


LOST, THERE = "backend/service/default/lost/80", "backend/service/default/keys/80"


class Worker:
    """As far as the policy sees it: keys of two servers."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.calls = FakeCalls({LOST: failed("timeout"), THERE: answered(200, key_set(BEN.key()).encode())})
        self.tasks: list[asyncio.Task[None]] = []
        self.secrets: Mapping[str, bytes] = {shared_secret.ENTRY: SECRET}

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))

    def env(self) -> Env:
        return Env(
            clock=lambda: self.now,
            wall_clock=lambda: self.now,
            random=lambda: 0.0,
            calls=self.calls,
            spawn=self.spawn,
            make_future=lambda: asyncio.get_running_loop().create_future(),
            secret=lambda key: self.secrets,
        )

    async def ask(self, config: authentication_pb2.JwtAuthentication, *tokens: str) -> list[str]:
        """Reasons of refusals, "" for what passes, of requests one after another."""
        step = jwt_authentication.build(config, self.env())
        assert step.request is not None
        answers = []
        for token in tokens:
            answer = step.request(exchange(headers=f"Authorization: Bearer {token}\r\n".encode()))
            answer = answer if answer is None or isinstance(answer, Reply) else await answer
            answers.append("" if answer is None else answer.reason)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        return answers


def remote(config: authentication_pb2.JwtAuthentication, server: str) -> None:
    config.providers.add(issuer=ISSUER).jwks.remote.backend = server


async def test_a_lost_server_of_one_provider_refuses_no_token_of_another() -> None:
    config = authentication_pb2.JwtAuthentication()
    remote(config, LOST)
    remote(config, THERE)
    config.providers.add(issuer=ISSUER, secret="s")
    config.providers.add(issuer=ISSUER).jwks.inline = key_set(ANN.key())
    exp = 1_000_000 + DAY
    tokens = (mac(exp=exp), ANN.token(exp=exp), BEN.token(exp=exp))
    assert await Worker().ask(config, *tokens) == ["", "", ""]
    unknown = (RSA.token(exp=exp), ANN.token({"kid": "b"}, exp=exp), mac(OTHER, exp=exp))
    assert await Worker().ask(config, *unknown) == ["JwtKeysUnavailable", "JwtKeysUnavailable", "JwtInvalid"]


async def test_tokens_that_keys_cannot_check_fetch_none() -> None:
    config, worker = authentication_pb2.JwtAuthentication(), Worker()
    remote(config, THERE)
    config.providers.add(issuer=ISSUER, secret="s")
    worker.calls.hold = True
    assert await worker.ask(config, mac(exp=1_000_000 + DAY), mac(OTHER, exp=1_000_000 + DAY)) == ["", "JwtInvalid"]


async def test_a_new_key_of_one_server_is_fetched_though_another_has_one_without_a_name() -> None:
    config, worker = authentication_pb2.JwtAuthentication(), Worker()
    remote(config, THERE)
    config.providers.add(issuer=ISSUER).jwks.inline = key_set(BARE.key())
    exp = 1_000_000 + DAY
    assert await worker.ask(config, BEN.token(exp=exp), BARE.token({"kid": "z"}, exp=exp)) == ["", ""]
    worker.calls.on(THERE, answered(200, key_set(BEN.key(), RSA.key(kid="new")).encode()))
    assert await worker.ask(config, RSA.token({"kid": "new"}, exp=exp)) == [""]


def test_a_secret_without_the_entry_is_refused() -> None:
    worker = Worker()
    worker.secrets = {"other": SECRET}
    config = authentication_pb2.JwtAuthentication()
    config.providers.add(issuer=ISSUER, secret="secret/default/s")
    with pytest.raises(Refused, match=r"providers\[0\]\.secret: secret/default/s has no entry secret"):
        jwt_authentication.build(config, worker.env())
