"""What we make of a file of Gateway API: the verdict of each object, and the conditions of those that we serve.

One line for each kind and verdict, as it stands in `verdicts.txt`:

    2 TCPRoute unsupported kind
    1 Gateway valid, waits for spec.listeners[].protocol
    1 HTTPRoute valid, ResolvedRefs=BackendNotFound
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from controlplane.facts import fact_of
from controlplane.translate.program import Program
from gatewright.api.decode import documents
from gatewright.api.decode.documents import Decoded
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.names import CONTROLLER_NAME, GATEWAY_CLASS
from gatewright.api.text.problem import Problem

CLASS = f"""
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: {GATEWAY_CLASS}}}
spec: {{controllerName: {CONTROLLER_NAME}}}
"""
OUT_OF_PLACE = {"Accepted", "ResolvedRefs"}
"""Conditions that are shown when they are not True. (Programmed is not: no proxy is connected.)"""

_CLASS_NAME = re.compile(r'(gatewayClassName:\s*)("[^"]*"|\S+)')


def judged(text: str, base: str = "") -> tuple[str, ...]:
    """The lines of a file, sorted. `base`: objects that are there beside it. Gateways become ours: examples name
    classes of nobody."""
    program = Program(lambda: 0.0)
    own = _decoded(text)
    for each in (*_beside(base), *own):
        if each.item is not None and each.key is not None:
            program.apply([fact_of(each.item)])
    lines = Counter(_line(each, program) for each in own)
    return tuple(sorted(f"{count} {line}" for line, count in lines.items()))


@lru_cache(maxsize=2)
def _beside(base: str) -> tuple[Decoded, ...]:
    """The same for hundreds of files."""
    return (*documents.decode(CLASS, ""), *_decoded(base))


def _decoded(text: str) -> list[Decoded]:
    filled = text.replace("{GATEWAY_CONTROLLER_NAME}", CONTROLLER_NAME)
    return documents.decode(_CLASS_NAME.sub(rf"\g<1>{GATEWAY_CLASS}", filled), "file.yaml")


def _line(decoded: Decoded, program: Program) -> str:
    if decoded.key is None:
        return f"foreign {decoded.problems[0].message.partition(' is not read')[0]}"
    kind = decoded.key.kind
    named = {_place(each) for each in decoded.problems if each.severity == "error"}
    if decoded.verdict != "valid":
        return " ".join((kind, decoded.verdict, *sorted(named)))
    waits = [f"waits for {_place(each)}" for each in decoded.problems if each.unsupported]
    return ", ".join((f"{kind} valid", *sorted(set(waits)), *_conditions(decoded, program)))


def _place(problem: Problem) -> str:
    return re.sub(r"\[\d+\]", "[]", problem.path)


def _conditions(decoded: Decoded, program: Program) -> Iterator[str]:
    """`Type=Reason` of what is not True, of the object, its listeners and parents; once each."""
    assert decoded.key is not None
    if not KINDS[decoded.key.kind].served:
        return
    status = program.status(decoded.key.kind, decoded.key.namespace, decoded.key.name) or {}
    places = [status, *status.get("listeners", ()), *status.get("parents", ())]
    found = {
        f"{row['type']}={row['reason']}"
        for place in places
        for row in place.get("conditions", ())
        if row["type"] in OUT_OF_PLACE and row["status"] != "True"
    }
    yield from sorted(found)
