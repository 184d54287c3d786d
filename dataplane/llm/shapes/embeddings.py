"""Embeddings as models of clouds have them: each one request and one answer of OpenAI's shape. Pure.

Source: Amazon Bedrock user guide (inference parameters), Vertex AI reference (text embeddings).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dataplane.llm.body import Malformed
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.reading import dicts, encode, of_peer, part, put
from dataplane.llm.losses import Inexpressible
from dataplane.llm.shapes.contract import Converted
from dataplane.llm.shapes.fields import left_out
from dataplane.llm.usage import MOST

if TYPE_CHECKING:
    from dataplane.http.heads import Head
    from dataplane.llm.body import Body
    from dataplane.llm.shapes.contract import Wanted

_KNOWN: Final = frozenset(("model", "input", "dimensions", "encoding_format"))
_COUNT: Final = b"x-amzn-bedrock-input-token-count"
_Read = Callable[[bytes, "Head"], tuple[list[Any], int | None]]
"""Vectors, and how many tokens the input had."""


def _input(body: Body) -> list[str]:
    """Raises `Malformed`."""
    found = body.value("input")
    texts = [found] if type(found) is str else found
    if type(texts) is not list or not texts:
        raise Malformed("input", "must be a text or an array of texts")
    if not all(type(each) is str for each in texts):
        raise Inexpressible("input", "it takes texts, no tokens")
    return texts


def _one(body: Body) -> str:
    texts = _input(body)
    if len(texts) > 1:
        raise Inexpressible("input", "this model takes one text in a request")
    return texts[0]


def _dimensions(body: Body) -> int | None:
    found = body.value("dimensions")
    if found is not None and type(found) is not int:
        raise Malformed("dimensions", "must be a whole number")
    return found


def _converted(sent: dict[str, Any], read: _Read, body: Body, wanted: Wanted) -> Converted:
    """Raises `Malformed`, also for a field that no other API has."""
    dropped = left_out(body, _KNOWN, wanted.drops)
    form = body.value("encoding_format")
    if form not in (None, "float", "base64"):
        raise Malformed("encoding_format", "must be float or base64")
    return Converted(encode(sent), partial(_answer, read, wanted.model, form == "base64"), dropped)


def _answer(read: _Read, model: str, is_packed: bool, data: bytes, head: Head) -> bytes:
    vectors, tokens = read(data, head)
    items = [
        {"object": "embedding", "index": index, "embedding": _packed(each) if is_packed else each}
        for index, each in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens or 0, "total_tokens": tokens or 0}
    return encode({"object": "list", "data": items, "model": model, "usage": usage})


def _packed(vector: Any) -> str:  # Any: JSON of a provider
    """As OpenAI's clients ask for it by default: numbers of four bytes, the least byte first."""
    try:
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    except (struct.error, TypeError, OverflowError):
        raise Unreadable("an embedding has something else than numbers") from None


def _vectors(found: Any) -> list[Any]:
    if type(found) is not list or not all(type(each) is list for each in found):
        raise Unreadable("the answer has no embeddings")
    return found


def _counted(head: Head) -> int | None:
    value = head.get(_COUNT) or b""
    return int(value) if value.isdigit() and len(value) < 10 else None


# --- Amazon Titan, Amazon Nova, Cohere on Bedrock


def titan(body: Body, wanted: Wanted) -> Converted:
    return _converted(put({"inputText": _one(body)}, dimensions=_dimensions(body)), _of_titan, body, wanted)


def _of_titan(data: bytes, head: Head) -> tuple[list[Any], int | None]:
    found = of_peer(data)
    tokens = found.get("inputTextTokenCount")
    return _vectors([found.get("embedding")]), tokens if type(tokens) is int else None


def nova(body: Body, wanted: Wanted) -> Converted:
    text = {"truncationMode": "NONE", "value": _one(body)}
    params = put({"embeddingPurpose": "GENERIC_INDEX", "text": text}, embeddingDimension=_dimensions(body))
    sent = {
        "schemaVersion": "nova-multimodal-embed-v1",
        "taskType": "SINGLE_EMBEDDING",
        "singleEmbeddingParams": params,
    }
    return _converted(sent, _of_nova, body, wanted)


def _of_nova(data: bytes, head: Head) -> tuple[list[Any], int | None]:
    found = dicts(of_peer(data).get("embeddings"))
    return _vectors([each.get("embedding") for each in found]), _counted(head)


def cohere(body: Body, wanted: Wanted) -> Converted:
    sent = {"texts": _input(body), "input_type": "search_document", "embedding_types": ["float"]}
    return _converted(put(sent, output_dimension=_dimensions(body)), _of_cohere, body, wanted)


def _of_cohere(data: bytes, head: Head) -> tuple[list[Any], int | None]:
    found = of_peer(data).get("embeddings")
    return _vectors(found.get("float") if type(found) is dict else found), _counted(head)


# --- Vertex AI


def vertex(body: Body, wanted: Wanted) -> Converted:
    sent: dict[str, Any] = {"instances": [{"content": text} for text in _input(body)]}
    return _converted(put(sent, parameters=put({}, outputDimensionality=_dimensions(body))), _of_vertex, body, wanted)


def _of_vertex(data: bytes, head: Head) -> tuple[list[Any], int | None]:
    found = [part(each, "embeddings") for each in dicts(of_peer(data).get("predictions"))]
    counts = [part(each, "statistics").get("token_count") for each in found]
    tokens = sum(int(each) for each in counts if isinstance(each, (int, float)) and 0 <= each <= MOST)
    return _vectors([each.get("values") for each in found]), tokens
