"""Gateway API's conformance tests of BackendTLSPolicy, one function for each, named after its file."""

from __future__ import annotations

import copy
import json

import grpc
import pytest

from tests.fakes.conformance import CHECKS, INFRA, LISTENERS, Replay, Suite, config_map, trusting
from tests.fakes.echo_servers import HttpAnswer, ask_http, ask_tcp
from tests.harness.waiting import until

pytestmark = pytest.mark.needs("go")

GATEWAY = "same-namespace"
ACCEPTED, RESOLVED = "Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs"
NO_CA, BAD_CA = "Accepted=False NoValidCACertificate", "ResolvedRefs=False InvalidCACertificateRef"


async def has(replay: Replay, policy: str, *conditions: str, gateway: str = GATEWAY) -> None:
    for condition in conditions:
        await replay.has("BackendTLSPolicy", policy, gateway, condition)


async def answer(replay: Replay, path: str, host: str = "abc.example.com") -> HttpAnswer:
    return await ask_http(await replay.gateway(GATEWAY), path, host)


async def sni_at_backend(replay: Replay, path: str) -> str:
    """The server name that the backend was asked for, of a request that was answered."""
    found = await answer(replay, path)
    assert (found.status, found.body["is_tls"], found.body["path"]) == (200, True, path)
    return str(found.body["sni"])


async def test_backendtlspolicy(suite: Suite) -> None:
    async with suite.replay("backendtlspolicy") as replay:
        https = "same-namespace-with-https-listener"
        await replay.accepts("HTTPRoute", "backendtlspolicy-reencrypt", https)
        await replay.has("HTTPRoute", "backendtlspolicy-reencrypt", https, RESOLVED)
        await has(replay, "normative-test", ACCEPTED, RESOLVED, gateway=https)
        host, port = "https-listener.org", await replay.gateway(https)
        found = await ask_http(port, "/backendtlspolicy", host, trusting(LISTENERS), host)
        assert (found.status, found.body["path"], found.body["sni"]) == (200, "/backendtlspolicy", "abc.example.com")

        await replay.accepts("HTTPRoute", "backendtlspolicy", GATEWAY)
        await replay.has("HTTPRoute", "backendtlspolicy", GATEWAY, RESOLVED)
        for policy in ("normative-test", "host-mismatch", "cert-mismatch"):
            await has(replay, policy, ACCEPTED, RESOLVED)
        assert await sni_at_backend(replay, "/backendtlspolicy") == "abc.example.com"
        assert (await answer(replay, "/backendtlspolicy-host-mismatch", "abc.example.org")).status >= 400
        assert (await answer(replay, "/backendtlspolicy-host-mismatch")).status >= 500
        assert (await answer(replay, "/backendtlspolicy-cert-mismatch")).status >= 500


async def test_backendtlspolicy_follows_its_config_map(suite: Suite) -> None:
    """The last part of `backendtlspolicy`: an authority that is not there, comes, is emptied, and comes back."""
    async with suite.replay("backendtlspolicy") as replay:
        await has(replay, "reconcile-test", ACCEPTED, RESOLVED)
        policy = copy.deepcopy(replay.find("BackendTLSPolicy", "reconcile-test"))
        (reference,) = policy["spec"]["validation"]["caCertificateRefs"]
        reference["name"] = "tls-checks-ca-certificate-reconcile-test"
        replay.put(policy)
        await has(replay, "reconcile-test", NO_CA, BAD_CA)
        for text, conditions in (
            (CHECKS.pem.decode(), (ACCEPTED, RESOLVED)),
            ("", (NO_CA, BAD_CA)),
            (CHECKS.pem.decode(), (ACCEPTED, RESOLVED)),
        ):
            replay.put(config_map(INFRA, reference["name"], text))
            await has(replay, "reconcile-test", *conditions)
        assert await sni_at_backend(replay, "/backendtlspolicy-reconcile-test") == "abc.example.com"


async def test_backendtlspolicy_san(suite: Suite) -> None:
    async with suite.replay("backendtlspolicy-san") as replay:
        await replay.accepts("HTTPRoute", "backendtlspolicy-san-test", GATEWAY)
        await replay.has("HTTPRoute", "backendtlspolicy-san-test", GATEWAY, RESOLVED)
        for good in ("san-dns", "san-uri", "multiple-sans"):
            await has(replay, good, ACCEPTED)
            assert await sni_at_backend(replay, f"/backendtlspolicy-{good}") == "abc.example.com"
        for bad in ("san-dns-mismatch", "san-uri-mismatch", "multiple-mismatch-sans"):
            await has(replay, bad, ACCEPTED)
            assert (await answer(replay, f"/backendtlspolicy-{bad}")).status >= 500


async def test_backendtlspolicy_conflict_resolution(suite: Suite) -> None:
    async with suite.replay("backendtlspolicy-conflict-resolution") as replay:
        await replay.accepts("HTTPRoute", "backendtlspolicy-conflict-resolution", GATEWAY)
        await replay.has("HTTPRoute", "backendtlspolicy-conflict-resolution", GATEWAY, RESOLVED)
        for which in ("without", "with"):
            name = f"conflicted-{which}-section-name"
            await has(replay, f"{name}-1", ACCEPTED)
            await has(replay, f"{name}-2", "Accepted=False Conflicted")
            await has(replay, f"not-{name}", ACCEPTED)
        snis = [
            await sni_at_backend(replay, f"/backendtlspolicy-{name}-section-name")
            for name in ("conflicted-without", "conflicted-with", "not-conflicted-with", "not-conflicted-without")
        ]
        assert snis == ["other.example.com"] * 3 + ["abc.example.com"]


@pytest.mark.parametrize("policy", ["nonexistent-ca-certificate-ref", "malformed-ca-certificate-ref"])
async def test_backendtlspolicy_invalid_ca_certificate_ref(suite: Suite, policy: str) -> None:
    async with suite.replay("backendtlspolicy-invalid-ca-certificate-ref") as replay:
        await replay.accepts("HTTPRoute", "backendtlspolicy-invalid-ca-certificate-ref", GATEWAY)
        await has(replay, policy, NO_CA, BAD_CA)
        assert (await answer(replay, f"/backendtlspolicy-{policy}")).status in (500, 502, 503)


async def test_backendtlspolicy_invalid_kind(suite: Suite) -> None:
    async with suite.replay("backendtlspolicy-invalid-kind") as replay:
        await replay.accepts("HTTPRoute", "backendtlspolicy-invalid-kind-test", GATEWAY)
        await has(replay, "invalid-kind", NO_CA, "ResolvedRefs=False InvalidKind")
        assert (await answer(replay, "/backendtlspolicy-invalid-kind")).status in (500, 502, 503)


async def test_backendtlspolicy_observed_generation_bump(suite: Suite) -> None:
    async with suite.replay("backendtlspolicy-observed-generation-bump") as replay:
        await generation_bumps(replay, "observed-generation-bump", "foo.example.com")


async def generation_bumps(replay: Replay, name: str, hostname: str) -> None:
    """A change of the policy raises its generation, and every condition follows."""
    await has(replay, name, ACCEPTED)
    (before,) = await replay.suite.status(f"BackendTLSPolicy/{INFRA}/{name}")
    policy = copy.deepcopy(replay.find("BackendTLSPolicy", name))
    policy["spec"]["validation"]["hostname"] = hostname
    replay.put(policy)

    async def is_bumped() -> bool:
        rows = await replay.suite.status(f"BackendTLSPolicy/{INFRA}/{name}")
        seen = {each["observedGeneration"] for entry in rows[0]["status"]["ancestors"] for each in entry["conditions"]}
        return rows[0]["generation"] > before["generation"] and seen == {rows[0]["generation"]}

    await until(is_bumped, "conditions of the new generation")
    await has(replay, name, ACCEPTED)


SERVICE = "/gateway_api_conformance.echo_basic.grpcecho.GrpcEcho"


async def call(port: int, method: str, authority: str) -> str:
    """What a unary call answers, or its status. (An error that leaves here would keep the channel.)"""
    options = [("grpc.default_authority", authority)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        try:
            answered: bytes = await channel.unary_unary(f"{SERVICE}/{method}")(b"")
        except grpc.aio.AioRpcError as error:
            return str(error.code().name)
        return str(json.loads(answered)["pod"])


async def test_backendtlspolicy_grpcroute(suite: Suite) -> None:
    async with suite.replay("backendtlspolicy-grpcroute") as replay:
        await replay.accepts("GRPCRoute", "backendtlspolicy-grpcroute", GATEWAY)
        await replay.accepts("GRPCRoute", "backendtlspolicy-grpcroute-cert-mismatch", GATEWAY)
        for policy in ("grpc-normative-test", "grpc-host-mismatch", "grpc-cert-mismatch"):
            await has(replay, policy, ACCEPTED, RESOLVED)
        port = await replay.gateway(GATEWAY)
        assert await call(port, "Echo", "abc.example.com") == "grpc-infra-backend-v1"
        assert await call(port, "EchoTwo", "abc.example.com") == "UNAVAILABLE"
        assert await call(port, "Echo", "cert-mismatch.example.com") == "UNAVAILABLE"


async def test_backendtlspolicy_tlsroute_terminate(suite: Suite) -> None:
    async with suite.replay("backendtlspolicy-tlsroute-terminate") as replay:
        route, gateway = "backendtlspolicy-tlsroute-terminate", "gateway-btls-tlsroute-terminate"
        await replay.accepts("TLSRoute", route, gateway)
        await has(replay, "btls-tlsroute-terminate-test", ACCEPTED, RESOLVED, gateway=gateway)
        found = await ask_tcp(await replay.gateway(gateway), trusting(CHECKS), "tls.example.com")
        assert (found["pod"], found["is_tls"], found["sni"]) == ("tcp-backend", True, "abc.example.com")
