"""Stages on the content of a request: between its client and the buffer, or the upstream carrier.

What has come by the time that a stage is installed goes through it at once, and what comes later as it comes, also
while request steps wait: they see what left the stages so far. Retries and mirrors keep what left the last one, for
they stand behind it (`proxy/request/request_body`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.http.messages import UNKNOWN
from dataplane.proxy.request import request_body
from dataplane.proxy.steps.stages import Row, strip
from dataplane.streams import DESCRIBED

if TYPE_CHECKING:
    from dataplane.chain.reply import Reply
    from dataplane.exchange import StreamHook
    from dataplane.proxy.active import ActiveExchange


class RequestStages(Row):
    """From the client to `request_body.onward`."""

    __slots__ = ()

    # --- as `Inlet`

    def received(self, x: ActiveExchange, data: bytes, end: bool, lines: bytes = b"") -> None:
        self.take(data, end, lines)

    def pause(self, x: ActiveExchange) -> None:
        self.block()

    def resume(self, x: ActiveExchange) -> None:
        self.unblock()

    def leave(self, x: ActiveExchange) -> None:
        self.cancel()

    # --- as `Row`

    def give(self, data: bytes, end: bool, lines: bytes) -> None:
        x = self.x
        if not lines:
            request_body.onward(x, data, end)
            return
        if data:
            request_body.onward(x, data, False)
        if not self.is_over:
            request_body.onward_trailers(x, lines)

    def drop_source(self) -> None:
        self.resume_source()  # it is read to its end, so that the connection can be used again

    def pause_outside(self) -> None:
        self.x.down.pause()

    def resume_outside(self) -> None:
        self.x.down.resume()

    def took_over(self, is_paused: bool) -> None:
        """The client's pace is its own from now on."""
        self._source_is_paused = is_paused


def install(x: ActiveExchange, hook: StreamHook) -> Reply | None:
    """As `Exchange.stream_request`."""
    buffer = x.buffer
    if not x.has_body or buffer is None:
        return None
    known = x.inlet
    row = known if isinstance(known, RequestStages) else RequestStages(x)
    place = row.add(hook)
    if place is None:
        return None
    strip(x.request, DESCRIBED)
    x.length = UNKNOWN
    if x.expects:
        request_body.invite(x)
    if x.claimed:
        request_body.unclaim(x)
    was_paused, x.paused = bool(x.paused), 0
    if row is not known:
        row.took_over(was_paused)
    x.body = None
    x.inlet = row
    data, done = buffer.take(), buffer.complete
    buffer.leave()
    x.buffer = request_body.buffer_of(x)
    x.request_done = False
    lines, x.trailers = x.trailers, b""
    answer = row.install(place, data, done, lines)
    request_body.pace(x)
    return answer
