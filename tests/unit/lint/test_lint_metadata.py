"""OAuth metadata of MCP routes that another route of the listener takes."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.lint.lint import Document, lint
from tests.harness import yamls

MCP = {"targets": [{"name": "one", "static": {"host": "127.0.0.1", "port": 9001}}]}
JWT = {"providers": [{"issuer": "https://a.test", "audiences": ["a"], "jwks": {"inline": '{"keys": []}'}}], "mcp": {}}
WELL_KNOWN = ("/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server")


def route(name: str, *paths: str, policies: Any = None, **more: Any) -> dict[str, Any]:
    matches = [{"path": {"type": "PathPrefix", "value": path}} for path in paths]
    made = {"name": name, "backends": [{"mcp": MCP}], "policies": policies or {}, **more}
    return {**made, "matches": matches} if matches else made


def found(*routes: Any) -> list[str]:
    text = yamls.dump({"binds": [{"port": 80, "listeners": [{"name": "http", "routes": [*routes]}]}]})
    return [str(each) for each in lint([Document("a.yaml", text)]) if "is hidden" in str(each)]


TOOLS = route("tools", "/mcp", policies={"jwtAuthentication": JWT})


@pytest.mark.parametrize("site", [route("site"), route("site", "/"), route("site", "/x", "/.well-known/")])
def test_metadata_that_another_route_takes_is_named(site: Any) -> None:
    (line,) = found(site, TOOLS)
    assert (
        "routes[1].policies.jwtAuthentication.mcp: warning: is hidden: route site of this listener takes /.well-known"
        in line
    )


@pytest.mark.parametrize(
    "routes",
    [
        (TOOLS,),
        (TOOLS, route("other", "/other")),
        (route("site"), route("tools", policies={"jwtAuthentication": JWT})),
        (route("site"), route("tools", "/mcp", *WELL_KNOWN, policies={"jwtAuthentication": JWT})),
        (route("site", hostnames=["a.test"]), {**TOOLS, "hostnames": ["b.test"]}),
        (route("site"), route("tools", "/mcp")),
    ],
)
def test_what_is_found_is_no_problem(routes: Any) -> None:
    assert found(*routes) == []
