"""Client status: each resource's version and what the proxy made of it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from test_delta_stream import GATEWAY, Pair

from controlplane.snapshot import ENDPOINT_TYPE, RESOURCE_TYPE
from controlplane.xds import services
from controlplane.xds.protocol import csds
from controlplane.xds.protocol.claim import STATE_KEY
from gatewright.wire.external import client_status_pb2, config_dump_pb2, node_pb2
from gatewright.wire.v1 import resource_pb2, secret_pb2

SYNCED, STALE = client_status_pb2.SYNCED, client_status_pb2.STALE
NOT_SENT, ERROR = client_status_pb2.NOT_SENT, client_status_pb2.ERROR


@pytest.fixture
def pair() -> Pair:
    pair = Pair()
    pair.publish(a="1", b="1")
    pair.open()
    return pair


def shown(pair: Pair, *, exclude_contents: bool = True) -> dict[str, csds.Entry]:
    client = csds.Client(pair.stream, pair.snapshots.newest(GATEWAY), refused_at=1500.5)
    return {entry.name: entry for entry in csds.entries(client, exclude_contents=exclude_contents)}


def statuses(pair: Pair) -> dict[str, int]:
    return {name: entry.config_status for name, entry in shown(pair).items()}


def test_life_of_a_resource(pair: Pair) -> None:
    assert statuses(pair) == {"a": NOT_SENT, "b": NOT_SENT}
    responses = pair.read()
    assert statuses(pair) == {"a": STALE, "b": STALE}
    pair.ack(responses[-1])
    assert statuses(pair) == {"a": SYNCED, "b": SYNCED}
    pair.publish(a="2")
    assert statuses(pair) == {"a": NOT_SENT, "b": SYNCED}
    responses = pair.read()
    assert statuses(pair) == {"a": STALE, "b": SYNCED}
    pair.nack(responses[-1], '[{"key": "a", "error": "bad"}]')
    assert statuses(pair) == {"a": ERROR, "b": SYNCED}
    pair.publish(a="3")
    pair.synced()
    assert statuses(pair) == {"a": SYNCED, "b": SYNCED}


def test_refusal_without_a_key_is_of_all_that_was_sent(pair: Pair) -> None:
    pair.synced()
    pair.publish(a="2")
    pair.nack(pair.read()[-1], "no")
    assert statuses(pair) == {"a": ERROR, "b": SYNCED}
    pair.publish(c="1")
    pair.nack(pair.read()[-1], "no")
    assert statuses(pair) == {"a": ERROR, "b": SYNCED, "c": ERROR}


def test_error_state_says_what_when_and_which_version(pair: Pair) -> None:
    pair.nack(pair.read()[-1], '[{"key": "a", "error": "no such filter"}]')
    entry = shown(pair)["a"]
    (record,) = (one for one in pair.snapshots.newest(GATEWAY).resources(RESOURCE_TYPE) if one.name == "a")
    assert (entry.error_state.details, entry.error_state.version_info) == ("no such filter", record.version)
    assert entry.error_state.last_update_attempt.ToMilliseconds() == 1_500_500
    assert (entry.version_info, entry.type_url) == (record.version, RESOURCE_TYPE)
    assert entry.last_updated.ToMilliseconds() == pytest.approx(record.published * 1000, abs=1)
    assert entry.client_status == config_dump_pb2.NACKED


def test_subscription_bounds_what_is_shown() -> None:
    pair = Pair()
    pair.publish(a="1", b="1")
    pair.publish(ENDPOINT_TYPE, e="1")
    pair.subscribe("a", "ghost")
    pair.settle()
    pair.synced()
    entries = shown(pair)
    assert set(entries) == {"a", "ghost"}
    assert entries["ghost"].client_status == config_dump_pb2.DOES_NOT_EXIST


def test_contents_are_redacted_or_left_out() -> None:
    pair = Pair()
    secret = resource_pb2.Resource(key="secret/shop/key", secret=secret_pb2.Secret(data={"key": b"TOKEN"}))
    pair.snapshots.apply([(GATEWAY, RESOURCE_TYPE, secret.key, secret.SerializeToString())])
    pair.open()
    pair.synced()
    assert not shown(pair)[secret.key].HasField("xds_config")
    content = shown(pair, exclude_contents=False)[secret.key].xds_config
    assert content.type_url == RESOURCE_TYPE
    assert resource_pb2.Resource.FromString(content.value).secret.data["key"] == b"[redacted]"


@pytest.mark.parametrize("refused", [False, True])
def test_no_version_of_a_secret_is_shown_by_which_it_could_be_guessed(refused: bool) -> None:
    pair = Pair()
    name = "secret/shop/key"
    pair.snapshots.apply(
        [(GATEWAY, RESOURCE_TYPE, name, b"weak"), (GATEWAY, RESOURCE_TYPE, "route/httproute/a/b/0", b"1")]
    )
    pair.open()
    if refused:
        pair.nack(pair.read()[-1], json.dumps([{"key": name, "error": "no"}]))
    else:
        pair.synced()
    entries = shown(pair)
    assert entries[name].config_status == (ERROR if refused else SYNCED)
    assert (entries[name].version_info, entries[name].error_state.version_info) == ("", "")
    assert entries["route/httproute/a/b/0"].version_info


def test_of_what_a_proxy_claims_the_part_that_covers_secrets_is_not_shown(pair: Pair) -> None:
    node = node_pb2.Node(id="shop/web/1")
    node.metadata.update({STATE_KEY: "a" * 32 + "b" * 32, "zone": "x"})
    pair.stream.node = node
    told = csds.node(csds.Client(pair.stream, pair.snapshots.newest(GATEWAY), refused_at=None))
    assert (told.id, dict(told.metadata)) == ("shop/web/1", {STATE_KEY: "a" * 32, "zone": "x"})
    assert node.metadata[STATE_KEY] == "a" * 32 + "b" * 32


@pytest.mark.parametrize(("resources", "pauses"), [(199, 0), (200, 1), (399, 1), (400, 2)])
async def test_a_long_status_lets_others_go_on(resources: int, pauses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(services, "asyncio", SimpleNamespace(sleep=sleep))
    pair = Pair()
    pair.publish(**{f"r{number}": "1" for number in range(resources)})
    pair.open()
    shown = services.ClientStatus(lambda: (csds.Client(pair.stream, pair.snapshots.newest(GATEWAY), None),))
    request = client_status_pb2.ClientStatusRequest()
    call: Any = None  # nothing is wrong
    response = await shown.fetch(request, call)
    assert (len(response.config[0].generic_xds_configs), slept) == (resources, [0] * pauses)


class Refusing:
    """A call that is aborted."""

    ended: tuple[grpc.StatusCode, str] | None = None

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        self.ended = code, details
        raise PermissionError


async def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_ENTRIES", 3)
    pair = Pair()
    pair.publish(**{f"r{number}": "1" for number in range(2)})
    pair.open()
    client = csds.Client(pair.stream, pair.snapshots.newest(GATEWAY), None)
    call: Any = Refusing()
    request = client_status_pb2.ClientStatusRequest()
    await services.ClientStatus(lambda: (client,)).fetch(request, call)
    with pytest.raises(PermissionError):
        await services.ClientStatus(lambda: (client, client)).fetch(request, call)
    assert call.ended == (grpc.StatusCode.RESOURCE_EXHAUSTED, services.TOO_MANY)


async def test_few_requests_for_status_are_answered_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "PAUSE_EVERY", 1)
    pair = Pair()
    pair.publish(a="1", b="1")
    pair.open()
    shown = services.ClientStatus(lambda: (csds.Client(pair.stream, pair.snapshots.newest(GATEWAY), None),))
    request = client_status_pb2.ClientStatusRequest()
    call: Any = Refusing()
    under_way = [asyncio.ensure_future(shown.fetch(request, call)) for _ in range(services.AT_ONCE + 1)]
    found = await asyncio.gather(*under_way, return_exceptions=True)
    assert [isinstance(answer, PermissionError) for answer in found] == [False] * services.AT_ONCE + [True]
    assert call.ended == (grpc.StatusCode.RESOURCE_EXHAUSTED, services.BUSY)
    await shown.fetch(request, call)  # there is room again
