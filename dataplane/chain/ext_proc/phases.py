"""The two halves of an exchange as steps: what the server is shown of each, in which order, and what its answers do.

The head is shown first and waits for its answer; content that passes in full duplex is shown beside it, for the server
may want all of it before it answers about the head. Content that is shown whole comes behind that answer, which may
change its mode.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Final

from dataplane.chain import streaming
from dataplane.chain.ext_proc import content, messages
from dataplane.chain.ext_proc.half import Half
from dataplane.chain.ext_proc.modes import DUPLEX, NONE
from dataplane.chain.reply import Reply
from dataplane.http.body import DESCRIBING, TooLarge
from dataplane.http.statuses import BODILESS, RESET_CONTENT
from gatewright.wire.external import ext_proc_pb2 as pb

if TYPE_CHECKING:
    from dataplane.chain.ext_proc.modes import Way
    from dataplane.exchange import Exchange
    from dataplane.http.heads import Head

_HTTP_2: Final = b"HTTP/2"


class RequestHalf(Half):
    direction = messages.REQUEST

    @property
    def way(self) -> Way:
        return self._session.modes.request

    def head(self, x: Exchange) -> Head:
        return x.request

    def shown(self, x: Exchange, end: bool) -> pb.ProcessingRequest:
        return messages.request_headers(x, end)

    async def run(self, x: Exchange) -> Reply | None:
        session, reply = self._session, None
        self.ask(x, not x.has_body)
        if x.has_body and self.way.body == DUPLEX:
            reply = x.stream_request(self.stage)
        answer = await self.headers(x) if reply is None else reply
        if isinstance(answer, Reply):
            return answer
        if messages.replaces(answer):
            self._replace(x, answer)
            return None
        if not session.is_open:
            return self.failure
        if not x.has_body or self._content is not None or not self._shows_content(x):
            return None
        reply = x.stream_request(self.stage)
        return await self.whole(x) if reply is None and self.is_shown_whole else reply

    def _shows_content(self, x: Exchange) -> bool:
        """Whether there is anything to show: trailers cannot follow a length that HTTP/1 announces."""
        way = self.way
        return way.body != NONE or (way.trailers and (x.length < 0 or x.version == _HTTP_2))

    def _replace(self, x: Exchange, answer: pb.CommonResponse) -> None:
        data = messages.body_of(answer, b"")
        for name in DESCRIBING:
            x.request.remove(name)
        if isinstance(self._content, content.Duplex):
            self._content.replace(data)
        else:
            x.replace_body(data)


class ResponseHalf(Half):
    direction = messages.RESPONSE

    @property
    def way(self) -> Way:
        return self._session.modes.response

    def head(self, x: Exchange) -> Head:
        assert x.response is not None  # `run` has looked
        return x.response

    def shown(self, x: Exchange, end: bool) -> pb.ProcessingRequest:
        return messages.response_headers(x, end)

    async def run(self, x: Exchange) -> Reply | None:
        ends = _has_no_content(x)
        self.ask(x, ends)
        installed = self._installed(x) if not ends and self.way.body == DUPLEX else None
        if isinstance(installed, Reply):
            return installed
        answer = await self.headers(x)
        if isinstance(answer, Reply):
            if isinstance(installed, Coroutine):
                installed.close()  # it was not begun
            return answer
        if messages.replaces(answer):
            return await self._replace(x, answer, installed)
        if self._content is None and not ends and self._session.is_open and self._shows_content(x):
            installed = self._installed(x)
        if isinstance(installed, Reply):
            return installed
        if installed is not None:
            reply = await _ended(installed)
            if reply is not None:
                return reply
        if self.is_shown_whole:
            return await self.whole(x)
        return self.failure if self._content is None else None

    def _installed(self, x: Exchange) -> Awaitable[Reply | None] | Reply | None:
        try:
            return x.stream_response(self.stage)
        except TooLarge:
            return streaming.TOO_LARGE

    def _shows_content(self, x: Exchange) -> bool:
        way = self.way
        return way.body != NONE or (way.trailers and self.head(x).get(b"content-length") is None)

    async def _replace(
        self, x: Exchange, answer: pb.CommonResponse, installed: Awaitable[Reply | None] | None
    ) -> Reply | None:
        data = messages.body_of(answer, b"")
        for name in DESCRIBING:
            self.head(x).remove(name)
        if isinstance(self._content, content.Duplex):
            self._content.replace(data)
        else:
            try:
                found = x.stream_response(self.replacing(data))
            except TooLarge:
                return streaming.TOO_LARGE
            if isinstance(found, Reply):
                return found
            installed = found
        return None if installed is None else await _ended(installed)


async def _ended(installed: Awaitable[Reply | None]) -> Reply | None:
    try:
        return await installed
    except TooLarge:
        return streaming.TOO_LARGE


def _has_no_content(x: Exchange) -> bool:
    assert x.response is not None  # the caller has looked
    if x.method == b"HEAD" or x.status in BODILESS or x.status == RESET_CONTENT:
        return True
    return x.response.get(b"content-length") == b"0"
