"""What a rate limit service says of a request: Envoy's RateLimitResponse, version 3. It acts whole or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError

from dataplane.chain import header_options
from dataplane.chain.calls import CallFailed
from dataplane.chain.header_options import HeaderEdit
from dataplane.chain.replies import REPLIES
from dataplane.chain.reply import Reply
from dataplane.http.heads import Head
from gatewright.wire.external import ext_authz_pb2
from gatewright.wire.external import rate_limit_pb2 as pb

_LIMIT: Final = b"x-ratelimit-limit"
_RETRY: Final = b"retry-after"


@dataclass(frozen=True, slots=True)
class Said:
    """An answer. `refusal`: None where the request may go on; `request`, `response`: headers for either."""

    refusal: Reply | None = field(repr=False)
    request: tuple[HeaderEdit, ...]
    response: tuple[HeaderEdit, ...]


def read(data: bytes, origin: str) -> Said:
    """Raises `CallFailed` for what is no answer, or cannot be carried out."""
    try:
        answer = pb.RateLimitResponse.FromString(data)
    except DecodeError:
        raise CallFailed("invalid", "an answer that is not readable") from None
    response = _edits(answer.response_headers_to_add)
    if answer.overall_code == pb.RateLimitResponse.OVER_LIMIT:
        return Said(_refusal(answer, response, origin), (), ())
    if answer.overall_code != pb.RateLimitResponse.OK:
        raise CallFailed("invalid", f"an answer with the code {answer.overall_code}")
    return Said(None, _edits(answer.request_headers_to_add), response)


def _edits(headers: Iterable[ext_authz_pb2.HeaderValue]) -> tuple[HeaderEdit, ...]:
    options = (ext_authz_pb2.HeaderValueOption(header=each, keep_empty_value=True) for each in headers)
    return header_options.header_edits(options, header_options.APPEND)


def _refusal(answer: pb.RateLimitResponse, edits: tuple[HeaderEdit, ...], origin: str) -> Reply:
    """With the service's headers and body; what it does not say of the limit itself is said as local limits do."""
    row = REPLIES["RateLimited"]
    over = _longest(answer)
    name = "" if over is None else over.current_limit.name
    detail = f"{origin} global{': ' + name if name else ''}"
    head = Head(b"\r\n")
    for edit in edits:
        edit.act(head, edit)
    if over is not None:
        _add_limit(head, over)
    content_type = head.get(b"content-type") or row.content_type
    head.remove(b"content-type")
    return Reply(row.status, row.reason, answer.raw_body or row.body, head.block[2:], content_type, detail=detail)


def _longest(answer: pb.RateLimitResponse) -> pb.RateLimitResponse.DescriptorStatus | None:
    """Of the descriptors that are over their limits the one that one has to wait for longest."""
    over = [each for each in answer.statuses if each.code == pb.RateLimitResponse.OVER_LIMIT]
    return max(over, key=_seconds, default=None)


def _seconds(status: pb.RateLimitResponse.DescriptorStatus) -> int:
    until = status.duration_until_reset
    return max(0, until.seconds + math.ceil(until.nanos / 1e9))


def _add_limit(head: Head, over: pb.RateLimitResponse.DescriptorStatus) -> None:
    if over.HasField("duration_until_reset") and head.get(_RETRY) is None:
        head.add(_RETRY, b"%d" % max(1, _seconds(over)))
    if over.HasField("current_limit") and head.get(_LIMIT) is None:
        head.add(_LIMIT, b"%d" % over.current_limit.requests_per_unit)
        head.add(b"x-ratelimit-remaining", b"%d" % over.limit_remaining)
        head.add(b"x-ratelimit-reset", b"%d" % _seconds(over))
