"""Consistent hashing (`backend.hash`, an extension): what of a request is the key.

Of a route it is a value of its plan, of a backend one of the backend's (`table/endpoints`); leases act on it
(`upstream/hashing`). A request without a key goes where any may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from dataplane.chain import expressions
from dataplane.chain.filter import Env, Refused
from dataplane.http import cookies
from dataplane.http.heads import is_name, plain_name
from dataplane.upstream.hashing import Hash
from gatewright.wire.v1 import backend_policy_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

Key = Callable[["Exchange"], bytes | None]


def build(config: backend_policy_pb2.BackendHash, env: Env) -> Hash:
    """Raises `Refused` for a name that none can be, an expression that cannot work or reads the body, which is not
    held for it, a load that is not above the average, and no key at all."""
    if config.max_load and config.max_load <= 100:
        raise Refused(f"maxLoad: {config.max_load} is not above 100 percent")
    kind = config.WhichOneof("key")
    if kind is None:
        raise Refused("one of header, cookie, source and expression must be set")
    key = _KEYS[kind](getattr(config, kind))
    return Hash(key, config.max_load / 100 if config.max_load else Hash(key).max_load)


def _header(name: str) -> Key:
    plain = plain_name(_named(name, "header"))

    def read(x: Exchange) -> bytes | None:
        values = x.request.get_all(plain)
        return b",".join(values) or None

    return read


def _cookie(name: str) -> Key:
    written = _named(name, "cookie")
    return lambda x: next(cookies.values(x.request, written), None) or None


def _named(name: str, field: str) -> bytes:
    if not is_name(name.encode()):
        raise Refused(f"{field}: {name!r} is no name")
    return name.encode()


def _source(kind: str) -> Key:
    if kind != "Address":
        raise Refused(f"source: {kind} is not known")
    return lambda x: x.peer.encode() or None


def _expression(text: str) -> Key:
    program = expressions.compiled(text, "request", "expression")
    if expressions.reads_request_body([program]):
        raise Refused("expression: it cannot read request.body, which is not held for a choice")
    value_of = expressions.plain(program)

    def read(x: Exchange) -> bytes | None:
        value = value_of(x)
        if isinstance(value, (int, float)):
            return str(value).encode()
        return value or None if isinstance(value, bytes) else None

    return read


_KEYS: Final[Mapping[str, Callable[[str], Key]]] = {
    "header": _header,
    "cookie": _cookie,
    "source": _source,
    "expression": _expression,
}
"""By field of the wire's `key`."""
