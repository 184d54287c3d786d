"""Ranking and counting as Amazon Bedrock has them: each one request and one answer of the format's shape. Pure.

Source: Amazon Bedrock user guide (rerank models with InvokeModel) and API reference (CountTokens).
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from dataplane.llm.body import Malformed
from dataplane.llm.clouds.bedrock import VERSION
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.reading import dicts, encode, of_peer, put
from dataplane.llm.losses import Inexpressible
from dataplane.llm.paths import Converted

if TYPE_CHECKING:
    from dataplane.http.heads import Head
    from dataplane.llm.body import Body

_OF_RERANK: Final = frozenset(("model", "query", "documents", "top_n"))
_COHERES: Final = 2
"""The version of its API whose documents are texts."""


def rerank(body: Body, model: str) -> Converted:
    for name in body.names:
        if name in body and name not in _OF_RERANK:
            raise Inexpressible(name, "it is not known there")
    query, documents = body.text("query"), body.value("documents")
    if query is None:
        raise Malformed("query", "must be a text")
    if type(documents) is not list or not all(type(each) is str for each in documents):
        raise Malformed("documents", "must be an array of texts")
    sent: dict[str, Any] = put({"query": query, "documents": documents}, top_n=body.value("top_n"))
    if "cohere" in model:
        sent["api_version"] = _COHERES
    return Converted(encode(sent), _ranked)


def _ranked(data: bytes, head: Head) -> bytes:
    found = of_peer(data)
    if type(found.get("results")) is not list:
        raise Unreadable("the answer has no results")
    results = [
        {"index": each.get("index"), "relevance_score": each.get("relevance_score")} for each in dicts(found["results"])
    ]
    return encode({"results": results, "meta": {"api_version": {"version": "2"}}})


def counted(body: Body, model: str) -> Converted:
    """The request is wrapped as it would be sent for an answer, which must have a bound."""
    body.remove("model")
    body.remove("stream")
    body.set(*VERSION)
    if "max_tokens" not in body:
        body.set("max_tokens", b"1")
    inner = b64encode(body.written()).decode()
    return Converted(encode({"input": {"invokeModel": {"body": inner}}}), _count)


def _count(data: bytes, head: Head) -> bytes:
    tokens = of_peer(data).get("inputTokens")
    if type(tokens) is not int:
        raise Unreadable("the answer has no number of tokens")
    return encode({"input_tokens": tokens})
