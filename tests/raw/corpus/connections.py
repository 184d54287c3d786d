"""Several requests on one connection, and its end (RFC 9112 9): one answer each, leftovers are never requests."""

from tests.raw.case import AWAY, Case, Seen, chunked, get, head, passed, post

_TWO = get(b"/two")
_AWAY_POST = b"POST " + AWAY + b" HTTP/1.1"
_CHUNKED = b"Transfer-Encoding: chunked"
_ONE_TWO = (Seen(target=b"/one"), Seen(target=b"/two"))

CASES: tuple[Case, ...] = (
    passed("pipeline-two", "9112 9.3.2", get(b"/one") + _TWO, *_ONE_TWO),
    passed(
        "pipeline-with-bodies",
        "9112 9.3.2",
        post(b"hello", b"Content-Length: 5") + chunked(b"1\r\nx\r\n0\r\n\r\n") + _TWO,
        Seen(b"POST", body=b"hello"),
        Seen(b"POST", body=b"x"),
        Seen(target=b"/two"),
    ),
    passed("pipeline-empty-line-between", "9112 2.2", get(b"/one") + b"\r\n" + _TWO, *_ONE_TWO),
    passed(
        "pipeline-split-in-head",
        "9112 9.3.2",
        (get(b"/one") + _TWO[:9], _TWO[9:]),
        *_ONE_TWO,
    ),
    Case(
        "pipeline-then-garbage",
        "9112 9.3.2",
        (get(b"/one") + b"\x00\x01\x02\r\n\r\n",),
        (200, 400),
        (Seen(target=b"/one"),),
        closes=True,
    ),
    Case(
        "pipeline-then-ambiguous",
        "9112 6.3",
        (get(b"/one") + post(b"0\r\n\r\n", b"Content-Length: 5", b"Transfer-Encoding: chunked"),),
        (200, 400),
        (Seen(target=b"/one"),),
        closes=True,
    ),
    # What follows a request that announced the end is not read (9112 9.6).
    passed("close-more", "9112 9.6", get(b"/one", b"Connection: close") + _TWO, Seen(target=b"/one"), closes=True),
    passed("close-any-case", "9112 9.6", get(b"/one", b"Connection: x, CLOSE"), Seen(target=b"/one"), closes=True),
    passed("close-1.0", "9112 9.3", get(b"/one", version=b"HTTP/1.0"), Seen(target=b"/one"), closes=True),
    passed("close-1.0-more", "9112 9.3", get(b"/one", version=b"HTTP/1.0") + _TWO, Seen(target=b"/one"), closes=True),
    # Our own answer before the body ended: the rest of the body must never be taken for a request.
    Case(
        "early-answer-short-body",
        "9112 9.3",
        (head(_AWAY_POST, b"Content-Length: 100") + _TWO,),
        (302,),
        closes=None,
    ),
    Case(
        "early-answer-body-follows",
        "9112 9.3",
        (head(_AWAY_POST, b"Content-Length: %d" % len(_TWO)), _TWO),
        (302,),
        closes=None,
    ),
    Case("early-answer-chunked", "9112 9.3", (head(_AWAY_POST, _CHUNKED), b"0\r\n\r\n"), (302,), closes=None),
    Case(  # the head's redirect, or the refusal of the body where it comes together with the head
        "early-answer-bad-chunk",
        "9112 9.3",
        (head(_AWAY_POST, _CHUNKED), b"zz\r\n" + _TWO),
        (302,),
        closes=True,
        either=400,
    ),
    Case("own-answer-keeps", "9112 9.3", (get(AWAY),), (302,)),
    Case("own-answer-body", "9112 9.3", (head(_AWAY_POST, b"Content-Length: 5") + b"hello",), (302,), closes=None),
    Case("head", "9110 9.3.2", (head(b"HEAD /h HTTP/1.1"),), (200,), (Seen(b"HEAD", b"/h"),), methods=(b"HEAD",)),
    Case(
        "head-then-get",
        "9110 9.3.2",
        (head(b"HEAD /h HTTP/1.1") + _TWO,),
        (200, 200),
        (Seen(b"HEAD", b"/h"), Seen(target=b"/two")),
        methods=(b"HEAD", b"GET"),
    ),
    Case("half-close", "9112 9.6", (get(b"/one"),), (200,), (Seen(target=b"/one"),), closes=True, half_close=True),
    Case("half-close-in-head", "9112 8", (b"GET / HT",), (400,), closes=True, silent=True, half_close=True),
)
