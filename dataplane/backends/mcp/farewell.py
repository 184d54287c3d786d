"""The end of an idle session: its servers receive a `DELETE`, sent as the last request of the session was.

What is kept for it may hold credentials, for half an hour: so nothing is kept where it is not sent (`Memory.ends_idle`,
a server without a session, a session that was ended), one is made only when a request differs from the one before, and
lines that are about a request alone, or about its client's software, are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.mcp.upstreams import Upstreams
from dataplane.http.heads import lines_without, twin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dataplane.backends.mcp.typing import McpWorker
    from dataplane.backends.mcp.visit import Visit
    from dataplane.mcp.sessions import UpstreamSession

MAX_LINES: Final = 4096
"""Bytes of header lines that are kept for it: with more, servers end the session by themselves."""

_NOT_KEPT: Final = frozenset(
    {
        *(b"user-agent", b"accept-language", b"accept-charset", b"origin", b"referer", b"priority", b"mcp-method"),
        *(b"cache-control", b"pragma", b"date", b"dnt", b"sec-fetch-mode", b"sec-fetch-site", b"sec-fetch-dest"),
        *(b"sec-ch-ua", b"sec-ch-ua-mobile", b"sec-ch-ua-platform", b"sec-gpc", b"x-request-id", b"traceparent"),
        *(b"tracestate", b"baggage", b"b3", b"x-b3-traceid", b"x-b3-spanid", b"x-b3-parentspanid", b"x-b3-sampled"),
        *(b"x-forwarded-for", b"x-forwarded-port", b"forwarded", b"via"),
    }
)
"""No server finds a session, or its owner, by these. By others it may: what else clients send is unknown."""


class Farewell:
    """Of a visit what is needed for that, and nothing of its exchange: as `Visit` and as `McpExchange`, as far as one
    message to a server asks."""

    __slots__ = (
        "authority",
        "context",
        "host_set",
        "is_modern",
        "mark",
        "name_line",
        "passing",
        "plan",
        "policies",
        "session",
        "upstreams",
    )

    trace = None
    """No request is there to be traced."""
    peer = None
    """It is sent for no client: nothing that it waits for is of a client's share."""

    def __init__(self, visit: Visit, upstreams: list[UpstreamSession], passing: bytes) -> None:
        x = visit.x
        self.context: McpWorker = x.context
        self.policies = x.policies
        self.authority, self.host_set = x.authority, x.host_set
        self.plan, self.passing, self.mark = visit.plan, passing, hash(visit.lasting)
        self.upstreams = upstreams
        self.name_line, self.is_modern, self.session = b"", False, None

    def fits(self, visit: Visit) -> bool:
        """Whether this request is like the one that it was made of."""
        x = visit.x
        return (
            self.mark == hash(visit.lasting)
            and self.plan is visit.plan
            and self.policies is x.policies
            and self.authority == x.authority
            and self.host_set == x.host_set
        )

    @property
    def x(self) -> Farewell:
        """As `Visit.x`; no field, which would be a cycle."""
        return self

    @property
    def table(self) -> Any:
        """The one that serves now: nothing keeps an older one."""
        return self.context.calls.table()

    asking = None
    """As `Visit.asking`: not called."""

    def __call__(self, renewed: Callable[[str], UpstreamSession | None]) -> None:
        """As `worker.Goodbye`."""
        self.context.spawn(self._go([renewed(each.target) or each for each in self.upstreams]))

    async def _go(self, sessions: list[UpstreamSession]) -> None:
        visit: Any = self  # as far as it is one
        targets = self.plan.by_name
        for each in sessions:
            target = targets.get(each.target)
            if target is not None and each.session_id:
                await Upstreams(visit).end(target, each)

    def __repr__(self) -> str:
        return f"Farewell({len(self.upstreams)} servers)"


def of(visit: Visit, before: Any) -> Farewell | None:
    """For the session of this visit, `before` where that still fits. None: no server needs a `DELETE`. Streams of the
    older transport end by themselves (`legacy`)."""
    if isinstance(before, Farewell) and before.fits(visit):
        return before
    assert visit.session is not None  # it is that which may end
    targets = visit.plan.by_name
    ending = [each for each in visit.session.upstreams if each.session_id and not _is_sse(targets, each)]
    if not ending:
        return None
    block = b"\r\n" + visit.lasting
    passing = lines_without(block, twin(block), _NOT_KEPT)
    return Farewell(visit, ending, passing) if len(passing) <= MAX_LINES else None


def _is_sse(targets: Mapping[str, Any], session: UpstreamSession) -> bool:
    target = targets.get(session.target)
    return target is not None and target.is_sse
