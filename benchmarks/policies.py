"""CPU per request of each policy alone, of eight together, and of Envoy with comparable ones.

`python -m benchmarks.policies [--rounds N] [--quick] [--only NAME]`. All proxies serve the 1,000 routes of
`proxies`, one core each, and get the same request (with a token, an API key and an Origin, also where nobody looks at
them) in interleaved rounds; so a figure is what the policy costs and nothing else. Exit status 1 when a bar does not
hold.
"""

from __future__ import annotations

import argparse
import base64
import json
import statistics
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks import report
from benchmarks.load import Backend, Sample, Shape, measure
from benchmarks.machine import OUT, PROXY_CORE, Process, alone
from benchmarks.proxies import TARGET, envoy_with, gatewright_with
from benchmarks.rounds import Rounds, interleave

CONNECTIONS: Final = 32
BARE: Final = "bare"
CHAIN: Final = "chain of eight"
ENVOY: Final = "envoy: header edits, RBAC with CEL, local limit"

MOST_OF_BARE: Final = 2.2
"""The chain of eight, in bare proxies."""

KEY: Final = "key-5f2a9c7d41"
ISSUER: Final = "https://issuer.example"
ORIGIN: Final = "https://app.example"
PASSWORD: Final = "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="
"""Of the password "password"."""
USER: Final = "YW5uOnBhc3N3b3Jk"
MUCH: Final = 2_000_000_000
"""A limit that no load reaches."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A configuration of the product."""

    policies: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    """What the access log adds."""


def token() -> tuple[str, str]:
    """A token that is good for an hour, signed with a key of its own (ES256), and the key set that knows it."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    key = ec.generate_private_key(ec.SECP256R1())
    numbers = key.public_key().public_numbers()
    jwk = {"kty": "EC", "crv": "P-256", "kid": "one", "x": _b64(numbers.x), "y": _b64(numbers.y)}
    claims = {"iss": ISSUER, "sub": "user-7", "exp": int(time.time()) + 3600, "group": "staff"}
    text = ".".join(_text(part) for part in ({"alg": "ES256", "kid": "one"}, claims))
    r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    signature = base64.urlsafe_b64encode(r.to_bytes(32, "big") + s.to_bytes(32, "big")).rstrip(b"=").decode()
    return f"{text}.{signature}", json.dumps({"keys": [jwk]})


def _b64(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()


def _text(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def variants(keys: str, server: int) -> dict[str, Variant]:
    """By name, the chain of eight last. `keys`: the key set of the token; `server`: port of the authorization server.

    Missing are a direct response, which reaches no backend, and mirrors, which reach it twice: requests are counted
    there.
    """
    jwt = {"jwtAuthentication": {"providers": [{"issuer": ISSUER, "jwks": {"inline": keys}}]}}
    api_key = {
        "apiKeyAuthentication": {
            "secretRef": {"one": {"value": json.dumps({"key": KEY, "metadata": {"group": "staff"}})}},
            "location": {"header": {"name": "x-api-key"}},
        }
    }
    limit = {"rateLimit": {"local": [{"requests": MUCH, "unit": "Seconds"}]}}
    cors = {"cors": {"allowOrigins": [ORIGIN], "allowMethods": ["GET", "POST"], "exposeHeaders": ["x-total"]}}
    shape = {"transformation": {"request": {"set": [{"name": "x-path", "value": "request.method + request.path"}]}}}
    edits = {
        "headerModifiers": {
            "request": {"set": [{"name": "x-gateway", "value": "one"}], "remove": ["x-internal"]},
            "response": {"set": [{"name": "server", "value": "gateway"}]},
        }
    }
    rule = {"authorization": _rule('request.method == "GET" && request.path.startsWith("/api/")')}
    alone = {
        "jwt (cached)": Variant(jwt),
        "apiKey": Variant(api_key),
        "authorization": Variant(rule),
        "local limit": Variant(limit),
        "cors": Variant(cors),
        "transformation": Variant(shape),
        "header modifiers": Variant(edits),
        "access log, two attributes": Variant({}, {"user": "request.headers['x-user']", "agent": "source.address"}),
    }
    everything: dict[str, Any] = {}
    for each in alone.values():
        everything |= each.policies
    everything |= {"authorization": _rule('jwt.group == "staff" && apiKey.group == "staff"')}
    added = {"user": "jwt.sub", "group": "apiKey.group"}
    basic = {"users": [PASSWORD], "location": {"header": {"name": "x-basic", "prefix": "Basic"}}}
    asking = {"host": f"127.0.0.1:{server}", "protocol": {"http": {}}, "cache": {"key": ["request.path"], "ttl": "1h"}}
    others = {
        "basic (cached)": Variant({"basicAuthentication": basic}),
        "ext auth (cached)": Variant({"extAuthz": asking}),
        "csrf": Variant({"csrf": {}}),
        "buffer": Variant({"buffer": {"request": {}}}),
        "retry": Variant({"retry": {"codes": [503], "attempts": 2}}),
        "timeouts": Variant({"timeouts": {"request": "30s"}}),
        "host rewrite": Variant({"hostRewrite": {"mode": "Auto"}}),
    }
    return {BARE: Variant(), **alone, **others, CHAIN: Variant(everything, added)}


def _rule(expression: str) -> dict[str, Any]:
    return {"policy": {"matchExpressions": [expression]}}


def envoy_filters() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Filters before Envoy's router, and what its routes add: header edits, a CEL rule, a local limit."""
    path = {"selectExpr": {"operand": {"identExpr": {"name": "request"}}, "field": "path"}}
    begins = {"target": path, "function": "startsWith", "args": [{"constExpr": {"stringValue": "/api/"}}]}
    policy = {"permissions": [{"any": True}], "principals": [{"any": True}], "condition": {"callExpr": begins}}
    rbac = {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC",
        "rules": {"action": "ALLOW", "policies": {"one": policy}},
    }
    share = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}, "runtime_key": "on"}
    bucket = {"max_tokens": MUCH, "tokens_per_fill": MUCH, "fill_interval": "1s"}
    limit = {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
        "stat_prefix": "limit",
        "token_bucket": bucket,
        "filter_enabled": share,
        "filter_enforced": share,
    }
    filters = [
        {"name": "envoy.filters.http.rbac", "typed_config": rbac},
        {"name": "envoy.filters.http.local_ratelimit", "typed_config": limit},
    ]
    edits = {
        "request_headers_to_add": [{"header": {"key": "x-gateway", "value": "one"}}],
        "request_headers_to_remove": ["x-internal"],
        "response_headers_to_add": [{"header": {"key": "server", "value": "gateway"}}],
    }
    return filters, edits


def run(names: list[str], rounds: int, seconds: int) -> Rounds:
    """Samples of these variants (and ENVOY), round by round."""
    bearer, keys = token()
    headers = (f"Authorization: Bearer {bearer}", f"x-api-key: {KEY}", f"x-basic: Basic {USER}", f"Origin: {ORIGIN}")
    shape = replace(Shape(TARGET, CONNECTIONS), headers=headers)
    with ExitStack() as stack:
        stack.enter_context(alone())
        backend = Backend()
        stack.callback(backend.process.stop)
        known = variants(keys, backend.port)
        running: dict[str, tuple[Process, int]] = {}
        for name in names:
            if name == ENVOY:
                launch = envoy_with(backend.port, *envoy_filters())
            else:
                launch = gatewright_with(backend.port, f"{len(running)}", known[name].policies, known[name].attributes)
            process = Process(name.replace(" ", "-").replace(":", ""), launch.command, PROXY_CORE, launch.environment)
            stack.callback(process.stop)
            process.await_port(launch.port)
            running[name] = process, launch.port

        def one(name: str) -> Sample:
            process, port = running[name]
            return measure(process, port, backend, shape, seconds)

        for name in names:
            one(name)
        return interleave(names, one, rounds, lambda text: print(text, file=sys.stderr, flush=True))


def table(rounds: Rounds) -> str:
    """Markdown: CPU of each, what it adds to the bare proxy, and its ratio to it."""
    lines = ["| proxy | us per request | more than bare, us | times bare (least to most) |", "|---|---|---|---|"]
    for name in rounds.samples:
        ratios = rounds.ratios(name, BARE, "microseconds")
        more = [
            p.microseconds - q.microseconds for p, q in zip(rounds.samples[name], rounds.samples[BARE], strict=True)
        ]
        figures = f"{rounds.median(name, 'microseconds'):.1f} | {statistics.median(more):.2f}"
        lines.append(
            f"| {name} | {figures} | {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |"
        )
    return "\n".join(lines)


def verdicts(rounds: Rounds) -> list[tuple[str, bool]]:
    """The bars whose proxies ran."""
    found = []
    if CHAIN in rounds.samples:
        chain = statistics.median(rounds.ratios(CHAIN, BARE, "microseconds"))
        found.append((f"{CHAIN}: {chain:.2f} of the bare proxy, at most {MOST_OF_BARE}", chain <= MOST_OF_BARE))
    if CHAIN in rounds.samples and ENVOY in rounds.samples:
        envoy = statistics.median(rounds.ratios(ENVOY, CHAIN, "microseconds"))
        found.append((f"Envoy: {envoy:.2f} of the {CHAIN}, more than 1", envoy > 1))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=__doc__)
    names = [*variants("", 0), ENVOY]
    parser.add_argument("--only", action="append", choices=names, help="run only this one (and the bare proxy)")
    parser.add_argument("--rounds", type=int, default=0, help="default 9")
    parser.add_argument("--seconds", type=int, default=0, help="of load, per proxy and round; default 2")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 1 second: a look, not a result")
    parser.add_argument("--json", type=Path, help="write the samples here")
    options = parser.parse_args()
    wanted = [name for name in names if not options.only or name in options.only or name == BARE]
    rounds = run(wanted, options.rounds or (3 if options.quick else 9), options.seconds or (1 if options.quick else 2))
    print(table(rounds))
    held = verdicts(rounds)
    for text, holds in held:
        print(f"- {text}: {'holds' if holds else 'DOES NOT HOLD'}")
    print(f"At most {rounds.noise():.2f} cores were busy with something else in any round.")
    document = {
        "machine": report.machine(),
        "samples": {name: [sample.as_json() for sample in found] for name, found in rounds.samples.items()},
    }
    path = options.json or OUT / "policies.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if all(holds for _, holds in held) else 1


if __name__ == "__main__":
    sys.exit(main())
