"""CONNECT (RFC 9110 9.3.6, RFC 9113 8.5), as `frontend.connect` has it: refused, routed to a backend as any request and
then bytes as they are, or taken as a connection of its own to another bind of the Gateway.

Who is not let through gets an answer, and its connection of HTTP/1 ends with it: bytes that a client sent for its
tunnel must not be read as requests.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from dataplane.chain.replies import made
from dataplane.http import uri
from dataplane.http.connect_rules import CONNECT, DENY, MAX_DEPTH, TUNNEL, UNUSABLE
from dataplane.http.heads import Head
from dataplane.http.messages import Peer
from dataplane.proxy.attempt import attempts, outgoing
from dataplane.proxy.deadlines import NEVER
from dataplane.proxy.request import admission
from dataplane.proxy.request.inner import InnerConnection
from dataplane.proxy.response import delayed_responses, tunnel
from dataplane.proxy.response.tunnel import ESTABLISHED
from dataplane.proxy.steps.response_steps import UPSTREAM
from dataplane.table.binds import HBONE, choose
from dataplane.upstream.destinations import Named
from dataplane.upstream.tunnels import EndpointTunnel

if TYPE_CHECKING:
    from dataplane.proxy.active import ActiveExchange
    from dataplane.proxy.context import Context
    from dataplane.table.binds import BindPlan, ListenerPlan

ALLOWED: Final = b"allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n"
"""RFC 9110 15.5.6: what a 405 has to say."""

_FAILURES: Final = {
    "refused": ("BackendRefused", b""),
    "forbidden": ("DestinationRefused", b""),
    "limit": ("BackendBusy", b"retry-after: 1\r\n"),
    "dns": ("DnsFailed", b""),
    "endpoints": ("NoEndpoints", b""),
    "connect": ("ConnectFailed", b""),
    "tunnel": ("TunnelFailed", b""),
}
"""Causes of `upstream.raw` as reasons, with the headers of the answer."""


def is_routed(x: ActiveExchange, bind: BindPlan | None) -> bool:
    """Whether a CONNECT goes on as any other request, to a route; otherwise it was answered, or its tunnel stands."""
    x.down.close_after()
    rule = None if bind is None else bind.connect
    if bind is None:
        x.reply(made("BindClosed"))
    elif rule is None:
        _refuse(x, bind, "ConnectNotAllowed", headers=ALLOWED)
    elif rule.mode == DENY:
        _refuse(x, bind, "ConnectDenied")
    elif rule.mode == UNUSABLE:
        _refuse(x, bind, "PolicyUnusable", rule.why)
    elif rule.mode == TUNNEL:
        _enter(x, bind)
    else:
        x.path = x.target = b"/"
        x.upgrade = CONNECT
        return True
    return False


def _refuse(x: ActiveExchange, bind: BindPlan, reason: str, detail: str = "", headers: bytes = b"") -> None:
    """Answer before any step has run."""
    x.listener = _for_log(x, bind)
    x.stopped = 0
    x.context.recorder.refused(reason)
    x.reply(made(reason, detail, headers))


def _for_log(x: ActiveExchange, bind: BindPlan) -> ListenerPlan:
    """Whose line it is: the listener of the connection, or of the host that is asked for; any, where none is."""
    own = bind.of_key.get(x.client.listener)
    return own or choose(bind, x.host) or next(bind.listeners())


# --- to a backend


def forward(x: ActiveExchange, context: Context) -> None:
    """The steps of the route have run: choose its backend, and connect to it."""
    attempts.forward(x, context, _connect)


def _connect(x: ActiveExchange, context: Context) -> None:
    x.stage = UPSTREAM
    key = x.target_plan.backend
    backend = outgoing.backend_of(x, key)
    if backend is None:
        x.reply(made("InvalidBackend", key))
        return
    x.backend_plan = backend
    seconds = x.policies.timeouts.request
    if seconds is not None:
        x.deadline = context.clock() + seconds
        x.down.arm(x.deadline)
    attempts.limit(x, context)
    leases = context.leases
    if backend.rules is not None and not leases.admits(x, backend, leases.rule_state(backend, backend.rules)):
        return
    opening = _Opening(x)
    up = opening.up = x.up = EndpointTunnel(
        x,
        opening,
        leases,
        context.recorder.upstream_closed,
        lambda seconds, who: context.deadlines.wake_at(context.clock() + seconds, who),
        x.client,
        _named(x),
    )
    up.open(backend)


def _named(x: ActiveExchange) -> Named:
    """What it asks for, or what a step has made of that; a step may have left out the port, which has no default."""
    found = uri.split_authority(x.authority)
    return Named(b"", 0, x.peer) if found is None else Named(*found, x.peer)


class _Opening:
    """As `upstream.tunnels.Opener`. An exchange that ends meanwhile resets its upstream, which forgets this."""

    __slots__ = ("up", "x")

    def __init__(self, x: ActiveExchange) -> None:
        self.x = x
        self.up: EndpointTunnel | None = None

    def tunnel_opened(self) -> None:
        x, up = self.x, self.up
        assert up is not None  # it opened
        x.endpoint = up.endpoint
        x.attempt_deadline = NEVER
        x.status = ESTABLISHED.status
        x.response = Head(ESTABLISHED.block, ESTABLISHED.low)
        delayed_responses.respond(x, ESTABLISHED, b"", False)
        if x.tunnel and x.up is up and not x.down.is_blocked:
            up.resume()

    def tunnel_failed(self, cause: str, detail: str) -> None:
        x, up = self.x, self.up
        assert up is not None  # it was to open
        x.endpoint = up.endpoint
        reason, headers = _FAILURES[cause]
        x.reply(made(reason, detail, headers))


# --- to another bind


def _enter(x: ActiveExchange, bind: BindPlan) -> None:
    """Let what the tunnel carries be a connection to the bind with the port that was asked for."""
    context = x.context
    x.listener = _for_log(x, bind)
    x.stopped = 0
    limits = x.table.request_limits
    if limits is not None and admission.refuses(x, limits):
        return
    found = uri.split_authority(x.authority)
    assert found is not None  # its reader has checked that
    key = _addressed(x, found[1])
    if x.client.tunnels >= MAX_DEPTH:
        x.reply(made("TunnelTooDeep"))
    elif key is None:
        x.reply(made("ConnectTargetNotFound", f"no listener for port {found[1]}"))
    else:
        inner = x.up = InnerConnection(x, context.call_soon)
        x.status = ESTABLISHED.status
        x.response = Head(ESTABLISHED.block, ESTABLISHED.low)
        tunnel.switch(x, ESTABLISHED, b"")
        context.enter(key, inner, _inside(x, found[1]))
        if x.up is inner:
            inner.open()
        if x.up is inner and x.down.is_blocked:
            inner.pause()


def _addressed(x: ActiveExchange, port: int) -> str | None:
    """Key of the bind of the same Gateway with this port, if its sockets would take a connection to the address that
    the client came to: a bind that listens elsewhere alone is not opened to it by a tunnel."""
    gateway = x.bind.rpartition("/")[0]
    for key, bind in x.table.binds.items():
        if (
            bind.port == port
            and key.rpartition("/")[0] == gateway
            and bind.has_streams
            and _listens_at(bind.addresses, x.client.local)
        ):
            return key
    return None


def _listens_at(addresses: tuple[str, ...], local: bytes) -> bool:
    """Whether sockets at `addresses` (none: all) are reached at the address of `local`, with its port."""
    parsed = [ip_address(address) for address in addresses]
    if not parsed or any(address.is_unspecified for address in parsed):
        return True
    host = local.rpartition(b":")[0].strip(b"[]").decode()
    return any(str(address) == host for address in parsed)


def _inside(x: ActiveExchange, port: int) -> Peer:
    """The client of a tunnel, as its connection inside has it: who it is outside, and nothing of what it has proven
    there, but for the workload that opened a tunnel of a mesh: what is inside is its."""
    client = x.client
    local = b"%b:%d" % (client.local.rpartition(b":")[0] or client.local, port)
    return Peer(
        client.address,
        local=local,
        port=client.port,
        raw_address=client.raw_address,
        raw_port=client.raw_port,
        tunnels=client.tunnels + 1,
        connect=x.request,
        workload=client.tls if x.listener is not None and x.listener.protocol == HBONE else client.workload,
    )
