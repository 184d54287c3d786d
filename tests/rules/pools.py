"""The pools of a worker, and the share that a client has of each (docs/limits.md, "Shares").

Called by `test_pools_and_shares`. A pool is what clients together may use up: places, bytes, waiting requests. A row
names the constant that bounds it, and either the name of the pool in `limits_exceeded_total` (`link/pools`), or why no
client needs a share of it.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Pool(NamedTuple):
    module: str
    name: str
    share: str = ""
    """Name in `limits_exceeded_total`."""
    why: str = ""
    """Why there is no such share."""


CACHE: Final = "a memory: what is forgotten is found out again"
ITS_OWN: Final = "of one connection, request or session: it is its client's alone"
RECORDS: Final = "of records, which are dropped and counted: no request waits for it or fails by it"
THEIRS: Final = "of servers and configuration, not of clients"

POOLS: Final = (
    Pool("dataplane.link.pools", "RESERVE", "maxHeldBytes"),
    Pool("dataplane.server.raw.session_table", "MAX_SESSIONS", "udpSessions"),
    Pool("dataplane.proxy.in_flight", "MAX_IN_FLIGHT", "mirrors"),
    Pool("dataplane.proxy.in_flight", "MAX_BYTES", "mirroredBytes"),
    Pool("dataplane.upstream.shared", "MAX_WAITING", "http2Waiting"),
    Pool("dataplane.upstream.limits", "MAX_PENDING", "maxPending"),
    Pool("dataplane.backends.dynamic.destinations", "MOST_LOOK_UPS", "lookUps"),
    Pool("dataplane.credentials.mcp_discovery", "MOST_REGISTRATIONS", "registrations"),
    Pool("dataplane.backends.mcp.legacy.holder", "MOST", "mcpClientStreams"),
    Pool("dataplane.backends.mcp.memory_queue", "MOST", "mcpAnswersWaiting"),
    Pool("dataplane.filters.steps.compression", "MOST_AT_A_TIME", "compressedResponses"),
    Pool("dataplane.credentials.fair_queue", "MOST", why="`MOST_OF_SOURCE` of them are one address's at most"),
    Pool("dataplane.stdio.sessions", "MOST", "stdioProcesses"),
    Pool("dataplane.stdio.sessions", "MOST_OF_ONE", "stdioProcesses"),
    Pool("dataplane.stdio.sessions", "STARTING", why="others wait, for as long as a start takes"),
    Pool(
        "dataplane.upstream.shared",
        "MAX_CONNECTIONS",
        why="connections carry the streams of all: who waits for one has a share",
    ),
    Pool(
        "dataplane.upstream.dial.hbone",
        "MAX_TUNNELS",
        why="tunnels carry the connections of all to a workload, and connections are limited by descriptors",
    ),
    Pool("dataplane.upstream.dial.hbone", "MAX_WORKLOADS", why=THEIRS),
    Pool("dataplane.backends.dynamic.destinations", "MOST", why=CACHE),
    Pool("dataplane.net.reads", "READS", why="of one turn: who is not among them reads in the next"),
    Pool("dataplane.net.accounts", "ADDRESSES", why="half of them is forgotten for one more: those that owe least"),
    Pool("dataplane.link.buckets", "PLACES", why="keys that nobody uses make place; one client may have all of them"),
    Pool("dataplane.link.arranged", "GROUPS", why=CACHE),
    Pool("dataplane.link.renewed", "GROUPS", why=CACHE),
    Pool("dataplane.mcp.worker", "MOST", why=CACHE),
    Pool("dataplane.mcp.asked", "MOST", why=CACHE),
    Pool("dataplane.credentials.known_tokens", "COUNT", why=CACHE),
    Pool("dataplane.filters.steps.basic_authentication", "KNOWN", why=CACHE),
    Pool("dataplane.filters.steps.rate_limit.usage_reports", "MOST", why="beyond it no limit; logged and counted"),
    Pool("dataplane.telemetry.measures", "MOST_SETS", why=RECORDS),
    Pool("dataplane.telemetry.measures", "MOST", why=ITS_OWN),
    Pool("dataplane.telemetry.metric", "LABELLED", why=RECORDS),
    Pool("dataplane.export.batches", "MOST_HELD", why=RECORDS),
    Pool("dataplane.export.batches", "MOST_BYTES", why=RECORDS),
    Pool("dataplane.http.h2.budget", "MAX_UNSENT_REPLIES", why=ITS_OWN),
    Pool("dataplane.backends.llm.realtime.turns", "MAX_TURNS", why=ITS_OWN),
    Pool("dataplane.backends.llm.guarded_streams", "MAX_TRACKS", why=ITS_OWN),
    Pool("dataplane.mcp.dialogue", "MAX_WAITING", why=ITS_OWN),
    Pool("dataplane.server.h1.h1_connection", "LONG_HEAD", why="no pool, but a length: longer heads wait their turn"),
)
