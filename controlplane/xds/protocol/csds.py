"""Client status: for each proxy, every resource of its subscriptions with its version and what became of it.

Pure: reads a stream and the newest snapshot, gives Envoy's CSDS messages. Contents are redacted, always; of secrets not
even the version is shown, a hash by which a weak one could be guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from controlplane.snapshot import SECRETS, Record, Snapshot, shown
from controlplane.snapshot.redact import redacted
from controlplane.xds.protocol.claim import STATE_KEY
from controlplane.xds.protocol.stream import Stream
from controlplane.xds.protocol.subscription import Subscription
from gatewright.wire.external import client_status_pb2, config_dump_pb2, node_pb2

Entry = client_status_pb2.ClientConfig.GenericXdsConfig

CLIENT_STATUS: Final = {
    client_status_pb2.SYNCED: config_dump_pb2.ACKED,
    client_status_pb2.STALE: config_dump_pb2.REQUESTED,
    client_status_pb2.NOT_SENT: config_dump_pb2.REQUESTED,
    client_status_pb2.ERROR: config_dump_pb2.NACKED,
}


@dataclass(frozen=True, slots=True)
class Client:
    """A connected proxy: its stream, its Gateway's newest state, and when it refused something last (wall clock)."""

    stream: Stream
    newest: Snapshot
    refused_at: float | None


def node(client: Client) -> node_pb2.Node:
    """The proxy as it introduced itself, but for what it claims to hold: no more of that than may be seen."""
    shown_node = node_pb2.Node()
    shown_node.CopyFrom(client.stream.node or shown_node)
    claimed = shown_node.metadata.fields.get(STATE_KEY)
    if claimed is not None:
        shown_node.metadata[STATE_KEY] = shown(claimed.string_value)
    return shown_node


def entries(client: Client, *, exclude_contents: bool) -> Iterator[Entry]:
    """The status of every resource that a proxy should hold, and of each one that it named and that does not exist.

    One at a time, so that the caller may pause: there can be a hundred thousand.
    """
    for subscription in tuple(client.stream.subscriptions.values()):
        target = client.newest.resources(subscription.type_url)
        for record in target:
            if subscription.covers(record.name):
                yield _entry(client, subscription, record, exclude_contents=exclude_contents)
        for name in sorted(subscription.names):
            if name not in target:
                missing = config_dump_pb2.DOES_NOT_EXIST
                yield Entry(type_url=subscription.type_url, name=name, client_status=missing)


def _entry(client: Client, subscription: Subscription, record: Record, *, exclude_contents: bool) -> Entry:
    status = _status(client.stream, subscription, record)
    version = "" if record.name.startswith(SECRETS) else record.version
    entry = Entry(
        type_url=subscription.type_url,
        name=record.name,
        version_info=version,
        last_updated=_timestamp(record.published),
        config_status=status,
        client_status=CLIENT_STATUS[status],
    )
    if not exclude_contents:
        entry.xds_config.CopyFrom(redacted(record.content()))
    if status == client_status_pb2.ERROR:
        refusals = client.stream.refusals
        refusal = refusals.get(record.name) or refusals[""]
        entry.error_state.details = refusal.error
        entry.error_state.version_info = version
        if client.refused_at is not None:
            entry.error_state.last_update_attempt.CopyFrom(_timestamp(client.refused_at))
    return entry


def _status(stream: Stream, subscription: Subscription, record: Record) -> client_status_pb2.ConfigStatus:
    sent = subscription.base.get(record.name)
    if sent is None or sent.version != record.version:
        return client_status_pb2.NOT_SENT
    if record.name in stream.refusals:
        return client_status_pb2.ERROR
    answered = subscription.answered.get(record.name)
    if answered is not None and answered.version == record.version:
        return client_status_pb2.SYNCED
    return client_status_pb2.ERROR if "" in stream.refusals else client_status_pb2.STALE


def _timestamp(seconds: float) -> Timestamp:
    stamp = Timestamp()
    stamp.FromNanoseconds(int(seconds * 1e9))
    return stamp
