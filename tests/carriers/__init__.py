"""Carriers: one text of tests over every way to carry an exchange (HTTP/1, HTTP/2, ...).

A test of a policy takes the fixture `carrier` (tests/policies/conftest.py), which has a value for each row of
`CARRIERS`, and says what goes in and what comes out as values (`values`): no bytes of any protocol.

    def test_a_header_is_set(carrier: Carrier) -> None:
        text = text_of("policies: {headerModifiers: {request: {set: [{name: x-a, value: b}]}}}" + BACKEND)
        seen = carrier.proxy(text).carry(Request("GET", "/shop", [("x-a", "client")]))
        assert seen.received.headers["x-a"] == "b"      # what the endpoint got
        assert seen.answer.status == 200                # what the client got
        assert " http.path=/shop " in seen.line         # the line of the access log

`carry` is one exchange of a new client, which endpoints answer with OK, or as the second argument says (a `Response`,
or a function of what was received). A refusal has `seen.reached == ()`, `seen.reason` and `seen.error`.

Bodies that come in parts, waiting and failures are said in steps:

    run = carrier.proxy(text)
    asked = run.begin(Request("POST", "/", [("content-length", "8")]))   # the head
    asked.content(b"abcd")
    assert not run.arrivals                                              # nothing reached an endpoint yet
    asked.content(b"efgh"); asked.end()
    run.arrival.head(Response(200, [("content-length", "4")]))           # the endpoint answers in steps, too
    run.advance(1.0)                                                     # the clock is moved
    run.arrival.reset()
    assert asked.answer.reset

- `run.ask` is `carry` for one client that keeps its connection; it gives the answer alone. `run.send` sends a whole
  request without answering it.
- An arrival is what an endpoint got: each try, each copy for a mirror, each call of a policy (unless `calls` answers).
- `carrier.shared(text)` saves making a proxy for each row of a table, where nothing is left behind.
- What only HTTP/1 has (reason phrases, chunks, letter case, upgrades, pipelines) belongs in tests/unit/server. Where a
  length is announced or not is common to all: `sized`. The HTTP/1 carrier changes the letter case of names by itself.
- Tests of a policy's builder or tables, where nothing is carried, take no carrier.

A new carrier is one class that implements `contract.Ends`, and one row here.
"""

from __future__ import annotations

from typing import Final

from tests.carriers.http1 import Http1
from tests.carriers.http2 import Http2
from tests.carriers.http2_endpoints import Http1To2, Http2To2
from tests.carriers.run import Carrier, Names, Run
from tests.carriers.toy import Toy
from tests.carriers.values import OK, Answer, Carried, Headers, Received, Request, Response

CARRIERS: Final = {
    "http1": Carrier(Http1),
    "http2": Carrier(Http2),
    "http1-2": Carrier(Http1To2),
    "http2-2": Carrier(Http2To2),
    "toy": Carrier(Toy),
}
"""By the version of clients, with endpoints of HTTP/1.1; `-2`: with endpoints of HTTP/2. `toy`: no protocol at all."""

__all__ = [
    "CARRIERS",
    "OK",
    "Answer",
    "Carried",
    "Carrier",
    "Headers",
    "Names",
    "Received",
    "Request",
    "Response",
    "Run",
]
