"""One authorization server, asked by a real Envoy and by us about forty requests: what it gets, what its answers do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import grpc
import pytest
from aiohttp import web
from yarl import URL

from gatewright.wire.external import ext_authz_pb2 as pb
from gatewright.wire.external.status_pb2 import Status
from tests.fakes.envoy import HTTP2, TYPE, bootstrap, cluster, envoy, listener, virtual_host
from tests.fakes.socket_proxy import serving
from tests.fakes.web_apps import answering, served
from tests.harness.ports import reserve

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: r
      policies:
        extAuthz: {host: "127.0.0.1:%d", protocol: {grpc: {contextExtensions: {tier: gold}}}}
      backends: [{host: "127.0.0.1:%d"}]
"""
APPEND, ABSENT, OVERWRITE, EXISTS = range(4)


def option(name: str, value: str, action: int, **more: Any) -> pb.HeaderValueOption:
    return pb.HeaderValueOption(header={"key": name, "value": value}, append_action=action, **more)


def ok(**fields: Any) -> pb.CheckResponse:
    return pb.CheckResponse(status=Status(code=0), ok_response=pb.OkHttpResponse(**fields))


def denied(code: int = 0, **fields: Any) -> pb.CheckResponse:
    status = {"status": {"code": code}} if code else {}
    return pb.CheckResponse(status=Status(code=7), denied_response=pb.DeniedHttpResponse(**status, **fields))


ANSWERS: Final[dict[str, pb.CheckResponse]] = {
    "plain": pb.CheckResponse(status=Status(code=0)),
    "ok": ok(),
    "append": ok(headers=[option("x-a", "s", APPEND, append={"value": True})]),
    "overwrite": ok(headers=[option("x-a", "s", OVERWRITE)]),
    "if-absent": ok(headers=[option("x-a", "s", ABSENT)]),
    "if-there": ok(headers=[option("x-a", "s", EXISTS)]),
    "older-overwrite": ok(headers=[option("x-a", "s", APPEND, append={"value": False})]),
    "without-an-action": ok(headers=[option("x-a", "s", APPEND)]),
    "two-of-a-name": ok(
        headers=[option("x-new", "1", OVERWRITE), option("x-new", "2", APPEND, append={"value": True})]
    ),
    "remove": ok(headers_to_remove=["x-a", "cookie"]),
    "remove-host": ok(headers_to_remove=["host", ":path"]),
    "set-query": ok(query_parameters_to_set=[{"key": "a", "value": "9"}]),
    "remove-query": ok(query_parameters_to_remove=["a"]),
    "response": ok(response_headers_to_add=[option("x-given", "1", APPEND)]),
    "deny": denied(),
    "deny-401": denied(401, headers=[option("www-authenticate", "Basic", OVERWRITE)], body="who are you"),
    "deny-302": denied(302, headers=[option("location", "/login", OVERWRITE)]),
    "deny-without-response": pb.CheckResponse(status=Status(code=16)),
    "empty-value": ok(headers=[option("x-empty", "", OVERWRITE)]),
    "kept-empty-value": ok(headers=[option("x-empty", "", OVERWRITE, keep_empty_value=True)]),
}
QUERIES: Final = ("", "?a=1&b=2&a=3")
REQUESTS: Final = [(f"/{name}{query}") for query in QUERIES for name in ANSWERS]
SENT: Final = [("host", "shop.example"), ("x-a", "c"), ("cookie", "k=v"), ("x-twice", "1"), ("x-twice", "2")]

DIFFERENCES: Final = {
    "if-absent": "ADD_IF_ABSENT leaves the client's header by its description; Envoy sets it",
    "empty-value": "empty values are dropped by the description of keep_empty_value; Envoy keeps them on requests",
    "set-query": "Envoy writes the parameter where the first of its name was, we write it last",
    "deny-without-response": "our 403 has its text, Envoy's is empty",
}
"""What differs, by the name of an answer, and why."""

OF_ONE: Final = {
    *("x-envoy-expected-rq-timeout-ms", "x-forwarded-proto", "x-forwarded-for", "x-request-id", "traceparent"),
    *("x-forwarded-host", "x-forwarded-port", "via", "forwarded", "x-envoy-attempt-count", "host", "server", "date"),
    *("x-envoy-upstream-service-time", "x-real-ip", "connection", "transfer-encoding", "content-length"),
}
"""Headers that a proxy adds by itself."""


async def echo(request: web.Request) -> web.StreamResponse:
    headers = sorted((name.lower(), value) for name, value in request.headers.items())
    return web.json_response({"target": request.raw_path, "headers": headers})


class Server:
    """Remembers what it was asked; the path says what it answers."""

    def __init__(self) -> None:
        self.asked: list[pb.AttributeContext] = []
        self.port = 0

    async def check(self, message: bytes, _: Any) -> bytes:
        self.asked.append(pb.CheckRequest.FromString(message).attributes)
        name = self.asked[-1].request.http.path.partition("?")[0].strip("/")
        return ANSWERS[name].SerializeToString()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        handler = grpc.unary_unary_rpc_method_handler(self.check)  # type: ignore[arg-type]  # bytes both ways
        made = grpc.aio.server()
        name = "envoy.service.auth.v3.Authorization"
        made.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"Check": handler}),))
        self.port = made.add_insecure_port("127.0.0.1:0")
        await made.start()
        try:
            yield
        finally:
            await made.stop(0)


def asking(port: int, upstream: int, server: int) -> dict[str, Any]:
    extensions = {
        "@type": f"{TYPE}.filters.http.ext_authz.v3.ExtAuthzPerRoute",
        "check_settings": {"context_extensions": {"tier": "gold"}},
    }
    config = {
        "@type": f"{TYPE}.filters.http.ext_authz.v3.ExtAuthz",
        "transport_api_version": "V3",
        "grpc_service": {"envoy_grpc": {"cluster_name": "auth"}, "timeout": "2s"},
    }
    per_filter = {"envoy.filters.http.ext_authz": extensions}
    host = virtual_host({"route": {"cluster": "origin"}}, typed_per_filter_config=per_filter)
    return bootstrap(
        [listener("all", port, host, {"name": "envoy.filters.http.ext_authz", "typed_config": config})],
        [cluster("auth", server, typed_extension_protocol_options=HTTP2), cluster("origin", upstream)],
    )


def shown(asked: pb.AttributeContext) -> dict[str, Any]:
    http = asked.request.http
    headers = {name: value for name, value in http.headers.items() if name not in OF_ONE}
    return {
        "method": (http.method, http.path, http.scheme, http.protocol, http.size, http.body, http.raw_body),
        "headers": headers,
        "extensions": dict(asked.context_extensions),
        "source": asked.source.address.socket_address.address,
    }


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Values of one name as one, which means the same (RFC 9110 5.3): Envoy joins what it appends, we add a line."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


async def outcome(session: aiohttp.ClientSession, base: str, target: str) -> dict[str, Any]:
    url = URL(base + target, encoded=True)
    async with session.get(url, headers=SENT, allow_redirects=False) as answer:
        body = await answer.read()
        headers = sorted((k.lower(), v) for k, v in answer.headers.items() if k.lower() not in OF_ONE)
        seen: dict[str, Any] = {"status": answer.status, "headers": headers}
        if answer.status == 200:
            got = json.loads(body)
            seen["target"] = got["target"]
            seen["upstream"] = joined((name, value) for name, value in got["headers"] if name not in OF_ONE)
        else:
            seen["body"] = body
        return seen


@pytest.mark.needs("envoy")
async def test_envoy_and_we_ask_the_same_and_do_the_same(tool: Callable[[str], str], tmp_path: Path) -> None:
    assert len(REQUESTS) == 40
    theirs, ours = Server(), Server()
    async with theirs.served(), ours.served(), served(answering(echo)) as upstream:
        port = reserve()
        async with (
            envoy(tool, tmp_path, asking(port, upstream, theirs.port), port),
            serving(FILE % (ours.port, upstream)) as proxy,
            aiohttp.ClientSession(skip_auto_headers=["User-Agent", "Accept-Encoding", "Accept"]) as session,
        ):
            found: dict[str, Any] = {}
            for target in REQUESTS:
                one = await outcome(session, f"http://127.0.0.1:{port}", target)
                other = await outcome(session, f"http://127.0.0.1:{proxy.port}", target)
                pair = ({**one, **shown(theirs.asked[-1])}, {**other, **shown(ours.asked[-1])})
                keys = [key for key in pair[0] | pair[1] if pair[0].get(key) != pair[1].get(key)]
                differing = {key: (pair[0].get(key), pair[1].get(key)) for key in keys}
                if differing:
                    found.setdefault(target.strip("/").partition("?")[0], differing)
    assert found.keys() == DIFFERENCES.keys(), json.dumps(found, indent=1, default=str)
