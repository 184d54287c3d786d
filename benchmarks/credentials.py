"""What authentication costs a worker: `python -m benchmarks.credentials [--rounds N] [--json FILE]`.

One exchange through the step of one policy, CPU time of the thread, without the exchange itself: a token that was
verified before, one that was not, a password and an API key that are known. The least of several rounds counts: other
work on the machine adds to a figure and never takes from it. Exit status 1 when the bar does not hold.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from time import thread_time_ns
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ed25519

from dataplane.chain.filter import Env
from dataplane.exchange import Exchange
from dataplane.filters.steps import api_key_authentication, basic_authentication, jwt_authentication
from dataplane.http.heads import Head
from gatewright.wire.v1 import authentication_pb2

REPEATED = 2.0
"""Microseconds that a repeated token may cost."""

TURNS = 10_000
"""Exchanges of a round."""

LINES = (
    b"\r\nhost: api.example.com\r\nuser-agent: Mozilla/5.0 (X11; Linux x86_64)\r\naccept: application/json\r\n"
    b"accept-encoding: gzip, deflate, br\r\ncontent-type: application/json\r\nauthorization: %b\r\n"
    b"x-forwarded-for: 192.0.2.7\r\nx-forwarded-proto: http\r\nx-request-id: 0123456789abcdef\r\n"
)

Step = Callable[[Exchange], Any]


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _token(private: ed25519.Ed25519PrivateKey) -> bytes:
    """Of 800 bytes, as identity providers make them."""
    claims = {"iss": "https://issuer.example", "exp": time.time() + 3600, "sub": "ann", "scope": secrets.token_hex(220)}
    head = json.dumps({"alg": "EdDSA", "kid": "k", "typ": "JWT"}).encode()
    signed = _encoded(head) + b"." + _encoded(json.dumps(claims).encode())
    return signed + b"." + _encoded(private.sign(signed))


ENV = Env(
    clock=time.monotonic,
    random=random.random,
    secret=lambda key: {".htaccess": b"ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "ann": b"key-of-ann"},
)


def _jwt(private: ed25519.Ed25519PrivateKey) -> Step:
    point = _encoded(private.public_key().public_bytes_raw()).decode()
    config = authentication_pb2.JwtAuthentication()
    provider = config.providers.add(issuer="https://issuer.example")
    provider.jwks.inline = json.dumps({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": point}]})
    return _step(jwt_authentication.build(config, ENV))


def _step(built: Any) -> Step:
    hook: Step = built.request
    return hook


def _microseconds(step: Step, value: bytes) -> float:
    """CPU of one exchange that the step has seen before, less that of making its head."""
    head = Head(LINES % value)
    step(Exchange(None, b"GET", b"/", Head(head.block, head.low), 0.0))
    return (_time(step, [head] * TURNS) - _time(lambda x: None, [head] * TURNS)) / 1000 / TURNS


def _new(step: Step, values: Sequence[bytes]) -> float:
    """The same of exchanges that it has not seen."""
    heads = [Head(LINES % value) for value in values]
    return (_time(step, heads) - _time(lambda x: None, heads)) / 1000 / len(heads)


def _time(step: Step, heads: Sequence[Head]) -> int:
    x = Exchange(None, b"GET", b"/", Head(b"\r\n"), 0.0)
    begun = thread_time_ns()
    for head in heads:
        x.request, x.attributes = Head(head.block, head.low), None
        step(x)
    return thread_time_ns() - begun


def measure(rounds: int) -> dict[str, float]:
    """Microseconds for each case, the least of `rounds`."""
    private = ed25519.Ed25519PrivateKey.generate()
    basic = authentication_pb2.BasicAuthentication(secret="s")
    keys = authentication_pb2.ApiKeyAuthentication(secrets=["s"])
    password = b"Basic " + base64.b64encode(b"ann:password")
    repeated, tokens = b"Bearer " + _token(private), [b"Bearer " + _token(private) for _ in range(200)]
    cases: dict[str, Callable[[], float]] = {
        "jwt, repeated token": lambda: _microseconds(_jwt(private), repeated),
        "jwt, new token (Ed25519)": lambda: _new(_jwt(private), tokens),
        "basic, known password": lambda: _microseconds(_step(basic_authentication.build(basic, ENV)), password),
        "api key": lambda: _microseconds(_step(api_key_authentication.build(keys, ENV)), b"Bearer key-of-ann"),
    }
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            taken[name].append(case())
    return {name: min(each) for name, each in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    figures = measure(options.rounds)
    for name, cost in figures.items():
        print(f"{cost:8.2f} us  {name}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    holds = figures["jwt, repeated token"] <= REPEATED
    print(f"{'ok' if holds else 'FAILED'}: a repeated token costs at most {REPEATED} us")
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
