"""Numbers of tokens of a request of Messages as other APIs count them. Pure.

Source: Amazon Bedrock API reference (CountTokens), Gemini API and Vertex AI references (countTokens).
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final

import msgspec

from dataplane.llm import translation
from dataplane.llm.clouds.bedrock import VERSION
from dataplane.llm.formats.contract import Unreadable
from dataplane.llm.formats.reading import encode, of_peer
from dataplane.llm.paths import of_gemini
from dataplane.llm.routes import Format
from dataplane.llm.shapes.contract import Converted

if TYPE_CHECKING:
    from dataplane.http.heads import Head
    from dataplane.llm.body import Body
    from dataplane.llm.shapes.contract import Wanted


def bedrock(body: Body, wanted: Wanted) -> Converted:
    """The request is wrapped as it would be sent for an answer, which must have a bound."""
    body.remove("model")
    body.remove("stream")
    body.set(*VERSION)
    if "max_tokens" not in body:
        body.set("max_tokens", b"1")
    inner = b64encode(body.written()).decode()
    return Converted(encode({"input": {"invokeModel": {"body": inner}}}), _of_bedrock)


def _of_bedrock(data: bytes, head: Head) -> bytes:
    return _counted(data, "inputTokens")


_VERTEX: Final = ("contents", "systemInstruction", "tools", "generationConfig")
"""What of a request for an answer one to count has there."""


def vertex(body: Body, wanted: Wanted) -> Converted:
    asked, dropped = _generating(body, wanted)
    sent = {name: asked[name] for name in _VERTEX if name in asked}
    return Converted(encode(sent), _of_google, dropped)


def gemini(body: Body, wanted: Wanted) -> Converted:
    """The whole request for an answer is counted, which names its model."""
    asked, dropped = _generating(body, wanted)
    named = {"model": f"models/{of_gemini(wanted.model)}", **asked}
    return Converted(encode({"generateContentRequest": named}), _of_google, dropped)


_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _generating(body: Body, wanted: Wanted) -> tuple[dict[str, msgspec.Raw], tuple[str, ...]]:
    """Fields of the request for an answer, and those of the client's that it leaves out. Raises `Malformed`, also for
    what cannot be said."""
    into = (Format.GENERATE_CONTENT,)
    made = translation.translated(Format.MESSAGES, body.written(), wanted.provider, wanted.drops, into=into)
    return _fields.decode(made.body), made.dropped


def _of_google(data: bytes, head: Head) -> bytes:
    return _counted(data, "totalTokens")


def _counted(data: bytes, name: str) -> bytes:
    tokens = of_peer(data).get(name)
    if type(tokens) is not int:
        raise Unreadable("the answer has no number of tokens")
    return encode({"input_tokens": tokens})
