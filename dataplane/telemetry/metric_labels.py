"""Label values that clients and endpoints have a say in, as few as they need to be."""

from __future__ import annotations

from typing import Final

_METHODS: Final = frozenset((b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT"))
_UNAUTHENTICATED: Final = 16
"""The status of gRPC above which there is none."""


def grpc_label(status: int | None) -> str:
    """A status of gRPC as a label value: an endpoint cannot make further series."""
    if status is None:
        return "none"
    return str(status) if status <= _UNAUTHENTICATED else "other"


def method_label(method: bytes) -> str:
    """A request method as a label value: those of RFC 9110 and RFC 5789; a client cannot make further series."""
    return method.decode() if method in _METHODS else "other"
