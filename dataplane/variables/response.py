"""What expressions read of a response."""

from __future__ import annotations

from typing import Any, Final

from dataplane.variables.facts import ExchangeFacts
from dataplane.variables.heads import header, header_map
from gatewright.cel.values import HeaderMap

_LONG_STATUS: Final = 10
"""Digits that no status has: an endpoint may send as many as it likes, and Python converts only so many."""


class ResponseVariables(ExchangeFacts):
    """`response.*`."""

    __slots__ = ()

    @property
    def response_code(self) -> int | None:
        return self.status or None  # 0: there is no response yet

    @property
    def response_headers(self) -> HeaderMap:
        return header_map(self.response) if self.response is not None else HeaderMap()

    def response_header(self, name: str) -> str | None:
        return header(self.response, name) if self.response is not None else None

    @property
    def response_body_prefix(self) -> bytes | None:
        return self.response_body

    @property
    def response_json(self) -> Any:
        return self._json("known_response", self.response_body, "response.body")

    @property
    def response_prefix_json(self) -> Any:
        return self._json("known_response", self.response_body_prefix, "response.bodyPrefix")

    @property
    def response_grpc_status(self) -> int | None:
        if self.grpc is not None and self.grpc.status is not None:  # trailers said so, or we did
            return self.grpc.status
        text = self.response_header("grpc-status")
        return int(text) if text is not None and len(text) < _LONG_STATUS and text.isdecimal() else None
