"""`python -m dataplane.guards.trial`: what guards make of one text, for `gatewright guard`.

It reads the size of an `AiPromptGuard` (4 bytes, big-endian), that message, then the text; and writes JSON. The engine
is that of requests, but for servers: they are not asked, and pass everything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError

from dataplane.chain.filter import Refused
from dataplane.guards import building
from dataplane.guards.judging import Judge, Track
from dataplane.guards.plan import Guard, Guards, Rejected
from dataplane.guards.values import Action, Phase, Scope, Text
from dataplane.guards.verdicts import PASSED, Verdict
from gatewright.turns import at_once
from gatewright.wire.v1 import ai_pb2

SIZE: Final = 4
REFUSED: Final = 1
"""Exit code where guards cannot be built; the reason is on standard error."""
_TOKEN: Final = 4
"""Characters of a piece of a stream, which is about a token of a model."""
_PIECES: Final = 16_384
"""A longer text comes in larger pieces, so that a large one is no matter of minutes."""
_NOT_ASKED: Final = "NotAsked"


def main(scope: str) -> int:
    data = sys.stdin.buffer.read()
    size = int.from_bytes(data[:SIZE])
    try:
        config = ai_pb2.AiPromptGuard.FromString(data[SIZE : SIZE + size])
        guards = building.guards(_without_servers(config))
    except (DecodeError, Refused) as error:
        sys.stderr.write(f"{error}\n")
        return REFUSED
    text = Text(data[SIZE + size :].decode(), Scope(scope))
    found = at_once(judged(guards, text).__await__())  # guards wait for nothing here: no server is asked
    sys.stdout.write(json.dumps(found))
    return 0


def _without_servers(config: ai_pb2.AiPromptGuard) -> ai_pb2.AiPromptGuard:
    """Servers get an address that is never asked: there is none without a proxy."""
    for each in (*config.request, *config.response):
        kind = each.WhichOneof("kind")
        if kind is not None and kind != "regex":
            getattr(each, kind).backend = kind
    return config


async def judged(guards: Guards, text: Text) -> dict[str, Any]:
    """By phase: `text` as it would go on, or who `rejected` it; what each of the `guards` did; and the `stream`."""
    found: dict[str, Any] = {}
    for phase in Phase:
        if guards.of(phase):
            found[phase.lower()] = await _of_phase(guards, phase, text)
    return found


async def _of_phase(guards: Guards, phase: Phase, text: Text) -> dict[str, Any]:
    acted: dict[str, str] = {}

    async def ask(guard: Guard, _: Phase, __: Sequence[Text]) -> Verdict:
        acted[guard.name] = _NOT_ASKED
        return PASSED

    def count(guard: Guard, _: Phase, action: Action) -> None:
        acted[guard.name] = action

    judge = Judge(guards, phase, ask, count)
    found: dict[str, Any] = {"guards": acted}
    try:
        (found["text"],) = await judge.texts([text])
    except Rejected as rejected:
        guard = rejected.guard
        found["rejected"] = {"guard": guard.name, "statusCode": guard.status, "message": guard.message}
    if phase is Phase.RESPONSE:
        found["stream"] = await _on_a_stream(judge.track(text), text.text, guards.bound)
    return found


async def _on_a_stream(track: Track, text: str, bound: int) -> dict[str, Any]:
    """`text`: as it is in the end; `mostHeld`: bytes that waited at a time, after any piece."""
    given, most = [], 0
    for piece in _pieces(text):
        given.append(await track.feed(piece))
        most = max(most, track.held)
    waits = track.held
    given.append(await track.feed("", True))
    return {"text": "".join(given), "holdBack": bound, "mostHeld": most, "heldAtEnd": waits}


def _pieces(text: str) -> Iterator[str]:
    size = max(_TOKEN, len(text) // _PIECES)
    return (text[start : start + size] for start in range(0, len(text), size))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
