"""One server of external processing behind a real Envoy and behind us: what it is shown, what its answers do. What
differs stands in a table, which `docs/policies/ext_proc.md` has in words."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import grpc
import pytest
from aiohttp import web

from gatewright.wire.external import ext_proc_pb2 as pb
from tests.fakes.envoy import HTTP2, TYPE, bootstrap, cluster, envoy, listener, virtual_host
from tests.fakes.socket_proxy import serving
from tests.fakes.web_apps import answering, served
from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.loopback.test_authorization_peers import OF_ONE, joined

Answer = pb.ProcessingResponse
FILTER: Final = "envoy.filters.http.ext_proc"
MODES: Final = {
    "None": "NONE",
    "Buffered": "BUFFERED",
    "BufferedPartial": "BUFFERED_PARTIAL",
    "FullDuplexStreamed": "FULL_DUPLEX_STREAMED",
}
"""Ours and Envoy's."""
APPEND, ABSENT, OVERWRITE, EXISTS = range(4)
WHY: Final = {"key": "x-why", "raw_value": b"law"}


def head(phase: str, *pairs: tuple[str, str], action: int | None = None, removes: Sequence[str] = ()) -> Answer:
    edits = pb.HeaderMutation(remove_headers=removes)
    for name, value in pairs:
        option = edits.set_headers.add(header={"key": name, "raw_value": value.encode("latin-1")})
        if action is not None:
            option.append_action = action  # type: ignore[assignment]  # a number
    answer = Answer()
    getattr(answer, phase).response.header_mutation.CopyFrom(edits)
    return answer


def body(phase: str, **mutation: Any) -> Answer:
    return Answer(**{phase: pb.BodyResponse(response={"body_mutation": mutation})})


def whole(phase: str, data: bytes) -> Answer:
    common = pb.CommonResponse(status="CONTINUE_AND_REPLACE", body_mutation={"body": data})
    return Answer(**{phase: pb.HeadersResponse(response=common)})


def instead(code: int = 451, **fields: Any) -> Answer:
    return Answer(immediate_response=pb.ImmediateResponse(status={"code": code}, body=b"no", **fields))


ANSWERS: Final[dict[str, dict[str, list[Answer] | None]]] = {
    # by name: what is said to which message instead of agreeing; None: the call ends
    "agrees": {},
    "sets": {"request_headers": [head("request_headers", ("x-a", "s"))]},
    "appends": {"request_headers": [head("request_headers", ("x-a", "s"), action=APPEND)]},
    "sets-if-absent": {"request_headers": [head("request_headers", ("x-a", "s"), ("x-n", "s"), action=ABSENT)]},
    "overwrites": {"request_headers": [head("request_headers", ("x-a", "s"), ("x-n", "s"), action=OVERWRITE)]},
    "sets-if-there": {"request_headers": [head("request_headers", ("x-a", "s"), ("x-n", "s"), action=EXISTS)]},
    "sets-an-empty-value": {"request_headers": [head("request_headers", ("x-a", ""))]},
    "removes": {"request_headers": [head("request_headers", removes=("x-a", "x-none"))]},
    "removes-what-stays": {"request_headers": [head("request_headers", removes=("host", ":path", ":method"))]},
    "sets-the-path": {"request_headers": [head("request_headers", (":path", "/other?c=2"))]},
    "sets-the-method": {"request_headers": [head("request_headers", (":method", "PUT"))]},
    "sets-the-host": {"request_headers": [head("request_headers", (":authority", "other.example"))]},
    "sets-the-coding": {"request_headers": [head("request_headers", ("transfer-encoding", "gzip"))]},
    "sets-two-lines": {"request_headers": [head("request_headers", ("x-a", "1\r\nx-b: 2"))]},
    "sets-no-name": {"request_headers": [head("request_headers", ("x a", "1"))]},
    "sets-no-pseudo-header": {"request_headers": [head("request_headers", (":nothing", "1"))]},
    "replaces-the-request": {"request_headers": [whole("request_headers", b"new")]},
    "sets-of-the-response": {"response_headers": [head("response_headers", ("x-up", "s"), ("x-n", "s"))]},
    "removes-of-the-response": {"response_headers": [head("response_headers", removes=("x-up", ":status"))]},
    "sets-the-status": {"response_headers": [head("response_headers", (":status", "418"))]},
    "replaces-the-response": {"response_headers": [whole("response_headers", b"new")]},
    "other-request-body": {"request_body": [body("request_body", body=b"other")]},
    "no-request-body": {"request_body": [body("request_body", clear_body=True)]},
    "other-response-body": {"response_body": [body("response_body", body=b"other")]},
    "no-response-body": {"response_body": [body("response_body", clear_body=True)]},
    **{
        f"answers-at-{phase}": {phase: [instead()]}
        for phase in ("request_headers", "request_body", "response_headers", "response_body")
    },
    "answers-with-headers": {"request_headers": [instead(headers={"set_headers": [{"header": WHY}]})]},
    "answers-without-status": {"request_headers": [instead(0)]},
    "answers-with-no-status": {"request_headers": [instead(99)]},
    "answers-about-another": {"request_headers": [head("response_headers", ("x-n", "s"))]},
    "answers-about-nothing": {"request_headers": [Answer()]},
    "answers-twice": {"request_headers": [head("request_headers"), head("request_headers")]},
    "ends-at-the-request": {"request_headers": None},
    "ends-at-the-response": {"response_headers": None},
    "refuses": {"request_headers": []},
}  # fmt: skip
FAILS: Final = "refuses"
DIFFERENCES: Final[dict[str, tuple[str, ...]]] = {
    # by name of an answer: the modes in which it differs, in all of which it differs in the same way
    "sets-if-absent": tuple(MODES),  # ADD_IF_ABSENT leaves the header that is there by its description; Envoy sets it
    "sets-if-there": tuple(MODES),  # OVERWRITE_IF_EXISTS adds none by its description; Envoy adds it
    "sets-an-empty-value": tuple(MODES),  # dropped by the description of keep_empty_value; Envoy sets it
    "sets-the-method": tuple(MODES),  # Envoy's `mutation_rules` forbid it unless they say otherwise: it has no effect
    "sets-the-host": tuple(MODES),  # the same
    "sets-the-coding": tuple(MODES),  # Envoy sends it to the backend, which cannot read the message; here it stays ours
    "sets-no-pseudo-header": tuple(MODES),  # has no effect in Envoy, breaks the protocol here
    "answers-with-no-status": tuple(MODES),  # a status of 99 is 200 in Envoy, breaks the protocol here
    "ends-at-the-request": tuple(MODES),  # a server that owes an answer: Envoy lets the request pass
    "ends-at-the-response": tuple(MODES),
    "other-request-body": ("Buffered",),  # Envoy demands that the answer sets the content-length, which is ours here
    "no-request-body": ("Buffered",),
    "no-response-body": ("Buffered",),
    "replaces-the-request": ("FullDuplexStreamed",),  # Envoy takes no CONTINUE_AND_REPLACE in this mode
}
BY_CHANCE: Final = {
    f"/FullDuplexStreamed/{name}" for name in ("answers-at-response_body", "other-response-body", "no-response-body")
}
"""Not compared: in Envoy and here it depends on the moment whether the head is out, and the response is broken off."""
SERVED: Final = (200, 418)
CUT_SHORT: Final = ("answers-", "replaces-", "ends-")
"""Answers behind which it depends on the moment what a server is shown."""
LET_ON: Final = {"/None/answers-twice"}
"""The request is on its way when it fails: it depends on the moment whether the origin gets it whole."""
SENT: Final = [("host", "shop.example"), ("x-a", "c")]
EXCHANGE: Final = "x-exchange"
"""A header of the client that says which exchange it is. One that has failed for the client may still be at the server
and at the origin, when the next one is asked."""
OWN: Final = {*OF_ONE, EXCHANGE}
"""Headers that are not compared."""


class Server:
    """The last part of the path says how it answers."""

    def __init__(self) -> None:
        self.port = 0
        self.shown: dict[str, list[Any]] = {}
        """By exchange."""

    async def process(self, requests: AsyncIterator[pb.ProcessingRequest], call: Any) -> AsyncIterator[Answer]:
        name, mode, shown = "agrees", 0, list[Any]()
        async for each in requests:
            phase = each.WhichOneof("request") or ""
            if phase == "request_headers":
                lines = {line.key: line.raw_value.decode() for line in each.request_headers.headers.headers}
                name, mode = lines[":path"].rpartition("/")[2], each.protocol_config.request_body_mode
                shown = self.shown.setdefault(lines[EXCHANGE], [])
            shown.append(seen(phase, each))
            answers = ANSWERS[name].get(phase, [agrees(phase, each, mode)])
            if name == FAILS:
                await call.abort(grpc.StatusCode.INTERNAL, "no")
            if answers is None:
                return
            for answer in answers:
                yield answer

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        handler = grpc.stream_stream_rpc_method_handler(
            self.process,
            request_deserializer=pb.ProcessingRequest.FromString,
            response_serializer=pb.ProcessingResponse.SerializeToString,
        )
        made = grpc.aio.server()
        service = "envoy.service.ext_proc.v3.ExternalProcessor"
        made.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Process": handler}),))
        self.port = made.add_insecure_port("127.0.0.1:0")
        await made.start()
        try:
            yield
        finally:
            await made.stop(0)


def agrees(phase: str, message: pb.ProcessingRequest, mode: int) -> Answer:
    answer = Answer()
    getattr(answer, phase).SetInParent()
    if phase.endswith("body") and mode == pb.ProcessingMode.FULL_DUPLEX_STREAMED:
        came = getattr(message, phase)
        said = {"body": came.body, "end_of_stream": came.end_of_stream}
        return body(phase, streamed_response=said)
    return answer


def seen(phase: str, message: pb.ProcessingRequest) -> Any:
    """Of a head its lines; of a body what it has."""
    part = getattr(message, phase)
    if phase.endswith("body"):
        return phase, part.body.decode(), part.end_of_stream
    lines = part.headers.headers if phase.endswith("headers") else part.trailers.headers
    pairs = sorted((each.key, each.raw_value.decode("latin-1")) for each in lines if each.key not in OWN)
    return phase, pairs, phase.endswith("headers") and part.end_of_stream


@asynccontextmanager
async def origin() -> AsyncIterator[tuple[int, dict[str, list[Any]]]]:
    """Its port, and what arrived there of each exchange."""
    arrived: dict[str, list[Any]] = {}

    async def answer(request: web.Request) -> web.Response:
        headers = joined((name.lower(), value) for name, value in request.headers.items() if name.lower() not in OWN)
        came = (request.method, request.raw_path, request.host, headers, await request.text())
        arrived.setdefault(request.headers[EXCHANGE], []).append(came)
        return web.Response(text="hello", headers={"x-up": "up"})

    async with served(answering(answer)) as port:
        yield port, arrived


def of_envoy(port: int, upstream: int, server: int) -> dict[str, Any]:
    config = {
        "@type": f"{TYPE}.filters.http.ext_proc.v3.ExternalProcessor",
        "grpc_service": {"envoy_grpc": {"cluster_name": "server"}},
        "message_timeout": "10s",
        "processing_mode": {"request_trailer_mode": "SEND", "response_trailer_mode": "SEND"},
    }
    host = virtual_host({"route": {"cluster": "origin"}})
    host["routes"] = [
        {"match": {"prefix": f"/{ours}/"}, "route": {"cluster": "origin"}, "typed_per_filter_config": {FILTER: {
            "@type": f"{TYPE}.filters.http.ext_proc.v3.ExtProcPerRoute",
            "overrides": {"processing_mode": {
                "request_body_mode": theirs, "response_body_mode": theirs,
                "request_trailer_mode": "SEND", "response_trailer_mode": "SEND",
            }},
        }}}
        for ours, theirs in MODES.items()
    ]  # fmt: skip
    return bootstrap(
        [listener("all", port, host, {"name": FILTER, "typed_config": config})],
        [cluster("server", server, typed_extension_protocol_options=HTTP2), cluster("origin", upstream)],
    )


def of_ours(upstream: int, server: int) -> str:
    routes = [
        {
            "name": mode.lower(),
            "matches": [{"path": {"value": f"/{mode}"}}],
            "policies": {
                "extProc": {
                    "host": f"127.0.0.1:{server}",
                    "processingOptions": {"requestBodyMode": mode, "responseBodyMode": mode},
                }
            },
            "backends": [{"host": f"127.0.0.1:{upstream}"}],
        }
        for mode in MODES
    ]
    return json.dumps({"binds": [{"port": 8080, "listeners": [{"name": "http", "routes": routes}]}]})


async def outcome(
    session: aiohttp.ClientSession, base: str, target: str, server: Server, arrived: dict[str, list[Any]]
) -> dict[str, Any]:
    """What the client gets, what the origin got, what the server was shown."""
    exchange = base + target
    got: dict[str, Any] = {}
    try:
        asked = session.post(exchange, data=b"abc", headers=[*SENT, (EXCHANGE, exchange)])
        async with asyncio.timeout(PATIENCE), asked as answer:
            got["status"] = answer.status
            data = await answer.read()
            if answer.status != 500:  # ours has a text, Envoy's has none
                lines = joined((k.lower(), v) for k, v in answer.headers.items() if k.lower() not in OF_ONE)
                got["headers"], got["body"] = lines, data
    except aiohttp.ClientError:
        got["broken"] = True
    is_shown_whole = got.get("status") in SERVED and not target.rpartition("/")[2].startswith(CUT_SHORT)
    shown = [*parts(server.shown[exchange])] if is_shown_whole else "until it failed"
    return {**got, "origin": "perhaps" if target in LET_ON else arrived.get(exchange, []), "shown": shown}


def parts(shown: list[Any]) -> Iterator[Any]:
    """How content is cut into messages is each proxy's own."""
    for phase, found in itertools.groupby(shown, key=lambda each: each[0]):
        several = list(found)
        is_body = phase.endswith("body")
        yield (phase, "".join(each[1] for each in several), several[-1][2]) if is_body else several


@pytest.mark.needs("envoy")
async def test_a_server_behind_envoy_and_behind_us(tool: Callable[[str], str], tmp_path: Path) -> None:
    theirs, ours = Server(), Server()
    async with theirs.served(), ours.served(), origin() as (upstream, arrived):
        port = reserve()
        async with (
            envoy(tool, tmp_path, of_envoy(port, upstream, theirs.port), port),
            serving(of_ours(upstream, ours.port)) as proxy,
            aiohttp.ClientSession(
                skip_auto_headers=["User-Agent", "Accept-Encoding", "Accept"],
                connector=aiohttp.TCPConnector(force_close=True),
            ) as session,
        ):
            found: dict[str, Any] = {}
            for mode in MODES:
                for name in ANSWERS:
                    target = f"/{mode}/{name}"
                    if target in BY_CHANCE:
                        continue
                    one = await outcome(session, f"http://127.0.0.1:{port}", target, theirs, arrived)
                    other = await outcome(session, f"http://127.0.0.1:{proxy.port}", target, ours, arrived)
                    keys = [key for key in one | other if one.get(key) != other.get(key)]
                    if keys:
                        found[target] = {key: (one.get(key), other.get(key)) for key in keys}
    expected = {f"/{mode}/{name}" for name, modes in DIFFERENCES.items() for mode in modes}
    assert found.keys() == expected, json.dumps(found, indent=1, default=str)
