"""The proxies under test: the same 1,000 routes, `x-forwarded-for`, buffered access log and metrics on all sides.

Everything else stays at the defaults each one ships with, apart from keep-alive limits (raised where a default would
close connections in the middle of a run), one worker, and buffering switched off for event streams in nginx, which
would otherwise hold events back.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.machine import ROOT, find, run_folder
from tests.fakes.certificates import Authority
from tests.harness.ports import reserve

HOSTS = 100
PREFIXES = 10
HOST = "h57.example"
"""The host that the load asks for."""
TARGET = "/api/v7/items?x=1"
STREAM = "/api/v7/sse"
VARIED = "/api/v7/varied"


def routes() -> dict[str, list[str]]:
    """1,000 routes: host -> path prefixes."""
    return {f"h{host}.example": [f"/api/v{prefix}/" for prefix in range(PREFIXES)] for host in range(HOSTS)}


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a proxy that listens on `port`."""

    command: list[str]
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)


Starter = Callable[[int], Launch]
"""Backend port -> launch."""


def _write(name: str, text: str) -> Path:
    path = run_folder() / name
    path.write_text(text)
    return path


@cache
def certificate() -> Path:
    """Chain and key in one file, for all proxies that end TLS: EC, which all of them sign with about equally fast."""
    issued = Authority().issue(*(f"h{host}.example" for host in range(HOSTS)), "127.0.0.1")
    path = _write("certificate.pem", "")
    path.write_bytes(issued.chain + issued.key)
    return path


# --- nginx


def nginx(backend_port: int) -> Launch:
    return _nginx(backend_port, "")


def nginx_http2(backend_port: int) -> Launch:
    """For clients of HTTP/2 with prior knowledge; its upstreams speak HTTP/1.1."""
    return _nginx(backend_port, " http2")


def _nginx(backend_port: int, listens: str, more: str = "") -> Launch:
    """`listens`: what each `listen` says beside its address. `more`: further directives for all servers."""
    port, folder = reserve(), run_folder()
    servers = "".join(_nginx_server(host, prefixes, port, listens) for host, prefixes in routes().items())
    temporary = " ".join(f"{name}_temp_path {folder}/nginx_{name};" for name in ("proxy", "fastcgi", "uwsgi", "scgi"))
    name = f"nginx{listens.replace(' ', '_')}"
    path = _write(
        f"{name}.conf",
        f"""worker_processes 1; daemon off; master_process off;
pid {folder}/{name}.pid; error_log {folder}/{name}_error.log;
events {{ worker_connections 16384; }}
http {{
  client_body_temp_path {folder}/nginx_body; {temporary}
  server_names_hash_max_size 4096; keepalive_requests 100000000; keepalive_timeout 600s;
  log_format line '$remote_addr "$request" $status $body_bytes_sent $request_time "$http_user_agent"';
  access_log {folder}/{name}_access.log line buffer=64k flush=1s;
  upstream backend {{ server 127.0.0.1:{backend_port}; keepalive 128; keepalive_requests 100000000; }}
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; {more}
{servers}}}
""",
    )
    return Launch([find("nginx"), "-c", str(path)], port)


def _nginx_server(host: str, prefixes: list[str], port: int, listens: str) -> str:
    places = "".join(f"    location {prefix} {{ proxy_pass http://backend; }}\n" for prefix in prefixes)
    stream = f"    location {STREAM} {{ proxy_pass http://backend; proxy_buffering off; }}\n"
    listens += " backlog=8192" if host == "h0.example" else ""
    return f"  server {{ listen 127.0.0.1:{port}{listens}; server_name {host};\n{places}{stream}  }}\n"


def nginx_tls(backend_port: int) -> Launch:
    """Clients speak TLS, and HTTP/2 where they ask for it. Sessions are in tickets, as they are with us."""
    pair = certificate()
    of_pair = f"ssl_certificate {pair}; ssl_certificate_key {pair}; ssl_protocols TLSv1.2 TLSv1.3;"
    return _nginx(backend_port, " ssl http2", f"{of_pair} ssl_session_cache off; ssl_session_tickets on;")


# --- Envoy

_TYPE = "type.googleapis.com/envoy.extensions"
_TO_HTTP2 = {
    "typed_extension_protocol_options": {
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": f"{_TYPE}.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": {"http2_protocol_options": {}},
        }
    }
}


def envoy(backend_port: int) -> Launch:
    return envoy_with(backend_port, [], {})


def envoy_to_http2(backend_port: int) -> Launch:
    """To a backend of HTTP/2; clients may speak either version, as always."""
    return envoy_with(backend_port, [], {}, _TO_HTTP2)


def envoy_tls(backend_port: int) -> Launch:
    """Clients speak TLS, and HTTP/2 where they ask for it."""
    pair = {"filename": str(certificate())}
    common = {
        "tls_certificates": [{"certificate_chain": pair, "private_key": pair}],
        "alpn_protocols": ["h2", "http/1.1"],
    }
    context = {
        "@type": f"{_TYPE}.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {**common, "tls_params": {"tls_maximum_protocol_version": "TLSv1_3"}},
    }
    return envoy_with(backend_port, [], {}, chain={"transport_socket": {"name": "tls", "typed_config": context}})


def envoy_with(
    backend_port: int,
    filters: list[dict[str, Any]],
    edits: Mapping[str, Any],
    cluster: Mapping[str, Any] | None = None,
    chain: Mapping[str, Any] | None = None,
) -> Launch:
    """Envoy with filters before its router, with what all its routes have beside their cluster, and with what the
    cluster has beside its endpoint and the listener's chain beside its filters."""
    port = reserve()
    name = f"envoy{'_policies' if filters else ''}{'_http2' if cluster else ''}{'_tls' if chain else ''}"
    file = _envoy_file(port, reserve(), backend_port, name, filters, edits)
    file["static_resources"]["clusters"][0] |= cluster or {}
    file["static_resources"]["listeners"][0]["filter_chains"][0] |= chain or {}
    path = _write(f"{name}.json", json.dumps(file))
    command = [find("envoy"), "-c", str(path), "--concurrency", "1", "-l", "warning", "--disable-hot-restart"]
    return Launch(command, port)


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _envoy_file(
    port: int, admin_port: int, backend_port: int, name: str, filters: list[dict[str, Any]], edits: Mapping[str, Any]
) -> dict[str, Any]:
    log = {"@type": f"{_TYPE}.access_loggers.file.v3.FileAccessLog", "path": f"{run_folder()}/{name}_access.log"}
    router = {"@type": f"{_TYPE}.filters.http.router.v3.Router"}
    manager = {
        "@type": f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "http",
        "use_remote_address": True,  # appends the peer to x-forwarded-for
        "access_log": [{"name": "file", "typed_config": log}],
        "route_config": {"virtual_hosts": [_envoy_host(*pair) | edits for pair in routes().items()]},
        "http_filters": [*filters, {"name": "envoy.filters.http.router", "typed_config": router}],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    endpoint = {"endpoint": {"address": _address(backend_port)}}
    cluster = {
        "name": "backend",
        "type": "STATIC",
        "load_assignment": {"cluster_name": "backend", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    listener = {"name": "http", "address": _address(port), "filter_chains": [chain]}
    return {
        "admin": {"address": _address(admin_port)},
        "static_resources": {"listeners": [listener], "clusters": [cluster]},
    }


def _envoy_host(host: str, prefixes: list[str]) -> dict[str, Any]:
    rows = [{"match": {"prefix": prefix}, "route": {"cluster": "backend", "timeout": "0s"}} for prefix in prefixes]
    return {"name": host, "domains": [host, f"{host}:*"], "routes": rows}


# --- aiohttp


def aiohttp(backend_port: int) -> Launch:
    port = reserve()
    table = _write("aiohttp_routes.json", json.dumps(routes()))
    script = str(ROOT / "benchmarks" / "peers" / "aiohttp_proxy.py")
    log = str(run_folder() / "aiohttp_access.log")
    return Launch([sys.executable, script, str(port), str(backend_port), str(table), log], port)


# --- the product


def gatewright(backend_port: int) -> Launch:
    return gatewright_with(backend_port, "plain", {}, {})


def gatewright_with(backend_port: int, name: str, policies: Mapping[str, Any], attributes: Mapping[str, str]) -> Launch:
    """The product with these policies on every route, and attributes that its access log adds."""
    return _launch("dataplane", backend_port, policies, attributes, f"gatewright_{name}")


def gatewright_to_http1(backend_port: int) -> Launch:
    """To a backend of HTTP/1.1, whichever version clients speak; without `http.version` it would keep theirs."""
    return _launch("dataplane", backend_port, {}, {}, "gatewright_http1", {"http": {"version": "HTTP1"}})


def gatewright_to_http2(backend_port: int) -> Launch:
    """To a backend of HTTP/2, whichever version clients speak."""
    return _launch("dataplane", backend_port, {}, {}, "gatewright_http2", {"http": {"version": "HTTP2"}})


def gatewright_tls(backend_port: int) -> Launch:
    """Clients speak TLS, and HTTP/2 where they ask for it; the backend HTTP/1.1, as nginx has it."""
    pair = {"file": str(certificate())}
    listener = {"protocol": "HTTPS", "tls": {"certificateRefs": [{"tls.crt": pair, "tls.key": pair}]}}
    of_backend = {"http": {"version": "HTTP1"}}
    return _launch("dataplane", backend_port, {}, {}, "gatewright_tls", of_backend, listener)


def gatewright_general(backend_port: int) -> Launch:
    """The same with one step in every route that waits and does nothing: see `general_path`."""
    policies = {"headerModifiers": {"request": {"set": [{"name": "x-unused", "value": "1"}]}}}
    return _launch("benchmarks.general_path", backend_port, policies, {}, "general_path")


def _launch(
    module: str,
    backend_port: int,
    policies: Mapping[str, Any],
    attributes: Mapping[str, str],
    name: str,
    of_backend: Mapping[str, Any] | None = None,
    of_listener: Mapping[str, Any] | None = None,
) -> Launch:
    port = reserve()
    content = _file(port, backend_port, policies)
    content["binds"][0]["listeners"][0] |= of_listener or {}
    if of_backend:
        content["backends"][0]["policies"] = of_backend
    if attributes:
        content["frontendPolicies"] = {"accessLog": {"add": dict(attributes)}}
    return _started(module, content, name, port)


def _started(module: str, content: Mapping[str, Any], name: str, port: int) -> Launch:
    path = _write(f"{name}.json", json.dumps(content))
    pages = [f"--{page}=127.0.0.1:{reserve()}" for page in ("admin", "stats", "readiness")]
    command = [sys.executable, "-m", module, "-f", str(path), "--workers=1", *pages]
    return Launch(command, port, {"SESSION_KEY": "00" * 32, "CONNECTION_MIN_TERMINATION_DEADLINE": "0"})


def gatewright_mcp(name: str, backend_port: int, mcp: Mapping[str, Any], policies: Mapping[str, Any]) -> Launch:
    """The same routes, of which the one for HOST and TARGET has MCP servers."""
    return gatewright_of_route(name, backend_port, {"mcp": mcp}, policies)


def gatewright_of_route(
    name: str, backend_port: int, backend: Mapping[str, Any], policies: Mapping[str, Any]
) -> Launch:
    """The same routes, of which the one for HOST and TARGET has this backend."""
    port = reserve()
    content = _file(port, backend_port, {})
    (row,) = [
        row
        for row in content["binds"][0]["listeners"][0]["routes"]
        if row["hostnames"] == [HOST] and TARGET.startswith(row["matches"][0]["path"]["value"])
    ]
    row |= {"backends": [backend], "policies": policies}
    return _started("dataplane", content, f"gatewright_{name.replace(' ', '_')}", port)


def _file(port: int, backend_port: int, policies: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        {
            "name": f"{host.replace('.', '-')}-{number}",
            "hostnames": [host],
            "matches": [{"path": {"type": "PathPrefix", "value": prefix}}],
            "backends": [{"backend": "origin"}],
            "policies": policies,
        }
        for host, prefixes in routes().items()
        for number, prefix in enumerate(prefixes)
    ]
    listener = {"name": "http", "protocol": "HTTP", "routes": rows}
    backend = {"name": "origin", "host": f"127.0.0.1:{backend_port}"}
    return {"binds": [{"port": port, "listeners": [listener]}], "backends": [backend]}


# --- any other


def other(command: str) -> Starter:
    """`--against COMMAND`: "{port}" and "{backend}" in it are replaced; it must route every host and path."""

    def start(backend_port: int) -> Launch:
        port = reserve()
        return Launch(shlex.split(command.replace("{port}", str(port)).replace("{backend}", str(backend_port))), port)

    return start


PRODUCT = "gatewright"
GENERAL = "gatewright-general"
STARTERS: dict[str, Starter] = {
    PRODUCT: gatewright,
    GENERAL: gatewright_general,
    "nginx": nginx,
    "envoy": envoy,
    "aiohttp": aiohttp,
}
