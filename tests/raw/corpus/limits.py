"""Sizes (RFC 9110 15.5.15, RFC 6585 5) at n and n + 1.

32 KiB of request line, 64 KiB of head (request line and header lines, without the CRLF CRLF that ends it), 100 lines.
"""

from tests.raw.case import Case, Seen, get, passed, refused

LINE = 32 * 1024
HEAD = 64 * 1024
LINES = 100


def _target(line: int) -> bytes:
    """The target that makes a request line of that length."""
    return b"/" + b"a" * (line - len(b"GET / HTTP/1.1"))


def _head(length: int) -> bytes:
    """A request whose head has exactly `length` bytes, in few lines."""
    lines = [b"X-%d: " % i + b"v" * 7000 for i in range(9)]
    lines.append(b"Y: ")
    lines[-1] += b"v" * (length + len(b"\r\n\r\n") - len(get(b"/", *lines)))
    return get(b"/", *lines)


def _lines(count: int) -> bytes:
    """A request with `count` header lines, Host among them."""
    return get(b"/", *(b"X-%d: 1" % i for i in range(count - 1)))


CASES: tuple[Case, ...] = (
    passed("limit-target-full", "9110 15.5.15", get(_target(LINE)), Seen(target=_target(LINE))),
    refused("limit-target-over", "9110 15.5.15", get(_target(LINE + 1)), status=414),
    refused("limit-target-unfinished", "9110 15.5.15", b"GET " + _target(LINE * 4), status=414),
    passed("limit-lines-full", "6585 5", _lines(LINES), Seen()),
    refused("limit-lines-over", "6585 5", _lines(LINES + 1), status=431),
    passed("limit-head-full", "6585 5", _head(HEAD), Seen()),
    refused("limit-head-over", "6585 5", _head(HEAD + 1), status=431),
    refused("limit-head-unfinished", "6585 5", get(b"/", b"X: " + b"v" * HEAD)[:-4], status=431),
    refused("limit-name-long", "6585 5", get(b"/", b"X" * (HEAD + 1) + b": 1"), status=431),
    passed(
        "limit-head-in-small-pieces", "9112 2.2", tuple(bytes([b]) for b in get(b"/p", b"X: 1")), Seen(target=b"/p")
    ),
)
