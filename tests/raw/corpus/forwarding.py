"""What a gateway removes, writes and refuses to believe on the way through (RFC 9110 7.6, 7.8, 10.1.1)."""

from tests.raw.case import Case, Seen, get, head, passed, post, refused

_OURS = {b"x-forwarded-for": b"127.0.0.1", b"x-forwarded-proto": b"http", b"x-forwarded-host": b"a.example"}


def _get(name: str, *lines: bytes, has: dict[bytes, bytes] | None = None, lacks: tuple[bytes, ...] = ()) -> Case:
    return passed(f"forward-{name}", "9110 7.6.1", get(b"/", *lines), Seen(has=has or {}, lacks=lacks))


CASES: tuple[Case, ...] = (
    _get("our-fields", has=_OURS),
    _get("hop-named", b"Connection: x-hop", b"X-Hop: 1", b"X-End: 1", has={b"x-end": b"1"}, lacks=(b"x-hop",)),
    _get("hop-named-list", b"Connection: keep-alive, X-A , x-b", b"x-a: 1", b"X-B: 1", lacks=(b"x-a", b"x-b")),
    _get("hop-named-two-lines", b"Connection: x-a", b"Connection: x-b", b"X-A: 1", b"X-B: 1", lacks=(b"x-a", b"x-b")),
    _get("hop-keep-alive", b"Connection: keep-alive", b"Keep-Alive: timeout=5", lacks=(b"keep-alive",)),
    _get("hop-proxy-connection", b"Proxy-Connection: keep-alive", lacks=(b"proxy-connection",)),
    _get("hop-te", b"Connection: TE", b"TE: trailers", lacks=(b"te",)),
    _get("hop-te-unnamed", b"TE: gzip", lacks=(b"te",)),
    # A client cannot have the framing, the routing or our own fields removed by naming them.
    _get("names-host", b"Connection: host", has={b"x-forwarded-host": b"a.example"}),
    _get("names-our-fields", b"Connection: x-forwarded-for, x-forwarded-proto, x-forwarded-host", has=_OURS),
    passed(
        "forward-names-content-length",
        "9110 7.6.1",
        post(b"hello", b"Connection: content-length", b"Content-Length: 5"),
        Seen(b"POST", body=b"hello"),
    ),
    passed(
        "forward-names-transfer-encoding",
        "9110 7.6.1",
        post(b"5\r\nhello\r\n0\r\n\r\n", b"Connection: transfer-encoding", b"Transfer-Encoding: chunked"),
        Seen(b"POST", body=b"hello"),
    ),
    refused("forward-option-bare-cr", "9112 2.2", get(b"/", b"Connection: x-a\r", b"X-A: 1")),
    refused("forward-spoof-bare-cr", "9112 2.2", get(b"/", b"X-Forwarded-For: 10.0.0.1\rX: 1")),
    refused("upgrade-bare-cr", "9112 2.2", get(b"/", b"Connection: upgrade", b"Upgrade: websocket\r")),
    refused("expect-bare-cr", "9112 2.2", post(b"hello", b"Expect: 100-continue\r", b"Content-Length: 5")),
    # h2c: the upgrade, its settings and the option that names them all go.
    _get(
        "h2c",
        b"Connection: Upgrade, HTTP2-Settings",
        b"Upgrade: h2c",
        b"HTTP2-Settings: AAMAAABkAAQAAP__",
        lacks=(b"upgrade", b"http2-settings", b"connection"),
    ),
    _get("h2c-unnamed", b"Upgrade: h2c", lacks=(b"upgrade",)),
    _get("h2c-in-list", b"Connection: Upgrade", b"Upgrade: h2c, foo/2", lacks=(b"upgrade",)),
    _get("upgrade-unnamed", b"Upgrade: websocket", lacks=(b"upgrade",)),
    # Spoofed trust. The peer is appended to x-forwarded-for; the other two are replaced; look-alikes are dropped.
    _get("spoof-for", b"X-Forwarded-For: 10.0.0.1", has={b"x-forwarded-for": b"10.0.0.1, 127.0.0.1"}),
    _get("spoof-proto", b"X-Forwarded-Proto: https", has={b"x-forwarded-proto": b"http"}),
    _get("spoof-host", b"X-Forwarded-Host: b.example", has={b"x-forwarded-host": b"a.example"}),
    _get("spoof-twice", b"x-forwarded-proto: https", b"X-FORWARDED-PROTO: s", has={b"x-forwarded-proto": b"http"}),
    _get("spoof-for-underscores", b"X_Forwarded_For: 10.0.0.1", has=_OURS, lacks=(b"x_forwarded_for",)),
    _get("spoof-for-one-underscore", b"X-Forwarded_For: 10.0.0.1", has=_OURS, lacks=(b"x-forwarded_for",)),
    _get("spoof-host-underscores", b"X_FORWARDED_HOST: b.example", has=_OURS, lacks=(b"x_forwarded_host",)),
    _get("spoof-proto-underscores", b"x_forwarded-proto: https", has=_OURS, lacks=(b"x_forwarded-proto",)),
    _get("spoof-forwarded", b"Forwarded: for=10.0.0.1;proto=https", has=_OURS, lacks=(b"forwarded",)),
    _get("spoof-client-cert", b"X-Forwarded-Client-Cert: Subject=admin", lacks=(b"x-forwarded-client-cert",)),
    _get("request-id-kept", b"X-Request-Id: abc-1", has={b"x-request-id": b"abc-1"}),
    # Expect (9110 10.1.1).
    refused("expect-unknown", "9110 10.1.1", post(b"hello", b"Expect: 200-ok", b"Content-Length: 5"), status=417),
    refused("expect-two", "9110 10.1.1", post(b"hello", b"Expect: 100-continue, x", b"Content-Length: 5"), status=417),
    passed(
        "expect-any-case",
        "9110 10.1.1",
        post(b"hello", b"Expect: 100-Continue", b"Content-Length: 5"),
        Seen(b"POST", body=b"hello"),
    ),
    passed("expect-without-body", "9110 10.1.1", get(b"/", b"Expect: 100-continue"), Seen()),
    passed(
        "expect-1.0-ignored",
        "9110 10.1.1",
        head(b"POST / HTTP/1.0", b"Expect: 100-continue", b"Content-Length: 5") + b"hello",
        Seen(b"POST", body=b"hello"),
        closes=True,
    ),
)
