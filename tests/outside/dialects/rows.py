"""All rows, in the order of docs/migrating.md."""

from __future__ import annotations

from typing import Final

from tests.outside.dialects import gateways, servers
from tests.outside.dialects.case import Row

ROWS: Final[tuple[Row, ...]] = (
    *gateways.INGRESS,
    *servers.NGINX,
    *servers.HAPROXY,
    *servers.CADDY,
    *gateways.ENVOY,
    *gateways.TRAEFIK,
    *gateways.KONG,
    *gateways.APISIX,
)
