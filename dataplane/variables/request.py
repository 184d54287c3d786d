"""What expressions read of a request."""

from __future__ import annotations

from typing import Any

from dataplane.variables.facts import ExchangeFacts
from dataplane.variables.heads import header, header_map, text
from gatewright.cel import parameters
from gatewright.cel.errors import TooMany
from gatewright.cel.values import HeaderMap, Timestamp


class RequestVariables(ExchangeFacts):
    """`request.*`."""

    __slots__ = ()

    @property
    def request_method(self) -> str:
        return self.method.decode("latin-1")

    @property
    def request_scheme(self) -> str:
        return self.scheme.decode()

    @property
    def request_host(self) -> str:
        return self.authority.decode("latin-1")

    @property
    def request_path(self) -> str:
        return text(self.path)

    @property
    def request_path_and_query(self) -> str:
        return text(self.target)

    @property
    def request_uri(self) -> str:
        return text(b"%b://%b%b" % (self.scheme, self.authority, self.target))

    @property
    def request_query(self) -> dict[bytes, bytes]:
        """The parameters of the query, read once for each query that the request has. Raises Unread, or TooMany when
        the answer is decided."""
        query = self.query
        known = getattr(self, "known_query", None)
        if known is None or known[0] is not query:
            try:
                known = self.known_query = query, parameters.read(query, self._rules().max_query_parameters)
            except TooMany as error:
                raise self._unread("TooManyParameters", error) from None
        return known[1]

    @property
    def request_version(self) -> str:
        return self.version.decode()

    @property
    def request_headers(self) -> HeaderMap:
        head = self.request
        known = getattr(self, "known_headers", None)
        if known is None or known[0] is not head.block:
            known = self.known_headers = head.block, header_map(head)
        return known[1]

    def request_header(self, name: str) -> str | None:
        return header(self.request, name)

    @property
    def request_body(self) -> bytes | None:
        if self.body is not None:
            return self.body
        return None if self.has_body else b""

    @property
    def request_body_prefix(self) -> bytes | None:
        if self.body is None and self.buffer is not None:
            return self.buffer.beginning()
        return self.request_body

    @property
    def request_json(self) -> Any:
        return self._json("known_request", self.request_body, "request.body")

    @property
    def request_prefix_json(self) -> Any:
        return self._json("known_request", self.request_body_prefix, "request.bodyPrefix")

    @property
    def request_start_time(self) -> Timestamp:
        return self.timestamp(self.started)

    @property
    def request_end_time(self) -> Timestamp | None:
        took: float | None = getattr(self, "took", None)  # which is set at the end
        return None if took is None else self.timestamp(self.started + took)
