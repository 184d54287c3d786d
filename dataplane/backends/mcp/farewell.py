"""The end of an idle session: its servers receive a `DELETE`, sent as the last request of the session was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.mcp.upstreams import Upstreams

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.backends.mcp.typing import McpServices
    from dataplane.backends.mcp.visit import Visit
    from dataplane.mcp.sessions import UpstreamSession

MAX_LINES: Final = 4096
"""Bytes of header lines that are kept for it: with more, servers end the session by themselves."""


class Farewell:
    """Of a visit what is needed for that, and nothing of its exchange: as `Visit` and as `McpExchange`, as far as one
    message to a server asks. Its lines may hold credentials."""

    __slots__ = (
        "authority",
        "context",
        "host_set",
        "is_modern",
        "name_line",
        "passing",
        "plan",
        "policies",
        "session",
        "upstreams",
    )

    def __init__(self, visit: Visit, upstreams: list[UpstreamSession]) -> None:
        x = visit.x
        self.context: McpServices = x.context
        self.policies = x.policies
        self.authority, self.host_set = x.authority, x.host_set
        self.plan, self.passing = visit.plan, visit.passing
        self.upstreams = upstreams
        self.name_line, self.is_modern, self.session = b"", False, None

    @property
    def x(self) -> Farewell:
        """As `Visit.x`; no field, which would be a cycle."""
        return self

    @property
    def out(self) -> Farewell:
        """As `Visit.out`."""
        return self

    @property
    def table(self) -> Any:
        """The one that serves now: nothing keeps an older one."""
        return self.context.calls.table()

    def taken(self) -> None:
        """As `Outlet.taken`: nobody waits."""

    def __call__(self, renewed: Mapping[str, UpstreamSession]) -> None:
        """As `worker.Goodbye`."""
        self.context.spawn(self._go([renewed.get(each.target, each) for each in self.upstreams]))

    async def _go(self, sessions: list[UpstreamSession]) -> None:
        visit: Any = self  # as far as it is one
        targets = self.plan.by_name
        for each in sessions:
            target = targets.get(each.target)
            if target is not None and each.session_id:
                await Upstreams(visit).end(target, each)

    def __repr__(self) -> str:
        return f"Farewell({len(self.upstreams)} servers)"


def of(visit: Visit) -> Farewell | None:
    """None: no server needs a `DELETE`. Streams of the older transport end by themselves (`legacy`)."""
    assert visit.session is not None  # it is that which may end
    targets = visit.plan.by_name
    told = [each for each in visit.session.upstreams if each.session_id and not _is_sse(targets, each)]
    return Farewell(visit, told) if told and len(visit.passing) <= MAX_LINES else None


def _is_sse(targets: Mapping[str, Any], session: UpstreamSession) -> bool:
    target = targets.get(session.target)
    return target is not None and target.is_sse
