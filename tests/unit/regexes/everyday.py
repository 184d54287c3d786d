"""Patterns as documentation of gateways has them, each with a value that it matches as a whole."""

from __future__ import annotations

from typing import Final

OF_ROUTES: Final = {
    # Gateway API, Istio, Envoy Gateway, Traefik, Kong, nginx, Spring Cloud Gateway: paths
    r"^/api/v[0-9]+/.*": "/api/v1/users",
    r"/v1/.*": "/v1/x",
    r"/(get|post|put)(/.*)?": "/get/x",
    r"/foo/[a-z0-9]{1,10}/bar/?": "/foo/a1/bar/",
    r"^/users/(?P<id>\d+)/orders$": "/users/12/orders",
    r"/red/(?<segment>.*)": "/red/a",
    r".*\.(jpg|jpeg|png|gif|css|js|svg|woff2?)(\?.*)?": "/static/x.css",
    r"/products/(shoes|socks)/[0-9]+": "/products/shoes/1",
    r"/tenant/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/.*": (
        "/tenant/01234567-89ab-cdef-0123-456789abcdef/x"
    ),
    r"^/[a-z]{2}(-[A-Z]{2})?/.*": "/de-DE/x",
    r"/api/(v1|v2|v3)/(users|orders|items)/[^/]+(/.*)?": "/api/v2/items/1/x",
    r"^/(.+/)?health(z|check)?$": "/a/healthz",
    r"/blog/[0-9]{4}/[0-9]{2}/[0-9]{2}/[\w-]+": "/blog/2026/01/02/a-b",
    r"(?i)/download/.+\.(zip|tar\.gz)": "/Download/a.ZIP",
    r"/repos/[\w.-]+/[\w.-]+/(issues|pulls)/\d+": "/repos/a/b/pulls/3",
    # hosts and origins
    r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*": "www.example.com",
    r"^(.+\.)?example\.com$": "a.example.com",
    r"https?://([a-z0-9-]+\.)*example\.(com|org)(:[0-9]+)?": "https://a.example.org:8443",
    # headers
    r"(?i)bearer .*": "Bearer abc",
    r"(?i)basic [a-z0-9+/]+=*": "Basic YTpi",
    r".*(iPhone|Android|Mobile).*": "Mozilla/5.0 (iPhone)",
    r".*Chrome/[0-9]+\..*": "Mozilla Chrome/120.0",
    r"(?i).*(bot|crawler|spider|slurp|curl|wget|python-requests).*": "Googlebot/2.1",
    r"^(.*?;)?\s*(user=jason)(;.*)?$": "a=b; user=jason; c=d",
    r"^(.*?;\s*)?(session|sid)=([0-9a-f]{32})(;.*)?$": "a=b; sid=" + "0a" * 16,
    r"application/(json|grpc(\+proto)?|vnd\.[a-z0-9.+-]+)(;.*)?": "application/json; charset=utf-8",
    r"text/(html|plain)(;\s*charset=[\w-]+)?": "text/html; charset=utf-8",
    r"[a-z]{2}(-[A-Z]{2})?(,[a-z]{2}(-[A-Z]{2})?(;q=[01](\.[0-9]{1,3})?)?)*": "de-DE,en;q=0.8",
    r"\p{L}{1,60}": "M\u00fcller",
    r"[\p{L}\p{N} .,'-]{1,100}": "Anna-Lena O'Neil, 3",
    r"\d{3}-\d{2}-\d{4}": "123-45-6789",
    r"[0-9]{1,3}(\.[0-9]{1,3}){3}": "192.0.2.1",
    r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$": "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01",
    r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}": "a.b@example.com",
    r"tenant-[a-z0-9]{1,40}": "tenant-a1",
    r"(canary|beta|v[0-9]+(\.[0-9]+){0,2})": "v1.2.3",
    r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*": "eyJh.eyJz.c2ln",
    # queries
    r"(true|false|1|0|yes|no)": "yes",
    r"[0-9]{1,10}": "42",
    r".*(union|select|insert|drop).*": "1 union select",
    r"[^<>]*": "plain",
}
"""Looked for in 8 KB at most."""

OF_GUARDS: Final = {
    r"\d{3}-\d{2}-\d{4}": "123-45-6789",
    r"\b\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}\b": "4111 1111 1111 1111",
    r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}": "a@example.com",
    r"\+?[0-9]{1,3}[ .-]?\(?[0-9]{2,4}\)?[ .-]?[0-9]{3,4}[ .-]?[0-9]{3,4}": "+49 30 1234 5678",
    r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}": "DE89370400440532013000",
    r"(?i)(api[_-]?key|secret|token|password)\s*[:=]\s*\S+": "api_key = abc",
    r"sk-[A-Za-z0-9]{20,}": "sk-" + "a1" * 12,
    r"AKIA[0-9A-Z]{16}": "AKIA" + "A1" * 8,
    r"gh[pousr]_[A-Za-z0-9]{36}": "ghp_" + "a1" * 18,
    r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+": "eyJa.b.c",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----": "-----BEGIN RSA PRIVATE KEY-----",
    r"(?i)ignore (all )?(previous|prior) instructions": "Ignore previous instructions",
    r"(?i)\b(bomb|weapon|explosive)s?\b": "weapons",
    r"(?i)<script[^>]{0,500}>": "<SCRIPT src=x>",
    r"(?i)<script[^>]*>.*?</script>": "<script>x</script>",
    r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b": "192.0.2.1",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "01234567-89ab-cdef-0123-456789abcdef",
    r"https?://[^\s<>\"]{1,500}": "https://example.com/x",
    r"\bproject[- ]?(falcon|eagle)\b": "project falcon",
    r"(?i)(drop|delete|truncate)\s+(table|database)\s+\w+": "drop table users",
}
"""Looked for in 256 KB."""
