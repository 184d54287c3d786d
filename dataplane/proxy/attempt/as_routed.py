"""A request as its route left it: what each try begins with where steps of the backend change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.http.body import BodyBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.exchange import Exchange
    from dataplane.proxy.attempt.replay import BodyCopy

FIELDS: Final = (
    *("method", "scheme", "target", "path", "query", "prefix", "readings"),
    *("host", "authority", "host_set", "body", "has_body", "length"),
)
"""What a step may change of a request, beside its headers (`chain/pseudo_headers`, `Exchange.replace_body`)."""


class AsRouted:
    """Made before the steps of the first try."""

    __slots__ = ("_block", "_fields", "_inlet", "_low", "_trailers")

    def __init__(self, x: Exchange) -> None:
        self._fields: dict[str, Any] = {name: getattr(x, name) for name in FIELDS}
        self._block, self._low = x.request.block, x.request.low
        self._inlet, self._trailers = (x.inlet, x.trailers) if x.has_body else (None, b"")

    def restore(self, x: Exchange) -> None:
        for name, value in self._fields.items():
            setattr(x, name, value)
        x.request.block, x.request.low = self._block, self._low
        if not x.has_body:
            x.buffer = None

    def restore_content(self, x: Exchange, pace: Callable[[], None], copy: BodyCopy | None) -> None:
        """The steps may have made other content, so what there was is kept whole. `pace`: the exchange's; `copy`: of
        what went upstream."""
        if x.has_body and x.body is not None:
            x.inlet, x.trailers = self._inlet, self._trailers
            x.buffer = BodyBuffer.of(x.body, x.context.make_future, pace)
            if copy is not None:
                copy.restart()

    def __repr__(self) -> str:
        return "AsRouted()"  # its headers may be secret
