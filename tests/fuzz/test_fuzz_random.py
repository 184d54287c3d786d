"""Structured inputs for the same targets: requests and responses that are almost right, scripts of the delta protocol.

Hypothesis draws by grammar what a mutator of bytes rarely hits: lengths that are true or a little off, the same header
twice, bodies in several chunks, pipelines. The properties are the targets' own.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz import targets
from tests.raw.mutations import FRAGMENTS

COUNT = 100
TOKENS = st.sampled_from(
    [b"X-A", b"x-b", b"Cookie", b"Trailer", b"Expect", b"Upgrade", b"Connection", b"TE", b"X_A", b""]
)
VALUES = st.sampled_from(
    [
        b"1",
        b"",
        b" ",
        b"a, b",
        b"close",
        b"keep-alive",
        b"x-a",
        b"100-continue",
        b"trailers",
        b"\xff\x80",
        b"a\tb",
        b"h2c",
    ]
)
HEADERS = st.tuples(TOKENS, st.sampled_from([b": ", b":", b" : ", b":\t"]), VALUES).map(b"".join)
HOSTS = st.sampled_from(
    [
        b"Host: a.example",
        b"Host: A.example:80",
        b"host:[::1]:8",
        b"Host: a.example\r\nHost: a.example",
        b"Host:",
        b"X: 1",
    ]
)
METHODS = st.sampled_from([b"GET", b"POST", b"HEAD", b"PUT", b"OPTIONS", b"get", b"QUERY", b"BREW", b"CONNECT"])
PATHS = st.sampled_from(
    [
        b"/",
        b"/a/../b",
        b"/%2e%2E/x?%",
        b"*",
        b"http://a.example/x",
        b"HTTP://b.example",
        b"//x",
        b"/a%00",
        b"/\x7f",
        b"x",
    ]
)
VERSIONS = st.sampled_from([b"HTTP/1.1"] * 6 + [b"HTTP/1.0", b"HTTP/2.0", b"http/1.1", b"HTTP/1.1 "])
ENDS = st.sampled_from([b"\r\n"] * 20 + [b"\n", b"\r\r\n", b"\r\n ", b"\r\n\t"])
CONTENT = st.binary(max_size=20)


@st.composite
def chunks(draw: st.DrawFn) -> bytes:
    body = b""
    for content in draw(st.lists(CONTENT.filter(bool), max_size=3)):
        size = draw(st.sampled_from([b"%x"] * 8 + [b"%X", b"0%x", b"%x;e", b'%x;e="\\""', b"%x ", b"0x%x", b"+%x"]))
        body += (size % (len(content) + draw(st.sampled_from([0] * 12 + [1, -1])))) + draw(ENDS) + content + draw(ENDS)
    trailers = draw(st.lists(HEADERS, max_size=2))
    return (
        body
        + draw(st.sampled_from([b"0\r\n"] * 6 + [b"0", b"00;x\r\n"]))
        + b"".join(t + b"\r\n" for t in trailers)
        + draw(ENDS)
    )


@st.composite
def framed(draw: st.DrawFn) -> tuple[list[bytes], bytes]:
    """Framing fields and the body that goes with them, more or less."""
    kind = draw(st.sampled_from(["none", "none", "length", "chunked", "both", "other"]))
    if kind in ("none", "length"):
        content = draw(CONTENT)
        off = draw(st.sampled_from([0] * 8 + [1, -1, 7]))
        shape = draw(st.sampled_from([b"Content-Length: %d"] * 8 + [b"content-length:+%d", b"Content-Length: %d, 2"]))
        return ([shape % max(len(content) + off, 0)], content) if kind == "length" else ([], b"")
    coding = draw(
        st.sampled_from([b"chunked"] * 8 + [b"Chunked", b"gzip, chunked", b"chunked, x", b"xchunked", b",chunked"])
    )
    lines = [b"Transfer-Encoding: " + coding]
    return ([*lines, b"Content-Length: 3"] if kind == "both" else lines), draw(chunks())


@st.composite
def message(draw: st.DrawFn, start: st.SearchStrategy[bytes], hosts: st.SearchStrategy[bytes] | None) -> bytes:
    lines, body = draw(framed())
    lines += draw(st.lists(HEADERS, max_size=3))
    lines = draw(st.permutations(lines))
    if hosts is not None:
        lines = [draw(hosts), *lines]
    ends = draw(st.lists(ENDS, min_size=len(lines) + 2, max_size=len(lines) + 2))
    return b"".join(line + end for line, end in zip([draw(start), *lines, b""], ends, strict=True)) + body


LINES = st.tuples(METHODS, PATHS, VERSIONS).map(b" ".join)
STATUS = st.sampled_from(
    [b"200 OK", b"204 No", b"304 Same", b"100 Go", b"103 Hints", b"101 Switch", b"500", b"99 x", b"200"]
)
STATUS_LINES = st.tuples(st.sampled_from([b"HTTP/1.1 "] * 5 + [b"HTTP/1.0 ", b"HTTP/2 "]), STATUS).map(b"".join)


@st.composite
def mutated(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    data = b"".join(draw(st.lists(whole, min_size=1, max_size=3)))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from(FRAGMENTS)) + data[at + draw(st.integers(0, 3)) :]
    return data


def check(name: str) -> Callable[[bytes], None]:
    return targets.load(name).check  # type: ignore[no-any-return]


@settings(max_examples=2 * COUNT)
@example(b"OPTIONS * HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\n\r\n\0")  # answered before its body is here
@given(mutated(message(LINES, HOSTS)))
def test_requests_that_are_almost_right(data: bytes) -> None:
    check("heads")(data)


@settings(max_examples=2 * COUNT)
@example(b"HTTP/1.1 204 No\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")  # there is no body, whatever it says
@given(mutated(message(STATUS_LINES, None)))
def test_responses_that_are_almost_right(data: bytes) -> None:
    check("responses")(data)


@settings(max_examples=2 * COUNT)
@given(mutated(chunks()))
def test_chunked_bodies_that_are_almost_right(data: bytes) -> None:
    check("chunks")(data)


SCRIPTS = ("agent", "controller", "h2_frames", "link", "tunnel", "retries", "rate_limits", "files", "log_lines")


@pytest.mark.parametrize("name", SCRIPTS)
@settings(max_examples=COUNT)
@given(data=st.binary(max_size=200))
def test_scripts_of_choices(name: str, data: bytes) -> None:
    check(name)(data)


@settings(max_examples=2 * COUNT)
@given(st.lists(st.sampled_from([b"/", b".", b"..", b"%2e", b"%2F", b"%41", b"?", b"a", b";", b"%", b"[", b":", b"8"])))
def test_targets_of_few_letters(parts: list[bytes]) -> None:
    check("uri")(b"/" + b"".join(parts))
    check("uri")(b"".join(parts))
