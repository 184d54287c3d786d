"""What the authorization server is asked over gRPC: Envoy's CheckRequest, version 3, of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from dataplane.chain import expressions
from dataplane.chain.structs import NO_STRUCT, json_of, struct
from gatewright.wire.external import ext_authz_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.protobuf.struct_pb2 import Struct

    from dataplane.exchange import Exchange
    from dataplane.http.heads import Head
    from gatewright.cel.program import Program
    from gatewright.wire.v1 import traffic_pb2

OF_JWT: Final = "envoy.filters.http.jwt_authn"
PAYLOAD: Final = "jwt_payload"
"""Where servers that were written for Envoy look for the claims of a token."""
PARTIAL: Final = "x-envoy-auth-partial-body"
"""Whether the body is cut off. It never is: the body is whole, or the request is refused."""
_JOINED_BY: Final = {"cookie": "; "}
"""Values of one name in one text (RFC 9110 5.3, RFC 9113 8.2.3); others by a comma."""
NANOSECONDS: Final = 1_000_000_000


class CheckRequests:
    """Makes messages: `of(x)`. Raises `Refused` for expressions that cannot be."""

    __slots__ = ("_allowed", "_extensions", "_metadata", "_now", "_with_body", "programs")

    def __init__(self, config: traffic_pb2.ExtAuthGrpc, with_body: bool, now: Callable[[], float]) -> None:
        """`now`: seconds since the epoch."""
        self._extensions = dict(config.context_extensions)
        self._metadata: list[tuple[str, Program]] = [
            (name, expressions.compiled(text, "request", f"grpc.requestMetadata.{name}"))
            for name, text in sorted(config.request_metadata.items())
        ]
        self._allowed = frozenset(name.lower() for name in config.allowed_headers)
        self._with_body = with_body
        self._now = now
        self.programs = [program for _, program in self._metadata]

    def of(self, x: Exchange) -> bytes:
        context = pb.AttributeContext(context_extensions=self._extensions)
        _source(context.source, x)
        _address(context.destination, x.destination_address, x.destination_port)
        context.request.time.FromNanoseconds(int(self._now() * NANOSECONDS))
        self._http(context.request.http, x)
        for name, value in self._values(x):
            context.metadata_context.filter_metadata[name].CopyFrom(value)
        if x.client.tls is not None:
            context.tls_session.sni = x.client.tls.sni.decode("latin-1")
        return pb.CheckRequest(attributes=context).SerializeToString()

    def _http(self, http: pb.AttributeContext.HttpRequest, x: Exchange) -> None:
        http.id = _text(x.request.get(b"x-request-id") or b"")
        http.method, http.path = _text(x.method), _text(x.target)
        http.host, http.scheme = _text(x.authority), _text(x.scheme)
        http.protocol = _text(x.version)
        http.size = x.length if x.has_body else 0
        for name, value in _headers(x.request):
            if not self._allowed or name in self._allowed:
                http.headers[name] = value
        http.headers[":method"], http.headers[":path"] = http.method, http.path
        http.headers[":authority"], http.headers[":scheme"] = http.host, http.scheme
        if self._with_body:
            http.headers[PARTIAL] = "false"
            _body(http, x.body or b"")

    def _values(self, x: Exchange) -> Iterable[tuple[str, Struct]]:
        """Of each name the value, as an object; one that is no object is its `value`."""
        if not self._metadata:
            claims: Any = None if x.attributes is None else x.attributes.get("jwt")
            if claims is not None:
                payload = {name: value for name, value in claims.items() if name != "rawToken"}
                try:
                    yield OF_JWT, struct({PAYLOAD: json_of(payload)})
                except NO_STRUCT:
                    return  # claims that no message can hold: the name is absent
        for name, program in self._metadata:
            try:
                value = json_of(program.evaluate(x))
                made = struct(value if isinstance(value, dict) else {"value": value})
            except NO_STRUCT:
                continue  # no value, or one that no message can hold: the name is absent
            yield name, made


def _source(source: pb.AttributeContext.Peer, x: Exchange) -> None:
    """A certificate that was not verified proves nothing: of such a client there is only the address."""
    _address(source, x.source_address, x.source_port)
    certificate = x.source_certificate
    if certificate is not None:
        others = x.source_subject_alt_names or [x.source_subject or ""]
        source.principal = x.source_spiffe_id or others[0]
        source.certificate = quote(certificate)


def _address(peer: pb.AttributeContext.Peer, address: str, port: int) -> None:
    peer.address.socket_address.address, peer.address.socket_address.port_value = address, port


def _headers(head: Head) -> Iterable[tuple[str, str]]:
    """Names in lower case; values of one name joined. `host` is `:authority`."""
    found: dict[str, list[str]] = {}
    for name, value in head.items():
        found.setdefault(_text(name), []).append(_text(value))
    found.pop("host", None)
    return ((name, _JOINED_BY.get(name, ",").join(values)) for name, values in found.items())


def _body(http: pb.AttributeContext.HttpRequest, body: bytes) -> None:
    """As text where it is text (UTF-8), else as bytes."""
    http.size = len(body)
    try:
        http.body = body.decode()
    except UnicodeDecodeError:
        http.raw_body = body


def _text(value: bytes) -> str:
    """Fields of text are UTF-8 on the wire; what is not is replaced."""
    return value.decode("utf-8", "replace")
