"""The filter of external authorization: ask the server, or remember what it said, and act on it.

Built once per policy and target. An answer that is known is given at once; a call makes the request wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from dataplane.chain import expressions
from dataplane.chain.buffering import buffering
from dataplane.chain.calls import Calls
from dataplane.chain.conditional import conditional
from dataplane.chain.filter import Env, Filter, Refused, RequestHook, ResponseHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.filters.steps.ext_auth.asking import NAME, Asking, cached
from dataplane.filters.steps.ext_auth.verdict import AuthServer
from gatewright.wire.v1 import traffic_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange


def build(config: traffic_pb2.ExtAuth, env: Env) -> Filter | None:
    """Raises `Refused` for a policy without server or protocol, and for names and expressions that cannot be."""
    if config.conditional:
        return conditional(NAME, config.conditional, env, build)
    if not config.backend:
        raise Refused("backendRef: there is no authorization server")
    kind = config.WhichOneof("protocol") or ""
    if kind not in _PROTOCOLS:
        raise Refused(f"the protocol is not one that this proxy speaks: {', '.join(_PROTOCOLS)}")
    if env.calls is None:
        raise Refused("this proxy reaches no other services")
    with_body = config.HasField("forward_body")
    server = _PROTOCOLS[kind](config, env, env.calls)
    asking = Asking(config, env, server)
    programs = list(server.programs)
    hook: RequestHook = asking.run
    if config.HasField("cache"):
        remembering = cached(config.cache, env, asking)
        hook = remembering.run
        programs += remembering.programs
    reads_body = expressions.reads_request_body(programs)
    if with_body:
        hook = _bounded(hook, config.forward_body.max_size, _too_large(env))
    elif reads_body:
        hook = buffering(hook, env.buffer_limit, whose=reads_body)
    response = _responding(server) if server.responds else None
    return Filter(
        NAME,
        request=hook,
        response=response,
        writes=expressions.headers_read(programs).union(server.writes),
        takes_body=with_body or bool(reads_body),
    )


def of_backend(config: traffic_pb2.ExtAuth, env: Env) -> Filter:
    """That of `backend.extAuth`, a step of the backend. Raises `Refused`."""
    made = build(config, env)
    if made is None:
        raise Refused("it names no server to ask")
    return made


# Each protocol is loaded with the first policy that speaks it.


def _by_http(config: traffic_pb2.ExtAuth, env: Env, calls: Calls) -> AuthServer:
    from dataplane.filters.steps.ext_auth.http import HttpServer

    return HttpServer(config, env, calls)


def _by_grpc(config: traffic_pb2.ExtAuth, env: Env, calls: Calls) -> AuthServer:
    from dataplane.filters.steps.ext_auth.grpc import GrpcServer

    return GrpcServer(config, env, calls)


_PROTOCOLS: Final[dict[str, Callable[[traffic_pb2.ExtAuth, Env, Calls], AuthServer]]] = {
    "http": _by_http,
    "grpc": _by_grpc,
}


def _responding(server: AuthServer) -> ResponseHook:
    def respond(x: Exchange) -> None:
        server.respond(x)

    return respond


def _too_large(env: Env) -> Reply:
    return made("BodyTooLarge", f"{env.origin}: forwardBody.maxSize is exceeded")


def _bounded(hook: RequestHook, limit: int, too_large: Reply) -> RequestHook:
    """`hook` with the whole body of at most `limit` bytes in `x.body`; an earlier step may have read a larger one."""

    def run(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
        return too_large if x.body is not None and len(x.body) > limit else hook(x)

    return buffering(run, limit, too_large)
