"""JWT authentication from the standalone file to the request that an upstream sees."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from dataplane.chain.reply import Reply
from tests.fakes.memory_proxy import MemoryProxy
from tests.fakes.policy_run import PolicyRun, example, problems, text_of
from tests.fakes.table_state import exchange
from tests.fakes.tokens import ISSUER, Issuer, encoded, key_set, with_mac

ANN = Issuer()
OTHER = Issuer()
"""Another key with the same name."""


def policy(keys: str = ANN.key_set(), **fields: Any) -> str:
    """A route with the policy; `fields` are its other fields."""
    provider = {"issuer": ISSUER, "audiences": fields.pop("audiences", None), "jwks": {"inline": keys}}
    provider = {name: value for name, value in provider.items() if value is not None}
    return yaml.safe_dump({"policies": {"jwtAuthentication": {"providers": [provider], **fields}}})


def bearer(token: str) -> bytes:
    return f"Authorization: Bearer {token}\r\n".encode()


STRICT = PolicyRun(policy())
TOKEN = ANN.token(sub="ann")


def refused_as(answer: Reply | None) -> tuple[str, str, bytes]:
    """(reason, cause, challenge) of a refusal."""
    assert answer is not None and answer.status == 401 and answer.body == b"authentication failed"
    return answer.reason, answer.detail.rpartition(": ")[2], answer.headers


@pytest.mark.claims("errors: Authentication mode `Strict` with missing or invalid credentials")
@pytest.mark.parametrize("headers", [b"", bearer("a.b.c"), bearer(OTHER.token())])
def test_strict_refuses(headers: bytes, refused: Any) -> None:
    refused(STRICT.request(exchange(headers=headers)), case="jwt")


@pytest.mark.parametrize("again", [False, True], ids=["verified", "remembered"])
def test_a_valid_token_passes_and_is_taken_out(again: bool) -> None:
    run = PolicyRun(policy())
    for _ in range(2 if again else 1):
        x = exchange(headers=b"accept: */*\r\n" + bearer(TOKEN) + b"X-Last: 1\r\n")
        assert run.request(x) is None
    assert x.request.block == b"\r\nHost: a.example\r\naccept: */*\r\nX-Last: 1\r\n"
    assert x.request.low == x.request.block.lower()
    assert x.attributes is not None and x.attributes["jwt"]["sub"] == "ann"


def test_claims_and_the_token_are_there_for_expressions() -> None:
    token = ANN.token(sub="ann", roles=["user", "admin"], level=3)
    conditions = [
        'jwt.sub == "ann"',
        '"admin" in jwt.roles',
        f'jwt.rawToken.unredacted() == "{token}"',
        "jwt.level > 2",
    ]
    route = yaml.safe_load(policy())
    route["policies"]["authorization"] = {"policy": {"matchExpressions": conditions}}
    run = PolicyRun(yaml.safe_dump(route))
    x = exchange(headers=bearer(token))
    assert run.request(x) is None
    assert token not in repr(x.attributes)
    assert run.request(exchange(headers=bearer(ANN.token(sub="bob", roles=[], level=3)))) is not None


MODES = [
    # mode, headers, what comes of it, whether the header stays
    ("Strict", b"", "JwtMissing", False),
    ("Strict", b"Authorization: Basic YTpi\r\n", "JwtMissing", True),
    ("Strict", bearer("x"), "JwtInvalid", True),
    ("Strict", bearer(TOKEN) + bearer(TOKEN), "JwtInvalid", True),
    ("Optional", b"", "passes", False),
    ("Optional", b"Authorization: Basic YTpi\r\n", "passes", True),
    ("Optional", b"Authorization: Bearer\r\n", "JwtInvalid", True),
    ("Optional", bearer("x"), "JwtInvalid", True),
    ("Optional", bearer(TOKEN) + b"authorization: Basic YTpi\r\n", "JwtInvalid", True),
    ("Permissive", b"", "passes", False),
    ("Permissive", bearer("x"), "passes", True),
    ("Permissive", bearer(TOKEN) + bearer(TOKEN), "passes", True),
]


@pytest.mark.parametrize(("mode", "headers", "outcome", "stays"), MODES)
def test_modes(mode: str, headers: bytes, outcome: str, stays: bool) -> None:
    x = exchange(headers=headers)
    answer = PolicyRun(policy(mode=mode)).request(x)
    assert (answer.reason if answer else "passes") == outcome
    assert (headers in x.request.block) is True
    assert (b"\r\nauthorization:" in x.request.low) is stays
    assert x.attributes is None


@pytest.mark.parametrize("mode", ["Strict", "Optional", "Permissive"])
def test_a_valid_token_is_one_in_every_mode(mode: str) -> None:
    x = exchange(headers=bearer(TOKEN))
    assert PolicyRun(policy(mode=mode)).request(x) is None
    assert b"authorization" not in x.request.low and x.attributes is not None


NOW = int(time.time())
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
def test_invalid_tokens(token: str, cause: str) -> None:
    answer = STRICT.request(exchange(headers=bearer(token)))
    assert refused_as(answer) == ("JwtInvalid", cause, b'www-authenticate: Bearer error="invalid_token"\r\n')
    assert token == "" or token not in repr(answer)


def test_public_keys_are_no_secrets_for_macs() -> None:
    """RFC 8725 2.1: the attack on verifiers that let a token choose HS256."""
    run = PolicyRun(policy(key_set(RSA.key(), {"kty": "oct", "kid": "o", "k": encoded(b"k" * 32)})))
    modulus = RSA.private.public_key().public_numbers().n.to_bytes(256, "big")
    for secret, kid in ((modulus, "k1"), (RSA.key()["n"].encode(), "k1"), (b"k" * 32, "o"), (b"", "k1")):
        answer = run.request(exchange(headers=bearer(with_mac(secret, CLAIMS, {"alg": "HS256", "kid": kid}))))
        assert refused_as(answer)[1] == "no key of the issuer fits the token"


def test_leeway() -> None:
    for claims in ({"exp": int(time.time()) - 25}, {"nbf": int(time.time()) + 25}):
        assert STRICT.request(exchange(headers=bearer(ANN.token(**claims)))) is None


@pytest.mark.parametrize(
    ("audience", "valid"),
    [("shop", True), (["x", "shop"], True), ("other", False), ([], False), (None, False), (1, False)],
)
def test_audiences(audience: Any, valid: bool) -> None:
    run = PolicyRun(policy(audiences=["shop", "store"]))
    assert (run.request(exchange(headers=bearer(ANN.token(aud=audience)))) is None) is valid


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256", "PS384", "ES256", "ES384", "ES512", "EdDSA"])
@pytest.mark.parametrize("named", [True, False], ids=["key with alg", "key without alg"])
def test_algorithms(algorithm: str, named: bool) -> None:
    issuer = Issuer(algorithm)
    run = PolicyRun(policy(issuer.key_set(alg=algorithm if named else None)))
    assert run.request(exchange(headers=bearer(issuer.token()))) is None


def test_a_key_allows_the_algorithm_that_it_names_only() -> None:
    run = PolicyRun(policy(RSA_KEY))
    RSA.algorithm = "PS256"
    try:
        answer = run.request(exchange(headers=bearer(RSA.token())))
    finally:
        RSA.algorithm = "RS256"
    assert refused_as(answer)[1] == "no key of the issuer fits the token"


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
def test_key_names(keys: list[dict[str, Any]], kid: str | None, valid: bool) -> None:
    run = PolicyRun(policy(key_set(*keys)))
    assert (run.request(exchange(headers=bearer(ANN.token({"kid": kid})))) is None) is valid


LOCATIONS = [
    ({"header": {"name": "X-Token"}}, {"headers": f"x-token:{TOKEN}\r\n"}),
    ({"header": {"name": "X-Token", "prefix": "JWT"}}, {"headers": f"X-TOKEN: jwt   {TOKEN} \r\n"}),
    ({"queryParameter": {"name": "token"}}, {"query": f"token={TOKEN}"}),
    ({"cookie": {"name": "token"}}, {"headers": f"cookie: token={TOKEN}\r\n"}),
]


@pytest.mark.parametrize(("location", "request_"), LOCATIONS, ids=["header", "prefix", "query", "cookie"])
def test_locations(location: dict[str, Any], request_: dict[str, str]) -> None:
    x = exchange(headers=request_.get("headers", "").encode(), query=request_.get("query", ""))
    assert PolicyRun(policy(location=location)).request(x) is None
    assert (x.request.block, x.target, x.query) == (b"\r\nHost: a.example\r\n", b"/", b"")


def test_an_expression_finds_the_token_and_leaves_it() -> None:
    run = PolicyRun(policy(location={"expression": 'request.headers["x-all"].split(";")[1]'}))
    headers = f"x-all: a;{TOKEN};b\r\n".encode()
    x = exchange(headers=headers)
    assert run.request(x) is None and headers in x.request.block
    assert refused_as(run.request(exchange()))[0] == "JwtMissing"
    assert refused_as(run.request(exchange(headers=b"x-all: a;b;c\r\n")))[0] == "JwtInvalid"


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
    assert (answer := run.request(exchange(headers=bearer(TOKEN)))) is not None and answer.reason == "PolicyUnusable"


@pytest.mark.claims("limits: JWT providers; audiences", "limits: JWKS inline size")
def test_limits() -> None:
    def route(count: int) -> str:
        providers = [{"issuer": f"i{n}", "jwks": {"inline": ANN.key_set()}} for n in range(count)]
        return yaml.safe_dump({"policies": {"jwtAuthentication": {"providers": providers}}})

    assert (problems(route(1)), problems(route(64))) == ([], [])
    assert problems(route(0)) and problems(route(65))
    assert problems(policy(audiences=["a"] * 64)) == [] and problems(policy(audiences=["a"] * 65))
    assert problems(policy("{}" + " " * 65534)) == [] and problems(policy("{}" + " " * 65535)) and problems(policy("{"))


def test_the_example_of_the_page(root: Path) -> None:
    assert problems(example(root / "docs/policies/jwt_authentication.md")) == []


def test_over_the_wire() -> None:
    proxy = MemoryProxy(text_of(policy() + "backends: [{host: '127.0.0.1:9000'}]"))
    client = proxy.connect()
    token = ANN.token(exp=1060)  # the proxy's clock stands at 1000
    for _ in range(2):
        client.send(f"GET / HTTP/1.1\r\nHost: a\r\nauthorization: bearer {token}\r\nx: 1\r\n\r\n".encode())
        received = proxy.upstream.take()
        assert b"authorization" not in received and b"x: 1\r\n" in received
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        assert client.take().startswith(b"HTTP/1.1 200 ")
    client.send(f"GET / HTTP/1.1\r\nHost: a\r\nauthorization: bearer {token}x\r\n\r\n".encode())
    assert client.take().startswith(b"HTTP/1.1 401 ")
    assert token not in "".join(proxy.log_lines())
