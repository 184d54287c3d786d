"""What an answer over gRPC comes to: Envoy's CheckResponse, version 3, as a `Verdict`.

An answer acts whole or not at all: one that cannot be carried out counts as none.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import DecodeError

from dataplane.chain import header_options, pseudo_headers, structs
from dataplane.chain.calls import CallFailed
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.filters.steps.ext_auth.grpc import edits
from dataplane.filters.steps.ext_auth.verdict import DENIED, FAILED, ServerFailed, Verdict
from dataplane.http.heads import Head
from dataplane.http.statuses import BODILESS
from gatewright.wire.external import ext_authz_pb2 as pb

OK: Final = 0
"""google.rpc.Code."""
FORBIDDEN: Final = 403
FINAL: Final = range(200, 600)
MOST_TEXT: Final = 256
"""Characters of a status that the log has."""
PLAIN: Final = b"text/plain"


def read(data: bytes, origin: str, state: str) -> Verdict:
    """`state`: the name under which changes of the response wait for it. Raises `CallFailed`."""
    try:
        answer = pb.CheckResponse.FromString(data)
    except DecodeError:
        raise CallFailed("invalid", "an answer that is not readable") from None
    kind = answer.WhichOneof("http_response")
    said = f"{origin}: the authorization server answered status {answer.status.code}"
    if answer.status.message:
        said += f": {answer.status.message[:MOST_TEXT]!r}"
    if kind == "error_response":
        raise ServerFailed("it could not decide", _reply(answer.error_response, FAILED, said))
    metadata = _metadata(answer)
    # "Allowed" with a denial contradicts itself: the stricter counts.
    if answer.status.code != OK or kind == "denied_response":
        denied = answer.denied_response
        reply = _reply(denied, DENIED, said) if kind == "denied_response" else made(DENIED, said)
        return Verdict(reply, None, metadata, True, 2 * len(data))
    return Verdict(None, _edits(answer.ok_response, state), metadata, True, 2 * len(data))


def _edits(ok: pb.OkHttpResponse, state: str) -> edits.RequestEdits:
    """A header that names no action takes the place of the client's, which must not pass for the server's."""
    return edits.RequestEdits(
        header_options.header_edits(ok.headers, header_options.OVERWRITE, pseudo_headers.REQUEST),
        edits.removable(ok.headers_to_remove),
        tuple(edits.parameter(each.key, each.value) for each in ok.query_parameters_to_set),
        frozenset(edits.plain_parameter(name.encode()) for name in ok.query_parameters_to_remove),
        header_options.header_edits(ok.response_headers_to_add, header_options.APPEND),
        state,
    )


def _reply(denied: pb.DeniedHttpResponse, reason: str, detail: str) -> Reply:
    head = Head(b"\r\n")
    for edit in header_options.header_edits(denied.headers, header_options.APPEND):
        edit.act(head, edit)
    content_type = head.get(b"content-type") or PLAIN
    head.remove(b"content-type")
    status = denied.status.code if denied.status.code in FINAL else FORBIDDEN
    body = b"" if status in BODILESS else denied.body.encode()
    return Reply(status, reason, body, head.block[2:], content_type, detail=detail)


def _metadata(answer: pb.CheckResponse) -> dict[str, Any] | None:
    """The older field first: the newer one wins."""
    older, newer = answer.ok_response.dynamic_metadata, answer.dynamic_metadata
    return {**structs.plain(older), **structs.plain(newer)} if older.fields or newer.fields else None
