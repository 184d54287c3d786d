"""What expressions read of where a request is handled: listener, route, backend, Pod."""

from __future__ import annotations

import os
from typing import Any, Final

from dataplane.variables.facts import ExchangeFacts

POD_NAME: Final = os.environ.get("POD_NAME") or os.uname().nodename
POD_NAMESPACE: Final = os.environ.get("POD_NAMESPACE", "")


class PlaceVariables(ExchangeFacts):
    """`proxy.*`, `env.*` and `backend.*`."""

    __slots__ = ()

    @property
    def proxy_bind(self) -> str:
        return self.bind

    @property
    def proxy_gateway_namespace(self) -> str:
        return self.listener.gateway.partition("/")[0] if self.listener is not None else ""

    @property
    def proxy_gateway_name(self) -> str:
        return self.listener.gateway.partition("/")[2] if self.listener is not None else ""

    @property
    def proxy_listener_name(self) -> str:
        return self.listener.name if self.listener is not None else ""

    @property
    def proxy_route(self) -> dict[str, Any] | None:
        return self.whole("proxy.route") if self.plan is not None else None

    @property
    def proxy_route_namespace(self) -> str | None:
        return self.plan.key.split("/")[2] if self.plan is not None else None

    @property
    def proxy_route_name(self) -> str | None:
        return self.plan.key.split("/")[3] if self.plan is not None else None

    @property
    def proxy_route_kind(self) -> str | None:
        return self.plan.kind if self.plan is not None else None

    @property
    def proxy_route_rule(self) -> str | None:
        return (self.plan.rule or None) if self.plan is not None else None

    @property
    def env_pod_name(self) -> str:
        return POD_NAME

    @property
    def env_namespace(self) -> str:
        return POD_NAMESPACE or self.proxy_gateway_namespace

    @property
    def env_gateway(self) -> str:
        return self.proxy_gateway_name

    @property
    def backend(self) -> dict[str, Any] | None:
        return self.whole("backend") if self.backend_plan is not None else None

    @property
    def backend_name(self) -> str | None:
        return self.backend_plan.key.split("/", 2)[2] if self.backend_plan is not None else None

    @property
    def backend_type(self) -> str | None:
        return self.backend_plan.type if self.backend_plan is not None else None

    @property
    def backend_protocol(self) -> str | None:
        return self.backend_plan.protocol if self.backend_plan is not None else None
