"""The stream from the control plane: how long it waits between tries, what it says of them, what it counts."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from typing import Any, cast

import grpc.aio
import pytest

from dataplane.agent import xds_client
from dataplane.agent.xds_client import XdsClient
from dataplane.agent.xds_stream import Request, Response, XdsStream
from dataplane.link.messages import RESOURCE, Record
from dataplane.settings import Address
from dataplane.telemetry.metrics import Metrics
from tests.fakes.moved_loop import moved

ADDRESS = Address("10.0.0.1", 18000)
REFUSED = "UNAVAILABLE: connection refused"


class Client:
    """A client whose streams go as the test says: how long each takes, whether a response came, why it ended."""

    def __init__(self, *streams: tuple[float, bool, str]) -> None:
        self.metrics = Metrics.in_memory()
        self.refused: dict[str, str] = {}
        self.taken: list[Sequence[Record]] = []
        stream = XdsStream("default/web", "test", "1")
        self.client = XdsClient(ADDRESS, stream, self._apply, self.metrics)
        self.pauses: list[float] = []
        self._streams = list(streams)
        self._ended = 0.0
        self.client._talk = self._talk  # type: ignore[method-assign]

    async def _apply(self, records: Sequence[Record]) -> Mapping[str, str]:
        self.taken.append(records)
        return self.refused

    async def _talk(self) -> str:
        loop = asyncio.get_running_loop()
        if self._ended:
            self.pauses.append(round(loop.time() - self._ended, 6))
        if not self._streams:
            raise EOFError
        seconds, is_answered, reason = self._streams.pop(0)
        if is_answered:
            self.client._received(Response(type_url=RESOURCE), 10)
        await asyncio.sleep(seconds)
        self._ended = loop.time()
        return reason

    async def run(self) -> None:
        with pytest.raises(EOFError):
            await self.client.run()

    def counted(self) -> dict[tuple[str, ...], int]:
        return {(series.metric.name, *series.labels): numbers[0] for series, numbers in self.metrics.series()}


@moved
async def test_pauses_double_up_to_a_bound_and_half_of_each_is_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    for chance, longest in ((0.0, 7.5), (0.5, 11.25)):
        monkeypatch.setattr(random, "random", lambda chance=chance: chance)
        client = Client(*[(0.0, False, REFUSED)] * 13)
        await client.run()
        share = 0.5 + chance / 2
        assert client.pauses == pytest.approx([*(0.01 * 2**tries * share for tries in range(11)), longest, longest])


@pytest.mark.parametrize(
    ("seconds", "is_answered", "begins_anew"),
    [(1.0, True, False), (1.25, True, True), (60.0, False, False), (0.5, True, False)],
)
@moved
async def test_after_a_stream_that_was_good_the_pauses_begin_anew(
    monkeypatch: pytest.MonkeyPatch, seconds: float, is_answered: bool, begins_anew: bool
) -> None:
    """It brought a response and lasted for more than a second."""
    monkeypatch.setattr(random, "random", lambda: 0.0)
    client = Client(*[(0.0, False, REFUSED)] * 4, (seconds, is_answered, REFUSED), (0.0, False, REFUSED))
    await client.run()
    assert client.pauses[4] == pytest.approx(0.005 if begins_anew else 0.08)
    assert client.pauses[5] == pytest.approx(2 * client.pauses[4])


@moved
async def test_that_there_is_none_is_said_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "xds")
    client = Client(
        (0.0, False, REFUSED),
        (0.0, False, "UNAVAILABLE: no such host"),
        (0.0, False, "UNAUTHENTICATED: who are you"),
        (0.0, False, "UNAUTHENTICATED: who are you"),
        (0.0, True, "UNAUTHENTICATED: who are you now"),
        (0.0, False, "UNAUTHENTICATED: who are you"),
        (0.0, False, REFUSED),
    )
    await client.run()
    told = [
        (record.levelname, cast(dict[str, Any], record.__dict__["fields"]).get("reason")) for record in caplog.records
    ]
    assert told == [
        ("WARNING", REFUSED),
        ("DEBUG", "UNAVAILABLE: no such host"),
        ("WARNING", "UNAUTHENTICATED: who are you"),
        ("DEBUG", "UNAUTHENTICATED: who are you"),
        ("INFO", None),  # connected
        ("WARNING", "UNAUTHENTICATED: who are you now"),
        ("DEBUG", "UNAUTHENTICATED: who are you"),
        ("WARNING", REFUSED),
    ]
    assert all(record.__dict__["fields"]["address"] == ADDRESS for record in caplog.records)
    assert client.counted() == {
        ("xds_connected",): 0,
        ("xds_connection_terminations_total", "UNAVAILABLE"): 3,
        ("xds_connection_terminations_total", "UNAUTHENTICATED"): 4,
        ("xds_messages_total", "Resource"): 1,
        ("xds_message_bytes_total", "Resource"): 10,
    }


class Call:
    """The library's side of a stream: responses in, requests out."""

    def __init__(self, *responses: Response) -> None:
        self.responses = [each.SerializeToString() for each in responses]
        self.requests: list[Request] = []

    async def read(self) -> Any:
        return self.responses.pop(0) if self.responses else grpc.aio.EOF

    async def write(self, request: Request) -> None:
        self.requests.append(request)


async def test_what_is_refused_is_asked_for_again_by_a_stream_that_ends_the_one_before() -> None:
    client = Client()
    call = Call()
    reading = asyncio.get_running_loop().create_future()

    async def read() -> Any:
        return await reading

    call.read = read  # type: ignore[method-assign]
    conversation = asyncio.create_task(client.client._converse(cast(grpc.aio.StreamStreamCall, call)))
    await asyncio.sleep(0)
    client.client.start_over()
    assert await conversation is False
    assert reading.cancelled()


class Ended(Call):
    """A stream that ends so: what its reading raises, else its code and details."""

    def __init__(self, error: Exception | None = None, *responses: bytes) -> None:
        super().__init__()
        self.responses, self.error = [*responses], error

    async def read(self) -> Any:
        if self.error is not None:
            raise self.error
        return await super().read()

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.ABORTED

    async def details(self) -> str:
        return "make room"


BROKEN = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "reset by peer")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (Ended(), "ABORTED: ended by the control plane"),
        (Ended(BROKEN), "UNAVAILABLE: reset by peer"),
        (Ended(asyncio.InvalidStateError()), "ABORTED: make room"),
        (Ended(None, b"\xff\xff"), "a response cannot be read: "),
    ],
    ids=["ended", "broken", "over", "nonsense"],
)
async def test_why_a_stream_ended(call: Ended, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await talked(call, monkeypatch, Client().client)).startswith(why)


async def test_a_stream_that_was_started_over_ended_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    client, call = Client().client, Ended()
    assert client.version == "", "nothing was applied yet"

    async def read() -> Any:
        client.start_over()
        return await asyncio.get_running_loop().create_future()

    call.read = read  # type: ignore[method-assign]
    assert (await talked(call, monkeypatch, client)).startswith("STARTED_OVER: ")
    assert await talked(Ended(), monkeypatch, client) == "ABORTED: ended by the control plane"


async def talked(call: Ended, monkeypatch: pytest.MonkeyPatch, client: xds_client.XdsClient) -> str:
    class Channel:
        async def __aenter__(self) -> Channel:
            return self

        async def __aexit__(self, *_: object) -> None:
            """Nothing is open."""

        def stream_stream(self, _method: str, request_serializer: object) -> Any:
            return lambda: call

    monkeypatch.setattr(grpc.aio, "insecure_channel", lambda _target, _options: Channel())
    return await XdsClient._talk(client)  # `Client` has another in its place


def test_a_control_plane_that_is_gone_without_a_word_is_noticed_within_twenty_seconds() -> None:
    """After some silence it is asked for a sign of life, also when nothing is under way, and has so long for it."""
    options = dict(xds_client.OPTIONS)
    silence, patience = options["grpc.keepalive_time_ms"], options["grpc.http2.ping_timeout_ms"]
    assert silence + patience < 20_000 and options["grpc.keepalive_timeout_ms"] == patience
    assert options["grpc.http2.max_pings_without_data"] == 0  # no limit
    assert options["grpc.enable_retries"] == 0  # tries and their pauses are ours


UNAUTHENTICATED = "UNAUTHENTICATED: the token is not known"


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        ([UNAUTHENTICATED, xds_client.UNEXPLAINED, UNAUTHENTICATED], [UNAUTHENTICATED]),
        ([xds_client.UNEXPLAINED, UNAUTHENTICATED, *[xds_client.UNEXPLAINED] * 2], [UNAUTHENTICATED]),
        ([UNAUTHENTICATED, *[xds_client.UNEXPLAINED] * 4], [UNAUTHENTICATED, xds_client.UNEXPLAINED]),
        ([xds_client.UNEXPLAINED] * 2, []),
        ([REFUSED, UNAUTHENTICATED, REFUSED], [REFUSED, UNAUTHENTICATED, REFUSED]),
    ],
)
@moved
async def test_a_refusal_whose_reason_the_library_lost_is_no_news(
    reasons: list[str], told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Seen on a busy machine: it refuses while the second request is written."""
    with caplog.at_level(logging.WARNING, "xds"):
        await Client(*[(0.0, False, reason) for reason in reasons]).run()
    warned = [cast(Any, record).fields["reason"] for record in caplog.records if record.levelno == logging.WARNING]
    assert warned == told


@pytest.mark.parametrize(
    ("version", "serving"), [("", "no state received from it yet"), ("v1", "serving the last good state")]
)
@moved
async def test_a_proxy_that_never_had_a_state_does_not_say_that_it_serves_one(
    version: str, serving: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = Client((0.0, False, REFUSED))
    made.client.version = version
    with caplog.at_level(logging.WARNING, "xds"):
        await made.run()
    assert [record.message for record in caplog.records] == [f"no control plane; {serving}, trying again"]


@moved
async def test_an_end_of_a_good_stream_is_news_whatever_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "xds"):
        await Client((5.0, True, xds_client.UNEXPLAINED)).run()
    assert len(caplog.records) == 1
