"""Matches of a route in the standalone file: those of an HTTPRoute, and `grpc` for what a GRPCRoute says in `method`.

Part of standalone_file. A route with `grpc` is a GRPCRoute to proxies: the same precedence, the same way to backends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from gatewright.api.routes.grpc_route import GRPCHeaderMatch, GRPCMethodMatch, GRPCRouteMatch
from gatewright.api.routes.http_route import HTTPRouteMatch
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.model import Broken, RuledModel


class FileGrpcMatch(GRPCMethodMatch):
    """`grpc` of a match: calls of a service, of a method, or of both; all calls when neither is set."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    """Exact: the names are these; RegularExpression: they match these expressions as a whole."""
    service: Annotated[str, Field(max_length=1024)] | None = None
    """The service with its package, such as shop.Orders; any when unset."""
    method: Annotated[str, Field(max_length=1024)] | None = None
    """The method; any when unset."""

    def broken_rules(self) -> Iterator[Broken]:
        yield from (rule for rule in super().broken_rules() if rule.path)  # a GRPCRoute says "all calls" by no method


class FileMatch(RuledModel, HTTPRouteMatch):
    """An item of `routes[].matches`: all parts must hold."""

    grpc: FileGrpcMatch | None = None
    """Calls of gRPC, by service and method, in place of path, method and queryParams; headers are their metadata."""

    def broken_rules(self) -> Iterator[Broken]:
        for name in _PARTS_OF_HTTP if self.grpc is not None else ():
            if name in self.model_fields_set:
                yield Broken((to_camel(name),), "must be absent with grpc")

    def as_object(self) -> HTTPRouteMatch | GRPCRouteMatch:
        """What an HTTPRoute or GRPCRoute would say."""
        if self.grpc is None:
            return self
        # Not validated again: the parts are, and header matches of both kinds have the same fields and bounds.
        headers = tuple(GRPCHeaderMatch.model_construct(**vars(header)) for header in self.headers)
        return GRPCRouteMatch.model_construct(method=self.grpc, headers=headers)


_PARTS_OF_HTTP: Final = ("path", "method", "query_params")
