"""The page of hostile streams (docs/hostile-streams.md), of the rows and what was measured. Called by the test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tests.hostile.rows import ROWS
from tests.hostile.streams import Row
from tests.hostile.world import Found

HEAD: Final = """# Hostile streams

What one client or one endpoint can do to the others on the same worker. A worker is one thread: what it computes for
one connection, all others wait for. The law is that **no input of one peer keeps others waiting for more than 50 ms
of the worker's CPU time**. What a connection has beyond the share of a turn (`net/turns`) waits for the next turn,
unread. Of those who wait each client address has a turn before another one has its second.

Expressions of one request have 20 ms together in one turn ([limits](cel.md#limits)). After one that took long, what
comes from the same client, and what the same endpoint answers, waits for the next turn. Work whose length is not known
before it is done (bodies that are read or judged, calls of policies that go on, fields of the log that expressions
give, routes whose expressions took long before) has one share of 5 ms in each turn, whichever clients it is for, and
what waits takes turns by client; requests without such work are never behind it.

A client that goes on is cut. Of each piece of work that waited for its turn while others had something to do, the CPU
time is held against what it moved (`net/accounts`): 1 MB of content pay for a second, a request for 5 ms. Chunks of 16
bytes move five times as much. What is not paid for is owed by the client's address (the first 64 bits of an IPv6 one)
and goes down by 0.1 s in each second. Above 1 s, which is 200 shares of a turn, the connection that owes is ended: 429
and close, or GOAWAY with `ENHANCE_YOUR_CALM`, reason `Overspent`. Who is alone on a worker, or pays for what it does,
is not, whatever its neighbours behind the same address owe. `tests/hostile/test_overspending.py` has both kinds.

Each row is a peer that does what costs the worker most. A test drives it through a whole worker in memory, as fast as
it is read, beside a polite client that asks for something again as soon as it has it, and holds it to the law.
**Longest wait** is the worker's CPU time between two turns in which the polite client could have run, in
milliseconds. Bytes are there at once, up to 32 reads of 256,000 bytes in one turn as the loop reads them. The
kernel's part (system calls) is not in the figures, nor is the collector of garbage, of which a worker's heap of
frozen objects leaves little to do. Checks of passwords run in a thread beside the loop. **Ends** is what became of
the hostile connection before the test had enough: `closed` by the worker, or `open`: it was slowed down until
then, and owes less than would end it.

The figures are of one run on one machine with two cores; the test compares names only. It writes this page:
`HOSTILE=write scripts/test tests/hostile`.

| Who | Protocol | What it sends | Longest wait, ms | Ends |
| --- | --- | --- | --- | --- |
"""

TAIL: Final = """
## Many at once

`python -m benchmarks.hostile` sends the same rows live, on 32 connections with their last bytes together, from one
address and from 32, and prints the longest wait of a polite client in CPU time of the worker. A piece of work is not
cut: what one body costs to decode, others wait for. On 2026-11-29, on a busy machine, in milliseconds from one
address and from 32; above 50 are those that are still too long:

| Row | Before | Now |
| --- | --- | --- |
| A2A over gRPC, 4,000 parts, HTTP/2 | 3248, 2279 | 20, 17 |
| A2A over gRPC, 4,000 parts, HTTP/1.1 | 135, 293 | 15, 22 |
| A2A messages of gRPC of an agent without end | 71, 85 | 19, 18 |
| the same, empty | 83, 128 | 24, 26 |
| A2A parameters of 170,000 keys | 191, 197 | 16, 13 |
| MCP parameters of 170,000 keys | 311, 398 | 23, 18 |
| MCP envelopes of 170,000 keys | 255, 212 | 15, 19 |
| results that an MCP server holds back | 196, 262 | 15, 18 |
| JSON of 80,000 fractions | 350, 362 | 43, 40 |
| 32 conditions on targets, HTTP/2 | 1333, 1199 | 20, 21 |
| MCP subscriptions to 220 resources | 487, 11830 | 36, 34 |
| comments of an MCP server without end, for rules | 280 | 23, 16 |
| a list of 300,000 tools of an MCP server | 76, 61 | 14, 18, on a busier machine 59, 44 |
| 1,920 requests over HTTP/2 to an agent that speaks no HTTP/2 | 117, 121 | 10, 12 |
| resets of an HTTP/2 endpoint | 10, 56 | 22, 25 |
| LLM requests of 55,000 messages | 127, 2067 | 19, 34 |
| streams of LLM requests of 55,000 messages | 194, 3149 | 10, 20 |
| 32 fields of the log that walk over targets, HTTP/2 | 62, 145 | 21 to 32, 26 to 62, from an IPv6 /59 41 to 74 |
| the same, HTTP/1.1 | 47, 43 | 23, 27 |
| 32 conditions over bodies of 2 MB, HTTP/1.1 | 621, 1316 | 27, 37 |
| DATA of one byte in 255 of padding, HTTP/2 | 75, 78 | 22, 17 |
| a request line without end | 71, 75 | 27, 11 |
| heads of 480 fields of an HTTP/2 endpoint | 90, 62 | 21, 23 |
| trailers of 480 fields of an HTTP/2 endpoint | 83, 89 | 21, 21 |
| Completions with as many messages as may be | 92, 96 | 39, 27 |
| Messages with as many calls of tools as may be | 64, 47 | 31, 33 |
| a large event of a model before tokens without end | 44, 49 | 34, 21, in one of two runs 54 |
| answers of an LLM provider of 60,000 choices, held back | 3152, 2973 | 6, 9 |
| usage of 170,000 fields of an LLM provider, held back | 1378, 1383 | 7, 21 |
| LLM requests of 9,000 messages for guards (from 32 addresses: 16 at once) | 234, 228 | 20, 24 |
| LLM requests with 2 MB of white space | 610, 2629 | 39, 29 |
| states of an A2A agent without end | 342, 836 | 13, 13 |
| cards of an A2A agent of 200 KB | 592, 625 | 42, 38 |
| JSON of 180,000 keys of an endpoint | 426, 140 | 29, 33 |

Answers of LLM providers and of agents are read in the same share of a turn as requests; so are answers that response
steps read, and bodies that come whole in one read. Large ones of LLM providers, and requests to them, are decoded
piece by piece; what remains one piece is a scan of the whole body and one evaluation of an expression; 170,000 names
of one object are pieces of 9 ms at most, however deep it is in others. A list of tools is gone through four times,
each time in one piece of up to 13 ms. What came while a piece of long work was done is answered before the next one.
Log fields, conditions, requests of as much as may be, heads and trailers of endpoints and large events were measured
beside other work; heads and trailers once, the others twice, and the worse figure is here. What is left of log fields
over HTTP/2 are 22 ms of one line's expressions, and passes of the loop that handle what came for 32 clients meanwhile
(heads, connections to endpoints, answers of theirs): nothing bounds how many answers of endpoints one pass takes.
`perf` gives the kernel 13 % of the worker's time there, at most 10 ms or so at once. From 32 addresses two runs had 42
and 41, four beside `perf` 46 to 60. The rows of MCP and A2A were measured live by themselves: those that are not here
had at most 46 ms (MCP session ids that are none 13 from one address, 14 from 32, over HTTP/2 12 and 8), with two
exceptions. MCP references of 2 MB had 64 once, beside a sampler of the worker's stack, and 42 else. MCP methods of 2
MB had 15 to 45 in eight runs, and 425 to 653 in two beside much other work: why is not known; in a later run with
samples of the worker's stack the longest stretch was 171 ms in which the loop read sockets (system calls, which are
not in the figures of the table above); since large reads wait they had 22 to 44, twice from each of three kinds of
addresses.

The whole table, 271 rows from one address, from 32 and from an IPv6 /59, was printed in one run, the first two thirds
of it beside little else, before the last mends: 261 rows had at most 50 ms, 218 of them at most 35. The ten others,
and ten that had more than 46, were sent again on the finished tree, alone on the machine: all have at most 50, the
most of them 49.6 (300,000 tools of one name, from one address) and 44.7 (streams over the limit of 100), but for a
request line without end, which had 71 to 75 and has 11 to 36 since the search for bare line feeds does not look at
each byte, and chunks with extensions of 4 KB, which had 63 once and 40 in the run after it.
`tests/hostile/test_live_sample.py` sends six of them with each run of the suite, and allows 150 ms.

Only what is asked after all that the peers sent before is counted. Requests that are lost in one moment end in turns
(`net/endings`). When the clients of 5,000 GET requests on 50 connections of HTTP/2 leave, a polite client waited 197
ms of CPU before that, and 24 now; when they reset their streams 187, and 24 now; when the clients of 1,920 A2A
requests over gRPC leave 45 to 88, and 13 now (`tests/hostile/test_leaving.py`, without sockets). Requests that wait
for a stream of an endpoint have theirs in turns, too: 45 ms for 4,000 before, 12 now. 5,000 GET requests of 50
connections that begin in one moment had 8 to 37. 1,920 A2A requests over gRPC that come while as many leave had 250
to 610 ms on a busy machine, and 15 to 17 now. Bodies of HTTP/1.1 with a length, 187 of 1.4 MB that a policy reads,
had 151 to 187 ms of system calls while they came, as the loop reads each socket many times; now a large read waits
where the share of the turn is used up, and they have 37. 32 lists of four MCP servers, of 4 MB each, have 45 to 50:
one answer of 16 MB is put together in one piece. HTTP/2 streams of 1 GB with closed windows, 5,000 on 50 connections,
have 40 as they begin and 49 as their clients leave (from 50 addresses 41 and 34); the worker's memory goes from 34 MB
to 123 (to 269), and is 45 (47) 12 s later. The clients of 3,000 requests over as many connections of HTTP/1.1 that
leave have 33.

## Crowds

The loop hands over all that it finds readable before anything is answered, however many connections that are.
`python -m benchmarks.crowds` stops a worker, sends on thousands of connections, and lets it go on: all is there in one
moment. Light requests beyond the first 64 or so of a pass wait where the share of its turn is used up and their address
had one since (`net/arrivals`). As soon as a large read of a body is late, all whose bodies are under way stop
reading, and 16 of them read again in each turn, each address once before another one does so twice (`net/reads`). In
milliseconds, the least and the most of three times on a busy machine, from one address and from 50:

| Crowd | Before | Now |
| --- | --- | --- |
| 3,000 requests | 112 to 290, 127 to 169 | 24 to 41, 26 to 36 |
| 3,000 requests for a fixed answer | 233 to 284, 263 to 294 | 25 to 36, 30 to 41 |
| 3,000 requests, each over a connection of HTTP/2 | 216 to 268, 188 to 268 | 24 to 44, 30 to 40 |
| 400 bodies of 600 KB | 48 to 82, 22 to 84 | 13 to 18, 11 to 16 |
| 14 bodies of 60 KB on each of 300 connections of HTTP/2 | 66 to 114, 87 to 156 | 21 to 26, 19 to 27 |

Who waits is looked at twice: in memory, a request for a fixed answer on each of 512 connections of one client, all in
one pass, takes 40 microseconds of CPU where it took 31; on each of 16 it takes 23, as before. What is left of requests
is reading: 8 to 13 microseconds for each connection. Clients are distinguished by address: 3,000 requests from 3,000
addresses are of 3,000 clients who each wait for the others.
"""
"""What `benchmarks.hostile` printed; written by hand."""


def line(row: Row, found: Found) -> str:
    """A row of the page."""
    return f"| {row.side} | {row.protocol} | {row.name} | {found.longest * 1000:.1f} | {found.end} |"


def page(measured: Mapping[str, Found]) -> str:
    """The whole page, of what was measured, by label."""
    return HEAD + "\n".join(line(row, measured[row.label]) for row in ROWS) + "\n" + TAIL


def labels(text: str) -> list[str]:
    """Whom a page speaks of, in its order."""
    rows = re.findall(r"^\| (client|endpoint) \| (\S+) \| (.+?) \| [0-9.]+ \| \w+ \|$", text, re.MULTILINE)
    return [", ".join(row) for row in rows]
