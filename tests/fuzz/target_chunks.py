"""Target `chunks`: the chunked transfer coding of requests and responses against a naive decoder and h11.

Promises: the same verdict (whole, not yet whole, wrong), content, trailers and end as the naive decoder, whatever the
pieces; what is handed on framed decodes to the same; content never exceeds what came in.
"""

from __future__ import annotations

from dataclasses import dataclass

import h11

from dataplane.http.h1.chunked import BadChunk, ChunkedReader
from dataplane.http.trailers import FORBIDDEN_TRAILERS
from tests.fuzz.readers import BAD, INCOMPLETE, WHOLE, Chunks, read_chunks
from tests.fuzz.rig import pieces, require
from tests.raw.corpus.chunked_bodies import CASES

SEEDS = (
    b"0\r\n\r\n",
    b"5\r\nhello\r\n0\r\n\r\n",
    b'1\r\na\r\n00a;x="1"\r\n0123456789\r\n0\r\nX-Sum: 1\r\nHost: b\r\n\r\nGET / HTTP/1.1\r\n',
    b"000000000000005\r\nhello\r\n0;e\r\n\r\n",
    *(b"".join(case.sent).partition(b"\r\n\r\n")[2] for case in CASES if sum(map(len, case.sent)) < 2000),
)
LONGEST = 20_000

_HEAD = b"POST / HTTP/1.1\r\nhost: a.example\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(slots=True)
class Read:
    verdict: str
    out: bytes
    used: int
    trailers: bytes


def check(data: bytes) -> None:
    if len(data) > LONGEST:
        return
    naive = read_chunks(data)
    for manner in ("whole", "bytes", "random"):
        for decode in (True, False):
            compare(data, naive, read(data, manner, decode), decode)
    if naive.verdict == WHOLE:
        agree_with_h11(data, naive)


def read(data: bytes, manner: str, decode: bool) -> Read:
    reader = ChunkedReader(decode)
    out, fed = b"", 0
    for piece in pieces(data, manner):
        try:
            more, used = reader.feed(piece)
        except BadChunk:
            return Read(BAD, out, 0, reader.trailers)
        out += more
        if used >= 0:
            return Read(WHOLE, out, fed + used, reader.trailers)
        fed += len(piece)
    return Read(INCOMPLETE, out, 0, reader.trailers)


TAILS = (
    *(b"\r\n\r\n", b"\n\r\n", b"0\r\n\r\n", b"\r\n0\r\n\r\n", b"\n0\r\n\r\n", b":\r\n\r\n", b"a:\r\n\r\n"),
    b";a\r\n0\r\n\r\n",
)
"""What ends a body that has begun well."""


def compare(data: bytes, naive: Chunks, came: Read, decode: bool) -> None:
    if came.verdict == BAD and naive.verdict == INCOMPLETE:  # what cannot become a body any more is not waited for
        require(all(read_chunks(data + tail).verdict != WHOLE for tail in TAILS), "refused what may become a body")
        return
    require(came.verdict == naive.verdict, f"verdict {came.verdict}, wanted {naive.verdict}")
    if came.verdict == WHOLE:
        require(came.used == naive.used, f"ends at {came.used}, wanted {naive.used}")
        kept = [pair for pair in naive.trailers if pair[0].replace(b"_", b"-") not in FORBIDDEN_TRAILERS]
        lines = [line.partition(b": ") for line in came.trailers.split(b"\r\n")[:-1]]
        require([(name.lower(), value) for name, _, value in lines] == kept, f"trailers {came.trailers!r}")
    if decode:
        require(len(came.out) <= len(data), "more content than bytes")
        whole = came.verdict == BAD or came.out == naive.content
        require(whole and naive.content.startswith(came.out), f"content {came.out!r}, wanted {naive.content!r}")
        return
    framed = read_chunks(came.out)
    require(framed.verdict == (WHOLE if came.verdict == WHOLE else INCOMPLETE), f"handed on: {came.out!r}")
    require(naive.content.startswith(framed.content), f"handed on {framed.content!r}, wanted {naive.content!r}")
    if came.verdict == WHOLE:
        require(framed.content == naive.content and framed.used == len(came.out), f"handed on: {came.out!r}")


def agree_with_h11(data: bytes, naive: Chunks) -> None:
    """What is whole to us is whole to h11, with the same content and end."""
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    parser.receive_data(_HEAD + data)
    content = b""
    while True:
        event = parser.next_event()
        if isinstance(event, h11.Data):
            content += bytes(event.data)
        elif not isinstance(event, h11.Request):
            break
    require(isinstance(event, h11.EndOfMessage), f"h11 does not see the end: {event}")
    require(content == naive.content, f"h11 reads {content!r}, we {naive.content!r}")
    left = parser.trailing_data[0]
    require(data[naive.used :] == left, f"h11 leaves {left!r}, we {data[naive.used :]!r}")
