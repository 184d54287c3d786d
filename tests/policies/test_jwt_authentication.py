"""JWT authentication from the standalone file to the request that an upstream sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.carriers import Carried, Carrier, Headers, Request
from tests.carriers.values import Pairs
from tests.fakes.policy_run import PolicyRun, example, problems, served
from tests.fakes.table_state import exchange
from tests.fakes.tokens import ISSUER, Issuer, encoded, key_set, with_mac
from tests.harness import yamls

ANN = Issuer()
OTHER = Issuer()
"""Another key with the same name."""


def policy(keys: str = ANN.key_set(), **fields: Any) -> str:
    """A route with the policy; `fields` are its other fields."""
    provider = {"issuer": ISSUER, "audiences": fields.pop("audiences", None), "jwks": {"inline": keys}}
    provider = {name: value for name, value in provider.items() if value is not None}
    return yamls.dump({"policies": {"jwtAuthentication": {"providers": [provider], **fields}}})


def bearer(token: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {token}" if token else "Bearer")


def get(*headers: tuple[str, str], target: str = "/") -> Request:
    return Request("GET", target, headers)


def served_by(*args: Any, **fields: Any) -> str:
    """A file with the policy, that logs the claims."""
    return served(policy(*args, **fields), log="{all: toJson(jwt)}")


NO_CLAIMS = "ms all={}"
BASIC = ("authorization", "Basic YTpi")
STRICT = served_by()
TOKEN = ANN.token(sub="ann")


def refused_as(seen: Carried) -> tuple[str, str, str]:
    """(reason, cause, challenge) of a refusal."""
    assert (seen.answer.status, seen.answer.body, seen.reached) == (401, b"authentication failed", ())
    assert seen.line.endswith(NO_CLAIMS)
    return seen.reason, seen.error.rpartition(": ")[2], seen.answer.headers["www-authenticate"]


@pytest.mark.claims("errors: Authentication mode `Strict` with missing or invalid credentials")
@pytest.mark.parametrize("headers", [[], [bearer("a.b.c")], [bearer(OTHER.token())]], ids=["none", "text", "other key"])
def test_strict_refuses(headers: Pairs, refused: Any, carrier: Carrier) -> None:
    seen = carrier.shared(STRICT).carry(get(*headers))
    refused(seen.answer, case="jwt")
    assert seen.reached == ()


@pytest.mark.parametrize("again", [False, True], ids=["verified", "remembered"])
def test_a_valid_token_passes_and_is_taken_out(again: bool, carrier: Carrier) -> None:
    run = carrier.proxy(STRICT)
    for _ in range(2 if again else 1):
        seen = run.carry(get(("accept", "*/*"), bearer(TOKEN), ("x-last", "1")))
        assert (seen.answer.status, seen.received.passed) == (200, {"accept": "*/*", "x-last": "1"})
        assert r"\"sub\":\"ann\"" in seen.line and TOKEN not in seen.line


def test_claims_and_the_token_are_there_for_expressions(carrier: Carrier) -> None:
    token = ANN.token(sub="ann", roles=["user", "admin"], level=3)
    conditions = [
        'jwt.sub == "ann"',
        '"admin" in jwt.roles',
        f'jwt.rawToken.unredacted() == "{token}"',
        "jwt.level > 2",
    ]
    route = yamls.load(policy())
    route["policies"]["authorization"] = {"policy": {"matchExpressions": conditions}}
    run = carrier.proxy(served(yamls.dump(route), log="{all: toJson(jwt)}"))
    seen = run.carry(get(bearer(token)))
    assert seen.answer.status == 200 and r"\"level\":3" in seen.line and token not in seen.line
    assert run.carry(get(bearer(ANN.token(sub="bob", roles=[], level=3)))).answer.status == 403


MODES = [
    # mode, headers, why they are refused ("": they pass, as they came)
    ("Strict", [], "JwtMissing"),
    ("Strict", [BASIC], "JwtMissing"),
    ("Strict", [bearer("x")], "JwtInvalid"),
    ("Strict", [bearer(TOKEN), bearer(TOKEN)], "JwtInvalid"),
    ("Optional", [], ""),
    ("Optional", [BASIC], ""),
    ("Optional", [bearer("")], "JwtInvalid"),
    ("Optional", [bearer("x")], "JwtInvalid"),
    ("Optional", [bearer(TOKEN), BASIC], "JwtInvalid"),
    ("Permissive", [], ""),
    ("Permissive", [bearer("x")], ""),
    ("Permissive", [bearer(TOKEN), bearer(TOKEN)], ""),
]


@pytest.mark.parametrize(("mode", "headers", "reason"), MODES, ids=range(len(MODES)))
def test_modes(mode: str, headers: Pairs, reason: str, carrier: Carrier) -> None:
    seen = carrier.shared(served_by(mode=mode)).carry(get(*headers))
    assert (seen.answer.status, seen.reason) == (401 if reason else 200, reason)
    assert [each.passed for each in seen.reached] == ([] if reason else [Headers(headers)])
    assert seen.line.endswith(NO_CLAIMS)


@pytest.mark.parametrize("mode", ["Strict", "Optional", "Permissive"])
def test_a_valid_token_is_one_in_every_mode(mode: str, carrier: Carrier) -> None:
    seen = carrier.shared(served_by(mode=mode)).carry(get(bearer(TOKEN)))
    assert (seen.answer.status, seen.received.passed) == (200, {})
    assert r"\"sub\":\"ann\"" in seen.line


NOW = 1000
"""The time of the day of a proxy in memory."""
RSA = Issuer("RS256")
RSA_KEY = RSA.key_set(alg="RS256")
CLAIMS = json.dumps({"iss": ISSUER, "exp": NOW + 86_400})

REFUSED = [
    ("expired", ANN.token(exp=NOW - 31), "the token has expired, or does not say when it will"),
    ("no exp", ANN.token(exp=None), "the token has expired, or does not say when it will"),
    ("exp is text", ANN.token(exp=str(NOW + 86_400)), "the token has expired, or does not say when it will"),
    ("exp is true", ANN.token(exp=True), "the token has expired, or does not say when it will"),
    ("exp is infinite", ANN.signed(f'{{"iss": "{ISSUER}", "exp": 1e999}}'),
     "the token has expired, or does not say when it will"),
    ("exp is no number", ANN.signed(f'{{"iss": "{ISSUER}", "exp": NaN}}'), "the token is malformed"),
    ("not yet", ANN.token(nbf=NOW + 80_000), "the token is not valid yet"),
    ("nbf is text", ANN.token(nbf="0"), "the token is not valid yet"),
    ("other issuer", ANN.token(iss="https://other.example"), "the token is of an issuer that is not configured"),
    ("no issuer", ANN.token(iss=None), "the token is of an issuer that is not configured"),
    ("issuers in a list", ANN.token(iss=[ISSUER]), "the token is of an issuer that is not configured"),
    ("another key", OTHER.token(), "the signature is wrong"),
    ("unknown kid", ANN.token({"kid": "k9"}), "no key of the issuer fits the token"),
    ("kid is a number", ANN.token({"kid": 1}), "the token is malformed"),
    ("alg of another kind", ANN.token({"alg": "ES256"}), "no key of the issuer fits the token"),
    ("none", ANN.token({"alg": "none"}), "no key of the issuer fits the token"),
    ("none, unsigned", ANN.token({"alg": "none"}).rpartition(".")[0] + ".", "no key of the issuer fits the token"),
    ("no alg", ANN.token({"alg": None}), "the token is malformed"),
    ("crit", ANN.token({"crit": ["exp"], "exp": 1}),
     "the token has critical header parameters, none of which are known"),
    ("crit, empty", ANN.token({"crit": []}), "the token has critical header parameters, none of which are known"),
    ("a name twice", ANN.signed(f'{{"iss": "{ISSUER}", "exp": {NOW + 86_400}, "sub": "a", "sub": "b"}}'),
     "the token is malformed"),
    ("claims in a list", ANN.signed("[]"), "the token is malformed"),
    ("claims are deep", ANN.signed("[" * 9000), "the token is malformed"),
    ("half a character", ANN.token().replace("ey", "e", 1), "the token is malformed"),
    ("half a surrogate", ANN.signed(f'{{"iss": "{ISSUER}", "exp": {NOW + 86_400}, "sub": "\\ud800"}}'),
     "the token is malformed"),
    ("four parts", ANN.token() + ".", "the token is malformed"),
    ("two parts", ANN.token().rpartition(".")[0], "the token is malformed"),
    ("padding", ANN.token() + "==", "the token is malformed"),
    ("unused bits", ANN.token()[:-1] + "B", "the token is malformed"),
    ("too long", ANN.token(pad="x" * 30000), "the token is malformed"),
    ("empty", "", "the token is malformed"),
    ("a list of them", f"{ANN.token()}, Bearer {ANN.token()}", "the token is malformed"),
]  # fmt: skip


@pytest.mark.parametrize(("token", "cause"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_invalid_tokens(token: str, cause: str, carrier: Carrier) -> None:
    seen = carrier.shared(STRICT).carry(get(bearer(token)))
    assert refused_as(seen) == ("JwtInvalid", cause, 'Bearer error="invalid_token"')
    assert token == "" or token not in seen.line


def test_public_keys_are_no_secrets_for_macs(carrier: Carrier) -> None:
    """RFC 8725 2.1: the attack on verifiers that let a token choose HS256."""
    run = carrier.proxy(served_by(key_set(RSA.key(), {"kty": "oct", "kid": "o", "k": encoded(b"k" * 32)})))
    modulus = RSA.private.public_key().public_numbers().n.to_bytes(256, "big")
    for secret, kid in ((modulus, "k1"), (RSA.key()["n"].encode(), "k1"), (b"k" * 32, "o"), (b"", "k1")):
        seen = run.carry(get(bearer(with_mac(secret, CLAIMS, {"alg": "HS256", "kid": kid}))))
        assert refused_as(seen)[1] == "no key of the issuer fits the token"


def test_leeway(carrier: Carrier) -> None:
    for claims in ({"exp": NOW - 25}, {"nbf": NOW + 25}):
        assert carrier.shared(STRICT).carry(get(bearer(ANN.token(**claims)))).answer.status == 200


@pytest.mark.parametrize(
    ("audience", "valid"),
    [("shop", True), (["x", "shop"], True), ("other", False), ([], False), (None, False), (1, False)],
)
def test_audiences(audience: Any, valid: bool, carrier: Carrier) -> None:
    run = carrier.shared(served_by(audiences=["shop", "store"]))
    seen = run.carry(get(bearer(ANN.token(aud=audience))))
    assert (seen.answer.status, seen.reason) == ((200, "") if valid else (401, "JwtInvalid"))


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "PS384", "ES256", "ES384", "ES512", "EdDSA"])
@pytest.mark.parametrize("named", [True, False], ids=["key with alg", "key without alg"])
def test_algorithms(algorithm: str, named: bool, carrier: Carrier) -> None:
    issuer = Issuer(algorithm)
    run = carrier.proxy(served_by(issuer.key_set(alg=algorithm if named else None)))
    assert run.carry(get(bearer(issuer.token()))).answer.status == 200


def test_a_key_allows_the_algorithm_that_it_names_only(carrier: Carrier) -> None:
    run = carrier.proxy(served_by(RSA_KEY))
    RSA.algorithm = "PS256"
    try:
        seen = run.carry(get(bearer(RSA.token())))
    finally:
        RSA.algorithm = "RS256"
    assert refused_as(seen)[1] == "no key of the issuer fits the token"


@pytest.mark.parametrize(
    ("keys", "kid", "valid"),
    [
        ([ANN.key()], None, True),
        ([ANN.key(), RSA.key(kid="r")], None, True),  # one key of the algorithm
        ([ANN.key(), OTHER.key(kid="k2")], None, False),  # two
        ([ANN.key(), OTHER.key(kid="k2")], "k1", True),
        ([ANN.key(), OTHER.key()], "k1", True),  # one name for two keys: during a change of keys
        ([ANN.key(kid=None)], "k7", True),  # a set that names no keys
        ([ANN.key(kid=None), OTHER.key(kid="k2")], "k7", False),
    ],
)
def test_key_names(keys: list[dict[str, Any]], kid: str | None, valid: bool, carrier: Carrier) -> None:
    run = carrier.proxy(served_by(key_set(*keys)))
    seen = run.carry(get(bearer(ANN.token({"kid": kid}))))
    assert (seen.answer.status, seen.reason) == ((200, "") if valid else (401, "JwtInvalid"))


LOCATIONS: list[tuple[dict[str, Any], Pairs, str]] = [
    ({"header": {"name": "X-Token"}}, [("x-token", TOKEN)], ""),
    ({"header": {"name": "X-Token", "prefix": "JWT"}}, [("x-token", f"jwt   {TOKEN}")], ""),
    ({"queryParameter": {"name": "token"}}, [], f"?token={TOKEN}"),
    ({"cookie": {"name": "token"}}, [("cookie", f"token={TOKEN}")], ""),
]


@pytest.mark.parametrize(("location", "headers", "query"), LOCATIONS, ids=["header", "prefix", "query", "cookie"])
def test_locations(location: dict[str, Any], headers: Pairs, query: str, carrier: Carrier) -> None:
    seen = carrier.proxy(served_by(location=location)).carry(get(*headers, target="/" + query))
    assert (seen.answer.status, seen.received.passed, seen.received.target) == (200, {}, "/")


def test_an_expression_finds_the_token_and_leaves_it(carrier: Carrier) -> None:
    run = carrier.proxy(served_by(location={"expression": 'request.headers["x-all"].split(";")[1]'}))
    header = ("x-all", f"a;{TOKEN};b")
    assert run.carry(get(header)).received.passed == Headers([header])
    assert refused_as(run.carry(get()))[0] == "JwtMissing"
    assert refused_as(run.carry(get(("x-all", "a;b;c"))))[0] == "JwtInvalid"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ("{}", 'the key set has no list "keys"'),
        ("[]", 'the key set has no list "keys"'),
        ("no", "the key set is not JSON"),
        ('{"keys": []}', "none of 0 keys can check signatures"),
        (ANN.key_set(use="enc"), "none of 1 keys can check signatures"),
        (RSA.key_set(key_ops=["encrypt"]), "none of 1 keys can check signatures"),
        (key_set({"kty": "oct", "k": "c2VjcmV0"}), "none of 1 keys can check signatures"),
        (Issuer("RS256", bits=1024).key_set(), "none of 1 keys can check signatures"),
    ],
)
def test_keys_that_cannot_be_used_are_refused(keys: str, reason: str) -> None:
    run = PolicyRun(policy(keys), may_refuse=True)
    (text,) = run.refused.values()
    assert reason in text and "providers[0].jwks.inline" in text
    answer = run.request(exchange(headers="{}: {}\r\n".format(*bearer(TOKEN)).encode()))
    assert answer is not None and answer.reason == "PolicyUnusable"


@pytest.mark.claims("limits: JWT providers; audiences", "limits: JWKS inline size")
def test_limits() -> None:
    def route(count: int) -> str:
        providers = [{"issuer": f"i{n}", "jwks": {"inline": ANN.key_set()}} for n in range(count)]
        return yamls.dump({"policies": {"jwtAuthentication": {"providers": providers}}})

    assert (problems(route(1)), problems(route(64))) == ([], [])
    assert problems(route(0)) and problems(route(65))
    assert problems(policy(audiences=["a"] * 64)) == [] and problems(policy(audiences=["a"] * 65))
    assert problems(policy("{}" + " " * 65534)) == [] and problems(policy("{}" + " " * 65535)) and problems(policy("{"))


def test_the_example_of_the_page(root: Path) -> None:
    assert problems(example(root / "docs/policies/jwt_authentication.md")) == []


def test_over_one_connection(carrier: Carrier) -> None:
    run = carrier.proxy(served(policy()))
    token = ANN.token(exp=NOW + 60)
    for _ in range(2):
        answer = run.ask(get(("authorization", f"bearer {token}"), ("x", "1")))
        assert (answer.status, run.arrival.received.passed) == (200, {"x": "1"})
    assert run.ask(get(("authorization", f"bearer {token}x"))).status == 401
    assert len(run.arrivals) == 2 and run.own.connections == 1
    assert token not in "".join(run.log_lines())
