"""The decoder of the directory source: `gatewright.api.decode.documents` for a piece of a file, as `tree` wants it.

An object whose settings are valid but not supported yet is an object: translation refuses it with a condition.
"""

from __future__ import annotations

from collections.abc import Iterable

from controlplane.sources.file_state import Decoded, Object
from gatewright.api.decode import documents
from gatewright.api.schema.metadata import KubeObject, ObjectKey
from gatewright.api.text.problem import Problem


def decode(piece: str) -> Decoded:
    """Decodes one piece that `file_state.cut` made; lines count within it."""
    return _gathered(
        item
        for line, document in documents.split_documents(piece)
        for item in documents.decode_document(document, "", line)
    )


def _gathered(decoded: Iterable[documents.Decoded]) -> Decoded:
    objects: list[Object] = []
    problems: list[Problem] = []
    named: list[ObjectKey] = []
    remains: list[Object] = []
    is_broken = is_partial = False
    for each in decoded:
        problems += each.problems
        item = each.item or each.partial
        is_partial |= each.partial is not None
        if item is not None:
            objects.append(Object(item.key, item, item))
        elif each.verdict == "invalid" and each.key is not None:
            named.append(each.key)
            if each.remains is not None:
                remains.append(Object(each.key, each.remains, each.remains))
        elif each.verdict == "invalid":
            is_broken = True
    return Decoded(tuple(objects), tuple(problems), tuple(named), is_broken, tuple(remains), is_partial)


def with_generation(model: KubeObject, generation: int) -> KubeObject:
    """The object as an API server would give it."""
    metadata = model.metadata.model_copy(update={"generation": generation})
    return model.model_copy(update={"metadata": metadata})
