"""How a call of gRPC begins (PROTOCOL-HTTP2, Requests)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.calls import FOR_EVER, CallRequest, within

if TYPE_CHECKING:
    from dataplane.chain.calls import Call, Calls
    from dataplane.exchange import Exchange

MOST_MILLISECONDS: Final = 99_999_999
"""A `grpc-timeout` has at most eight digits."""
_LINES: Final = b"content-type: application/grpc+proto\r\nte: trailers\r\n"


def opened(
    calls: Calls,
    backend: str,
    path: str,
    x: Exchange | None,
    seconds: float,
    message: bytes | None = None,
    metadata: bytes = b"",
) -> Call:
    """Begin a call of the method at `path` (`/package.Service/Method`). With `message` that is the whole request (as it
    leaves, in its frame), and `seconds` are for all of the answer; without one the request is a stream, and they are
    for its head: the server may take its time behind that, which is its caller's to bound. `metadata`: finished header
    lines. Raises `CallFailed`."""
    return opened_of(calls, calls.plan(backend, x), path, x, seconds, message, metadata)


def opened_of(
    calls: Calls,
    plan: Any,  # as `Calls.plan` answers
    path: str,
    x: Exchange | None,
    seconds: float,
    message: bytes | None = None,
    metadata: bytes = b"",
) -> Call:
    """The same with a plan of the backend."""
    lines = _LINES + metadata
    about = None
    if x is not None and x.trace is not None:
        method = path.removeprefix("/")
        about = method, (("rpc.system.name", "grpc"), ("rpc.method", method))
    if message is None:
        request = CallRequest(b"POST", path.encode(), b"", lines, about=about)
        return calls.open(plan, request, x=x, head_within=seconds, sends_more=True)
    headers = lines + b"grpc-timeout: %dm\r\n" % _milliseconds(within(plan, seconds))
    request = CallRequest(b"POST", path.encode(), b"", headers, message, about=about)
    return calls.open(plan, request, x=x, head_within=seconds, whole_within=seconds)


def _milliseconds(seconds: float) -> int:
    return MOST_MILLISECONDS if seconds == FOR_EVER else min(max(1, int(seconds * 1000)), MOST_MILLISECONDS)
