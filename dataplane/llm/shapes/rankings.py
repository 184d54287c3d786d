"""Rankings as clouds have them: each one request and one answer of Cohere's shape. Pure.

Source: Amazon Bedrock user guide (rerank models with InvokeModel), reference of Google's ranking API
(`rankingConfigs.rank`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dataplane.llm.body import Malformed
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.reading import dicts, encode, of_peer, put
from dataplane.llm.shapes.contract import Converted
from dataplane.llm.shapes.fields import left_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.http.heads import Head
    from dataplane.llm.body import Body
    from dataplane.llm.shapes.contract import Wanted

_KNOWN: Final = frozenset(("model", "query", "documents", "top_n"))
_COHERES: Final = 2
"""The version of its API whose documents are texts."""


def bedrock(body: Body, wanted: Wanted) -> Converted:
    query, documents, dropped = _asked(body, wanted)
    sent: dict[str, Any] = put({"query": query, "documents": documents}, top_n=body.value("top_n"))
    if "cohere" in wanted.model:
        sent["api_version"] = _COHERES
    return Converted(encode(sent), _of_bedrock, dropped)


def _of_bedrock(data: bytes, head: Head) -> bytes:
    return _ranked((each.get("index"), each.get("relevance_score")) for each in _rows(data, "results"))


def vertex(body: Body, wanted: Wanted) -> Converted:
    """Documents are records, whose ids are their places."""
    query, documents, dropped = _asked(body, wanted)
    records = [{"id": str(index), "content": text} for index, text in enumerate(documents)]
    sent = {"model": wanted.model, "query": query, "records": records, "ignoreRecordDetailsInResponse": True}
    return Converted(encode(put(sent, topN=body.value("top_n"))), partial(_of_vertex, len(documents)), dropped)


def _of_vertex(count: int, data: bytes, head: Head) -> bytes:
    places = {str(index): index for index in range(count)}
    return _ranked((_place(places, each.get("id")), each.get("score", 0.0)) for each in _rows(data, "records"))


def _place(places: dict[str, int], found: Any) -> int:  # Any: JSON of a provider
    place = places.get(found) if type(found) is str else None
    if place is None:
        raise Unreadable("a record has an id that none of the documents has")
    return place


# --- what is common


def _asked(body: Body, wanted: Wanted) -> tuple[str, list[str], tuple[str, ...]]:
    """Query and documents, and the fields that are left out. Raises `Malformed`."""
    dropped = left_out(body, _KNOWN, wanted.drops)
    query, documents = body.text("query"), body.value("documents")
    if query is None:
        raise Malformed("query", "must be a text")
    if type(documents) is not list or not all(type(each) is str for each in documents):
        raise Malformed("documents", "must be an array of texts")
    top = body.value("top_n")
    if top is not None and type(top) is not int:
        raise Malformed("top_n", "must be a whole number")
    return query, documents, dropped


def _rows(data: bytes, name: str) -> list[dict[str, Any]]:  # Any: as above
    found = of_peer(data).get(name)
    if type(found) is not list:
        raise Unreadable(f"the answer has no {name}")
    return list(dicts(found))


def _ranked(rows: Iterable[tuple[Any, Any]]) -> bytes:  # Any: as above
    results = [{"index": index, "relevance_score": score} for index, score in rows]
    return encode({"results": results, "meta": {"api_version": {"version": "2"}}})
