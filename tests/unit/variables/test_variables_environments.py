"""What an expression of each moment may read, and how it is told when it reads too early."""

from __future__ import annotations

import pytest

from gatewright.cel.errors import CelCheckError
from gatewright.cel.program import compile_expression
from gatewright.variables.environments import environment
from gatewright.variables.later import explained
from gatewright.variables.moments import MOMENTS, Moment, exists

READS = [
    ("connection", 'cidr("10.0.0.0/8").containsIP(source.address)', {"source.address"}),
    ("connection", "destination.port == 443 && has(source.identity)", {"destination.port", "source.identity"}),
    ("request", 'request.headers["X-Team"] == "a"', {"request.headers:x-team"}),
    ("request", "request.headers.host", {"request.headers:host"}),
    ("request", '"admin" in jwt.groups', {"jwt"}),
    ("request", "jwt.rawToken.unredacted()", {"jwt.rawToken"}),
    ("request", "json(request.body).model", {"request.body"}),
    ("request", "apiKey.group", {"apiKey"}),
    ("request", "mcp.tool.name + mcp.tool.target", {"mcp.tool.name", "mcp.tool.target"}),
    ("request", 'a2a.method == "message/send"', {"a2a.method"}),
    ("request", 'llm.prompt.exists(m, m.role == "system")', {"llm.prompt"}),
    ("response", "response.code >= 500 || request.method == 'GET'", {"response.code", "request.method"}),
    ("response", "llm.totalTokens * 2", {"llm.totalTokens"}),
    ("end", "request.endTime - request.startTime", {"request.endTime", "request.startTime"}),
    ("end", "variables()", {"*"}),
]


@pytest.mark.parametrize(("moment", "text", "reads"), READS)
def test_reads(moment: Moment, text: str, reads: set[str]) -> None:
    assert compile_expression(text, environment(moment)).references.attributes == reads


@pytest.mark.parametrize(("moment", "text", "reads"), READS)
def test_what_exists_goes_on_existing(moment: Moment, text: str, reads: set[str]) -> None:
    for later in MOMENTS:
        if exists(moment, later):
            compile_expression(text, environment(later))


@pytest.mark.parametrize(
    ("moment", "text", "message"),
    [
        ("connection", "request.path", '"request" does not exist yet: this is evaluated with the connection, it exists'
         " with the request"),
        ("request", "1 + response.code", '"response" does not exist yet: this is evaluated with the request, it exists'
         " with the response"),
        ("request", "request.endTime", '"endTime" does not exist yet: this is evaluated with the request, it exists'
         " when all is over"),
        ("response", "proxy.responseProcessingDuration", '"responseProcessingDuration" does not exist yet: this is'
         " evaluated with the response, it exists when all is over"),
        ("request", "requset.path", 'unknown variable "requset"; did you mean "request"?'),
        ("end", "request.pth", 'request has no field "pth"; did you mean "path"?'),
        ("end", "source.identity.namespce", 'source.identity has no field "namespce"; did you mean "namespace"?'),
        ("end", "request.path == 1", "no such operation: string == int"),
    ],
)  # fmt: skip
def test_refused(moment: Moment, text: str, message: str) -> None:
    with pytest.raises(CelCheckError) as refused:
        compile_expression(text, environment(moment))
    (problem,) = explained(text, moment, refused.value.problems)
    assert problem.message + problem.hint == message


def test_what_comes_later_is_named_on_any_line_and_beside_other_mistakes() -> None:
    text = "request.path == '/' &&\n  response.code == 200 ||\n    requset.path == '/'"
    with pytest.raises(CelCheckError) as refused:
        compile_expression(text, environment("request"))
    later, other = explained(text, "request", refused.value.problems)
    assert (later.line, later.column, later.message.split()[0], later.hint) == (2, 3, '"response"', "")
    assert (other.line, other.hint) == (3, '; did you mean "request"?')
    assert explained(text, "end", refused.value.problems) == refused.value.problems


def test_open_objects_have_any_field() -> None:
    for text in ("jwt.anything.at.all", "apiKey.anything", "extauthz.anything", "metadata.anything", "llmRequest.x"):
        compile_expression(text, environment("request"))


def test_one_environment_for_each_moment() -> None:
    assert environment("request") is environment("request")
    assert environment("request") is not environment("response")
