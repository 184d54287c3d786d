"""Which policies there are and in which order they act. The order is that of this table, with a reason per row.

The worker hands `ROWS` to the table's compiler. The steps are in the order of the route phase (decisions, "Order"), and
that of the gateway phase is the same with fewer; policies that are not built yet have their place between these.
"""

from __future__ import annotations

from typing import Any

from dataplane.chain import network
from dataplane.chain.filter import FRONTEND, OF_KIND, SETTING, STEP, EndHook, Row
from dataplane.credentials import locations
from dataplane.filters.frontend import (
    access_log,
    connect,
    frontend_http,
    frontend_tcp,
    frontend_tls,
    limits,
    network_authorization,
    proxy_protocol,
)
from dataplane.filters.settings import (
    backend_client_certificate,
    backend_http,
    backend_limits,
    backend_mcp,
    backend_tcp,
    backend_tls,
    backend_tunnel,
    health,
    host_rewrite,
    request_mirror,
    retry,
    timeouts,
    upgrades,
)
from dataplane.filters.steps import (
    api_key_authentication,
    authorization,
    basic_authentication,
    buffer,
    cors,
    csrf,
    delay,
    direct_response,
    ext_auth,
    ext_proc,
    header_modifiers,
    jwt_authentication,
    rate_limit,
    request_redirect,
    transformation,
    url_rewrite,
)
from dataplane.http import connect_rules


def _hides(config: Any) -> EndHook | None:  # Any: a message with a credential's location
    return locations.hiding(config.location)


ROWS: tuple[Row, ...] = (
    Row("cors", cors.build, STEP, "first: preflights carry no credentials, and refusals get its headers too"),
    Row("csrf", csrf.build, STEP, "before anything that believes the credentials a browser adds", refuses=True),
    Row(
        "jwt_authentication",
        jwt_authentication.build,
        STEP,
        "who it is, before whatever asks; tokens first, because theirs is what later steps read most",
        refuses=True,
        secrets=jwt_authentication.secrets,
        hides=_hides,
    ),
    Row(
        "basic_authentication",
        basic_authentication.build,
        STEP,
        "as before; a scheme that is not its own passes on to the next",
        refuses=True,
        secrets=basic_authentication.secrets,
        hides=_hides,
    ),
    Row(
        "api_key_authentication",
        api_key_authentication.build,
        STEP,
        "as before",
        refuses=True,
        secrets=api_key_authentication.secrets,
        hides=_hides,
    ),
    Row(
        "ext_auth",
        ext_auth.build,
        STEP,
        "the server may want to know who it is; authorization may want to know what it said",
        refuses=True,
        per_target=True,
    ),
    Row(
        "authorization",
        authorization.build,
        STEP,
        "after whatever finds out who it is",
        refuses=True,
        combine=authorization.combine,
    ),
    Row(
        "rate_limit",
        rate_limit.build,
        STEP,
        "who is refused by the steps before costs the others nothing",
        refuses=True,
        per_target=True,
    ),
    Row("buffer", buffer.build, STEP, "bodies of requests that are refused anyway are not waited for"),
    Row(
        "ext_proc",
        ext_proc.build,
        STEP,
        "the server sees whole bodies, and the request as the client sent it; its answer is edited like a backend's",
        refuses=True,
    ),
    Row(
        "transformation",
        transformation.build,
        STEP,
        "after who refuses by what the client sent, before what edits the outcome",
    ),
    Row(
        "header_modifiers",
        header_modifiers.build,
        STEP,
        "outside the redirect, so that it edits its answer too",
        combine=header_modifiers.combine,
    ),
    Row("url_rewrite", url_rewrite.build, STEP, "after whatever reads the path and host that the client asked for"),
    Row("request_redirect", request_redirect.build, STEP, "it answers, so nothing may be left to do"),
    Row("delay", delay.build, STEP, "nobody waits to be refused or redirected; an answer of ours may be a slow one"),
    Row("direct_response", direct_response.build, STEP, "last: an answer for whom no step has one"),
    Row("timeouts", timeouts.build, SETTING, "kept by the proxy over all attempts", "timeouts"),
    Row("retry", retry.build, SETTING, "a matter of attempts, which come after all steps", "retry"),
    Row(
        "request_mirror",
        request_mirror.build,
        SETTING,
        "copies what the steps made of the request",
        "mirrors",
        many=True,
    ),
    Row("host_rewrite", host_rewrite.build, SETTING, "the destination is known with the attempt", "host_rewrite"),
    Row("upgrades", upgrades.build, SETTING, "asked by the proxy, of requests that want one", "upgrades"),
    Row("backend_http", backend_http.build, SETTING, "how backends are spoken to: with the connection", "backend"),
    Row("backend_tcp", backend_tcp.build, SETTING, "the same", "backend"),
    Row(
        "backend_tls",
        backend_tls.build,
        SETTING,
        "the same; one that cannot be built refuses, instead of plain text",
        "backend",
        refuses=True,
        secrets=backend_tls.secrets,
    ),
    Row(
        "backend_client_certificate",
        backend_client_certificate.build,
        SETTING,
        "presented in handshakes with backends; one that cannot be built refuses these, instead of none presented",
        "backend",
        refuses=True,
        secrets=backend_client_certificate.secrets,
    ),
    Row(
        "backend_tunnel",
        backend_tunnel.build,
        SETTING,
        "with the connection; one that cannot be built refuses, instead of connecting past the proxy",
        "backend",
        refuses=True,
    ),
    Row("backend_limits", backend_limits.build, SETTING, "asked with the attempt, before a choice", "backend_limits"),
    Row(
        "backend_mcp",
        backend_mcp.build,
        OF_KIND,
        "asked by the backend, of each item; one that cannot be built refuses what goes to MCP servers",
        refuses=True,
        closed=backend_mcp.closed,
        merged=backend_mcp.merged,
    ),
    Row("health", health.build, SETTING, "endpoints are chosen with the attempt", "health"),
    Row("frontend_tcp", frontend_tcp.build, FRONTEND, "set on sockets, before anything is read; of a Gateway", "tcp"),
    Row(
        "proxy_protocol",
        proxy_protocol.build,
        FRONTEND,
        "the first bytes of a connection say who it is, for all that follows",
        "proxy_protocol",
        refuses=True,
        closed=proxy_protocol.closed,
    ),
    Row(
        "network_authorization",
        network_authorization.build,
        FRONTEND,
        "decided once it is known who connects, before anything of the protocol",
        "network",
        many=True,
        refuses=True,
        closed=network.closed,
    ),
    Row(
        "connect",
        connect.build,
        FRONTEND,
        "asked of CONNECT alone, before its listener and route",
        "connect",
        refuses=True,
        closed=connect_rules.closed,
    ),
    Row(
        "frontend_http",
        frontend_http.build,
        FRONTEND,
        "heads are read by it, before any step",
        "http",
        refuses=True,
        closed=frontend_http.closed,
    ),
    Row(
        "frontend_tls",
        frontend_tls.build,
        FRONTEND,
        "handshakes come before any request",
        "tls_settings",
        refuses=True,
        closed=frontend_tls.closed,
    ),
    Row(
        "access_log", access_log.build, FRONTEND, "a matter of lines, made after the end; of a Gateway", "telemetry.log"
    ),
    Row("limits", limits.build, FRONTEND, "counted before any step, some before any request; of a Gateway", "limits"),
)
